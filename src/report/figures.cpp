// SPDX-License-Identifier: Apache-2.0
// The drawings of the page.
#include "chart.hpp"
#include "content.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
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

/// `TTFT p95: 10.8 s`, a line of a mark's label.
std::string figure_line(std::string_view metric, double figure) {
    return metric_title(metric) + ": " + figure_text(metric, figure);
}

/// Why a trial gave no number, else its figure.
std::string outcome_line(const Content& content, const Trial& trial) {
    if (const Failure* failure = trial.failure())
        return std::string(name_in(failure_kinds, failure->kind));
    const std::string& metric = content.view.goal().metric;
    const auto figure = content.figure_of(trial);
    return figure ? figure_line(metric, *figure) : "no number";
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

std::string gain_figure(const Content& content) {
    const std::vector<GainRow> rows = gain_rows(content);
    if (rows.empty() || !content.view.scale().ratios()) return "";
    const double before = rows.front().before;
    const double after = rows.front().after;
    const Gain& gain = rows.front().gain;
    const std::string& metric = content.view.goal().metric;
    const bool less = content.view.goal().direction == Direction::minimize;
    const double most = 1.5 * std::max(before, after);  // of an interval that knows little
    const auto end = [&](double of) {
        return !gain.has_interval() ? after
                                    : std::min(most, less ? before / (1 + of) : before * (1 + of));
    };
    const double low = end(gain.low);
    const double high = end(gain.high);
    const double whole = std::max({before, after, low, high}) / 100;
    std::string bars =
        "<table class=\"intervals gain\"><caption>" +
        html_text(metric_title(metric) + (less ? ", less is better" : ", more is better") +
                  (gain.has_interval() ? "; the line: " + interval_name(gain) : "")) +
        "</caption><tbody>\n";
    for (const auto& [kind, figure, from, to] :
         {std::tuple("default", before, before, before), {"recommended", after, low, high}})
        bars += fmt::format(
            "<tr class=\"{0}\"><th scope=\"row\">{0}</th><td><svg aria-hidden=\"true\"><rect "
            "class=\"bar\" width=\"{1:.1f}%\" y=\"3\" height=\"18\"/><line class=\"line\" "
            "x1=\"{2:.1f}%\" x2=\"{3:.1f}%\" y1=\"12\" y2=\"12\"/></svg></td><td>{4}</td></tr>\n",
            kind, figure / whole, from / whole, to / whole, figure_text(metric, figure));
    return bars + "</tbody></table>\n";
}

std::string path_figure(const Content& content) {
    const Goal& goal = content.view.goal();
    const auto [title, factor] = content.drawn(goal.metric);
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
    ChartAxis y_axis = axis_for(title, ys);
    y_axis.silent = ys.empty();
    ChartAxis x_axis = axis_for("trial", xs, true);
    x_axis.low = -0.5;
    x_axis.whole = true;
    Chart chart("Path of the search",
                fmt::format("{} trials, {} against trials", made.size(), title), x_axis, y_axis);
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
    const std::string drawing = chart.svg();
    std::string key;
    for (const auto& [kind, text] : {std::pair("recommended", "recommended"),
                                     {"usual", "the default"},
                                     {"passing", "passes"},
                                     {"refused", "refused"},
                                     {"failed", "no number"}})
        if (drawing.find(fmt::format("\"mark {}\"", kind)) != std::string::npos)
            key += fmt::format("<li><span class=\"swatch {}\"></span>{}</li>", kind, text);
    return "<ul class=\"key\">" + key + "</ul>\n" +
           html_figure(drawing,
                       "Each mark is a trial; the line is the best measured so far that passes.",
                       "path");
}

std::string trade_figure(const Content& content) {
    if (content.metrics.size() < 2) return "";
    const auto [at_x, at_y] = content.trade();
    const std::string& x = content.metrics[at_x];
    const std::string& y = content.metrics[at_y];
    const DrawnMetric across = content.drawn(x);
    const DrawnMetric up = content.drawn(y);
    std::vector<Chart::Point> points;  // of all rows
    for (const ResultRow& row : content.rows) {
        const auto a = value_in(row.means, x);
        const auto b = value_in(row.means, y);
        points.push_back(a && b ? Chart::Point{*a * across.factor, *b * up.factor}
                                : Chart::Point{Chart::nowhere, Chart::nowhere});
    }
    const std::vector<double> xs = coordinates(points, &Chart::Point::x);
    if (xs.empty()) return "";
    std::vector<Chart::Point> passing;
    for (std::size_t i = 0; i < points.size(); ++i)
        if (std::isfinite(points[i].x) && content.rows[i].standing->passes())
            passing.push_back(points[i]);
    const auto sign = [&](const std::string& metric) {  // the better a figure, the smaller
        return less_is_better(content.view.setup.file.objective, metric) ? 1 : -1;
    };
    sort(passing, [sign_x = sign(x), sign_y = sign(y)](const auto& a, const auto& b) {
        return std::pair(sign_x * a.x, sign_y * a.y) < std::pair(sign_x * b.x, sign_y * b.y);
    });
    std::vector<Chart::Point> front;
    for (const Chart::Point& at : passing)
        if (front.empty() || sign(y) * at.y < sign(y) * front.back().y) front.push_back(at);
    Chart chart("Trade-off",
                fmt::format("{} against {}, {} configurations, {} of them on the front", up.title,
                            across.title, xs.size(), front.size()),
                axis_for(across.title, xs),
                axis_for(up.title, coordinates(points, &Chart::Point::y)), 340);
    chart.line(front, "front");
    for (std::size_t i = 0; i < points.size(); ++i) {
        const ResultRow& row = content.rows[i];
        if (row.means.empty()) continue;
        std::string label = row.name;
        if (std::isfinite(points[i].x))
            label += "\n" + figure_line(y, points[i].y / up.factor) + "\n" +
                     figure_line(x, points[i].x / across.factor);
        if (!row.verdict.empty()) label += "\n" + row.verdict;
        chart.mark(
            {points[i], row.kind == "failed" ? "refused" : row.kind, content.clean(label), i});
    }
    const auto field = [&](std::string_view label, std::string_view id, std::size_t chosen) {
        std::string out = fmt::format("<label>{}: <select id=\"{}\">", label, id);
        for (std::size_t i = 0; i < content.metrics.size(); ++i)
            out +=
                fmt::format("<option value=\"{}\"{}>{}</option>", i, i == chosen ? " selected" : "",
                            html_text(content.clean(content.drawn(content.metrics[i]).title)));
        return out + "</select></label>\n";
    };
    return "<div class=\"tools only-script\">" + field("Up", "trade-y", at_y) +
           field("Across", "trade-x", at_x) + "</div>\n" +
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
        interval_chart("Effect of each level", rows),
        "Grey: the interval includes 0." +
            (left_out > 0 ? fmt::format(" {} more are in the table.", left_out) : ""));
}

