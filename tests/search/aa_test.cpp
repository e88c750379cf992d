// SPDX-License-Identifier: Apache-2.0
// All configurations are equal but for noise: then the default is what is recommended, whoever
// searched.
#include "servetune/bayesian.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/simple_strategies.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <iostream>
#include <memory>

using namespace servetune;
using namespace servetune::test;

namespace {

/// How many of `seeds` studies of 30 trials recommend a change, where a tenth of the configurations
/// fail and none is better.
std::size_t false_gains(const std::string& strategy, double cv, std::size_t seeds) {
    const Problem problem(TuningTask::space(), {metric}, {Decision::Rule::significant, 0.01, cv});
    const auto equal = [cv](const Configuration& configuration, Rng& noise) -> Outcome {
        const double draw = noise.normal();
        if (TuningTask::fails(configuration)) return Failure{FailureKind::out_of_memory, "no room"};
        return Measurement{{{metric, {5000 * std::exp(cv * draw)}}}};
    };
    std::size_t changed = 0;
    for (std::size_t seed = 0; seed < seeds; ++seed) {
        std::unique_ptr<Strategy> searcher = std::make_unique<Random>();
        if (strategy == "bayesian") searcher = std::make_unique<Bayesian>();
        if (strategy == "local_search") searcher = std::make_unique<LocalSearch>();
        const std::vector<Trial> history = TuningTask::studied(problem, *searcher, 30, seed, equal);
        changed += recommend(problem, history).keep_default ? 0 : 1;
    }
    return changed;
}

}  // namespace

TEST_CASE("where nothing is better a study seldom says that something is", "[decision]") {
    CHECK(false_gains("bayesian", 0.03, 20) <= 2);  // P(more | 2 %) = 0.7 %
    CHECK(false_gains("random", 0.03, 60) <= 4);    // 18 by plain intervals
}

TEST_CASE("of 200 studies where nothing is better at most one in fifty says that something is",
          "[.long]") {
    for (const std::string strategy : {"bayesian", "random", "local_search"})
        for (const double cv : {0.01, 0.03, 0.1}) {
            const std::size_t changed = false_gains(strategy, cv, 200);
            std::cout << strategy << ", noise " << cv * 100 << " %: " << changed
                      << " false gains in 200 studies\n";
            CHECK(changed <= 8);  // P(more | 2 %) = 2 %
        }
}
