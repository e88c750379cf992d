// SPDX-License-Identifier: Apache-2.0
// The standard algorithms that are asked most, of whole ranges; std::ranges' compile slower.
#pragma once

#include <algorithm>
#include <iterator>

namespace servetune {

/// Whether an element of `range` equals `value`.
template <class Range, class Value>
[[nodiscard]] constexpr bool contains(const Range& range, const Value& value) {
    return std::find(std::begin(range), std::end(range), value) != std::end(range);
}

template <class Range, class Predicate>
[[nodiscard]] constexpr auto find_if(Range&& range, const Predicate& holds) {
    return std::find_if(std::begin(range), std::end(range), holds);
}
template <class Range, class Predicate>
[[nodiscard]] constexpr bool any_of(Range&& range, const Predicate& holds) {
    return std::any_of(std::begin(range), std::end(range), holds);
}
template <class Range, class Predicate>
[[nodiscard]] constexpr bool all_of(Range&& range, const Predicate& holds) {
    return std::all_of(std::begin(range), std::end(range), holds);
}
template <class Range, class Predicate>
[[nodiscard]] constexpr bool none_of(Range&& range, const Predicate& holds) {
    return std::none_of(std::begin(range), std::end(range), holds);
}

}  // namespace servetune
