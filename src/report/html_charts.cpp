// SPDX-License-Identifier: Apache-2.0
// The drawings of the page.
#include "chart.hpp"
#include "html_text.hpp"
#include "html_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace servetune {
namespace {

constexpr double normal_95 = 1.959963984540054;  // of the standard normal distribution, two-sided

/// What the leading goal's figures are multiplied with where they are drawn: times in milliseconds.
double shown_factor(std::string_view metric) { return shown_in_milliseconds(metric) ? 1e3 : 1; }

std::string point_title(const HtmlView& page, const Trial& trial) {
    const std::string changes = difference_text(trial.configuration, page.view.recommendation.default_configuration);
    std::string result = fmt::format("trial {}, {}: ", trial.id, changes.empty() ? "the default" : changes);
    if (const Failure* failure = trial.failure()) result += std::string(name_in(failure_kinds, failure->kind));
    else if (const auto figure = page.figure_of(trial)) result += figure_text(page.leading().metric, *figure);
    return page.view.setup.file.secrets(result);
}

/// The chance interval of a ratio of two means whose relative errors are known.
IntervalRow ratio_row(std::string label, const Goal& goal, double candidate, double base, double error) {
    const double log_gain = std::log1p(goal.gain(candidate, base));
    const double reach = normal_95 * error;
    return {std::move(label), std::expm1(log_gain - reach), std::expm1(log_gain), std::expm1(log_gain + reach),
            log_gain - reach > 0   ? "better"
            : log_gain + reach < 0 ? "worse"
                                   : "unknown"};
}

/// What the search made, in the order of trials or of time.
std::string path_figure(const HtmlView& page, bool over_time) {
    const Goal& goal = page.leading();
    const double factor = shown_factor(goal.metric);
    std::vector<double> xs;
    std::vector<double> ys;
    double spent = 0;
    struct PathPoint {
        const Trial* trial;
        double x;
        std::optional<double> y;
    };
    std::vector<PathPoint> made;
    for (const Trial& trial : page.view.trials) {
        spent += trial.cost_seconds() / 60;
        if (!trial.of_search() || !trial.told()) continue;
        const double x = over_time ? spent : static_cast<double>(trial.id);
        const auto figure = page.figure_of(trial);
        made.push_back({&trial, x, figure ? std::optional(*figure * factor) : std::nullopt});
        xs.push_back(x);
        if (figure) ys.push_back(*figure * factor);
    }
    if (made.empty()) return "";
    ChartAxis y_axis = axis_for(metric_title(goal.metric), ys);
    y_axis.silent = ys.empty();
    ChartAxis x_axis = axis_for(over_time ? "minutes of measuring" : "trial", xs, true);
    x_axis.whole = !over_time;
    Chart chart("Path of the search",
                fmt::format("{} trials, {} against {}", made.size(), metric_title(goal.metric), over_time ? "minutes" : "trial"), x_axis,
                y_axis);
    std::vector<Chart::Point> best;
    for (const PathPoint& one : made) {
        const auto row = page.row_of(one.trial->configuration);
        if (!one.y || !row || !page.rows[*row].standing->passes()) continue;
        if (best.empty() || goal.better(*one.y, best.back().y)) best.push_back({one.x, *one.y});
    }
    if (!best.empty()) best.push_back({made.back().x, best.back().y});
    chart.line(best, "best", true);
    for (const PathPoint& one : made) {
        const auto row = page.row_of(one.trial->configuration);
        const std::string kind = !one.y ? "failed" : row ? page.rows[*row].kind : "passing";
        chart.point({one.x, one.y.value_or(y_axis.low)}, kind == "failed" && one.y ? "refused" : kind, point_title(page, *one.trial),
                    !one.y);
    }
    return html_figure(chart.svg(),
                       "Each mark is a trial; the line is the best measured so far that passes. A cross on the ground gave no number.",
                       over_time ? "path-time" : "path-trial", over_time ? " data-path=\"time\"" : " data-path=\"trial\"");
}

}  // namespace

std::string html_figure(const std::string& drawing, const std::string& caption, std::string_view chart, const std::string& attributes) {
    const std::string name = chart.empty() ? "" : " data-chart=\"" + std::string(chart) + "\"";
    return "<figure" + name + attributes + ">" + drawing + "<figcaption>" + caption + "</figcaption></figure>\n";
}

