// SPDX-License-Identifier: Apache-2.0
// From a double to an integer. A cast of a number that the integer cannot hold is undefined, and
// files say 1e308.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

namespace servetune {

/// `number` without its fraction; nothing for NaN and for what 64 bits cannot hold.
inline std::optional<std::int64_t> whole_number(double number) {
    constexpr double beyond = 9223372036854775808.0;  // 2^63, the first that is too large
    if (!(number >= -beyond && number < beyond)) return std::nullopt;
    return static_cast<std::int64_t>(number);
}

/// As whole_number, but the nearest in [low, high]; `low` for NaN. `low` and `high` are within
/// 2^53.
inline std::int64_t whole_number_within(double number, std::int64_t low, std::int64_t high) {
    if (!(number > static_cast<double>(low))) return low;
    return static_cast<std::int64_t>(std::min(number, static_cast<double>(high)));
}

}  // namespace servetune
