// SPDX-License-Identifier: Apache-2.0
// The drawings of the page.
#include "chart.hpp"
#include "html_text.hpp"
#include "html_view.hpp"
#include "servetune/detail/base/normal.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "space/value_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

namespace servetune {
namespace {

/// What the leading goal's figures are multiplied with where they are drawn: times in milliseconds.
double shown_factor(std::string_view metric) { return shown_in_milliseconds(metric) ? 1e3 : 1; }

/// `total tokens/s: 1234`, a line of a mark's label.
std::string figure_line(std::string_view metric, double shown) {
    return metric_title(metric) + ": " + tick_text(shown, 0.01);
}

/// Why a trial gave no number, else its figure.
std::string outcome_line(const HtmlView& page, const Trial& trial) {
    if (const Failure* failure = trial.failure())
        return std::string(name_in(failure_kinds, failure->kind));
    const auto figure = page.figure_of(trial);
    return figure ? metric_title(page.leading().metric) + ": " +
                        plain_figure_text(page.leading().metric, *figure)
                  : "no number";
}

std::string trial_name(const HtmlView& page, const Trial& trial) {
    const auto row = page.row_of(trial.configuration);
    return fmt::format(
        "Trial {}: {}", trial.id,
        row ? page.rows[*row].name
            : difference_text(trial.configuration, page.view.recommendation.default_configuration));
}

/// The chance interval of a ratio of two means whose relative errors are known.
IntervalRow ratio_row(std::string label, const Goal& goal, double candidate, double base,
                      double error) {
    const double log_gain = std::log1p(goal.gain(candidate, base));
    const double reach = normal_95 * error;
    return {std::move(label), std::expm1(log_gain - reach), std::expm1(log_gain),
            std::expm1(log_gain + reach),
            log_gain - reach > 0   ? "better"
            : log_gain + reach < 0 ? "worse"
                                   : "unknown"};
}

/// Where a level of an effect stands in the page's data.
std::optional<std::pair<std::size_t, std::size_t>> level_in(
    const std::vector<VariedParameter>& varied, const std::string& name,
    const nlohmann::ordered_json& level) {
    for (std::size_t k = 0; k < varied.size(); ++k)
        for (std::size_t at = 0; varied[k].name == name && at < varied[k].values.size(); ++at)
            if (to_json(varied[k].values[at]) == level) return std::pair(k, at);
    return std::nullopt;
}

/// What the search made; the page's script can show it over time.
std::string path_figure(const HtmlView& page) {
    const Goal& goal = page.leading();
    const double factor = shown_factor(goal.metric);
    std::vector<double> xs;
    std::vector<double> ys;
    std::vector<const Trial*> made;
    for (const Trial& trial : page.view.trials) {
        if (!trial.of_search() || !trial.told()) continue;
        made.push_back(&trial);
        xs.push_back(static_cast<double>(trial.id));
        if (const auto figure = page.figure_of(trial)) ys.push_back(*figure * factor);
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
        const auto figure = page.figure_of(*trial);
        const auto row = page.row_of(trial->configuration);
        const double x = static_cast<double>(trial->id);
        const double y = figure ? *figure * factor : y_axis.low;
        if (figure && row && page.rows[*row].standing->passes() &&
            (best.empty() || goal.better(y, best.back().y)))
            best.push_back({x, y});
        const std::string kind = row ? page.rows[*row].kind : "passing";
        chart.mark({{x, y},
                    !figure            ? "failed"
                    : kind == "failed" ? "refused"
                                       : kind,
                    page.view.setup.file.secrets(trial_name(page, *trial) + "\n" +
                                                 outcome_line(page, *trial)),
                    row});
    }
    if (!best.empty()) best.push_back({static_cast<double>(made.back()->id), best.back().y});
    chart.line(best, "best", true);
    return html_figure(chart.svg(),
                       "Each mark is a trial; the line is the best measured so far that passes. A "
                       "cross on the ground gave no number.",
                       "path");
}

}  // namespace

std::string html_figure(const std::string& drawing, const std::string& caption,
                        std::string_view chart) {
    const std::string name = chart.empty() ? "" : " data-chart=\"" + std::string(chart) + "\"";
    return "<figure" + name + ">" + drawing + "<figcaption>" + caption + "</figcaption></figure>\n";
}

std::string gains_figure(const HtmlView& page) {
    const Recommendation& result = page.view.recommendation;
    if (result.conclusion != Conclusion::recommended || !result.default_passes) return "";
    const StudyFile& file = page.view.setup.file;
    const Goal& goal = page.leading();
    const FigureScale& scale = page.view.standings.scale();
    std::vector<IntervalRow> rows;
    std::string table =
        "<div class=\"wide\"><table><caption>Before and after</caption><thead><tr><th "
        "scope=\"col\">workload</th><th "
        "scope=\"col\">default</th>"
        "<th scope=\"col\">recommended</th><th scope=\"col\">gain</th><th scope=\"col\">95 % "
        "interval</th></tr></thead><tbody>\n";
    const auto add = [&](IntervalRow row, double before, double after) {
        const bool known = Gain{row.value, row.low, row.high}.has_interval();
        table += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                             page.shown(row.label), plain_figure_text(goal.metric, before),
                             plain_figure_text(goal.metric, after), gain_text(row.value, scale),
                             known ? gain_text(row.low, scale) + " to " + gain_text(row.high, scale)
                                   : "none: measured once");
        row.label = file.secrets(row.label);
        rows.push_back(std::move(row));
    };
    const Standing& best = *page.view.standings.find(result.recommended);
    const Standing& base = *page.view.standings.find(result.default_configuration);
    const Metrics after = page.view.judged_means(result.recommended);
    const Metrics before = page.view.judged_means(result.default_configuration);
    add({"the goal", result.gain.low, result.gain.value, result.gain.high, "recommended"},
        value_in(before, goal.metric).value_or(base.estimate().mean),
        value_in(after, goal.metric).value_or(best.estimate().mean));
    const auto workload_row = [&](const std::string& label, const Metrics& recommended,
                                  const Metrics& usual, const std::string& metric,
                                  double runs_after, double runs_before) {
        const auto a = value_in(recommended, metric);
        const auto b = value_in(usual, metric);
        if (!a || !b || !scale.ratios() || !(*a > 0) || !(*b > 0)) return;
        constexpr double infinite = std::numeric_limits<double>::infinity();
        const double noise =
            page.view.standings.replicated() > 0 ? page.view.standings.noise() : infinite;
        add(ratio_row(
                label, goal, *a, *b,
                noise * std::sqrt(1 / std::max(1.0, runs_after) + 1 / std::max(1.0, runs_before))),
            *b, *a);
    };
    if (file.workloads.size() > 1)
        for (const Workload& workload : file.workloads)
            workload_row(workload.name, after, before, MetricKey{goal.metric, workload.name}.text(),
                         best.leading().total_runs(), base.leading().total_runs());
    for (const Workload& workload : file.report_workloads)
        workload_row(
            workload.name + " (reported)", page.view.means(result.recommended, workload.name),
            page.view.means(result.default_configuration, workload.name), goal.metric, 1, 1);
    table += "</tbody></table></div>\n";
    if (!scale.ratios()) return table;  // the chart's axis is in percent
    return html_figure(interval_chart("Gain over the default",
                                      with_interval(result.gain) + " for the goal", rows),
                       page.shown("Gain of the recommended configuration over the default in " +
                                  metric_title(goal.metric) +
                                  ", with 95 % intervals where measurements were repeated. Those "
                                  "of single workloads take the noise of "
                                  "the goal.")) +
           table;
}

