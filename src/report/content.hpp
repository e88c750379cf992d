// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "account.hpp"
#include "document.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// A told configuration, as all parts of a report show it.
struct ResultRow {
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

/// A latency that the trials have at several percentiles.
struct LatencyFamily {
    std::string title;  ///< `TTFT`
    std::vector<std::pair<std::string, std::size_t>>
        levels{};  ///< `p95` and its place in `Content::metrics`, the lowest first
};

/// How a metric's figures are drawn: times in seconds where any has that many, else in
/// milliseconds.
struct DrawnMetric {
    std::string title;  ///< `TTFT p95 (ms)`
    double factor = 1;
};

/// What the parts of a report are made from. `explained`: null where nobody asked for it.
struct Content {
    Content(const ReportView& of, std::string_view why_ended, const Explained* models);

    /// Without secrets.
    [[nodiscard]] std::string clean(std::string_view text) const {
        return view.setup.file.secrets(text);
    }
    /// Where a configuration stands in `rows`; nothing: it was not told.
    [[nodiscard]] std::optional<std::size_t> row_of(const Configuration& configuration) const;
    [[nodiscard]] const ResultRow* row_of_kind(std::string_view kind) const;
    /// A trial's figure of the leading goal.
    [[nodiscard]] std::optional<double> figure_of(const Trial& trial) const;
    [[nodiscard]] DrawnMetric drawn(const std::string& metric) const;
    /// The two metrics that stand against each other before a person chooses others: places in
    /// `metrics`.
    [[nodiscard]] std::pair<std::size_t, std::size_t> trade() const;

    const ReportView& view;
    std::string stop_reason;
    const Explained* explained;
    std::vector<ResultRow> rows{};  ///< the best first, those that do not pass last
    /// Those that at least one configuration has, those that decide first.
    std::vector<std::string> metrics{};
    std::vector<LatencyFamily> latencies{};
};

/// A figure before and after: of the goal, then of each workload where there are several.
struct GainRow {
    std::string label;
    double before = 0, after = 0;
    Gain gain{};
};
std::vector<GainRow> gain_rows(const Content& content);

/// The whole report.
Document document_of(const Content& content);
/// The parts of it that `explain` has: what was found by fitting models.
Document explanation_of(const Content& content);

// Drawings, each with its caption and fields; empty: there is nothing to draw.
std::string gain_figure(const Content& content);
std::string path_figure(const Content& content);
std::string trade_figure(const Content& content);
std::string effects_figure(const Content& content);
std::string latency_figure(const Content& content);

/// What the page's script reads: configurations and metrics, and `report`, which a person can
/// download (docs/reference/json-output.md).
std::string html_data(const Content& content, const std::string& report_json);
/// The page; `live_version`: of one that a server renews; empty: a file. What is printed is one
/// page of A4 for a colleague: the sections of the class `brief` (page/page.css).
std::string page_of(const Content& content, const std::string& report_json,
                    std::string_view live_version = "");

}  // namespace servetune
