// SPDX-License-Identifier: Apache-2.0
#include "servetune/configuration.hpp"

namespace servetune {

Configuration::Configuration(std::vector<Entry> entries) : entries_(std::move(entries)) {
    const auto by_name = [](const Entry& a, const Entry& b) { return a.first < b.first; };
    if (!std::is_sorted(entries_.begin(), entries_.end(), by_name))
        std::sort(entries_.begin(), entries_.end(), by_name);
    const auto same_name = [](const Entry& a, const Entry& b) { return a.first == b.first; };
    const auto twice = std::adjacent_find(entries_.begin(), entries_.end(), same_name);
    if (twice != entries_.end())
        throw UsageError("a configuration sets '" + twice->first + "' twice");
}

}  // namespace servetune
