// SPDX-License-Identifier: Apache-2.0
// An integer on a logarithmic scale is drawn and searched by ratio.
#include "expect.hpp"

#include <servetune/bayesian.hpp>
#include <servetune/servetune.hpp>

#include <cmath>
#include <string>
#include <vector>

using namespace servetune;

namespace {

Parameter wide(const std::string& name) {
    return Parameter::integer(name, 1, 65536, Scale::log).with_default(4096);
}

void half_of_the_draws_are_in_half_of_the_scale() {
    const SearchSpace space({wide("x")});
    const FeasibleSet feasible(space);
    Rng rng(1);
    constexpr int draws = 1000;
    int small = 0;
    for (int i = 0; i < draws; ++i) small += feasible.sample(rng).number("x") <= 256 ? 1 : 0;
    expect(std::abs(small - draws / 2.0) < 5 * std::sqrt(draws * 0.25),
           text(small, " of 1000 draws are at most 256"));
}

/// Best at 6, 12 and 18; 1000 there.
double rate(const Configuration& configuration) {
    double square = 0;
    for (int i = 0; i < 3; ++i)
        square += std::pow(std::log(configuration.number(text("x", i)) / (6.0 * (i + 1))), 2);
    return 1000 * std::exp(-square / 20);
}

void three_are_found() {
    const Problem problem(SearchSpace({wide("x0"), wide("x1"), wide("x2")}), Objective("rate"),
                          Decision{});
    const Bayesian strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal, {.seed = 1});
    double best = 0;
    while (const auto trial = study.ask({.trials = 40})) {
        best = std::max(best, rate(trial->configuration));
        study.tell(trial->id, Measurement{{{"rate", {rate(trial->configuration)}}}});
    }
    expect(best > 900,
           text("the best of 40 trials is ", best, " of 1000"));  // 75 to 157 where they are linear
}

}  // namespace

int main() {
    half_of_the_draws_are_in_half_of_the_scale();
    three_are_found();
    return wrong;
}