std::string search_figures(const HtmlView& page) {
    std::string out = path_figure(page);
    if (out.empty()) return "";
    double end = 0;
    std::vector<double> costs;
    for (const Trial& trial : page.view.trials)
        if (trial.told()) {
            end = std::max(end, static_cast<double>(trial.id) + 0.5);
            costs.push_back(trial.cost_seconds());
        }
    Chart chart("What each trial cost", fmt::format("{} trials, seconds", costs.size()),
                {"trial", -0.5, end, true}, axis_for("seconds", costs, true), 180);
    for (const Trial& trial : page.view.trials)
        if (trial.told())
            chart.bar({{static_cast<double>(trial.id), trial.cost_seconds()},
                       trial.failure() != nullptr ? "failed" : "passing",
                       page.view.setup.file.secrets(
                           trial_name(page, trial) + "\n" + seconds_text(trial.cost_seconds()) +
                           (trial.failure() != nullptr ? ", " + outcome_line(page, trial) : "")),
                       page.row_of(trial.configuration)});
    return out +
           html_figure(
               chart.svg(),
               "Seconds from the start of a trial to its end; failed ones in another colour.",
               "cost") +
           search_table(page);
}

std::string trade_figure(const HtmlView& page) {
    if (page.metrics.size() < 2 || page.rows.empty()) return "";
    const std::string& y = page.metrics.front();
    const auto less = [&](const std::string& metric) {
        return less_is_better(page.view.setup.file.objective, metric);
    };
    std::string x;
    for (const std::string& name : page.metrics)
        if (x.empty() && less(name) != less(y) && name != "success_ratio") x = name;
    if (x.empty()) x = page.metrics[1];
    std::vector<double> xs;
    std::vector<double> ys;
    std::vector<Chart::Point> points;  // of all rows
    for (const HtmlRow& row : page.rows) {
        const auto a = value_in(row.means, x);
        const auto b = value_in(row.means, y);
        points.push_back(a && b ? Chart::Point{*a * shown_factor(x), *b * shown_factor(y)}
                                : Chart::Point{Chart::nowhere, Chart::nowhere});
        if (!a || !b) continue;
        xs.push_back(points.back().x);
        ys.push_back(points.back().y);
    }
    if (xs.empty()) return "";
    const auto at_least = [](double a, double b, bool small) { return small ? a <= b : a >= b; };
    const auto beats = [&](const Chart::Point& a, const Chart::Point& b) {
        return at_least(a.x, b.x, less(x)) && at_least(a.y, b.y, less(y)) &&
               (a.x != b.x || a.y != b.y);
    };
    std::vector<Chart::Point> passing;
    for (std::size_t i = 0; i < points.size(); ++i)
        if (std::isfinite(points[i].x) && page.rows[i].standing->passes())
            passing.push_back(points[i]);
    std::vector<Chart::Point> front;
    std::copy_if(
        passing.begin(), passing.end(), std::back_inserter(front), [&](const Chart::Point& at) {
            return std::none_of(passing.begin(), passing.end(),
                                [&](const Chart::Point& other) { return beats(other, at); });
        });
    std::sort(front.begin(), front.end(), [](const auto& a, const auto& b) {
        return std::pair(a.x, a.y) < std::pair(b.x, b.y);
    });
    Chart chart("Trade-off",
                fmt::format("{} against {}, {} configurations, {} of them on the front",
                            metric_title(y), metric_title(x), xs.size(), front.size()),
                axis_for(metric_title(x), xs), axis_for(metric_title(y), ys), 340);
    chart.line(front, "front");
    for (std::size_t i = 0; i < points.size(); ++i) {
        const HtmlRow& row = page.rows[i];
        if (row.means.empty()) continue;
        std::string label = row.name;
        if (std::isfinite(points[i].x))
            label += "\n" + figure_line(y, points[i].y) + "\n" + figure_line(x, points[i].x);
        if (!row.verdict.empty()) label += "\n" + row.verdict;
        chart.mark({points[i], row.kind == "failed" ? "refused" : row.kind,
                    page.view.setup.file.secrets(label), i});
    }
    std::string out = "<div class=\"tools only-script\">\n";
    const auto select = [&](const char* id, const char* label, const std::string& chosen) {
        out += fmt::format("<label>{} <select id=\"{}\">", label, id);
        for (std::size_t i = 0; i < page.metrics.size(); ++i)
            out += fmt::format("<option value=\"{}\"{}>{}</option>", i,
                               page.metrics[i] == chosen ? " selected" : "",
                               html_text(metric_title(page.metrics[i])));
        out += "</select></label>\n";
    };
    const auto place = [&](const std::string& name) {
        return static_cast<std::size_t>(std::find(page.metrics.begin(), page.metrics.end(), name) -
                                        page.metrics.begin());
    };
    select("trade-y", "Up:", y);
    select("trade-x", "Across:", x);
    return out + "</div>\n" +
           html_figure(
               chart.svg(),
               fmt::format("{} of {} configurations that pass are on the front of these two.",
                           front.size(), passing.size()),
               "trade") +
           trade_table(page, place(x), place(y));
}

