// SPDX-License-Identifier: Apache-2.0
// Latencies at percentiles: how the slow requests fare, not only the average one.
#include "chart.hpp"
#include "html_text.hpp"
#include "html_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace servetune {
namespace {

/// `time_to_first_token_p95_seconds` is `time_to_first_token` at 95; nothing for other metrics.
std::optional<std::pair<std::string, int>> latency_percentile(const std::string& metric) {
    constexpr std::string_view unit = "_seconds";
    if (!shown_in_milliseconds(metric) || metric.starts_with("client_")) return std::nullopt;
    const std::string name = metric.substr(0, metric.size() - unit.size());
    const auto at = name.rfind("_p");
    if (at == std::string::npos || name.size() - at < 3 || name.size() - at > 4)
        return std::nullopt;
    const std::string level = name.substr(at + 2);
    if (!std::all_of(level.begin(), level.end(), [](char c) { return c >= '0' && c <= '9'; }))
        return std::nullopt;
    return std::pair(name.substr(0, at), std::stoi(level));
}

}  // namespace

std::vector<LatencyFamily> latency_families(const HtmlView& page) {
    std::vector<std::pair<std::string, std::vector<std::pair<int, std::size_t>>>> found;
    for (std::size_t i = 0; i < page.metrics.size(); ++i) {
        const auto percentile = latency_percentile(page.metrics[i]);
        if (!percentile) continue;
        auto family = std::find_if(found.begin(), found.end(),
                                   [&](const auto& one) { return one.first == percentile->first; });
        if (family == found.end()) family = found.insert(found.end(), {percentile->first, {}});
        family->second.emplace_back(percentile->second, i);
    }
    std::vector<LatencyFamily> result;
    for (auto& [name, levels] : found) {
        if (levels.size() < 2) continue;
        std::sort(levels.begin(), levels.end());
        LatencyFamily family{metric_title(name + "_p50_seconds"), {}};
        if (const auto level = family.title.find(" p50 (ms)"); level != std::string::npos)
            family.title.erase(level);
        for (const auto& [level, place] : levels)
            family.levels.emplace_back("p" + std::to_string(level), place);
        result.push_back(std::move(family));
    }
    return result;
}

std::string latency_figure(const HtmlView& page) {
    const std::vector<LatencyFamily> families = latency_families(page);
    const auto of_kind = [&](std::string_view kind) {
        const auto row = std::find_if(page.rows.begin(), page.rows.end(),
                                      [&](const HtmlRow& one) { return one.kind == kind; });
        return row == page.rows.end() ? nullptr : &*row;
    };
    const HtmlRow* const usual = of_kind("usual");
    const HtmlRow* const recommended = of_kind("recommended");
    if (families.empty()) return "";
    std::string choices;
    std::string figures;
    std::string rows;
    const std::string caption =
        "How long requests took: half of them at most p50, 99 of 100 at most p99. The default is "
        "the broken line; any other trial can be "
        "set beside it.";
    for (std::size_t k = 0; k < families.size(); ++k) {
        const LatencyFamily& family = families[k];
        choices += fmt::format("<option value=\"{}\">{}</option>", k, page.shown(family.title));
        ChartAxis levels{"percentile", -0.2, static_cast<double>(family.levels.size()) - 0.8, true,
                         true};
        std::vector<double> ys;
        std::vector<std::pair<const HtmlRow*, std::vector<Chart::Point>>> curves;
        for (const HtmlRow* row : {usual, recommended}) {
            if (row == nullptr) continue;
            std::vector<Chart::Point> points;
            for (std::size_t i = 0; i < family.levels.size(); ++i)
                if (const auto value =
                        value_in(row->means, page.metrics[family.levels[i].second])) {
                    points.push_back({static_cast<double>(i), *value * 1e3});
                    ys.push_back(points.back().y);
                }
            curves.emplace_back(row, std::move(points));
        }
        for (const auto& [level, place] : family.levels) {
            levels.names.push_back(level);
            const auto cell = [&, &place = place](const HtmlRow* row) {
                const auto value =
                    row == nullptr ? std::nullopt : value_in(row->means, page.metrics[place]);
                return "<td>" +
                       (value ? plain_figure_text(page.metrics[place], *value) : std::string("–")) +
                       "</td>";
            };
            rows += fmt::format("<tr data-metric=\"{}\"><td>{}</td>{}{}</tr>\n", place,
                                page.shown(metric_title(page.metrics[place])), cell(usual),
                                recommended == nullptr ? "" : cell(recommended));
        }
        Chart chart(family.title + " at percentiles",
                    recommended == nullptr ? "the default"
                                           : "the default and the recommended configuration",
                    levels, axis_for(family.title + " (ms)", ys, true), 260);
        for (const auto& [row, points] : curves) {
            chart.line(points, row == usual ? "usual even" : "best");
            for (const Chart::Point& point : points)
                chart.mark(
                    {point, row->kind,
                     fmt::format("{}\n{}: {} ms", row == usual ? "the default" : "recommended",
                                 family.levels[static_cast<std::size_t>(point.x)].first,
                                 tick_text(point.y, 0.1)),
                     page.row_of(row->standing->configuration)});
        }
        chart.line({}, "trial");
        for (std::size_t i = 0; i < family.levels.size(); ++i)
            chart.mark({{static_cast<double>(i), Chart::nowhere}, "trial", ""});
        figures += html_figure(chart.svg(), caption, fmt::format("latency-{}", k));
    }
    std::string trials = "<option value=\"\">none</option>";
    for (const Trial& trial : page.view.trials)
        if (trial.measurement() != nullptr && page.row_of(trial.configuration))
            trials += fmt::format("<option value=\"{}\">{}{}</option>", trial.id, trial.id,
                                  page.shown(trial.workload.empty() ? "" : ", " + trial.workload));
    return "<div class=\"tools only-script\"><label>Latency: <select id=\"latency-family\">" +
           choices + "</select></label>\n<label>Beside it, trial: <select id=\"latency-trial\">" +
           trials + "</select></label></div>\n" +
           "<ul class=\"key\"><li><span class=\"swatch usual\"></span>the default</li>" +
           (recommended == nullptr
                ? ""
                : "<li><span class=\"swatch recommended\"></span>recommended</li>") +
           "<li class=\"only-script\"><span class=\"swatch trial\"></span>the chosen "
           "trial</li></ul>\n" +
           figures +
           "<details class=\"data\"><summary>Latencies as a table</summary>\n<div class=\"wide\" "
           "tabindex=\"0\" role=\"region\" "
           "aria-label=\"Latencies as a table\"><table id=\"latency-table\"><thead><tr><th "
           "scope=\"col\">latency</th><th "
           "scope=\"col\">default</th>" +
           (recommended == nullptr ? "" : "<th scope=\"col\">recommended</th>") +
           "</tr></thead><tbody>\n" + rows + "</tbody></table></div></details>\n";
}

}  // namespace servetune
