// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/search_space.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

namespace servetune {

/// The rows of an `Allow`, sorted for the order in which a diagram decides its parameters. The rows
/// that agree with what is decided so far are then one range, and deciding one more parameter
/// narrows it by two binary searches. `broken` would look at every row each time.
class AllowedRows {
public:
    /// Stands for "inactive" among the levels of a row.
    static constexpr std::uint32_t inactive = 0xffffffffU;

    /// Rows `from` up to but not including `to`.
    struct Range {
        std::size_t from = 0;
        std::size_t to = 0;

        [[nodiscard]] bool empty() const { return from == to; }
    };

    /// Of constraint `which`, decided in the order `sequence` of parameters. Nothing unless it is
    /// an `Allow` of parameters that all have levels: a real parameter stays undecided while the
    /// rest is decided.
    static std::optional<AllowedRows> of(const SearchSpace& space, std::size_t which,
                                         const std::vector<std::size_t>& sequence);

    /// Before the first column is decided and after each of them the rows that are left: all.
    [[nodiscard]] std::vector<Range> nothing_decided() const {
        return std::vector<Range>(parameters_.size() + 1, {0, rows_.size()});
    }
    /// Which column a parameter (index) is; it must be one of the constraint's.
    [[nodiscard]] std::size_t column_of(std::size_t parameter) const {
        return static_cast<std::size_t>(
            std::find(parameters_.begin(), parameters_.end(), parameter) - parameters_.begin());
    }
    /// Of a range whose rows agree in all columns before this one: those that have this level
    /// there.
    [[nodiscard]] Range narrowed(Range range, std::size_t column, std::uint32_t level) const;

private:
    using Row = std::vector<std::uint32_t>;  ///< a level a column

    std::vector<std::size_t> parameters_{};  ///< of the columns, in the order of decision
    std::vector<Row> rows_{};
};

}  // namespace servetune
