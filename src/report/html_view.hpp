// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "account.hpp"
#include "report_view.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// A told configuration, as all parts of the page show it.
struct HtmlRow {
    const Standing* standing = nullptr;
    std::string name{};  ///< what it changes; `the default`
    /// A class of the page: recommended, usual (the default), passing, refused, failed (it gave no
    /// number).
    std::string kind{};
    std::string verdict{};
    Metrics means{};
    std::optional<double> value{};  ///< of the leading goal
    std::optional<double> gain{};   ///< over the default, as it is stated
};

/// What the parts of the page are made from.
struct HtmlView {
    HtmlView(const ReportView& of, std::string_view why_ended,
             const nlohmann::ordered_json& effects_of_it);

    /// Text of others: without secrets, escaped.
    [[nodiscard]] std::string shown(std::string_view text) const;
    [[nodiscard]] const Goal& leading() const { return view.setup.problem->objective.leading(); }
    /// Where a configuration stands in `rows`; nothing: it was not told.
    [[nodiscard]] std::optional<std::size_t> row_of(const Configuration& configuration) const;
    /// A trial's figure of the leading goal.
    [[nodiscard]] std::optional<double> figure_of(const Trial& trial) const;

    const ReportView& view;
    std::string stop_reason;
    const nlohmann::ordered_json& effects;
    std::vector<HtmlRow> rows;  ///< the best first, those that do not pass last
    std::vector<std::string>
        metrics;  ///< that at least one configuration has, those that decide first
    std::map<Configuration, std::size_t> places;
};

/// A parameter that not all configurations have the same value of.
struct VariedParameter {
    std::string name;
    std::vector<Value>
        values;  ///< those that were tried: numbers by size, the rest by text, `engine` first
};
std::vector<VariedParameter> varied_parameters(const HtmlView& page);
/// A parameter's value in JSON as people write it; null is `engine`.
std::string level_text(const nlohmann::ordered_json& level);

/// A latency that the trials have at several percentiles.
struct LatencyFamily {
    std::string title;  ///< `TTFT`
    std::vector<std::pair<std::string, std::size_t>>
        levels{};  ///< `p95` and its place in `HtmlView::metrics`, the lowest first
};
std::vector<LatencyFamily> latency_families(const HtmlView& page);

/// A part of an account: its table and its sentences.
std::string account_html(const HtmlView& page, const AccountPart& part);

// Drawings, each a figure or nothing where there is nothing to draw.
std::string gains_figure(const HtmlView& page);
std::string search_figures(const HtmlView& page);
std::string trade_figure(const HtmlView& page);
std::string parallel_figure(const HtmlView& page);
std::string effects_figure(const HtmlView& page);
std::string drift_figure(const HtmlView& page);
std::string predicted_figure(const HtmlView& page);
std::string latency_figure(const HtmlView& page);

// The data of a drawing as a table that can be opened, for who cannot see the drawing or wants the
// figures.
std::string search_table(const HtmlView& page);
/// Two metrics, by their place in `page.metrics`; the page's script writes others into it.
std::string trade_table(const HtmlView& page, std::size_t x, std::size_t y);
std::string effects_table(const HtmlView& page);

/// A drawing with its caption. `chart`: the name by which the page's script finds it.
std::string html_figure(const std::string& drawing, const std::string& caption,
                        std::string_view chart = "");

/// What the page's script reads and a person can download: configurations, trials, metrics, and
/// `report` as docs/reference/json-output.md has it.
std::string html_data(const HtmlView& page, const std::string& report_json);

}  // namespace servetune
