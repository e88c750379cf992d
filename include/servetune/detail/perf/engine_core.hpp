// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/perf/cost_model.hpp"
#include "servetune/rng.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace servetune {

/// One request as an engine sees it, tokenized.
struct EngineRequest {
    std::size_t id = 0;  ///< the caller's; unique among those not yet finished
    std::int64_t input_tokens = 0;
    std::int64_t output_tokens = 0;  ///< it will make exactly so many
    /// Names of the whole pieces of `EngineCore::prefix_piece_tokens` tokens that it begins with,
    /// each naming all that stands before it too: requests with equal names share these tokens. May
    /// go on into the answer (a later turn repeats it). Empty: shares nothing.
    std::vector<std::uint64_t> pieces{};
    /// The keys and values of its prompt come with it, from an engine that computed them: only the
    /// last token of the prompt is computed here. Its prompt is counted where it was computed.
    bool prompt_is_computed = false;
};

/// Tokens that one request got from a step.
struct TokenEvent {
    std::size_t id = 0;
    std::int64_t tokens = 0;         ///< 1, or more with speculation
    std::int64_t cached_tokens = 0;  ///< with the first token: of the prompt, from the prefix cache
    bool first = false;
    bool finished = false;
};

/// One step of the engine: what it did, how long it takes, what it gives at its end.
struct EngineStep {
    StepWork work{};
    StepTime time{};
    double seconds = 0;                    ///< time.total with the noise
    std::span<const TokenEvent> tokens{};  ///< valid until the next step
    double cache_use = 0;                  ///< while it runs: blocks of requests / all blocks
    /// its activations do not fit beside weights and cache: the engine dies in it, nobody gets a
    /// token
    bool out_of_memory = false;
};

/// How far steps vary, each as a coefficient of variation.
struct StepNoise {
    double run_cv = 0;   ///< one factor for the whole life of an engine: server starts differ
    double step_cv = 0;  ///< each step by itself

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const {
        return OptionCheck().within("run_cv", run_cv, 0, 1).within("step_cv", step_cv, 0, 1).text();
    }
};

/// Counters as engines publish them.
struct EngineCounters {
    std::uint64_t steps = 0;
    std::uint64_t requests_finished = 0;
    std::uint64_t preemptions = 0;
    std::uint64_t prompt_tokens =
        0;  ///< of requests that got their first token, cached ones included
    std::uint64_t prefix_queried_tokens = 0;
    std::uint64_t prefix_hit_tokens = 0;
    std::uint64_t generated_tokens = 0;
    std::uint64_t drafted_tokens = 0;   ///< guessed, and checked in a step
    std::uint64_t accepted_tokens = 0;  ///< guesses that were right
    double busy_seconds = 0;            ///< in steps
};

/// Of several replicas together.
inline EngineCounters& operator+=(EngineCounters& sum, const EngineCounters& one) {
    sum.steps += one.steps;
    sum.requests_finished += one.requests_finished;
    sum.preemptions += one.preemptions;
    sum.prompt_tokens += one.prompt_tokens;
    sum.prefix_queried_tokens += one.prefix_queried_tokens;
    sum.prefix_hit_tokens += one.prefix_hit_tokens;
    sum.generated_tokens += one.generated_tokens;
    sum.drafted_tokens += one.drafted_tokens;
    sum.accepted_tokens += one.accepted_tokens;
    sum.busy_seconds += one.busy_seconds;
    return sum;
}

/// The loop of one replica of an engine: waiting requests, running sequences, blocks of the cache,
/// one step after the other. It knows no clock: the caller says when a step begins and lets its
/// seconds pass, on paper (`simulate`) or for real (examples/simengine).
///
/// A step takes running sequences first (one token each, and guesses), then prompts in the order of
/// arrival while the token budget, the places and the blocks last; prompts are cut to the budget
/// where chunked prefill is on. Where `mixed_steps` is off a step is either prompts or decoding,
/// prompts first. A sequence that finds no block preempts the youngest, which starts again (its
/// tokens so far become prompt). Blocks that nobody uses keep their content until they are needed,
/// least recently used first. Same seed and calls, same steps.
///
/// Not thread-safe. A step costs O(running sequences + admitted blocks).
class EngineCore {
public:
    /// Granularity of the prefix cache; smaller blocks than this hit at its multiples.
    static constexpr std::int64_t prefix_piece_tokens = 16;

    EngineCore(CostModel cost, std::uint64_t seed, const StepNoise& noise = {});
    EngineCore(EngineCore&&) noexcept;
    EngineCore& operator=(EngineCore&&) noexcept;
    ~EngineCore();

    /// Why the engine would refuse this request (HTTP 400), empty when it takes it: it is longer
    /// than the context or the whole cache, its prompt is longer than a step where prompts are not
    /// cut, or it has no token.
    [[nodiscard]] std::string refusal(std::int64_t input_tokens, std::int64_t output_tokens,
                                      bool prompt_is_computed = false) const;
    /// At the end of the queue. Throws UsageError with `refusal`, or for an id in use.
    void add(EngineRequest request);
    /// Forgets a request (its client is gone); unknown ids are ignored.
    void cancel(std::size_t id);

    [[nodiscard]] bool idle() const;  ///< nothing runs, nothing waits
    /// The next step. Throws UsageError when idle.
    EngineStep step();

    void clear_prefix_cache();  ///< blocks in use keep what they hold
    [[nodiscard]] std::size_t running() const;
    [[nodiscard]] std::size_t waiting() const;
    [[nodiscard]] double cache_use() const;  ///< blocks of requests / all blocks
    [[nodiscard]] const EngineCounters& counters() const;
    [[nodiscard]] const CostModel& cost() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace servetune
