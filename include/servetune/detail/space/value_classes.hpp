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
                          std::size_t most_combinations) {
        const std::vector<std::size_t>& scope = space.scope(which);
        std::vector<std::vector<Value>> levels;
        std::size_t combinations = 1;
        for (const std::size_t i : scope) {
            const Parameter& parameter = space.parameters()[i];
            const std::size_t count = parameter.level_count() + 1;
            if (parameter.continuous() || has_runs(parameter) ||
                count > most_combinations / combinations)
                return {};
            combinations *= count;
            levels.emplace_back();
            for (std::size_t level = 0; level + 1 < count; ++level)
                levels.back().push_back(parameter.level(level));
        }
        // Each level's column of answers, over the combinations of the others in a fixed order.
        std::vector<std::vector<std::vector<bool>>> columns;
        std::map<std::size_t, Slot> slots;
        for (std::size_t k = 0; k < scope.size(); ++k) columns.emplace_back(levels[k].size() + 1);
        std::vector<std::size_t> chosen(scope.size(), 0);
        for (std::size_t n = 0; n < combinations; ++n) {
            std::size_t rest = n;
            for (std::size_t k = 0; k < scope.size(); ++k) {
                chosen[k] = rest % (levels[k].size() + 1);
                rest /= levels[k].size() + 1;
                slots[scope[k]] = chosen[k] == 0
                                      ? Slot{Slot::State::inactive, nullptr}
                                      : Slot{Slot::State::active, &levels[k][chosen[k] - 1]};
            }
            const bool answer = space.is_broken(which, [&](std::size_t i) { return slots[i]; });
            for (std::size_t k = 0; k < scope.size(); ++k) columns[k][chosen[k]].push_back(answer);
        }
        Tables tables;
        for (std::size_t k = 0; k < scope.size(); ++k) {
            std::map<std::vector<bool>, std::uint32_t> numbers;
            Classes& of_parameter = tables.emplace_back();
            for (std::size_t level = 0; level < columns[k].size(); ++level) {
                const auto [at, is_new] =
                    numbers.emplace(columns[k][level], static_cast<std::uint32_t>(numbers.size()));
                of_parameter.of_level.push_back(at->second);
                if (is_new)
                    of_parameter.firsts.push_back(level == 0 ? std::nullopt
                                                             : std::optional(levels[k][level - 1]));
            }
        }
        return tables;
    }

    std::vector<Tables> classes_;
};

}  // namespace servetune
