// SPDX-License-Identifier: Apache-2.0
// The standard algorithms that are asked most, of whole ranges (std::ranges' compile slower), and
// what a map has.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace servetune {

/// Whether `text` has `part` in it.
[[nodiscard]] constexpr bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}
[[nodiscard]] constexpr bool contains(std::string_view text, char part) {
    return text.find(part) != std::string_view::npos;
}
/// Whether an element of `range` equals `value`.
template <class Range, class Value>
requires(!std::is_convertible_v<const Range&, std::string_view>)
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
template <class Range, class Predicate>
[[nodiscard]] constexpr std::size_t count_if(const Range& range, const Predicate& holds) {
    return std::size_t(std::count_if(std::begin(range), std::end(range), holds));
}

/// By `before`, else by `<`.
template <class Range, class... Before>
constexpr void sort(Range&& range, const Before&... before) {
    std::sort(std::begin(range), std::end(range), before...);
}
template <class Range, class... Before>
void stable_sort(Range&& range, const Before&... before) {
    std::stable_sort(std::begin(range), std::end(range), before...);
}

/// What the entries are called: by their `name`, of a map by their keys.
template <class Range>
[[nodiscard]] std::vector<std::string> names_in(const Range& range) {
    std::vector<std::string> result;
    for (const auto& entry : range)
        if constexpr (requires { entry.first; }) result.emplace_back(entry.first);
        else result.emplace_back(entry.name);
    return result;
}

/// The value of a key in a map; nullptr where it has none.
template <class Map, class Key>
[[nodiscard]] auto* entry_in(Map& map, const Key& key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
}

}  // namespace servetune
