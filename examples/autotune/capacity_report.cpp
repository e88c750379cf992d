// SPDX-License-Identifier: Apache-2.0
#include "capacity_report.hpp"

#include "bench_report.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

constexpr std::array<std::pair<Capacity::End, std::string_view>, 6> ends{{
    {Capacity::End::found, "found"},
    {Capacity::End::fails_at_lowest, "fails_at_lowest"},
    {Capacity::End::edge_not_reached, "edge_not_reached"},
    {Capacity::End::below_all_tried, "below_all_tried"},
    {Capacity::End::above_all_tried, "above_all_tried"},
    {Capacity::End::too_few_requests, "too_few_requests"},
}};

std::string load_text(double level) {
    return std::isinf(level) ? "all at once" : short_number_text(level);
}

/// Empty where it was not measured.
std::string figure_of(const Metrics& metrics, std::string_view metric) {
    const auto found = metrics.find(metric);
    return found == metrics.end() ? "-" : plain_figure_text(metric, found->second.value);
}

/// How much of the nearest limit is taken: full at the `|`.
std::string bar(double strain) {
    constexpr double limit_at = 20;
    constexpr int width = 30;
    const int length = static_cast<int>(
        std::clamp(std::round(strain * limit_at), 0.0, static_cast<double>(width)));
    std::string text(static_cast<std::size_t>(width), ' ');
    std::fill(text.begin(), text.begin() + length, '#');
    text[static_cast<std::size_t>(limit_at)] = '|';
    return text.substr(0, text.find_last_not_of(' ') + 1);
}

OrderedJson number(double value) {
    return std::isfinite(value) ? OrderedJson(value) : OrderedJson();
}

}  // namespace

void CapacityReport::add(LoadPoint point, const Arrival& at) {
    judge(point, limits, at);
    points.push_back(std::move(point));
    if (at.kind == Arrival::Kind::rate) judge_served(points);
}

std::string CapacityReport::line_of(const LoadPoint& point) const {
    const Metrics& m = point.metrics;
    std::string line = fmt::format(
        "{:>12} {:>9} {:>10} {:>11} {:>10} {:>10} {:>11} {:>9}", load_text(point.level),
        figure_of(m, "requests_per_second"), figure_of(m, "output_tokens_per_second"),
        figure_of(m, tokens_per_second_per_user), figure_of(m, "time_to_first_token_p95_seconds"),
        figure_of(m, "time_per_output_token_p95_seconds"), figure_of(m, "latency_p95_seconds"),
        name_in(verdicts, point.validity.verdict));
    if (!limits.empty())
        line += std::isinf(point.strain)
                    ? "  requests fail"
                    : fmt::format("  {:>5.0f} % {}", point.strain * 100, bar(point.strain));
    return line + (point.served == Served::yes  ? ""
                   : point.served == Served::no ? "  does not keep up"
                                                : "  too few requests to tell whether it keeps up");
}

Verdict CapacityReport::verdict() const {
    if (found) return found->points[found->shown].validity.verdict;
    Verdict worst = Verdict::sound;
    for (const LoadPoint& point : points) worst = std::max(worst, point.validity.verdict);
    return worst;
}

std::string CapacityReport::findings_of(const LoadPoint& point) const {
    const std::string text = findings_lines(point.validity);
    return text.empty() ? text
                        : fmt::format("{}, {}:\n{}", load_text(point.level),
                                      name_in(verdicts, point.validity.verdict), text);
}

std::string CapacityReport::text() const {
    std::string text;
    if (found) {
        std::string all;
        for (const Limit& limit : limits) all += (all.empty() ? "" : ", ") + limit.readable();
        if (verdict() == Verdict::unsound)
            text +=
                fmt::format("No largest load: the result at {} {} is unsound\nunder {}\n\n",
                            load_text(found->points[found->shown].level), load_unit(arrival), all);
        else if (found->end == Capacity::End::found)
            text += fmt::format("Largest load: {} {} ({})\nunder {}\n\n",
                                short_number_text(found->level), load_unit(arrival),
                                found->text(load_unit(arrival)), all);
        else
            text += fmt::format("No largest load: {}\nunder {}\n\n",
                                found->text(load_unit(arrival)), all);
    }
    if (points.empty()) return text;
    text += fmt::format("{:>12} {:>9} {:>10} {:>11} {:>10} {:>10} {:>11} {:>9}{}\n",
                        arrival.kind == Arrival::Kind::largest_rate ? "requests/s" : "in flight",
                        "served/s", "tokens/s", "tok/s/user", "TTFT p95", "TPOT p95", "latency p95",
                        "verdict", limits.empty() ? "" : "  of the nearest limit");
    std::vector<LoadPoint> by_level = points;
    std::stable_sort(by_level.begin(), by_level.end(),
                     [](const LoadPoint& a, const LoadPoint& b) { return a.level < b.level; });
    for (const LoadPoint& point : by_level) text += line_of(point) + "\n";
    text += "times in milliseconds; tokens/s: output tokens of all; tok/s/user: 1 / mean TPOT\n";
    for (const LoadPoint& point : by_level) text += findings_of(point);
    return text;
}

std::string CapacityReport::json() const {
    OrderedJson json;
    json["load"] =
        arrival.kind == Arrival::Kind::largest_rate ? "requests_per_second" : "concurrency";
    json["limits"] = OrderedJson::array();
    for (const Limit& limit : limits) json["limits"].push_back(limit.text());
    if (found) {
        json["end"] = name_in(ends, found->end);
        json["largest_load"] = number(found->level);
        json["keeps_at"] = found->low ? number(*found->low) : OrderedJson();
        json["breaks_at"] = found->high ? number(*found->high) : OrderedJson();
    }
    if (!points.empty()) json["verdict"] = name_in(verdicts, verdict());
    json["points"] = OrderedJson::array();
    for (const LoadPoint& point : points) {
        OrderedJson one;
        one["load"] = number(point.level);  // null: all at once
        one["of_nearest_limit"] = number(point.strain);
        one["keeps_up"] = point.served == Served::undecided
                              ? OrderedJson()
                              : OrderedJson(point.served == Served::yes);
        one["verdict"] = name_in(verdicts, point.validity.verdict);
        for (const auto& [name, metric] : point.metrics)
            one["metrics"][name] = number(metric.value);
        json["points"].push_back(std::move(one));
    }
    return json.dump(2);
}

}  // namespace autotune
