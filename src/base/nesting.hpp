// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"

#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

namespace servetune {

/// A callback for nlohmann::json::parse that throws ParseError where a text nests deeper than
/// anything that is meant: printing, copying and comparing what was parsed takes a stack as deep as
/// it nests (3.11: 500 thousand brackets in a row overflow 8 MiB).
struct RefuseDeep {
    static constexpr int deepest = 100;
    template <class Event, class Json>
    bool operator()(int depth, Event, const Json&) const {
        if (depth > deepest)
            throw ParseError("JSON that nests deeper than " + std::to_string(deepest) +
                             " is not read");
        return true;
    }
};

/// The JSON in a text; `is_discarded` where it is none, or nests too deep.
template <class Json>
Json shallow_json(std::string_view text) {
    try {
        return Json::parse(text, RefuseDeep(), false);
    } catch (const ParseError&) {
        return Json(Json::value_t::discarded);
    }
}

/// As RefuseDeep, and throws ParseError where an object has a key twice: parsers take the first or
/// the last of them, each another one.
class RefuseDeepAndTwice {
public:
    template <class Event, class Json>
    bool operator()(int depth, Event event, const Json& parsed) {
        (void)RefuseDeep()(depth, event, parsed);
        // An object that begins at depth d has keys at depth d + 1.
        const auto at = static_cast<std::size_t>(event == Event::key ? depth - 1 : depth);
        if (event == Event::object_start) {
            if (keys_.size() <= at) keys_.resize(at + 1);
            keys_[at].clear();
        } else if (event == Event::key) {
            const auto key = parsed.template get<std::string>();
            if (!keys_[at].insert(key).second)
                throw ParseError("the key '" + key + "' stands twice in one JSON object");
        }
        return true;
    }

private:
    std::vector<std::set<std::string>> keys_{};  ///< of the objects that are open
};

}  // namespace servetune
