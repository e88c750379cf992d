// SPDX-License-Identifier: Apache-2.0
// The drawings of the page.
#include "chart.hpp"
#include "content.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace servetune {
namespace {

/// A drawing with its caption. `chart`: the name by which the page's script finds it; empty: it
/// has nothing to point at.
std::string html_figure(const std::string& drawing, const std::string& caption,
                        std::string_view chart = "") {
    const std::string name = chart.empty() ? "" : " data-chart=\"" + std::string(chart) + "\"";
    return "<figure" + name + ">" + drawing + "<figcaption>" + caption + "</figcaption></figure>\n";
}

/// A field that chooses; options are value and text.
std::string html_select(const std::string& id, const std::string& label,
                        const std::vector<std::pair<std::string, std::string>>& options,
                        const std::string& chosen = "") {
    std::string out = "<label>" + label + " <select id=\"" + id + "\">";
    for (const auto& [value, text] : options)
        out += fmt::format("<option value=\"{}\"{}>{}</option>", html_text(value),
                           !chosen.empty() && value == chosen ? " selected" : "", html_text(text));
    return out + "</select></label>\n";
}
std::string html_tools(const std::string& fields) {
    return "<div class=\"tools only-script\">" + fields + "</div>\n";
}

std::string html_key(const std::vector<std::pair<std::string, std::string>>& kinds) {
    std::string out = "<ul class=\"key\">";
    for (const auto& [kind, text] : kinds)
        out += fmt::format("<li><span class=\"swatch {}\"></span>{}</li>", kind, text);
    return out + "</ul>\n";
}

/// What the leading goal's figures are multiplied with where they are drawn: times in milliseconds.
double shown_factor(std::string_view metric) { return shown_in_milliseconds(metric) ? 1e3 : 1; }

/// `total tokens/s: 1234`, a line of a mark's label.
std::string figure_line(std::string_view metric, double shown) {
    return metric_title(metric) + ": " + tick_text(shown, 0.01);
}

/// Why a trial gave no number, else its figure.
std::string outcome_line(const Content& content, const Trial& trial) {
    if (const Failure* failure = trial.failure())
        return std::string(name_in(failure_kinds, failure->kind));
    const std::string& metric = content.view.goal().metric;
    const auto figure = content.figure_of(trial);
    return figure ? metric_title(metric) + ": " + plain_figure_text(metric, *figure) : "no number";
}

std::string trial_name(const Content& content, const Trial& trial) {
    return fmt::format("Trial {}: {}", trial.id, content.view.changes(trial.configuration));
}

std::vector<double> coordinates(const std::vector<Chart::Point>& points, double Chart::Point::*of) {
    std::vector<double> result;
    for (const Chart::Point& point : points)
        if (std::isfinite(point.*of)) result.push_back(point.*of);
    return result;
}

}  // namespace

std::string path_figure(const Content& content) {
    const Goal& goal = content.view.goal();
    const double factor = shown_factor(goal.metric);
    std::vector<double> xs;
    std::vector<double> ys;
    std::vector<const Trial*> made;
    for (const Trial& trial : content.view.trials) {
        if (!trial.of_search() || !trial.told()) continue;
        made.push_back(&trial);
        xs.push_back(double(trial.id));
        if (const auto figure = content.figure_of(trial)) ys.push_back(*figure * factor);
    }
    if (made.empty()) return "";
    ChartAxis y_axis = axis_for(metric_title(goal.metric), ys);
    y_axis.silent = ys.empty();
    ChartAxis x_axis = axis_for("trial", xs, true);
    x_axis.low = -0.5;
    x_axis.whole = true;
    Chart chart("Path of the search",
                fmt::format("{} trials, {} against trials", made.size(), metric_title(goal.metric)),
                x_axis, y_axis);
    std::vector<Chart::Point> best;
    for (const Trial* trial : made) {
        const auto figure = content.figure_of(*trial);
        const auto row = content.row_of(trial->configuration);
        const double x = double(trial->id);
        const double y = figure ? *figure * factor : y_axis.low;
        if (figure && row && content.rows[*row].standing->passes() &&
            (best.empty() || goal.better(y, best.back().y)))
            best.push_back({x, y});
        const std::string kind = row ? content.rows[*row].kind : "passing";
        chart.mark(
            {{x, y},
             !figure            ? "failed"
             : kind == "failed" ? "refused"
                                : kind,
             content.clean(trial_name(content, *trial) + "\n" + outcome_line(content, *trial)),
             row});
    }
    if (!best.empty()) best.push_back({double(made.back()->id), best.back().y});
    chart.line(best, "best", true);
    return html_key({{"recommended", "recommended"},
                     {"usual", "the default"},
                     {"", "passes"},
                     {"refused", "refused"},
                     {"failed", "no number"}}) +
           html_figure(chart.svg(),
                       "Each mark is a trial; the line is the best measured so far that passes. A "
                       "cross on the ground gave no number.",
                       "path");
}

