// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/perf/engine_core.hpp"
#include "servetune/detail/trial/request_record.hpp"
#include "servetune/workload.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// A workload's requests without their texts: what a simulation needs, made once and simulated
/// under many settings.
class SimulatedTraffic {
public:
    struct Request {
        std::int64_t input_tokens =
            0;  ///< of a later turn: of its own text; what was said before comes on top
        std::int64_t output_tokens = 0;
        double at_seconds = 0;
        std::optional<std::size_t> follows{};
        std::vector<std::uint64_t>
            pieces{};  ///< EngineRequest::pieces, only those that another request shares
    };

    /// From planned requests: pieces are named from their texts or token ids (equal beginnings,
    /// equal names), and the texts are forgotten. Turns of a conversation begin with all that was
    /// said before, answers included. Both throw UsageError for no request, for one whose number of
    /// tokens is not known (input or output 0), for a turn before the one that it follows, for two
    /// turns that follow the same request, for a closed loop without places.
    SimulatedTraffic(const std::vector<PlannedRequest>& plan, Arrival arrival);
    SimulatedTraffic(std::vector<Request> requests, Arrival arrival);

    /// The first `count` of the same requests under a load that was chosen for a workload whose
    /// arrival is `searched`: its times are those of one request a second, which a rate divides.
    [[nodiscard]] SimulatedTraffic under(const Arrival& arrival, std::size_t count) const;

    [[nodiscard]] const std::vector<Request>& requests() const { return requests_; }
    [[nodiscard]] const Arrival& arrival() const { return arrival_; }

private:
    std::vector<Request> requests_;
    Arrival arrival_;
};

/// Names of the whole pieces that a text begins with (EngineRequest::pieces), one for every
/// `EngineCore::prefix_piece_tokens` x `bytes_per_token` bytes: tokens are about equally long. With
/// one and the same `bytes_per_token` (at least 1 / 16) equal beginnings have equal names, however
/// the texts go on.
std::vector<std::uint64_t> prefix_pieces(std::string_view text, double bytes_per_token);

struct SimulationOptions {
    std::uint64_t seed = 0;  ///< of noise and of which guesses are right
    StepNoise noise{};

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const {
        return OptionCheck().part("noise", noise.why_invalid()).text();
    }
};

/// What a simulated load test gave: records as a load generator would have written them, with a
/// client that costs nothing.
struct SimulatedRun {
    std::vector<RequestRecord> records;  ///< by index
    double duration_seconds = 0;         ///< first scheduled arrival to last end
    ServerCounters server{};
    EngineCounters engine{};  ///< of all replicas together
    /// Why the engine ended under load, and with it all that was open; empty: it did not.
    std::string death{};
};

/// Sends the traffic through the engine on paper: discrete events, one step of each replica after
/// the other, and the front end before and behind them (requests one after the other per process,
/// each streamed event with its cost). Deterministic: same arguments, same records.
///
///     const SimulatedRun run = simulate(CostModel(target, settings), traffic, {.seed = 1});
SimulatedRun simulate(const CostModel& cost, const SimulatedTraffic& traffic,
                      const SimulationOptions& options = {});

}  // namespace servetune