std::string gains_figure(const HtmlView& page) {
    const Recommendation& result = page.view.recommendation;
    if (result.conclusion != Conclusion::recommended || !result.default_passes) return "";
    const StudyFile& file = page.view.setup.file;
    const Goal& goal = page.leading();
    const FigureScale& scale = page.view.standings.scale();
    std::vector<IntervalRow> rows;
    std::string table =
        "<div class=\"wide\"><table><caption>Before and after</caption><thead><tr><th scope=\"col\">workload</th><th "
        "scope=\"col\">default</th>"
        "<th scope=\"col\">recommended</th><th scope=\"col\">gain</th><th scope=\"col\">95 % interval</th></tr></thead><tbody>\n";
    const auto add = [&](IntervalRow row, double before, double after) {
        const bool known = Gain{row.value, row.low, row.high}.has_interval();
        table += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n", page.shown(row.label),
                             plain_figure_text(goal.metric, before), plain_figure_text(goal.metric, after), gain_text(row.value, scale),
                             known ? gain_text(row.low, scale) + " to " + gain_text(row.high, scale) : "none: measured once");
        if (!known) row.low = row.high = row.value;
        row.label = file.secrets(row.label);
        rows.push_back(std::move(row));
    };
    const Standing& best = *page.view.standings.find(result.recommended);
    const Standing& base = *page.view.standings.find(result.default_configuration);
    const Metrics after = page.view.judged_means(result.recommended);
    const Metrics before = page.view.judged_means(result.default_configuration);
    add({"the goal", result.gain.low, result.gain.value, result.gain.high, "recommended"},
        value_in(before, goal.metric).value_or(base.estimate().mean), value_in(after, goal.metric).value_or(best.estimate().mean));
    const auto workload_row = [&](const std::string& label, const Metrics& recommended, const Metrics& usual, const std::string& metric,
                                  double runs_after, double runs_before) {
        const auto a = value_in(recommended, metric);
        const auto b = value_in(usual, metric);
        if (!a || !b || !scale.ratios() || !(*a > 0) || !(*b > 0)) return;
        constexpr double infinite = std::numeric_limits<double>::infinity();
        const double noise = page.view.standings.replicated() > 0 ? page.view.standings.noise() : infinite;
        add(ratio_row(label, goal, *a, *b, noise * std::sqrt(1 / std::max(1.0, runs_after) + 1 / std::max(1.0, runs_before))), *b, *a);
    };
    if (file.workloads.size() > 1)
        for (const Workload& workload : file.workloads)
            workload_row(workload.name, after, before, goal.metric + "@" + workload.name, best.leading().total_runs(),
                         base.leading().total_runs());
    for (const Workload& workload : file.report_workloads)
        workload_row(workload.name + " (reported)", page.view.means(result.recommended, workload.name),
                     page.view.means(result.default_configuration, workload.name), goal.metric, 1, 1);
    table += "</tbody></table></div>\n";
    if (!scale.ratios()) return table;  // the chart's axis is in percent
    return html_figure(interval_chart("Gain over the default", with_interval(result.gain) + " for the goal", rows),
                       page.shown("Gain of the recommended configuration over the default in " + metric_title(goal.metric) +
                                  ", with 95 % intervals where measurements were repeated. Those of single workloads take the noise of "
                                  "the goal.")) +
           table;
}

std::string search_figures(const HtmlView& page) {
    std::string out = path_figure(page, false);
    if (out.empty()) return "";
    out += path_figure(page, true);
    std::vector<double> ends{0};
    std::vector<double> costs;
    for (const Trial& trial : page.view.trials)
        if (trial.told()) {
            ends.push_back(static_cast<double>(trial.id) + 0.5);
            costs.push_back(trial.cost_seconds());
        }
    Chart chart("What each trial cost", fmt::format("{} trials", costs.size()),
                {"trial", -0.5, *std::max_element(ends.begin(), ends.end()), true}, axis_for("seconds", costs, true), 720, 180);
    for (const Trial& trial : page.view.trials)
        if (trial.told())
            chart.bar(static_cast<double>(trial.id) - 0.42, static_cast<double>(trial.id) + 0.42, trial.cost_seconds(),
                      trial.failure() != nullptr ? "failed" : "", fmt::format("trial {}: {:.1f} s", trial.id, trial.cost_seconds()));
    return out + html_figure(chart.svg(), "Seconds from the start of a trial to its end; failed ones in another colour.", "cost") +
           search_table(page);
}

