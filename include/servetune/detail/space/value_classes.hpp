// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/space/level_runs.hpp"
#include "servetune/search_space.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace servetune {

/// Which levels of a parameter are all the same to a constraint, whatever its other parameters are:
/// to "cutlass needs one expert group" every back end but cutlass is one. What a half made
/// configuration has to remember is the class, not the level, which is what keeps the decision
/// diagram of `FeasibleSet` small (value interchangeability; Freuder, AAAI 1991).
///
/// Classes are found by trying all combinations of the constraint's parameters, where these are at
/// most `most_combinations` (a few milliseconds) and none of them is continuous or has runs
/// (level_runs.hpp). Other constraints have no classes.
class ValueClasses {
public:
    explicit ValueClasses(const SearchSpace& space, std::size_t most_combinations = 100'000) {
        for (std::size_t which = 0; which < space.constraints().size(); ++which)
            classes_.push_back(classes(space, which, most_combinations));
    }

    /// Whether constraint `which` has classes.
    [[nodiscard]] bool known(std::size_t which) const { return !classes_[which].empty(); }
    /// The class of a level for the k-th parameter in the scope of constraint `which`, which has
    /// classes; no level: inactive.
    [[nodiscard]] std::uint32_t of(std::size_t which, std::size_t k,
                                   std::optional<std::uint32_t> level) const {
        return classes_[which][k].of_level[level ? *level + 1U : 0U];
    }
    /// The first level of that class. While other parameters are undecided, rules may tell levels
    /// of one class apart (`a or b` is true as soon as `a` is); asked of the first, they do not.
    [[nodiscard]] Slot first_of(std::size_t which, std::size_t k,
                                std::optional<std::uint32_t> level) const {
        const std::optional<Value>& first = classes_[which][k].firsts[of(which, k, level)];
        return first ? Slot{Slot::State::active, &*first} : Slot{Slot::State::inactive, nullptr};
    }

private:
    /// Of one parameter of a constraint.
    struct Classes {
        std::vector<std::uint32_t> of_level{};       ///< by level + 1; 0: inactive
        std::vector<std::optional<Value>> firsts{};  ///< by class; nothing: inactive
    };
    using Tables = std::vector<Classes>;

    static Tables classes(const SearchSpace& space, std::size_t which,
                          std::size_t most_combinations);

    std::vector<Tables> classes_;
};

}  // namespace servetune
