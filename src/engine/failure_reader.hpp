// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"
#include "servetune/outcome.hpp"

#include <optional>
#include <span>
#include <string>

namespace servetune {

/// Why an engine died, read from its log.
struct DecisiveLine {
    FailureKind kind = FailureKind::other;
    std::string line{};
};

/// The first line of a log that contains one of the engine's patterns, and the kind of failure that
/// this pattern stands for; of several patterns in one line the first of the engine file. Nothing
/// where no line has any.
std::optional<DecisiveLine> decisive_line(const Engine& engine, std::span<const std::string> log);

}  // namespace servetune
