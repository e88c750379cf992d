// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "load/data_files.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace servetune {

/// Recorded traffic that can be sent again. Numbers only: no text, and no hash of one.
struct Traffic {
    /// In the order of their times, from the first on. Blocks have the numbers 1, 2, ... as they
    /// come, and only those that two prompts begin with.
    std::vector<TraceRow> requests{};
    std::size_t logged = 0;     ///< requests of the whole log
    std::size_t unread = 0;     ///< lines that tell of no request
    double log_seconds = 0;     ///< from the first to the last request of the log
    double window_seconds = 0;  ///< of these requests
    std::string begins{};       ///< when, by the clock of the log
    double shared = 0;  ///< of the prompts' tokens: those that an earlier prompt begins with too
    std::size_t conversations = 0;  ///< 0: the log does not say
    bool spread = false;            ///< its clock counts seconds: spread over each

    /// As a trace file: JSON, a request a line.
    [[nodiscard]] std::string trace_text() const;
    /// As the file of a workload that sends this trace.
    [[nodiscard]] std::string workload_text(const std::string& name,
                                            const std::string& trace) const;
    /// What was read and left out, for people.
    [[nodiscard]] std::vector<std::string> lines() const;
};

/// Reads logs (JSON Lines or CSV, as `dataset: trace` reads them) as one traffic, and takes the
/// busiest `window_seconds` of it: most requests; of several the first.
///
/// Throws IoError, and ParseError for a file of which most lines tell of no request. No message
/// has a text of the log.
Traffic read_traffic(const std::vector<std::filesystem::path>& files, double window_seconds);

}  // namespace servetune
