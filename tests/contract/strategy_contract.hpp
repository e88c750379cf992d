// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"

#include "servetune/strategy.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <set>

namespace servetune::test {

/// What every strategy keeps: only feasible proposals, the same answer to the same history from a
/// fresh object and in any order of telling, patience with pending trials, an end on a finite
/// space.
inline void check_strategy(const std::function<std::unique_ptr<Strategy>()>& make,
                           const Problem& problem) {
    const auto outcome_of = [](const Configuration& configuration) -> Outcome {
        const std::uint64_t bits = configuration.fingerprint().bits;
        if (bits % 5 == 0) return Failure{FailureKind::out_of_memory, "no room"};
        return Measurement{{{"total_tokens_per_second", {1000.0 + double(bits % 1000)}}}};
    };
    std::vector<Trial> history{{0, problem.space.default_configuration()}};
    history[0].outcome = outcome_of(history[0].configuration);
    const auto used = make();
    CHECK_FALSE(used->name().empty());
    bool finished = false;
    while (!finished && history.size() < 200) {
        std::vector<Trial> shuffled = history;
        std::reverse(shuffled.begin(), shuffled.end());
        Rng first(history.size());
        Rng second(history.size());
        const Answer answer = used->ask(problem, history, first);
        const Answer again = make()->ask(problem, shuffled, second);
        REQUIRE(answer.index() == again.index());
        if (const auto* proposal = std::get_if<Proposal>(&answer)) {
            CHECK(proposal->configuration == std::get<Proposal>(again).configuration);
            CHECK(problem.space.feasible(proposal->configuration));
            CHECK_FALSE(proposal->why.empty());
            // While it is pending the strategy waits or goes on elsewhere; it does not ask the same
            // again.
            history.push_back({history.size(), proposal->configuration});
            Rng third(history.size());
            const Answer meanwhile = used->ask(problem, history, third);
            if (const auto* other = std::get_if<Proposal>(&meanwhile))
                CHECK(other->configuration != proposal->configuration);
            history.back().outcome = outcome_of(proposal->configuration);
        } else {
            // Nothing is pending, so waiting would be for ever.
            REQUIRE(std::holds_alternative<Finished>(answer));
            CHECK_FALSE(std::get<Finished>(answer).why.empty());
            finished = true;
        }
    }
    CHECK(finished);
}

}  // namespace servetune::test