std::string latency_figure(const Content& content) {
    if (content.latencies.empty()) return "";
    std::string figures =
        "<p>Half of the requests at most p50, 99 of 100 at most p99. The default is the broken "
        "line.</p>\n";
    for (const LatencyFamily& family : content.latencies) {
        ChartAxis levels{"percentile", -0.2, double(family.levels.size()) - 0.8, true, true};
        for (const auto& [level, place] : family.levels) levels.names.push_back(level);
        const double factor = content.drawn(content.metrics[family.levels.back().second]).factor;
        std::vector<double> ys;
        std::vector<std::pair<const ResultRow*, std::vector<Chart::Point>>> curves;
        for (const char* kind : {"usual", "recommended"}) {
            const ResultRow* row = content.row_of_kind(kind);
            if (row == nullptr) continue;
            auto& [of, points] = curves.emplace_back(row, std::vector<Chart::Point>{});
            for (std::size_t i = 0; i < family.levels.size(); ++i)
                if (const auto value =
                        value_in(row->means, content.metrics[family.levels[i].second])) {
                    points.push_back({double(i), *value * factor});
                    ys.push_back(points.back().y);
                }
        }
        Chart chart(family.title + " at percentiles", "the default and what is recommended", levels,
                    axis_for(family.title + (factor > 1 ? " (ms)" : " (s)"), ys, true), 260);
        for (const auto& [row, points] : curves) {
            chart.line(points, row->kind == "usual" ? "usual even" : "best");
            for (const Chart::Point& point : points)
                chart.mark({point, row->kind,
                            content.clean(row->name) + "\n" +
                                family.levels[std::size_t(point.x)].first + ": " +
                                figure_text("_seconds", point.y / factor),
                            content.row_of(row->standing->configuration)});
        }
        figures += html_figure(chart.svg(), "",
                               "latency-" + std::to_string(&family - content.latencies.data()));
    }
    return figures;
}

}  // namespace servetune
