// SPDX-License-Identifier: Apache-2.0
#include "repeats.hpp"

#include "servetune/space/value.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

namespace servetune {
namespace {

std::string rounded(double value) { return text_of(std::round(value * 100) / 100); }

/// Why these results of one configuration and workload are not its repeats; empty: they are.
std::string why_not_one(const std::vector<const PublishedResult*>& blocks) {
    for (const auto& [name, rate] : leading_rates) {
        std::vector<double> values;
        for (const PublishedResult* block : blocks)
            if (const auto& value = block->result.*rate; value && *value > 0) values.push_back(*value);
        if (values.size() < blocks.size()) continue;
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        if (*most <= *least * most_between_repeats) return "";
        std::vector<std::size_t> which;
        for (const PublishedResult* block : blocks) which.push_back(block->index);
        return numbered("block", which) + " have one configuration and one workload, and their " + name + " go from " + rounded(*least) +
               " to " + rounded(*most) + " (" + rounded(*most / *least) + " times, repeats up to " + text_of(most_between_repeats) +
               "): something that no command says tells them apart, so they are not averaged; import them apart (files of their own), or "
               "say the flag in which they differ (--write-study with --set FILE:NAME=VALUE)";
    }
    return "";
}

}  // namespace

std::string numbered(const std::string& what, const std::vector<std::size_t>& which) {
    std::string text = what + (which.size() == 1 ? " " : "s ");
    for (std::size_t i = 0; i < which.size(); ++i)
        text += (i == 0 ? "" : i + 1 == which.size() ? " and " : ", ") + std::to_string(which[i]);
    return text;
}

std::vector<std::string> why_no_repeat(const std::vector<PlacedResult>& results) {
    std::vector<std::string> reasons(results.size());
    std::vector<bool> seen(results.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (seen[i] || !results[i].source->failure.empty()) continue;
        std::vector<std::size_t> same;
        for (std::size_t other = i; other < results.size(); ++other)
            if (results[other].source->failure.empty() && results[other].workload == results[i].workload &&
                results[other].configuration == results[i].configuration)
                same.push_back(other);
        std::vector<const PublishedResult*> blocks;
        for (const std::size_t one : same) {
            seen[one] = true;
            blocks.push_back(results[one].source);
        }
        if (blocks.size() < 2) continue;
        const std::string why = why_not_one(blocks);
        for (const std::size_t one : same) reasons[one] = why;
    }
    return reasons;
}

}  // namespace servetune
