// SPDX-License-Identifier: Apache-2.0
#include "identifiable.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace servetune {

std::vector<std::string> two_valued(const SearchSpace& space,
                                    const std::vector<std::size_t>& order) {
    const Configuration usual = space.default_configuration();
    std::set<std::string> parents;
    for (const Parameter& parameter : space.parameters())
        for (const Condition& condition : parameter.active_when) parents.insert(condition.parent);
    std::vector<std::string> result;
    for (const std::size_t index : order) {
        const Parameter& parameter = space.parameters()[index];
        const bool two = !parameter.continuous() && parameter.level_count() == 2;
        if (!two || !parameter.active_when.empty() || parents.contains(parameter.name)) continue;
        if (space.feasible(space.changed(
                usual, {{parameter.name, other_value(parameter, *usual.find(parameter.name))}})))
            result.push_back(parameter.name);
    }
    return result;
}

Value other_value(const Parameter& parameter, const Value& value) {
    return parameter.level(parameter.level(0) == value ? 1 : 0);
}

namespace {

/// In how many trials the members of a group are changed, all together, where each has a set of
/// `trials` trials of its own and the sets are as small as possible.
std::size_t set_sizes(std::size_t members, std::size_t trials) {
    std::size_t changes = 0;
    std::size_t sets = 1;  // of so many trials: trials over size
    for (std::size_t size = 0; size <= trials && members > 0; ++size) {
        const std::size_t taken = std::min(members, sets);
        changes += taken * size;
        members -= taken;
        sets = sets * (trials - size) / (size + 1);
    }
    return changes;
}

}  // namespace

std::vector<std::string> to_tell_apart(const std::vector<std::string>& names,
                                       const Configuration& usual,
                                       const std::vector<Configuration>& told,
                                       std::size_t trials_left) {
    constexpr std::size_t most_trials = 30;  // sets of more are never scarce
    const std::size_t left = std::clamp<std::size_t>(trials_left, 1, most_trials);
    // Those that were changed in the same trials; with those that never were, the default's column.
    std::map<std::vector<bool>, std::vector<std::string>> groups;
    for (const std::string& name : names) {
        std::vector<bool> changed;
        for (const Configuration& one : told)
            changed.push_back(*one.find(name) != *usual.find(name));
        groups[changed].push_back(name);
    }
    struct Part {
        std::vector<std::string> members;
        std::size_t changes;  ///< that it still takes
    };
    std::vector<Part> parts;
    std::size_t changes = 0;
    for (auto& [changed, members] : groups) {
        const bool never = !contains(changed, true);
        parts.push_back({members, set_sizes(members.size() + (never ? 1 : 0), left)});
        changes += parts.back().changes;
    }
    stable_sort(parts, [](const Part& a, const Part& b) { return a.changes > b.changes; });
    const std::size_t most = (changes + left - 1) / left;
    std::vector<std::string> result;
    for (const Part& part : parts)
        for (std::size_t i = 0; i < (part.changes + left - 1) / left && result.size() < most; ++i)
            result.push_back(part.members[i]);
    return result;
}

}  // namespace servetune
