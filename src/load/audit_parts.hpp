// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the audit of a load test is made of.

#include "servetune/audit.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/load_test.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// Sets statistics, validity and what was not checked of a load test whose plan, handshake and run
/// are there: all that follows from what was sent and what came back. Pure; asks no server. Of
/// `test` only workload, limits, `known` and the number of replicas count.
void judge_load_test(const LoadTest& test, LoadTestResult& result);

/// What only the single answers of a run show, beside `audit`: tokens that were counted and not
/// seen (`unseen`), tokens that the server keeps (`hidden_tokens`), times that run backwards
/// (`order`). O(requests and gaps).
Validity audit_answers(std::span<const RequestRecord> records);

/// The audit's identity `order`: percentiles rise, the first token comes before the last, no time
/// is negative or none.
Validity audit_order(const BenchmarkResult& result);

/// The findings `sent_late` (the client sent requests after their schedule) and `rate` (the server
/// ended long after the last arrival). Notes where the load is what is looked for.
Validity falling_behind(const BenchmarkResult& result, const AuditContext& context);

/// Whether every identity lacks a figure that it needs.
bool nothing_checked(const BenchmarkResult& result, const std::vector<NotChecked>& skipped);

/// Whether a run stayed the same from its start to its end.
struct Steadiness {
    std::optional<Finding> finding{};         ///< `steady`: one part was slower than the rest
    std::optional<NotChecked> not_checked{};  ///< why no part could be compared
};

/// Compares the first part of a run with the rest, split where the two differ most: by the time per
/// output token and, in a closed loop, by the latency. A finding needs a difference that at most
/// one in a hundred steady runs has, and one that moves the run's mean by more than 5 %. Not
/// checked: bursts and traces, which have no steady state, and runs that are too short.
/// Formula and reasons: docs/explanation/measuring.md.
Steadiness steadiness_of(const LoadRun& run, const Arrival& arrival);

/// Adds one finding.
inline void add_finding(Validity& to, Verdict verdict, std::string id, std::string left,
                        std::string right, std::string cause) {
    add(to, {verdict, {{std::move(id), std::move(left), std::move(right), std::move(cause)}}});
}

/// A figure as findings print it: whole numbers whole, others with two decimals or four digits.
std::string figure_shown(double value);

inline std::string milliseconds_shown(double seconds) {
    return figure_shown(seconds * 1e3) + " ms";
}

/// A turn of the load generator's loop that comes later than this was stopped: Ctrl-Z, a machine
/// that slept, a container on hold. A loop that is only busy is milliseconds late.
inline constexpr double client_stops_at = 0.5;

/// How far figures may be apart before the audit says so. docs/explanation/measuring.md has the
/// reason of each number.
namespace audit_tolerances {

inline constexpr double window_tolerance = 0.005;   ///< rates and tokens / duration
inline constexpr double window_unsound = 0.03;      ///< above it the rates are worthless
inline constexpr double exact_tolerance = 0.02;     ///< decomposition with equal lengths
inline constexpr double dialect_tolerance = 0.005;  ///< both sides of guidellm's own identity
inline constexpr double mixed_tolerance = 0.25;     ///< decomposition with mixed lengths
inline constexpr double hidden_tolerance =
    0.10;  ///< share of the decoding time that the gaps do not show
inline constexpr double chunk_tolerance = 0.05;  ///< ITL against TPOT
inline constexpr double few_tokens_a_chunk =
    1.25;  ///< below it chunks of several tokens are the exception
inline constexpr double fewest_tokens =
    16;  ///< below it one chunk more or less is more than the tolerances
inline constexpr double cap_tolerance = 1.02;  ///< Little's law above the cap
inline constexpr double cap_used = 0.75;       ///< a closed loop keeps that much of its cap busy
inline constexpr double cap_drain = 1.5;       ///< ... until its last answers end, in p99 latencies
inline constexpr double cap_rounds =
    4;  ///< ... when each of its slots gets at least so many requests
inline constexpr double peak_times_mean = 20;  ///< above it the peak counts moments, not seconds
inline constexpr double peak_highest = 1e6;    ///< tokens per second that one server does not reach
inline constexpr double peak_shortest_seconds =
    2;                                          ///< a shorter run has no whole second in its middle
inline constexpr double success_wanted = 0.99;  ///< failed requests take their latencies with them
inline constexpr double input_tolerance = 0.02;  ///< mean prompt length against the data set's
inline constexpr double template_tokens = 16;    ///< that a chat template adds to a prompt
inline constexpr double work_tolerance = 0.005;  ///< tokens in and out of compared runs
inline constexpr double small_part = 0.1;  ///< of all tokens: what is less counts by the total,
inline constexpr double small_part_tolerance = 0.05;  ///< ... and by itself only from here
inline constexpr double rate_reached = 0.97;  ///< of the offered rate: the server had time to spare
inline constexpr double tail_longest =
    0.1;  ///< of the arrivals' time: how late the last answer may come
inline constexpr double sent_late_least =
    0.01;  ///< seconds of median wait before sending that count, or
inline constexpr double sent_late_share =
    0.1;  ///< that share of the mean TTFT; of the 99th percentile
inline constexpr double sent_late_most = 0.05;  ///< ... seconds, or a whole TTFT
inline constexpr double longest_answer = 5;  ///< times the mean answer: how late the last one ends
inline constexpr double longest_equal_answer = 2;  ///< ... where all have the same length
inline constexpr double behind_least = 0.05;       ///< of the arrivals' time
inline constexpr double queue_least =
    0.1;  ///< of that delay: the mean wait in a queue that grows to it
inline constexpr double lag_longest =
    0.002;                                  ///< seconds that the client's own loop may be late, or
inline constexpr double lag_of_gap = 0.05;  ///< that share of the mean gap
inline constexpr double lag_unsound =
    0.25;  ///< seconds late in more than one turn of 100: no time is right
inline constexpr double in_flight_unsound = 1.5;  ///< of the cap: far more than it lets in
inline constexpr double coalesced_most =
    0.05;  ///< chunks that came in one read with an earlier one
inline constexpr double processor_most = 0.70;     ///< of one core
inline constexpr double server_tolerance = 0.005;  ///< the server's count of tokens against ours
inline constexpr double prefix_hits_most = 0.01;   ///< of the input, where no cache is intended
inline constexpr double physics_tolerance = 0.03;  ///< of a bound that nothing passes
inline constexpr double lengths_shown_by =
    100;  ///< requests from which whole tokens per request are no accident
inline constexpr double hardly_zero_seconds =
    0.0001;  ///< mean TPOT above which a median gap of 0 is impossible

/// How far a figure printed with two decimals may be from the truth, and as a share of what is
/// printed.
inline constexpr double half_a_unit = 0.005;
inline double rounding(double printed, double unit = 1) {
    return printed > 0 ? half_a_unit * unit / printed : 0;
}
inline constexpr double in_milliseconds = 1e-3;

}  // namespace audit_tolerances

}  // namespace servetune
