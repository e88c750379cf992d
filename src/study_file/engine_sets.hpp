// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <map>
#include <optional>
#include <string>

namespace servetune {

/// A parameter that a command does not name and that the engine does not leave at its default
/// there.
struct SetByEngine {
    std::string name;
    Value value{};
    std::string because;  ///< the rule's reason
};

/// What the rules of the engine file say of a command that was measured with `values`: where one is
/// broken because of `... or a == b` and the command does not name `a`, the engine set `a` to `b`,
/// or it would not have served. `version`: empty is the newest.
std::optional<SetByEngine> set_by_engine(const Engine& engine,
                                         const std::map<std::string, Value>& values,
                                         const std::string& version);

}  // namespace servetune