std::string parallel_figure(const HtmlView& page) {
    const Goal& goal = page.leading();
    std::vector<VariedParameter> varied = varied_parameters(page);
    if (varied.empty() || page.rows.size() < 2) return "";
    constexpr std::size_t most_axes = 14;
    constexpr const char* inactive = "–";  // under what else a configuration says
    const std::size_t left_out = varied.size() > most_axes ? varied.size() - most_axes : 0;
    varied.resize(varied.size() - left_out);
    std::vector<ParallelAxis> axes;
    std::vector<std::map<std::string, double>> places;
    for (const VariedParameter& parameter : varied) {
        const std::vector<Value>& values = parameter.values;
        ParallelAxis axis{page.view.setup.file.secrets(parameter.name), {}};
        std::map<std::string, double>& place = places.emplace_back();
        std::vector<std::string> stops;
        if (std::any_of(page.rows.begin(), page.rows.end(), [&](const HtmlRow& row) {
                return row.standing->configuration.find(parameter.name) == nullptr;
            }))
            stops.emplace_back(inactive);
        for (const Value& value : values) stops.push_back(text_of(value));
        for (std::size_t i = 0; i < stops.size(); ++i) {
            place[stops[i]] = static_cast<double>(i) / static_cast<double>(stops.size() - 1);
            axis.ticks.emplace_back(place[stops[i]], page.view.setup.file.secrets(stops[i]));
        }
        axes.push_back(std::move(axis));
    }
    std::vector<double> figures;
    for (const HtmlRow& row : page.rows)
        if (row.value) figures.push_back(*row.value);
    const bool has_figures = !figures.empty();
    const auto [low, high] = has_figures ? std::minmax_element(figures.begin(), figures.end())
                                         : std::pair(figures.end(), figures.end());
    ParallelAxis objective{metric_title(goal.metric), {}};
    if (has_figures)
        objective.ticks = {{0, plain_figure_text(goal.metric, *low)},
                           {1, plain_figure_text(goal.metric, *high)}};
    axes.push_back(std::move(objective));
    std::vector<ParallelLine> lines;
    constexpr double few = 60;  // of more lines each is fainter
    const double crowd = std::sqrt(std::min(1.0, few / static_cast<double>(page.rows.size())));
    for (auto row = page.rows.rbegin(); row != page.rows.rend();
         ++row) {  // the best are drawn last, on top
        ParallelLine line{{},
                          page.view.setup.file.secrets(
                              row->name + "\n" +
                              (row->value ? metric_title(goal.metric) + ": " +
                                                plain_figure_text(goal.metric, *row->value)
                                          : "no number") +
                              (row->verdict.empty() ? "" : "\n" + row->verdict)),
                          row->kind,
                          static_cast<std::size_t>(page.rows.rend() - row) - 1};
        for (std::size_t i = 0; i < varied.size(); ++i) {
            const Value* value = row->standing->configuration.find(varied[i].name);
            line.places.push_back(places[i].at(value == nullptr ? inactive : text_of(*value)));
        }
        const double place = row->value && *high > *low ? (*row->value - *low) / (*high - *low) : 0;
        if (row->value) line.places.push_back(place);
        const double good = goal.direction == Direction::maximize ? place : 1 - place;
        line.strength = row->kind == "recommended" || row->kind == "usual" ? 1
                        : row->kind == "passing" ? crowd * (0.15 + 0.6 * good * good)
                                                 : crowd * 0.35;
        lines.push_back(std::move(line));
    }
    std::stable_sort(lines.begin(), lines.end(), [](const ParallelLine& a, const ParallelLine& b) {
        const auto place = [](const std::string& kind) {
            return kind == "recommended" ? 2 : kind == "usual" ? 1 : 0;
        };
        return place(a.kind) < place(b.kind);
    });
    return html_figure(
        parallel_chart(
            "Parallel coordinates",
            fmt::format("{} configurations over {} parameters", lines.size(), varied.size()), axes,
            lines),
        fmt::format("Each line is a configuration; the better it is, the stronger. The recommended "
                    "one is thick, broken lines gave no "
                    "number. <span class=\"only-script\">Draw along an axis, or use the fields "
                    "above, to keep the lines through "
                    "some of its values. </span>The figures are in <a href=\"#configurations\">the "
                    "table of all configurations</a>; "
                    "move over a row to find its line.{}",
                    left_out > 0 ? fmt::format(" {} more parameters are left out.", left_out) : ""),
        "parallel");
}

