// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/space/allowed_rows.hpp"

namespace servetune {

AllowedRows::Range AllowedRows::narrowed(Range range, std::size_t column,
                                         std::uint32_t level) const {
    const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(range.from);
    const auto end = rows_.begin() + static_cast<std::ptrdiff_t>(range.to);
    const auto from =
        std::partition_point(begin, end, [&](const Row& row) { return row[column] < level; });
    const auto to =
        std::partition_point(from, end, [&](const Row& row) { return row[column] == level; });
    return {static_cast<std::size_t>(from - rows_.begin()),
            static_cast<std::size_t>(to - rows_.begin())};
}

std::optional<AllowedRows> AllowedRows::of(const SearchSpace& space, std::size_t which,
                                           const std::vector<std::size_t>& sequence) {
    const auto* allow = std::get_if<Allow>(&space.constraints()[which]);
    if (allow == nullptr) return std::nullopt;
    const std::vector<std::size_t>& scope = space.scope(which);
    AllowedRows result;
    std::vector<std::size_t> cells;  // of the columns, in a row as it is written
    for (const std::size_t parameter : sequence) {
        const auto found = std::find(scope.begin(), scope.end(), parameter);
        if (found == scope.end()) continue;
        if (space.parameters()[parameter].continuous()) return std::nullopt;
        result.parameters_.push_back(parameter);
        cells.push_back(static_cast<std::size_t>(found - scope.begin()));
    }
    std::vector<std::map<std::optional<Value>, std::optional<std::uint32_t>>> known(
        cells.size());  // each value is looked up once
    for (const Allow::Row& written : allow->rows) {
        Row row;
        for (std::size_t k = 0; k < cells.size(); ++k) {
            const std::optional<Value>& cell = written[cells[k]];
            const auto [at, is_new] = known[k].try_emplace(cell);
            if (is_new && !cell) at->second = inactive;
            else if (is_new)
                if (const auto level = space.parameters()[result.parameters_[k]].level_of(*cell))
                    at->second = static_cast<std::uint32_t>(*level);
            const std::optional<std::uint32_t>& level = at->second;
            if (!level) break;  // no level: no configuration is this row
            row.push_back(*level);
        }
        if (row.size() == cells.size()) result.rows_.push_back(std::move(row));
    }
    std::sort(result.rows_.begin(), result.rows_.end());
    return result;
}

}  // namespace servetune
