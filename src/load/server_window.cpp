// SPDX-License-Identifier: Apache-2.0
#include "server_window.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

/// The sum of the metrics that `names` joins by " + "; nothing when one is not there.
std::optional<MetricSum> named_samples(std::string_view page, std::string_view names) {
    constexpr std::string_view plus = " + ";
    MetricSum result;
    for (;;) {
        const std::size_t end = names.find(plus);
        const auto one = samples_in(page, names.substr(0, end));
        if (!one) return std::nullopt;
        result.sum += one->sum;
        result.series += one->series;
        if (end == std::string_view::npos) return result;
        names.remove_prefix(end + plus.size());
    }
}

template <class Map>
auto value_in(const Map& map, std::string_view name) {
    const auto found = map.find(name);
    return found == map.end() ? std::nullopt : std::optional(found->second);
}

/// Erases what the other one lacks, and adds the rest.
template <class Map, class Add>
void merge_known(Map& into, const Map& more, const Add& add) {
    std::erase_if(into, [&](const auto& one) { return !more.contains(one.first); });
    for (auto& [name, value] : into) add(value, more.find(name)->second);
}

/// Two clocks of one start differ by less.
constexpr double same_start_seconds = 1;

}  // namespace

ServerReading ServerReading::of(std::string_view page,
                                const std::map<std::string, std::string>& names,
                                double at_seconds) {
    ServerReading result;
    result.at_seconds = at_seconds;
    result.server_started_at = metric_in(page, "process_start_time_seconds");
    const auto is_in = [](const auto& list, std::string_view name) {
        return std::find(list.begin(), list.end(), name) != list.end();
    };
    for (const auto& [ours, theirs] : names) {
        if (is_in(watched_histograms, ours)) {
            if (auto found = histogram_in(page, theirs))
                result.histograms[ours] = std::move(*found);
        } else if (is_in(watched_counters, ours)) {
            if (const auto found = named_samples(page, theirs)) result.counters[ours] = found->sum;
        } else if (is_in(watched_gauges, ours)) {
            // A share of each engine's cache: their sum says nothing.
            if (const auto found = named_samples(page, theirs))
                result.gauges[ours] = ours == "cache_used_share" ? found->mean() : found->sum;
        }
    }
    return result;
}

std::optional<ServerWindow> ServerWindow::between(const ServerReading& before,
                                                  const ServerReading& after) {
    if (!(after.at_seconds > before.at_seconds)) return std::nullopt;
    if (before.server_started_at && after.server_started_at &&
        std::abs(*after.server_started_at - *before.server_started_at) > same_start_seconds)
        return std::nullopt;
    ServerWindow result;
    result.seconds = after.at_seconds - before.at_seconds;
    for (const auto& [name, now] : after.counters) {
        const auto then = value_in(before.counters, name);
        if (!then) continue;  // since when it counts is not known
        if (now < *then) return std::nullopt;
        result.counters[name] = now - *then;
    }
    for (const auto& [name, now] : after.histograms) {
        const auto then = before.histograms.find(name);
        if (then == before.histograms.end()) continue;
        const auto grown = difference(now, then->second);
        if (!grown) return std::nullopt;
        result.histograms[name] = *grown;
    }
    for (const auto& [name, now] : after.gauges)
        if (const auto then = value_in(before.gauges, name))
            result.gauges[name] = (now + *then) / 2;
    return result;
}

ServerWindow& ServerWindow::operator+=(const ServerWindow& more) {
    if (!(seconds > 0)) return *this = more;
    const double whole = seconds + more.seconds;
    merge_known(counters, more.counters, [](double& sum, double one) { sum += one; });
    merge_known(gauges, more.gauges, [&](double& mean, double one) {
        mean = (mean * seconds + one * more.seconds) / whole;
    });
    merge_known(histograms, more.histograms,
                [](Histogram& sum, const Histogram& one) { sum += one; });
    seconds = whole;
    return *this;
}

std::optional<double> ServerWindow::counter(std::string_view name) const {
    return value_in(counters, name);
}
std::optional<double> ServerWindow::gauge(std::string_view name) const {
    return value_in(gauges, name);
}

const Histogram* ServerWindow::histogram(std::string_view name) const {
    const auto found = histograms.find(name);
    return found != histograms.end() && found->second.count > 0 ? &found->second : nullptr;
}

std::optional<double> ServerWindow::requests() const {
    for (const char* name :
         {"latency_seconds", "request_prompt_tokens", "request_generated_tokens"})
        if (const auto found = histograms.find(std::string_view(name)); found != histograms.end())
            return found->second.count;
    return std::nullopt;
}

std::optional<double> ServerWindow::per_second(std::string_view counter_name) const {
    const auto grown = counter(counter_name);
    return grown && seconds > 0 ? std::optional(*grown / seconds) : std::nullopt;
}

std::optional<double> ServerWindow::in_flight() const {
    if (const Histogram* latency = histogram("latency_seconds")) return latency->sum / seconds;
    const auto running = gauge("running_requests");
    if (!running) return std::nullopt;
    return *running + gauge("waiting_requests").value_or(0);
}

std::optional<double> ServerWindow::hit_share() const {
    const auto hits = counter("prefix_hit_tokens");
    const auto asked = counters.contains("prefix_queried_tokens") ? counter("prefix_queried_tokens")
                                                                  : counter("prompt_tokens");
    if (!hits || !asked || !(*asked > 0)) return std::nullopt;
    return std::min(1.0, *hits / *asked);
}

}  // namespace servetune
