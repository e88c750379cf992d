// SPDX-License-Identifier: Apache-2.0
#include "repeats.hpp"

#include "servetune/value.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
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
            if (const auto& value = block->result.*rate; value && *value > 0)
                values.push_back(*value);
        if (values.size() < blocks.size()) continue;
        const auto [least, most] = std::minmax_element(values.begin(), values.end());
        if (*most <= *least * most_between_repeats) return "";
        std::vector<std::size_t> which;
        for (const PublishedResult* block : blocks) which.push_back(block->index);
        return numbered("block", which) + " have one configuration and one workload, and their " +
               name + " go from " + rounded(*least) + " to " + rounded(*most) + " (" +
               rounded(*most / *least) + " times, repeats up to " + text_of(most_between_repeats) +
               "): something that no command says tells them apart, so they are not averaged; "
               "import them apart (files of their own), or "
               "say the flag in which they differ (--write-study with --set FILE:NAME=VALUE)";
    }
    return "";
}

/// The results of one configuration and one workload, where there are several.
std::vector<std::vector<std::size_t>> groups_of_repeats(const std::vector<PlacedResult>& results) {
    std::vector<std::vector<std::size_t>> groups;
    std::map<std::pair<std::string, Configuration>, std::size_t> group_of;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (!results[i].source->failure.empty()) continue;
        const auto [found, is_new] = group_of.emplace(
            std::pair{results[i].workload, results[i].configuration}, groups.size());
        if (is_new) groups.emplace_back();
        groups[found->second].push_back(i);
    }
    std::erase_if(groups, [](const std::vector<std::size_t>& same) { return same.size() < 2; });
    return groups;
}

std::vector<const PublishedResult*> sources(const std::vector<PlacedResult>& results,
                                            const std::vector<std::size_t>& which) {
    std::vector<const PublishedResult*> blocks;
    for (const std::size_t one : which) blocks.push_back(results[one].source);
    return blocks;
}

constexpr std::size_t values_shown = 4;

/// A word of people: no number, no date and no number of a run, which differ between repeats.
bool is_word_of_people(const std::string& value) {
    constexpr std::ptrdiff_t most_digits = 5;
    const auto letters = std::count_if(value.begin(), value.end(),
                                       [](unsigned char c) { return std::isalpha(c) != 0; });
    const auto digits = std::count_if(value.begin(), value.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
    return letters > 1 && digits <= most_digits && value.size() <= 80;
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
    for (const std::vector<std::size_t>& same : groups_of_repeats(results)) {
        const std::string why = why_not_one(sources(results, same));
        for (const std::size_t one : same) reasons[one] = why;
    }
    return reasons;
}

std::vector<std::string> what_repeats_differ_in(const std::vector<PlacedResult>& results) {
    std::vector<std::string> remarks;
    for (const std::vector<std::size_t>& same : groups_of_repeats(results)) {
        const std::vector<const PublishedResult*> blocks = sources(results, same);
        std::string differences;
        for (const auto& [label, first] : blocks.front()->unread) {
            std::vector<std::string> values;
            for (const PublishedResult* block : blocks)
                if (const auto found = block->unread.find(label);
                    found != block->unread.end() && is_word_of_people(found->second))
                    values.push_back(found->second);
            if (values.size() < blocks.size()) continue;
            std::sort(values.begin(), values.end());
            values.erase(std::unique(values.begin(), values.end()), values.end());
            if (values.size() < 2) continue;
            differences += (differences.empty() ? "" : "; ") + label + " (";
            for (std::size_t i = 0; i < std::min(values.size(), values_shown); ++i)
                differences += (i > 0 ? ", " : "") + values[i];
            differences += values.size() > values_shown ? ", ...)" : ")";
        }
        if (differences.empty()) continue;
        std::vector<std::size_t> which;
        for (const PublishedResult* block : blocks) which.push_back(block->index);
        remarks.push_back(numbered("block", which) +
                          " are averaged as repeats of one configuration, though they differ in " +
                          differences +
                          "; where that is what was compared, import them apart (files of their "
                          "own) or say it as a flag (--set "
                          "FILE:NAME=VALUE)");
    }
    return remarks;
}

}  // namespace servetune
