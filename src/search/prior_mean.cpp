// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/search/prior_mean.hpp"

#include "servetune/configuration.hpp"

namespace servetune {

std::vector<Winner> Beliefs::winners(const SearchSpace& space) const {
    std::vector<Winner> result;
    const Configuration usual = space.default_configuration();
    const auto add_first_of = [&](std::span<const Winner> candidates) {
        for (const Winner& winner : candidates) {
            if (!space.feasible(winner.configuration)) continue;
            const bool known =
                winner.configuration == usual || any_of(result, [&](const Winner& other) {
                    return other.configuration == winner.configuration;
                });
            if (!known) result.push_back(winner);
            break;
        }
    };
    for (const Winner& recipe : recipes_) add_first_of({&recipe, 1});
    for (const auto& source : sources_) add_first_of(source->winners());
    return result;
}

}  // namespace servetune