std::string trade_figure(const HtmlView& page) {
    if (page.metrics.size() < 2 || page.rows.empty()) return "";
    const std::string& y = page.metrics.front();
    const auto less = [&](const std::string& metric) { return less_is_better(page.view.setup.file.objective, metric); };
    std::string x;
    for (const std::string& name : page.metrics)
        if (x.empty() && less(name) != less(y) && name != "success_ratio") x = name;
    if (x.empty()) x = page.metrics[1];
    std::vector<double> xs;
    std::vector<double> ys;
    std::vector<std::pair<const HtmlRow*, Chart::Point>> points;
    for (const HtmlRow& row : page.rows) {
        const auto a = value_in(row.means, x);
        const auto b = value_in(row.means, y);
        if (!a || !b) continue;
        xs.push_back(*a * shown_factor(x));
        ys.push_back(*b * shown_factor(y));
        points.push_back({&row, {xs.back(), ys.back()}});
    }
    if (points.empty()) return "";
    Chart chart("Trade-off", metric_title(y) + " against " + metric_title(x), axis_for(metric_title(x), xs), axis_for(metric_title(y), ys),
                720, 340);
    std::vector<Chart::Point> front;
    const auto at_least = [](double a, double b, bool small) { return small ? a <= b : a >= b; };
    const auto beats = [&](const Chart::Point& a, const Chart::Point& b) {
        return at_least(a.x, b.x, less(x)) && at_least(a.y, b.y, less(y)) && (a.x != b.x || a.y != b.y);
    };
    for (const auto& [row, point] : points)
        if (row->standing->passes() && std::none_of(points.begin(), points.end(), [&, &at = point](const auto& other) {
                return other.first->standing->passes() && beats(other.second, at);
            }))
            front.push_back(point);
    std::sort(front.begin(), front.end(), [](const auto& a, const auto& b) { return std::pair(a.x, a.y) < std::pair(b.x, b.y); });
    if (front.size() > 1) chart.line(front, "front");
    for (const auto& [row, point] : points)
        chart.point(point, row->kind,
                    page.view.setup.file.secrets(row->name) + fmt::format(": {} {}, {} {}", metric_title(x), tick_text(point.x, 0.01),
                                                                          metric_title(y), tick_text(point.y, 0.01)));
    std::string out = "<div class=\"tools only-script\">\n";
    const auto select = [&](const char* id, const char* label, const std::string& chosen) {
        out += fmt::format("<label>{} <select id=\"{}\">", label, id);
        for (std::size_t i = 0; i < page.metrics.size(); ++i)
            out += fmt::format("<option value=\"{}\"{}>{}</option>", i, page.metrics[i] == chosen ? " selected" : "",
                               html_text(metric_title(page.metrics[i])));
        out += "</select></label>\n";
    };
    const auto place = [&](const std::string& name) {
        return static_cast<std::size_t>(std::find(page.metrics.begin(), page.metrics.end(), name) - page.metrics.begin());
    };
    select("trade-y", "Up:", y);
    select("trade-x", "Across:", x);
    return out + "</div>\n" +
           html_figure(chart.svg(), fmt::format("{} of the configurations that pass are on the front of these two.", front.size()), "trade",
                       " id=\"trade\"") +
           trade_table(page, place(x), place(y));
}

