// SPDX-License-Identifier: Apache-2.0
#include "servetune/search_space.hpp"

namespace servetune {

std::vector<std::size_t> spread_levels(const Parameter& parameter, std::size_t most) {
    const std::size_t count = parameter.level_count();
    if (!parameter.by_ratio() || count <= most) return evenly_spread(count, most);
    std::vector<std::size_t> result;
    if (parameter.offers_unset) result.push_back(0);
    for (std::size_t i = 0, last = std::max<std::size_t>(most - result.size(), 2) - 1; i <= last;
         ++i) {
        const std::size_t level = parameter.level_at_position(double(i) / double(last));
        if (result.empty() || result.back() != level) result.push_back(level);
    }
    return result;
}

std::vector<std::size_t> levels_beside_unset(const Parameter& parameter) {
    constexpr std::size_t most = 32;
    const std::size_t count = parameter.level_count();
    std::vector<std::size_t> result;
    if (parameter.ordered() && parameter.value_when_unset) {
        if (const auto same = parameter.level_of(*parameter.value_when_unset)) return {*same};
        if (const auto wanted = number_of(*parameter.value_when_unset)) {
            if (steps_on_its_scale(parameter)) {
                const double position = parameter.position_of(*wanted);
                return {parameter.level_at_position(
                    std::isfinite(position) ? std::clamp(position, 0.0, 1.0) : 0)};
            }
            const auto distance = [&](std::size_t i) {
                const auto number = number_of(parameter.level(i));
                return number ? std::abs(*number - *wanted) : 0.0;
            };
            std::size_t nearest = 1;
            for (std::size_t i = 1; i < count; ++i)
                if (distance(i) < distance(nearest)) nearest = i;
            if (count > 1) result.push_back(nearest);
            return result;
        }
    }
    if (parameter.by_ratio()) {
        result = spread_levels(parameter, most + 1);
        result.erase(result.begin());
        return result;
    }
    for (const std::size_t i : evenly_spread(count - 1, parameter.ordered() ? most : count))
        result.push_back(1 + i);
    return result;
}

std::vector<std::size_t> adjacent_levels(const Parameter& parameter, std::size_t level) {
    const std::size_t count = parameter.level_count();
    if (parameter.offers_unset && level == 0) return levels_beside_unset(parameter);
    std::vector<std::size_t> result;
    if (!parameter.ordered()) {
        for (std::size_t other = 0; other < count; ++other)
            if (other != level) result.push_back(other);
        return result;
    }
    const std::size_t first = parameter.offers_unset ? 1 : 0;
    if (parameter.offers_unset) {
        const std::vector<std::size_t> beside = levels_beside_unset(parameter);
        if (std::binary_search(beside.begin(), beside.end(), level)) result.push_back(0);
    }
    if (steps_on_its_scale(parameter)) {
        const double position =
            parameter.position_of(double(std::get<std::int64_t>(parameter.level(level))));
        for (const double step : {0.1, 0.01}) {
            if (level > first)
                result.push_back(std::min(
                    parameter.level_at_position(std::max(position - step, 0.0)), level - 1));
            if (level + 1 < count)
                result.push_back(std::max(
                    parameter.level_at_position(std::min(position + step, 1.0)), level + 1));
        }
        sort(result);
        result.erase(std::unique(result.begin(), result.end()), result.end());
        return result;
    }
    if (level > first) result.push_back(level - 1);
    if (level + 1 < count) result.push_back(level + 1);
    return result;
}

std::vector<Configuration> neighbours(const SearchSpace& space,
                                      const Configuration& configuration) {
    constexpr double real_step = 0.1;
    std::vector<Configuration> result;
    const bool feasible_here = space.feasible(configuration);
    std::vector<bool> is_parent(space.parameters().size(), false);
    for (const Parameter& parameter : space.parameters())
        for (const Condition& condition : parameter.active_when)
            is_parent[space.index_of(condition.parent)] = true;
    // Where nothing is active or not because of the parameter, only its own constraints can break.
    const auto add_alone = [&](std::size_t entry, Value value) {
        const std::size_t moved = space.index_of(configuration.entries()[entry].first);
        if (value == configuration.entries()[entry].second) return;
        Configuration candidate = configuration.with(entry, std::move(value));
        const auto slot_of = [&](std::size_t i) {
            const Value* at = candidate.find(space.parameters()[i].name);
            return Slot{at != nullptr ? Slot::State::active : Slot::State::inactive, at};
        };
        const std::vector<std::size_t>& own = space.constraints_of(moved);
        if (none_of(own, [&](std::size_t which) { return space.is_broken(which, slot_of); }))
            result.push_back(std::move(candidate));
    };
    std::size_t entry = 0;
    const auto add = [&](const Parameter& moved, Value value) {
        if (feasible_here && !is_parent[space.index_of(moved.name)])
            return add_alone(entry, std::move(value));
        Configuration candidate = space.changed(configuration, {{moved.name, std::move(value)}});
        for (const auto& [name, old_value] : configuration.entries())
            if (candidate.find(name) == nullptr && old_value != space.at(name).default_value)
                return;
        if (candidate != configuration && space.feasible(candidate))
            result.push_back(std::move(candidate));
    };
    for (; entry < configuration.entries().size(); ++entry) {
        const auto& [name, value] = configuration.entries()[entry];
        const Parameter& parameter = space.at(name);
        if (const auto level = parameter.level_of(value))
            for (const std::size_t other : adjacent_levels(parameter, *level))
                add(parameter, parameter.level(other));
        if (!parameter.continuous()) continue;
        if (is_unset(value)) {
            add(parameter, parameter.at_position(0.5));
            continue;
        }
        const double position = parameter.position_of(std::get<double>(value));
        for (const double step : {-real_step, -real_step / 10, real_step / 10, real_step})
            add(parameter, parameter.at_position(std::clamp(position + step, 0.0, 1.0)));
        if (parameter.offers_unset) add(parameter, Unset{});
    }
    sort(result);
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
}

}  // namespace servetune
