// SPDX-License-Identifier: Apache-2.0
// The Bayesian strategy on integers whose ratios count.
#include "support/test.hpp"

#include "servetune/bayesian.hpp"
#include "servetune/servetune.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

using namespace servetune;

namespace {

/// The best of 40 trials of three integers 1..65536, of 1000; a factor of 2.7 off in all three
/// loses 14 %.
double best_found(std::uint64_t seed) {
    std::vector<Parameter> parameters;
    for (const char* name : {"a", "b", "c"})
        parameters.push_back(Parameter::integer(name, 1, 65536, Scale::log).with_default(4096));
    const Problem problem(SearchSpace(std::move(parameters)), Objective("rate"), Decision{});
    BayesianOptions options;
    options.seed = seed;
    options.trials = 40;
    const Bayesian strategy(options);
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    double best = 0;
    while (const auto trial = study.ask({.trials = 40})) {
        double sum = 0;
        for (const auto& [name, value] : trial->configuration.entries())
            sum += std::pow(std::log(*number_of(value) / (6.0 * (name[0] - 'a' + 1))), 2);
        const double rate = 1000 * std::exp(-sum / 20);
        best = std::max(best, rate);
        study.tell(trial->id, Measurement{{{"rate", {rate}}}});
    }
    return best;
}

}  // namespace

TEST_CASE("log integers: three are found to within 3 % in 40 trials") {
    CHECK(best_found(1) > 970);
}

TEST_CASE("log integers: three are found to within 3 % in 40 trials by nine of ten seeds",
          "[.long]") {
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) found += best_found(seed) > 970 ? 1 : 0;
    CHECK(found >= 9);
}
