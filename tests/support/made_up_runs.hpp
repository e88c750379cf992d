// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/load/load_generator.hpp"
#include "servetune/workload.hpp"

#include <cstddef>
#include <cstdint>

namespace servetune::test {

/// An engine that decodes all its requests together, step by step, and takes new prompts in pieces.
struct MadeUpEngine {
    double step_seconds = 0.008;             ///< of an empty step
    double seconds_per_request = 0.0001;     ///< more for each request of a step
    double seconds_per_prompt_token = 2e-5;  ///< more for each token of prompts in a step
    std::size_t most_requests = 256;         ///< decoded together
    std::size_t prompt_tokens_a_step = 2048;
    double noise = 0.02;        ///< standard deviation of a step's logarithm that stays for a while
    double noise_stays = 0.98;  ///< from step to step: AR(1)
    double slow_share = 0;      ///< until so many of the requests have been answered ...
    double slow_times = 1;      ///< ... it is so many times slower
};

/// What is sent to it. Lengths are uniform around their means by +- `spread`; answers that end by
/// themselves (`natural`) have lengths of a geometric distribution.
struct MadeUpLoad {
    Arrival arrival{};
    std::size_t requests = 200;
    double prompt_tokens = 256;
    double answer_tokens = 64;
    double spread = 0;
    bool natural = false;
};

/// One run, a function of the seed.
LoadRun made_up_run(const MadeUpEngine& engine, const MadeUpLoad& load, std::uint64_t seed);

}  // namespace servetune::test
