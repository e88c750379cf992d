// SPDX-License-Identifier: Apache-2.0
#include "servetune/objective.hpp"

#include "metric_text.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/base/ranges.hpp"

namespace servetune {

std::vector<std::pair<std::string, double>> Limit::figures(const Metrics& metrics) const {
    std::vector<std::pair<std::string, double>> result;
    if (const auto* own = entry_in(metrics, metric)) result.emplace_back("", own->value);
    for (const auto& [workload, figure] : figures_of(metrics, metric))
        if (!workload.empty()) result.emplace_back(workload, figure->value);
    return result;
}

std::optional<bool> Limit::holds(const Metrics& metrics) const {
    std::optional<bool> result;
    for (const auto& [workload, value] : figures(metrics))
        result = keeps(value) && result.value_or(true);
    return result;
}

std::vector<std::pair<std::string, double>> Limit::broken(const Metrics& metrics) const {
    std::vector<std::pair<std::string, double>> result = figures(metrics);
    std::erase_if(result, [&](const auto& figure) { return keeps(figure.second); });
    if (result.size() > 1)
        std::erase_if(result, [](const auto& figure) { return figure.first.empty(); });
    return result;
}

std::string Limit::text() const { return metric + (at_least ? " >= " : " <= ") + text_of(bound); }

std::string Limit::readable() const {
    if (!written.empty()) return written;
    return metric + (at_least ? " >= " : " <= ") + figure_text(metric, bound, 14);
}

std::string Limit::unjudged_text(std::string_view workload) const {
    return "limit " + readable() + " cannot be judged: the result has no " +
           MetricKey{metric, workload}.text();
}

std::string Objective::goals_text() const {
    std::string result;
    for (const Goal& goal : goals) result += (result.empty() ? "" : ", ") + goal.text();
    return result;
}

bool Goal::is_rate_or_time() const {
    const std::string_view name = MetricKey::of(metric).name;
    const auto of = [&](std::string_view family) {
        return name.starts_with(family) && name.ends_with("_seconds");
    };
    return contains(name, "tokens_per_second") || name.ends_with("requests_per_second") ||
           of("time_to_first_token") || of("time_per_output_token") || of("inter_token_latency") ||
           of("latency");
}

std::string Goal::why_unusable(const Metrics& metrics, bool as_ratio) const {
    const auto* found = entry_in(metrics, metric);
    if (found == nullptr) return "the result has no " + metric;
    if (found->value > 0 || !(as_ratio || is_rate_or_time())) return "";
    return metric + " = " + short_number_text(found->value) + " is not positive" +
           (is_rate_or_time() ? "" : ", and `never_worse_than` compares ratios");
}

std::string Objective::why_invalid() const {
    OptionCheck check;
    check.that(!goals.empty(), "goals", "at least one", "none");
    check.that(goals.size() <= 2, "goals", "at most two (make limits of the others)",
               std::to_string(goals.size()));
    std::vector<std::string> names;
    for (const Goal& goal : goals) {
        check.that(!goal.metric.empty(), "goals", "the name of a metric", "none");
        check.that(!contains(names, goal.metric), "goals", "each metric once",
                   goal.metric + " twice");
        names.push_back(goal.metric);
    }
    for (const Limit& limit : limits)
        check.that(!limit.metric.empty() && std::isfinite(limit.bound), "limits",
                   "a metric and a finite bound", limit.text());
    return check.text();
}

Limit Limit::parse(std::string_view text, bool words) {
    const auto at = text.find_first_of("<>");
    const auto trimmed = [](std::string_view part) {
        while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
        while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
        return part;
    };
    if (at != std::string_view::npos) {
        const std::string_view name = trimmed(text.substr(0, at));
        const std::string_view number =
            trimmed(text.substr(text.substr(at + 1).starts_with('=') ? at + 2 : at + 1));
        std::string metric = words ? metric_of_word(name) : std::string(name);
        const bool in_milliseconds = metric != name && MetricKey::of(name).name.ends_with("_ms");
        const auto bound = bound_of_text(number, metric, in_milliseconds);
        const bool plain = real_of(number).has_value();
        if (!bound && !plain && bound_of_text(number, "any_seconds"))
            throw ParseError("the unit of '" + std::string(number) + "' does not fit '" +
                             std::string(name) + "', which is no known time");
        if (words && plain && metric != name && !in_milliseconds && is_time(metric))
            throw ParseError("'" + std::string(text) + "': in which unit? Write " +
                             std::string(name) + " <= " + std::string(number) + "ms or " +
                             std::string(number) + "s");
        if (!name.empty() && !contains(name, ' ') && bound)
            return {std::move(metric), text[at] == '>', *bound, std::string(trimmed(text))};
    }
    throw ParseError(
        "a limit is written 'metric >= number' or 'metric <= number', such as 'latency_p95_seconds "
        "<= 2s', got '" +
        std::string(text) + "'");
}

std::string Limit::broken_text(const Metrics& metrics) const {
    std::string list;
    for (const auto& [workload, value] : broken(metrics)) {
        int digits = 4;  // just beyond the bound: as many as tell the two apart
        while (digits < 14 &&
               figure_text(metric, value, digits) == figure_text(metric, bound, digits))
            ++digits;
        list += (list.empty() ? "" : ", ") + figure_text(metric, value, digits) +
                (workload.empty() ? "" : " on " + workload);
    }
    return list.empty() ? "" : "limit " + readable() + " broken: " + list;
}

void add_combined_error(Metric& whole, const std::vector<WorkloadMetrics>& parts,
                        const std::string& name) {
    double weights = 0;
    double variances = 0;  // of one run, relative
    double replicated = 0;
    std::size_t fewest = 0;
    for (const WorkloadMetrics& part : parts) {
        const Metric& metric = part.metrics.find(name)->second;
        weights += part.weight;
        if (metric.replicates < 2 || !metric.standard_error || !(metric.value > 0)) continue;
        const double error = *metric.standard_error / metric.value;
        variances += error * error * double(metric.replicates);
        ++replicated;
        fewest = fewest == 0 ? metric.replicates : std::min(fewest, metric.replicates);
    }
    if (replicated == 0 || !(weights > 0)) return;
    double squares = 0;
    for (const WorkloadMetrics& part : parts) {
        const Metric& metric = part.metrics.find(name)->second;
        const double share = part.weight / weights;
        const bool known = metric.replicates >= 2 && metric.standard_error && metric.value > 0;
        const double error =
            known ? *metric.standard_error / metric.value : std::sqrt(variances / replicated);
        squares += share * share * error * error;
    }
    whole.standard_error = whole.value * std::sqrt(squares);
    whole.replicates = fewest;
}

Metrics combined(const std::vector<WorkloadMetrics>& parts) {
    if (parts.size() == 1) return parts.front().metrics;
    Metrics result;
    for (const WorkloadMetrics& part : parts)
        for (const auto& [name, metric] : part.metrics)
            result[MetricKey{name, part.workload}.text()] = metric;
    if (parts.empty()) return result;
    for (const auto& [name, first] : parts.front().metrics) {
        double weights = 0;
        double sum_of_logs = 0;
        double smallest = first.value;
        bool everywhere = true;
        for (const WorkloadMetrics& part : parts) {
            const auto* found = entry_in(part.metrics, name);
            everywhere = everywhere && found != nullptr && found->value >= 0;
            if (!everywhere) break;
            weights += part.weight;
            sum_of_logs += part.weight * std::log(found->value);
            smallest = std::min(smallest, found->value);
        }
        if (!everywhere) continue;
        Metric& whole =
            result[name] = {name == "success_ratio" ? smallest : std::exp(sum_of_logs / weights)};
        if (name != "success_ratio") add_combined_error(whole, parts, name);
    }
    return result;
}

}  // namespace servetune
