// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.hpp"

#include "servetune/detail/base/ranges.hpp"

namespace servetune {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> two_back(b.size() + 1);
    std::vector<std::size_t> back(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(back.begin(), back.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = back[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({back[j] + 1, row[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], two_back[j - 2] + 1);
        }
        two_back = back;
        back = row;
    }
    return back[b.size()];
}

namespace {

/// The distance to the nearest beginning or end of a name at one of its joints; at least `least`
/// where none is as near as a quarter of the letters.
std::size_t distance_to_part(std::string_view wanted, std::string_view name, std::size_t least) {
    constexpr std::string_view joints = "-_./";
    for (auto at = name.find_first_of(joints); at != std::string_view::npos;
         at = name.find_first_of(joints, at + 1))
        for (const std::string_view part : {name.substr(0, at), name.substr(at + 1)})
            if (const std::size_t distance = edit_distance(wanted, part);
                distance <= wanted.size() / 4)
                least = std::min(least, distance);
    return least;
}

}  // namespace

std::vector<std::pair<std::size_t, std::string>> by_distance(std::string_view wanted,
                                                             std::span<const std::string> known) {
    std::vector<std::pair<std::size_t, std::string>> result;
    result.reserve(known.size());
    for (const std::string& name : known) result.emplace_back(edit_distance(wanted, name), name);
    stable_sort(result, [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [distance, name] : result) distance = distance_to_part(wanted, name, distance);
    stable_sort(result, [](const auto& a, const auto& b) { return a.first < b.first; });
    return result;
}

std::string nearest_text(std::string_view wanted, std::span<const std::string> known) {
    const std::size_t most = std::max<std::size_t>(2, wanted.size() / 3);
    std::vector<std::string> near;
    for (auto& [distance, name] : by_distance(wanted, known))
        if (near.size() < 3 && (name.starts_with(wanted) || distance <= most))
            near.push_back(std::move(name));
    return near.empty() ? "" : "; nearest: " + listed(near);
}

}  // namespace servetune
