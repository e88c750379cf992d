// SPDX-License-Identifier: Apache-2.0
#pragma once

// An engine of the made-up model (small_target.hpp), requests to it, and what they get.

#include "servetune/detail/perf/engine_core.hpp"
#include "servetune/rng.hpp"
#include "support/small_target.hpp"
#include "support/test.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace servetune::test {

inline EngineCore core_of(const ServingSettings& settings, std::uint64_t seed = 1,
                          const StepNoise& noise = {}) {
    return EngineCore(CostModel(small_target(), settings), seed, noise);
}

inline EngineRequest request(std::size_t id, std::int64_t input, std::int64_t output,
                             std::vector<std::uint64_t> pieces = {}) {
    return {.id = id, .input_tokens = input, .output_tokens = output, .pieces = std::move(pieces)};
}

/// Names of the first `count` pieces of a text that is called `text`.
inline std::vector<std::uint64_t> pieces(std::uint64_t text, std::size_t count) {
    std::vector<std::uint64_t> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(derive_seed(text, i));
    return result;
}

/// What each request got, by its id.
struct Got {
    std::int64_t tokens = 0;
    std::int64_t cached = 0;
    int firsts = 0;
    int ends = 0;
};

/// Runs to the end and checks what must hold in every step.
inline std::map<std::size_t, Got> finish(EngineCore& core, int most_steps = 1'000'000) {
    std::map<std::size_t, Got> got;
    const ServingSettings& settings = core.cost().settings();
    for (int i = 0; !core.idle(); ++i) {
        REQUIRE(i < most_steps);
        const EngineStep step = core.step();
        REQUIRE_FALSE(step.out_of_memory);
        REQUIRE(step.seconds > 0);
        REQUIRE(step.work.decode_sequences + step.work.prefill_tokens > 0);
        REQUIRE(step.work.decode_sequences + step.work.prefill_tokens <=
                settings.max_batched_tokens);
        REQUIRE(step.work.decode_sequences + step.work.prefill_sequences <= settings.max_sequences);
        REQUIRE((settings.mixed_steps || step.work.decode_sequences == 0 ||
                 step.work.prefill_sequences == 0));
        REQUIRE(core.running() <= std::size_t(settings.max_sequences));
        REQUIRE(step.cache_use <= 1);
        REQUIRE(core.cache_use() <= step.cache_use);
        for (const TokenEvent& event : step.tokens) {
            Got& one = got[event.id];
            REQUIRE(event.tokens >= 1);
            REQUIRE(event.tokens <= 1 + settings.speculation.tokens);
            REQUIRE_FALSE((event.first && one.tokens > 0));
            REQUIRE(one.ends == 0);
            one.tokens += event.tokens;
            one.cached += event.cached_tokens;
            one.firsts += event.first ? 1 : 0;
            one.ends += event.finished ? 1 : 0;
        }
    }
    CHECK(core.cache_use() == 0);
    return got;
}

}  // namespace servetune::test
