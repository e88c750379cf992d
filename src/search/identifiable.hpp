// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/search_space.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace servetune {

/// Parameters of two values that are always active, that no other depends on, and that can be
/// changed in the default alone. `order`: of the space's parameters.
[[nodiscard]] std::vector<std::string> two_valued(const SearchSpace& space,
                                                  const std::vector<std::size_t>& order);
/// Of a parameter of two values.
[[nodiscard]] Value other_value(const Parameter& parameter, const Value& value);

/// Which of them the next of `trials_left` trials of a start should change, so that at its end no
/// two have had the same values in every trial: their effects could not be told apart. Each gets
/// its own set of trials in which it is changed, the smallest sets there are, so that a trial
/// changes few: with B of them and at least B trials one each.
///
/// `told`: what was tried and gave a number, the default among them. The first names go first among
/// equals. O(names tried).
[[nodiscard]] std::vector<std::string> to_tell_apart(const std::vector<std::string>& names,
                                                     const Configuration& usual,
                                                     const std::vector<Configuration>& told,
                                                     std::size_t trials_left);

}  // namespace servetune