std::string trade_figure(const Content& content) {
    if (content.metrics.size() < 2) return "";
    const auto [at_x, at_y] = content.trade();
    const std::string& x = content.metrics[at_x];
    const std::string& y = content.metrics[at_y];
    std::vector<Chart::Point> points;  // of all rows
    for (const ResultRow& row : content.rows) {
        const auto a = value_in(row.means, x);
        const auto b = value_in(row.means, y);
        points.push_back(a && b ? Chart::Point{*a * shown_factor(x), *b * shown_factor(y)}
                                : Chart::Point{Chart::nowhere, Chart::nowhere});
    }
    const std::vector<double> xs = coordinates(points, &Chart::Point::x);
    if (xs.empty()) return "";
    const auto at_least = [&](double a, double b, const std::string& metric) {
        return less_is_better(content.view.setup.file.objective, metric) ? a <= b : a >= b;
    };
    const auto beats = [&](const Chart::Point& a, const Chart::Point& b) {
        return at_least(a.x, b.x, x) && at_least(a.y, b.y, y) && (a.x != b.x || a.y != b.y);
    };
    std::vector<Chart::Point> passing;
    for (std::size_t i = 0; i < points.size(); ++i)
        if (std::isfinite(points[i].x) && content.rows[i].standing->passes())
            passing.push_back(points[i]);
    std::vector<Chart::Point> front;
    for (const Chart::Point& at : passing)
        if (none_of(passing, [&](const Chart::Point& other) { return beats(other, at); }))
            front.push_back(at);
    sort(front,
         [](const auto& a, const auto& b) { return std::pair(a.x, a.y) < std::pair(b.x, b.y); });
    Chart chart("Trade-off",
                fmt::format("{} against {}, {} configurations, {} of them on the front",
                            metric_title(y), metric_title(x), xs.size(), front.size()),
                axis_for(metric_title(x), xs),
                axis_for(metric_title(y), coordinates(points, &Chart::Point::y)), 340);
    chart.line(front, "front");
    for (std::size_t i = 0; i < points.size(); ++i) {
        const ResultRow& row = content.rows[i];
        if (row.means.empty()) continue;
        std::string label = row.name;
        if (std::isfinite(points[i].x))
            label += "\n" + figure_line(y, points[i].y) + "\n" + figure_line(x, points[i].x);
        if (!row.verdict.empty()) label += "\n" + row.verdict;
        chart.mark(
            {points[i], row.kind == "failed" ? "refused" : row.kind, content.clean(label), i});
    }
    std::vector<std::pair<std::string, std::string>> options;
    for (std::size_t i = 0; i < content.metrics.size(); ++i)
        options.emplace_back(std::to_string(i), content.clean(metric_title(content.metrics[i])));
    return html_tools(html_select("trade-y", "Up:", options, std::to_string(at_y)) +
                      html_select("trade-x", "Across:", options, std::to_string(at_x))) +
           html_figure(
               chart.svg(),
               fmt::format("{} of {} configurations that pass are on the front of these two.",
                           front.size(), passing.size()),
               "trade");
}

std::string effects_figure(const Content& content) {
    if (!content.view.scale().ratios()) return "";  // its axis is in percent
    std::vector<IntervalRow> rows;
    const Effects& effects = content.explained->effects;
    for (const MainEffect& effect : effects.main)
        if (effect.measured > 0 && effect.refused.empty())
            rows.push_back({content.clean(effect.parameter + " = " + text_of(effect.level)),
                            effect.gain.low, effect.gain.value, effect.gain.high,
                            effect.gain.low > 0    ? "better"
                            : effect.gain.high < 0 ? "worse"
                                                   : "unknown"});
    if (rows.empty()) return "";
    stable_sort(rows, [](const IntervalRow& a, const IntervalRow& b) {
        return std::pair(a.kind == "unknown", -std::abs(a.value)) <
               std::pair(b.kind == "unknown", -std::abs(b.value));
    });
    constexpr std::size_t most = 40;
    const std::size_t left_out = rows.size() > most ? rows.size() - most : 0;
    rows.resize(rows.size() - left_out);
    return html_figure(
        interval_chart("Effect of each level", fmt::format("{} levels", rows.size()), rows),
        "Grey: the interval includes 0." +
            (left_out > 0 ? fmt::format(" {} more are in the table.", left_out) : ""));
}

std::string latency_figure(const Content& content) {
    std::string figures;
    for (const LatencyFamily& family : content.latencies) {
        ChartAxis levels{"percentile", -0.2, double(family.levels.size()) - 0.8, true, true};
        for (const auto& [level, place] : family.levels) levels.names.push_back(level);
        std::vector<double> ys;
        std::vector<std::pair<const ResultRow*, std::vector<Chart::Point>>> curves;
        for (const char* kind : {"usual", "recommended"}) {
            const ResultRow* row = content.row_of_kind(kind);
            if (row == nullptr) continue;
            auto& [of, points] = curves.emplace_back(row, std::vector<Chart::Point>{});
            for (std::size_t i = 0; i < family.levels.size(); ++i)
                if (const auto value =
                        value_in(row->means, content.metrics[family.levels[i].second])) {
                    points.push_back({double(i), *value * 1e3});
                    ys.push_back(points.back().y);
                }
        }
        Chart chart(
            family.title + " at percentiles",
            curves.size() < 2 ? "the default" : "the default and the recommended configuration",
            levels, axis_for(family.title + " (ms)", ys, true), 260);
        for (const auto& [row, points] : curves) {
            const bool is_default = row->kind == "usual";
            chart.line(points, is_default ? "usual even" : "best");
            for (const Chart::Point& point : points)
                chart.mark({point, row->kind,
                            fmt::format("{}\n{}: {} ms", is_default ? "the default" : "recommended",
                                        family.levels[std::size_t(point.x)].first,
                                        tick_text(point.y, 0.1)),
                            content.row_of(row->standing->configuration)});
        }
        figures += html_figure(
            chart.svg(),
            html_text(family.title) +
                ": half of the requests at most p50, 99 of 100 at most p99. The default is the "
                "broken line.",
            "latency-" + std::to_string(&family - content.latencies.data()));
    }
    return figures;
}

}  // namespace servetune
