// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace servetune {

/// A request of recorded traffic. Numbers only: no text, and no hash of one.
struct TrafficRequest {
    double seconds = 0;  ///< from the first request
    std::int64_t input_tokens = 0;
    std::int64_t output_tokens = 0;
    /// Of the blocks at the start of its prompt that other prompts have too, numbered as they come:
    /// equal numbers, equal beginnings.
    std::vector<std::uint64_t> blocks{};
    std::int64_t block_tokens = 0;
};

/// What a log was made of.
struct TrafficCounts {
    std::size_t lines = 0;       ///< or objects, or rows
    std::size_t requests = 0;    ///< that a model had to answer, in all of the log
    std::size_t failed = 0;      ///< left out: with an error, or aborted
    std::size_t cached = 0;      ///< left out: a proxy answered them itself
    std::size_t other = 0;       ///< left out: health checks, lists of models, embeddings
    std::size_t repeated = 0;    ///< left out: an id that was there already
    std::size_t unanswered = 0;  ///< left out: their answer is not in the log
    std::size_t no_length = 0;   ///< left out: nothing tells their length
    std::size_t too_long = 0;    ///< lines that were passed over
};

/// Traffic that can be replayed.
struct Traffic {
    std::vector<TrafficRequest> requests;  ///< in the order of their times
    TrafficCounts counts{};
    double log_seconds = 0;     ///< from the first to the last request of the log
    double window_seconds = 0;  ///< that were taken of it
    std::string begins{};       ///< when the window begins, by the clock of the log
    double shared = 0;  ///< of the prompts' tokens: those that an earlier prompt begins with too
    std::size_t conversations =
        0;  ///< requests without those that go on with an earlier one; 0: nobody knows
    std::vector<std::string> remarks{};  ///< what was estimated or assumed, and what is missing
};

/// Reads logs as one traffic, in two passes, with memory for one record, the counts of the whole
/// and the requests of the window: the busiest `window_seconds` (most requests; of several the
/// first), or all if they are no longer.
///
/// A file is a log of an engine, a proxy or a web server, a trace (`LogLines`), each also by gzip,
/// or the answer of a Prometheus server with histograms of lengths (`LengthHistograms`). Lengths
/// that a log lacks are drawn from the histograms; histograms alone make arrivals that are random
/// within each of their steps.
///
/// Throws IoError, and ParseError for a file without requests or traffic without lengths. No
/// message has a text of the log.
Traffic read_traffic(const std::vector<std::filesystem::path>& files, double window_seconds);

/// As a trace file: JSON, a request a line.
std::string trace_text(const Traffic& traffic);
/// As the file of a workload that sends this trace.
std::string workload_text(const Traffic& traffic, const std::string& name,
                          const std::string& trace);
/// What was read and left out, for people.
std::vector<std::string> told(const Traffic& traffic);

}  // namespace servetune
