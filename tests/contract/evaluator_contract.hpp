// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"

#include "servetune/feasible_set.hpp"
#include "servetune/evaluator.hpp"

#include <cmath>

namespace servetune::test {

/// What every evaluator keeps: it answers every feasible configuration without throwing, with
/// finite numbers or a failure that says why, and the same again for the same seed.
inline void check_evaluator(Evaluator& evaluator, const SearchSpace& space) {
    const FeasibleSet feasible(space);
    Rng rng(1);
    for (std::uint64_t i = 0; i < 30; ++i) {
        const Configuration configuration = feasible.sample(rng);
        const EvaluationContext context{i, 99, "", {}};
        const Outcome outcome = evaluator.evaluate(configuration, context);
        CHECK(evaluator.evaluate(configuration, context) == outcome);
        if (const auto* failure = std::get_if<Failure>(&outcome))
            CHECK_FALSE(failure->message.empty());
        else
            for (const auto& [name, measured] : std::get<Measurement>(outcome).metrics) {
                CHECK_FALSE(name.empty());
                CHECK(std::isfinite(measured.value));
            }
    }
}

}  // namespace servetune::test
