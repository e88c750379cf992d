// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "load/metrics_page.hpp"

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace servetune {

/// What `autotune watch` reads of a server, by the names of an engine file's `counters`. Counters
/// only grow, gauges say what is now, histograms count since the server began.
inline constexpr std::array<std::string_view, 7> watched_counters{
    "prompt_tokens", "generated_tokens", "prefix_queried_tokens", "prefix_hit_tokens",
    "preemptions",   "drafted_tokens",   "accepted_tokens"};
inline constexpr std::array<std::string_view, 3> watched_gauges{
    "running_requests", "waiting_requests", "cache_used_share"};
inline constexpr std::array<std::string_view, 6> watched_histograms{
    "request_prompt_tokens", "request_generated_tokens", "first_token_seconds",
    "token_gap_seconds",     "per_token_seconds",        "latency_seconds"};

/// A page of metrics at one moment. What the page does not have is absent.
struct ServerReading {
    double at_seconds = 0;  ///< monotonic
    std::map<std::string, double, std::less<>> counters{};
    std::map<std::string, double, std::less<>> gauges{};
    std::map<std::string, Histogram, std::less<>> histograms{};
    std::optional<double> server_started_at{};  ///< seconds since 1970

    /// `names`: an engine file's `counters`; a name of the engine may be a sum, `a + b`.
    static ServerReading of(std::string_view page, const std::map<std::string, std::string>& names,
                            double at_seconds);
    [[nodiscard]] bool empty() const {
        return counters.empty() && gauges.empty() && histograms.empty();
    }
};

/// What a server did between two readings, or in several such times together.
struct ServerWindow {
    double seconds = 0;
    std::map<std::string, double, std::less<>> counters{};  ///< what they grew by
    std::map<std::string, double, std::less<>> gauges{};    ///< mean over the readings
    std::map<std::string, Histogram, std::less<>> histograms{};

    /// Nothing when the server restarted in between: a counter fell, or it has another start time.
    static std::optional<ServerWindow> between(const ServerReading& before,
                                               const ServerReading& after);
    /// What one of them lacks, both lack.
    ServerWindow& operator+=(const ServerWindow& more);

    [[nodiscard]] std::optional<double> counter(std::string_view name) const;
    [[nodiscard]] std::optional<double> gauge(std::string_view name) const;
    /// Null when it is absent or holds no observation.
    [[nodiscard]] const Histogram* histogram(std::string_view name) const;
    /// Requests that ended; nothing for an engine that does not count them.
    [[nodiscard]] std::optional<double> requests() const;
    [[nodiscard]] std::optional<double> per_second(std::string_view counter_name) const;
    /// Requests with the server on average: their latencies together / seconds (Little's law), else
    /// by the gauges.
    [[nodiscard]] std::optional<double> in_flight() const;
    /// Of the prompts' tokens, those from the prefix cache.
    [[nodiscard]] std::optional<double> hit_share() const;
};

}  // namespace servetune
