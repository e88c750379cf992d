// SPDX-License-Identifier: Apache-2.0
// 70 flags, more than 2^53 configurations: each is true in half of what is drawn.
#include "expect.hpp"

#include <servetune/servetune.hpp>

#include <cmath>
#include <string>
#include <vector>

using namespace servetune;

int main() {
    std::vector<Parameter> flags;
    for (int i = 0; i < 70; ++i) flags.push_back(Parameter::boolean(text("b", i)));
    const SearchSpace space(std::move(flags));
    const FeasibleSet feasible(space);
    constexpr int draws = 2000;
    std::vector<int> on(space.parameters().size());
    Rng rng(1);
    for (int i = 0; i < draws; ++i) {
        const Configuration drawn = feasible.sample(rng);
        for (std::size_t k = 0; k < on.size(); ++k)
            on[k] += *drawn.find(space.parameters()[k].name) == Value(true) ? 1 : 0;
    }
    const double five_errors = 5 * std::sqrt(draws * 0.25);
    for (std::size_t k = 0; k < on.size(); ++k)
        expect(std::abs(on[k] - draws / 2.0) < five_errors,
               text(space.parameters()[k].name, " is true in ", on[k], " of ", draws));
    return wrong;
}
