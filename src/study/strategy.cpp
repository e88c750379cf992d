// SPDX-License-Identifier: Apache-2.0
#include "servetune/strategy.hpp"

#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/base/rng.hpp"
#include "servetune/detail/space/neighbours.hpp"
#include "servetune/error.hpp"
#include "servetune/objective.hpp"
#include "servetune/search_space.hpp"

namespace servetune {

Problem::Problem(SearchSpace search_space, Objective what_for, Decision how_decided)
    : parts_(std::make_shared<const Parts>(std::move(search_space))),
      space(parts_->space),
      feasible(parts_->feasible),
      objective(std::move(what_for)),
      decision(how_decided) {
    check_options("the objective", objective.why_invalid());
    check_options("the decision", decision.why_invalid());
    const auto violations = space.violations(space.default_configuration());
    if (!violations.empty())
        throw SpaceError("the default configuration (" + space.default_configuration().text() +
                         ") is not feasible: " + violations.front());
}

}  // namespace servetune
