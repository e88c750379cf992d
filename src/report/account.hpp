// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ladder.hpp"
#include "report_view.hpp"
#include "serving_cost.hpp"
#include "what_limits.hpp"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What further trials would bring.
struct OneMoreHour {
    FurtherGain further{};
    double seconds =
        0;  ///< that so many trials take at the study's pace; 0: nothing is measured, so it has none
    bool likely = false;  ///< a gain worth having is more likely than not
};

/// A study as a person asks about it: how the recommendation comes about, what keeps it from being
/// better, what more time would bring, what it costs. One model for `explain` and all reports.
struct Account {
    std::optional<Ladder> ladder{};
    std::optional<WhatLimits> limits{};
    std::optional<OneMoreHour> hour{};
    std::string no_hour{};  ///< why nothing is said of it; empty: something is
    ServingCosts costs{};
};

/// Fits the models to the trials: as long as effects take.
Account account_of(const ReportView& view);

/// The same as fields (docs/reference/json-output.md, "explanation").
nlohmann::ordered_json account_json(const Account& account, const ReportView& view);

/// A part of an account as every report shows it: a table, and sentences below it.
struct AccountPart {
    std::string id;  ///< `ladder`, `limits`, `hour`, `cost`
    std::string title;
    std::vector<std::string> header{};
    std::vector<std::vector<std::string>> rows{};
    std::vector<std::string> sentences{};
};
std::vector<AccountPart> account_parts(const Account& account, const ReportView& view);
/// What a colleague has to know beside: risks, how to go back, how it was measured.
std::vector<AccountPart> handover_parts(const ReportView& view);

/// Of the search.
std::size_t told_trials(const ReportView& view);

std::string account_text(const std::vector<AccountPart>& parts);
std::string account_markdown(const std::vector<AccountPart>& parts);

}  // namespace servetune
