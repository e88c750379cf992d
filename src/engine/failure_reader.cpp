// SPDX-License-Identifier: Apache-2.0
#include "failure_reader.hpp"

#include <algorithm>

namespace servetune {

std::optional<DecisiveLine> decisive_line(const Engine& engine, std::span<const std::string> log) {
    for (const std::string& line : log)
        for (const FailurePattern& pattern : engine.failures) {
            const auto is_in = [&](const std::string& text) {
                return line.find(text) != std::string::npos;
            };
            if (std::any_of(pattern.match.begin(), pattern.match.end(), is_in))
                return DecisiveLine{
                    named_in(failure_kinds, pattern.kind).value_or(FailureKind::other), line};
        }
    return std::nullopt;
}

}  // namespace servetune