std::string effects_figure(const HtmlView& page) {
    std::vector<IntervalRow> rows;
    if (!page.effects.is_object() || !page.effects.contains("main")) return "";
    const std::vector<VariedParameter> varied = varied_parameters(page);
    for (const auto& effect : page.effects["main"]) {
        if (effect["measured"].get<std::size_t>() == 0 || !effect["refused"].is_null()) continue;
        const auto gain = [&](const char* key) {
            return effect["gain"][key].is_number() ? effect["gain"][key].get<double>() : 0.0;
        };
        const auto name = effect["parameter"].get<std::string>();
        rows.push_back({page.view.setup.file.secrets(name + " = " + level_text(effect["level"])),
                        gain("low"), gain("value"), gain("high"),
                        gain("low") > 0    ? "better"
                        : gain("high") < 0 ? "worse"
                                           : "unknown",
                        level_in(varied, name, effect["level"])});
    }
    if (rows.empty() || !page.view.standings.scale().ratios())
        return effects_table(page);  // the chart's axis is in percent
    std::stable_sort(rows.begin(), rows.end(), [](const IntervalRow& a, const IntervalRow& b) {
        return (a.kind != "unknown") > (b.kind != "unknown") ||
               ((a.kind != "unknown") == (b.kind != "unknown") &&
                std::abs(a.value) > std::abs(b.value));
    });
    constexpr std::size_t most = 40;
    const std::size_t left_out = rows.size() > most ? rows.size() - most : 0;
    rows.resize(rows.size() - left_out);
    return html_figure(
               interval_chart("Effect of each flag", fmt::format("{} levels", rows.size()), rows),
               page.shown(fmt::format(
                   "{} with one parameter at this level against the average over its levels that "
                   "were not refused, as learned from "
                   "{} configurations. "
                   "With a probability of 95 % all intervals are right at once. Grey: the interval "
                   "includes 0, so it is not "
                   "known whether the level helps.{}",
                   metric_title(page.leading().metric),
                   page.effects["configurations"].get<std::size_t>(),
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
        const auto value = trial->measurement() == nullptr
                               ? std::nullopt
                               : value_in(trial->measurement()->metrics, page.leading().metric);
        if (!value) continue;
        xs.push_back(static_cast<double>(trial->id));
        ys.push_back(*value * factor);
        points.push_back({xs.back(), ys.back()});
    }
    if (points.size() < 2) return "";
    ChartAxis trials = axis_for("trial", xs, true);
    trials.whole = true;
    Chart chart("The default, measured again and again",
                fmt::format("{} measurements", points.size()), trials,
                axis_for(metric_title(page.leading().metric), ys), 200);
    chart.line(points, "even");
    for (const Chart::Point& point : points)
        chart.mark(
            {point, "usual",
             fmt::format("Trial {:.0f}\n", point.x) + figure_line(page.leading().metric, point.y),
             page.row_of(base->configuration)});
    return html_figure(chart.svg(),
                       "What the same configuration gave over the study: how noisy the machine is, "
                       "and whether it drifted.",
                       "drift");
}

std::string predicted_figure(const HtmlView& page) {
    const Beliefs beliefs =
        page.view.setup.beliefs.fitted_to(page.view.search, page.view.setup.problem->decision);
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
    std::nth_element(ratios.begin(),
                     ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
    const double ratio = ratios[ratios.size() / 2];
    std::vector<double> xs;
    std::vector<double> ys;
    for (const Both& one : both) {
        xs.push_back(one.predicted * ratio * factor);
        ys.push_back(one.measured * factor);
    }
    Chart chart("Predicted against measured", fmt::format("{} configurations", both.size()),
                axis_for("predicted, scaled by its median error", xs),
                axis_for("measured " + metric_title(page.leading().metric), ys));
    const double low =
        std::max(*std::min_element(xs.begin(), xs.end()), *std::min_element(ys.begin(), ys.end()));
    const double high =
        std::min(*std::max_element(xs.begin(), xs.end()), *std::max_element(ys.begin(), ys.end()));
    if (high > low) chart.line({{low, low}, {high, high}}, "even");
    for (std::size_t i = 0; i < both.size(); ++i)
        chart.mark({{xs[i], ys[i]},
                    both[i].row->kind,
                    page.view.setup.file.secrets(both[i].row->name) +
                        fmt::format("\npredicted: {}\nmeasured: {}", tick_text(xs[i], 0.1),
                                    tick_text(ys[i], 0.1)),
                    page.row_of(both[i].row->standing->configuration)});
    return html_figure(
        chart.svg(),
        page.shown(fmt::format("What {} expects of each configuration. It is right up to a factor, "
                               "{:.3g} here; on the broken line it would be right.",
                               beliefs[0].name(), ratio)),
        "predicted");
}

}  // namespace servetune