std::string parallel_figure(const HtmlView& page) {
    const Goal& goal = page.leading();
    std::vector<VariedParameter> varied = varied_parameters(page);
    if (varied.empty() || page.rows.size() < 2) return "";
    constexpr std::size_t most_axes = 14;
    const std::size_t left_out = varied.size() > most_axes ? varied.size() - most_axes : 0;
    varied.resize(varied.size() - left_out);
    std::vector<ParallelAxis> axes;
    std::vector<std::map<std::string, double>> places;
    for (const VariedParameter& parameter : varied) {
        const std::vector<Value>& values = parameter.values;
        ParallelAxis axis{page.view.setup.file.secrets(parameter.name), {}};
        std::map<std::string, double>& place = places.emplace_back();
        for (std::size_t i = 0; i < values.size(); ++i) {
            place[text_of(values[i])] = values.size() < 2 ? 0.5 : static_cast<double>(i) / static_cast<double>(values.size() - 1);
            axis.ticks.emplace_back(place[text_of(values[i])], page.view.setup.file.secrets(text_of(values[i])));
        }
        axes.push_back(std::move(axis));
    }
    std::vector<double> figures;
    for (const HtmlRow& row : page.rows)
        if (row.value) figures.push_back(*row.value);
    const bool has_figures = !figures.empty();
    const auto [low, high] = has_figures ? std::minmax_element(figures.begin(), figures.end()) : std::pair(figures.end(), figures.end());
    ParallelAxis objective{metric_title(goal.metric), {}};
    if (has_figures) objective.ticks = {{0, plain_figure_text(goal.metric, *low)}, {1, plain_figure_text(goal.metric, *high)}};
    axes.push_back(std::move(objective));
    std::vector<ParallelLine> lines;
    constexpr double few = 60;  // of more lines each is fainter
    const double crowd = std::sqrt(std::min(1.0, few / static_cast<double>(page.rows.size())));
    for (auto row = page.rows.rbegin(); row != page.rows.rend(); ++row) {  // the best are drawn last, on top
        ParallelLine line{
            {},
            page.view.setup.file.secrets(row->name) + ": " + (row->value ? figure_text(goal.metric, *row->value) : row->verdict),
            row->kind};
        for (std::size_t i = 0; i < varied.size(); ++i) {
            const Value* value = row->standing->configuration.find(varied[i].name);
            line.places.push_back(value == nullptr ? 0 : places[i].at(text_of(*value)));  // not active: on the ground
        }
        const double place = row->value && *high > *low ? (*row->value - *low) / (*high - *low) : 0;
        line.places.push_back(place);
        const double good = goal.direction == Direction::maximize ? place : 1 - place;
        line.strength = row->kind == "recommended" || row->kind == "usual" ? 1
                        : row->value                                       ? crowd * (0.15 + 0.6 * good * good)
                                                                           : crowd * 0.35;
        lines.push_back(std::move(line));
    }
    std::stable_sort(lines.begin(), lines.end(), [](const ParallelLine& a, const ParallelLine& b) {
        const auto place = [](const std::string& kind) { return kind == "recommended" ? 2 : kind == "usual" ? 1 : 0; };
        return place(a.kind) < place(b.kind);
    });
    return html_figure(
        parallel_chart("Parallel coordinates", fmt::format("{} configurations over {} parameters", lines.size(), varied.size()), axes,
                       lines),
        fmt::format("Each line is a configuration; the better it is, the stronger. The recommended one is thick, broken lines gave no "
                    "number. <span class=\"only-library\">Draw along an axis, or use the fields above, to keep the lines through "
                    "some of its values. </span>The figures are in <a href=\"#configurations\">the table of all configurations</a>; "
                    "move over a row to find its line.{}",
                    left_out > 0 ? fmt::format(" {} more parameters are left out.", left_out) : ""),
        "parallel");
}

std::string effects_figure(const HtmlView& page) {
    std::vector<IntervalRow> rows;
    if (!page.effects.is_object() || !page.effects.contains("main")) return "";
    for (const auto& effect : page.effects["main"]) {
        if (effect["measured"].get<std::size_t>() == 0) continue;
        const auto gain = [&](const char* key) { return effect["gain"][key].is_number() ? effect["gain"][key].get<double>() : 0.0; };
        const std::string level = effect["level"].is_null()     ? "engine"
                                  : effect["level"].is_string() ? effect["level"].get<std::string>()
                                                                : effect["level"].dump();
        rows.push_back({page.view.setup.file.secrets(effect["parameter"].get<std::string>() + " = " + level), gain("low"), gain("value"),
                        gain("high"),
                        gain("low") > 0    ? "better"
                        : gain("high") < 0 ? "worse"
                                           : "unknown"});
    }
    if (rows.empty()) return "";
    if (!page.view.standings.scale().ratios()) return effects_table(page);  // the chart's axis is in percent
    std::stable_sort(rows.begin(), rows.end(), [](const IntervalRow& a, const IntervalRow& b) {
        return (a.kind != "unknown") > (b.kind != "unknown") ||
               ((a.kind != "unknown") == (b.kind != "unknown") && std::abs(a.value) > std::abs(b.value));
    });
    constexpr std::size_t most = 40;
    const std::size_t left_out = rows.size() > most ? rows.size() - most : 0;
    rows.resize(rows.size() - left_out);
    return html_figure(interval_chart("Effect of each flag", fmt::format("{} levels", rows.size()), rows),
                       page.shown(fmt::format(
                           "{} with one parameter at this level against the average over its levels, as learned from {} configurations. "
                           "With a probability of 95 % all intervals are right at once. Grey: the interval includes 0, so it is not "
                           "known whether the level helps.{}",
                           metric_title(page.leading().metric), page.effects["configurations"].get<std::size_t>(),
                           left_out > 0 ? fmt::format(" {} more are in the table.", left_out) : "")),
                       "effects") +
           effects_table(page);
}

