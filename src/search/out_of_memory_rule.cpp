// SPDX-License-Identifier: Apache-2.0
#include "out_of_memory_rule.hpp"

namespace servetune {

void OutOfMemoryRule::add_amounts(const Parameter& parameter, std::size_t number) {
    const EncodedPoint inactive = geometry_.encode({});
    const auto add = [&](const Value& value, double amount) {
        const EncodedPoint point = geometry_.encode(Configuration({{parameter.name, value}}));
        for (std::size_t d = 0; d < amounts_.size(); ++d)
            if (point.levels[d] != inactive.levels[d])
                amounts_[d][point.levels[d]] = {number, amount};
    };
    if (has_positions(parameter))
        return add(parameter.continuous() ? Value(parameter.at_position(0))
                                          : parameter.level(parameter.level_count() - 1),
                   0);
    bool numbers = false;
    for (std::size_t level = 0; level < parameter.level_count(); ++level) {
        const Value value = parameter.level(level);
        const Value used = is_unset(value) ? parameter.value_when_unset.value_or(Unset{}) : value;
        if (const auto known = number_of(used)) add(value, *known);
        numbers = numbers || number_of(used);
    }
    for (std::size_t level = 0; level < parameter.level_count() && parameter.ordered() && !numbers;
         ++level)
        if (const Value value = parameter.level(level); !is_unset(value)) add(value, double(level));
}

bool OutOfMemoryRule::positions_as_much(const EncodedPoint& point, const EncodedPoint& than) const {
    for (std::size_t d = 0; d < amounts_.size(); ++d) {
        if (!geometry_.continuous(d)) continue;
        const bool grows = amounts_[d][point.levels[d]].of != 0;
        const auto position = static_cast<float>(point.positions[d]);
        const auto other = static_cast<float>(than.positions[d]);
        if (grows ? position < other : position != other) return false;
    }
    return true;
}

std::vector<bool> OutOfMemoryRule::covers(const CandidatePool& pool) const {
    std::vector<bool> result(pool.size(), false);
    for (const EncodedPoint& out : points_) {
        std::vector<std::vector<char>> enough(amounts_.size());  // by level
        for (std::size_t d = 0; d < enough.size(); ++d)
            for (std::size_t level = 0; level < amounts_[d].size(); ++level)
                enough[d].push_back(as_much(d, level, out.levels[d]) ? 1 : 0);
        for (std::size_t i = 0; i < pool.size(); ++i) {
            bool covered = true;
            for (std::size_t d = 0; d < enough.size() && covered; ++d)
                covered = enough[d][pool.levels(d)[i]] != 0;
            if (covered && (geometry_.finite() || positions_as_much(pool.point(i), out)))
                result[i] = true;
        }
    }
    return result;
}

}  // namespace servetune
