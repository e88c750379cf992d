// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/load_test.hpp"

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>

namespace servetune {

/// What the requests before a load test showed. None of their figures counts.
struct WarmUp {
    std::size_t requests = 0;
    std::size_t rounds = 0;
    bool steady = false;        ///< the last round was not faster than an earlier one
    bool stopped = false;       ///< by the stop token
    std::size_t successes = 0;  ///< of the last round
    std::optional<double> requests_per_second{};  ///< of the last round
    std::string error{};  ///< of a request, where none of the last round succeeded

    /// One line for people: how many requests, whether the server is steady, and by how much it
    /// became faster.
    std::string text{};
};

/// Sends requests like those of a load test until the server does not get faster any more.
///
/// Rounds of the workload's own lengths, with prompts of their own, as many in flight as the load
/// test will have: a closed loop's places; at a rate as many as Little's law gives with the latency
/// of a first round; else a quarter of the requests. Steady: tokens per second at most 5 % above
/// the best round before, and TPOT at most 5 % below. So a steady server gets two rounds (three at
/// a rate). At most as many requests as the load test has, so that warming up takes no longer than
/// measuring does while the server is cold; `least` at any rate, each server of several.
///
/// Fills `handshake` and `calibration` of the test where they are empty. Throws as `run_load_test`
/// does.
WarmUp warm_up(LoadTest& test, std::size_t least, const std::stop_token& stop = {});

}  // namespace servetune
