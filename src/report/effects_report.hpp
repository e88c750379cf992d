// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report_view.hpp"
#include "servetune/detail/search/effects_floor.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace servetune {

/// What the parameters do, for both reports: fits the models, once.
struct EffectsReport {
    std::string section;  ///< "What the parameters do"; empty where the space has nothing to vary
    nlohmann::ordered_json json;  ///< as docs/reference/json-output.md has it under `effects`
};
EffectsReport effects_report(const ReportView& view);

/// Why nothing is said of the parameters, below the floor.
std::string not_said(const EffectsFloor& floor);

}  // namespace servetune
