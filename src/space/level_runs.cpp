// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/space/level_runs.hpp"

#include "servetune/detail/space/expression_states.hpp"

namespace servetune {

LevelRuns::LevelRuns(const SearchSpace& space) : space_(space), fixed_(space.parameters().size()) {
    const auto apart = [&](std::size_t parameter, const Value& value) {
        if (!has_runs(space.parameters()[parameter])) return;
        const auto level = space.parameters()[parameter].level_of(value);
        if (!level) return;
        fixed_[parameter].push_back(static_cast<std::uint32_t>(*level));
        fixed_[parameter].push_back(static_cast<std::uint32_t>(*level) + 1U);
    };
    for (std::size_t i = 0; i < fixed_.size(); ++i) apart(i, Unset{});
    for (const Parameter& parameter : space.parameters())
        for (const Condition& condition : parameter.active_when)
            for (const Value& value : condition.values)
                apart(space.index_of(condition.parent), value);
    for (const Constraint& constraint : space.constraints()) {
        if (const auto* forbid = std::get_if<Forbid>(&constraint))
            for (const auto& [name, values] : forbid->values)
                for (const Value& value : values) apart(space.index_of(name), value);
        if (const auto* allow = std::get_if<Allow>(&constraint))
            for (const Allow::Row& row : allow->rows)
                for (std::size_t k = 0; k < row.size(); ++k)
                    if (row[k]) apart(space.index_of(allow->names[k]), *row[k]);
    }
    for (std::vector<std::uint32_t>& places : fixed_) sort_once(places);
}

}  // namespace servetune
