// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/base/error.hpp"

#include <string>

namespace servetune {

/// A callback for nlohmann::json::parse that throws ParseError where a text nests deeper than anything that is meant: printing, copying and
/// comparing what was parsed takes a stack as deep as it nests (3.11: 500 thousand brackets in a row overflow 8 MiB).
struct RefuseDeep {
    static constexpr int deepest = 100;
    template <class Event, class Json>
    bool operator()(int depth, Event, const Json&) const {
        if (depth > deepest) throw ParseError("JSON that nests deeper than " + std::to_string(deepest) + " is not read");
        return true;
    }
};

}  // namespace servetune