std::string drift_figure(const HtmlView& page) {
    const Standing* base = page.view.standings.find(page.view.recommendation.default_configuration);
    if (base == nullptr) return "";
    const double factor = shown_factor(page.leading().metric);
    std::vector<double> xs;
    std::vector<double> ys;
    std::vector<Chart::Point> points;
    for (const Trial* trial : base->trials) {
        const auto value = trial->measurement() == nullptr ? std::nullopt : value_in(trial->measurement()->metrics, page.leading().metric);
        if (!value) continue;
        xs.push_back(static_cast<double>(trial->id));
        ys.push_back(*value * factor);
        points.push_back({xs.back(), ys.back()});
    }
    if (points.size() < 2) return "";
    ChartAxis trials = axis_for("trial", xs, true);
    trials.whole = true;
    Chart chart("The default, measured again and again", fmt::format("{} measurements", points.size()), trials,
                axis_for(metric_title(page.leading().metric), ys), 720, 200);
    chart.line(points, "even");
    for (const Chart::Point& point : points)
        chart.point(point, "usual", fmt::format("trial {:.0f}: {}", point.x, tick_text(point.y, 0.01)));
    return html_figure(chart.svg(), "What the same configuration gave over the study: how noisy the machine is, and whether it drifted.");
}

std::string predicted_figure(const HtmlView& page) {
    const Beliefs beliefs = page.view.setup.beliefs.fitted_to(page.view.search, page.view.setup.problem->decision);
    const double factor = shown_factor(page.leading().metric);
    if (beliefs.size() == 0 || !page.view.standings.scale().ratios()) return "";
    struct Both {
        const HtmlRow* row;
        double predicted, measured;
    };
    std::vector<Both> both;
    std::vector<double> ratios;
    for (const HtmlRow& row : page.rows) {
        if (!row.value || !(*row.value > 0) || row.standing->measured() == 0) continue;
        const auto belief = beliefs[0].belief(row.standing->configuration).log_value;
        if (!belief || !std::isfinite(*belief)) continue;
        both.push_back({&row, std::exp(*belief), *row.value});
        ratios.push_back(*row.value / both.back().predicted);
    }
    if (both.size() < 3) return "";
    std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
    const double ratio = ratios[ratios.size() / 2];
    std::vector<double> xs;
    std::vector<double> ys;
    for (const Both& one : both) {
        xs.push_back(one.predicted * ratio * factor);
        ys.push_back(one.measured * factor);
    }
    Chart chart("Predicted against measured", fmt::format("{} configurations", both.size()),
                axis_for("predicted, scaled by its median error", xs), axis_for("measured " + metric_title(page.leading().metric), ys));
    const double low = std::max(*std::min_element(xs.begin(), xs.end()), *std::min_element(ys.begin(), ys.end()));
    const double high = std::min(*std::max_element(xs.begin(), xs.end()), *std::max_element(ys.begin(), ys.end()));
    if (high > low) chart.line({{low, low}, {high, high}}, "even");
    for (std::size_t i = 0; i < both.size(); ++i)
        chart.point({xs[i], ys[i]}, both[i].row->kind,
                    page.view.setup.file.secrets(both[i].row->name) +
                        fmt::format(": predicted {}, measured {}", tick_text(xs[i], 0.1), tick_text(ys[i], 0.1)));
    return html_figure(chart.svg(), page.shown(fmt::format("What {} expects of each configuration. It is right up to a factor, "
                                                           "{:.3g} here; on the broken line it would be right.",
                                                           beliefs[0].name(), ratio)));
}

}  // namespace servetune
