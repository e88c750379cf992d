// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/space/value_classes.hpp"

#include "servetune/detail/space/level_runs.hpp"

namespace servetune {

ValueClasses::Tables ValueClasses::classes(const SearchSpace& space, std::size_t which,
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
            slots[scope[k]] = chosen[k] == 0 ? Slot{Slot::State::inactive, nullptr}
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

}  // namespace servetune
