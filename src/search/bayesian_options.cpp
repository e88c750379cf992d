// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/search/bayesian_options.hpp"

#include "servetune/configuration.hpp"
#include "servetune/detail/base/option_check.hpp"

namespace servetune {

std::string BayesianOptions::why_invalid() const {
    const HyperparameterSearch& search = learning.search;
    return OptionCheck()
        .at_least("trials", trials.value_or(1), 1)
        .within("least_chance", least_chance, 0, 1)
        .within("first_chance", first_chance, 0, 1)
        .within("careful_chance", careful_chance, 0, 1)
        .within("failing_share", failing_share, 0, 1)
        .seconds("serves_seconds", serves_seconds.value_or(1))
        .at_least("rescored", rescored, 1)
        .at_least("places", places, 1)
        .at_least("places_of_many", places_of_many, 1)
        .at_least("learning.search.starts", search.starts, 1)
        .at_least("learning.search.modes", search.modes, 1)
        .at_least("learning.search.fitted_to", search.fitted_to, 2)
        .at_least("learning.search.starts_of_many", search.starts_of_many, 1)
        .at_least("candidates.sample", candidates.sample, 1)
        .text();
}

}  // namespace servetune
