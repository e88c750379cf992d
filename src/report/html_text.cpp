// SPDX-License-Identifier: Apache-2.0
#include "html_text.hpp"

#include "servetune/detail/base/printable.hpp"
#include "servetune/detail/trial/figure_text.hpp"
#include "servetune/detail/trial/metric_key.hpp"

#include <array>
#include <utility>

namespace servetune {

std::string html_text(std::string_view text) {
    std::string result;
    for (const char c : printable(text)) {
        switch (c) {
            case '&': result += "&amp;"; break;
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '"': result += "&quot;"; break;
            case '\'': result += "&#39;"; break;
            default: result += c;
        }
    }
    return result;
}

std::string html_json(std::string_view json) {
    std::string result;
    result.reserve(json.size());
    for (const char c : json) {
        if (c == '<') result += "\\u003c";
        else result += c;
    }
    return result;
}

std::string metric_title(std::string_view metric) {
    auto [name, of] = MetricKey::of(metric);
    const std::string workload = of.empty() ? "" : ", " + std::string(of);
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> families{
        {{"time_to_first_token_", "TTFT "},
         {"time_per_output_token_", "TPOT "},
         {"inter_token_latency_", "ITL "},
         {"latency_", "latency "}}};
    std::string title;
    const bool milliseconds = shown_in_milliseconds(name);
    if (milliseconds) name.remove_suffix(std::string_view("_seconds").size());
    for (const auto& [family, called] : families)
        if (name.starts_with(family)) {
            title = called;
            name.remove_prefix(family.size());
            break;
        }
    for (const char c : name) title += c == '_' ? ' ' : c;
    if (const auto rate = title.find(" per second"); rate != std::string::npos)
        title.replace(rate, std::string_view(" per second").size(), "/s");
    return title + (milliseconds ? " (ms)" : "") + workload;
}

bool less_is_better(const Objective& objective, std::string_view metric) {
    for (const Goal& goal : objective.goals)
        if (goal.metric == metric) return goal.direction == Direction::minimize;
    for (const Limit& limit : objective.limits)
        if (limit.metric == metric) return !limit.at_least;
    return less_is_better(metric);
}

}  // namespace servetune
