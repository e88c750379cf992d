// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The numbers of a version in order: `0.5.5.post1` -> 0 5 5, `1.2.0rc1` -> 1 2 0, `b11669` ->
/// 11669, `0.28-main` -> 0 28. What comes after a number in the same part (rc1, post1, main) does
/// not count: a flag that 1.2.0rc1 has is taken
///     as one that 1.2 has.
inline std::vector<std::uint64_t> version_numbers(std::string_view version) {
    std::vector<std::uint64_t> result;
    std::size_t at = 0;
    while (at < version.size()) {
        const std::size_t end = std::min(version.find_first_of(".-", at), version.size());
        std::string_view part = version.substr(at, end - at);
        if (result.empty() && part.starts_with('b')) part.remove_prefix(1);
        if (part.empty() || std::isdigit(static_cast<unsigned char>(part.front())) == 0) break;
        std::uint64_t number = 0;
        for (const char c : part) {
            if (std::isdigit(static_cast<unsigned char>(c)) == 0) break;
            number = number * 10 + std::uint64_t(c - '0');
        }
        result.push_back(number);
        at = end + 1;
    }
    return result;
}

/// -1, 0 or 1: `version` before, within or after `bound`, as far as the bound is precise: 0.12.3 is
/// within 0.12.
inline int compare_to_bound(std::string_view version, std::string_view bound) {
    const auto a = version_numbers(version);
    const auto b = version_numbers(bound);
    for (std::size_t i = 0; i < b.size(); ++i) {
        const std::uint64_t mine = i < a.size() ? a[i] : 0;
        if (mine != b[i]) return mine < b[i] ? -1 : 1;
    }
    return 0;
}

/// Whether `version` is one of `since` to `until`, both included; an empty bound is none. An empty
/// version stands for the newest: it is after every `until`.
inline bool version_within(std::string_view version, std::string_view since,
                           std::string_view until) {
    if (version.empty()) return until.empty();
    return (since.empty() || compare_to_bound(version, since) >= 0) &&
           (until.empty() || compare_to_bound(version, until) <= 0);
}

}  // namespace servetune
