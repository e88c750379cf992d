// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"

#include <cstddef>
#include <set>
#include <string>
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

/// The same of a text that is not parsed yet. The parser with a callback looks through a whole list
/// at the end of each of its objects (3.11: nine seconds for 22 thousand of them).
inline std::string_view shallow(std::string_view json) {
    int depth = 0;
    bool quoted = false;
    for (std::size_t at = 0; at < json.size(); ++at) {
        const char c = json[at];
        if (c == '"') quoted = !quoted;
        else if (quoted) at += c == '\\' ? 1 : 0;
        else if (c == '[' || c == '{') RefuseDeep()(++depth, 0, json);
        else if (c == ']' || c == '}') --depth;
    }
    return json;
}

/// The JSON in a text. Throws ParseError where it nests too deep, an exception of Json's where it
/// is none.
template <class Json>
Json parsed_json(std::string_view text) {
    return Json::parse(shallow(text));
}

/// The same; `is_discarded` where it is none, or nests too deep.
template <class Json>
Json shallow_json(std::string_view text) {
    try {
        return Json::parse(shallow(text), nullptr, false);
    } catch (const ParseError&) {
        return Json(Json::value_t::discarded);
    }
}

/// What Python's json writes as JSON: its bare `NaN`, `Infinity` and `-Infinity` become null.
inline std::string plain_json(std::string_view text) {
    std::string plain;
    plain.reserve(text.size());
    bool quoted = false;
    for (std::size_t at = 0; at < text.size(); ++at) {
        const std::string_view rest = text.substr(at);
        const auto word = [&](std::string_view wanted) {
            return !quoted && rest.starts_with(wanted) ? wanted.size() : 0;
        };
        if (const auto size = word("NaN") + word("Infinity") + word("-Infinity"); size > 0) {
            plain += "null";
            at += size - 1;
            continue;
        }
        if (rest.front() == '"') quoted = !quoted;
        plain += rest.front();
        if (quoted && rest.front() == '\\' && rest.size() > 1) plain += text[++at];
    }
    return plain;
}

/// As RefuseDeep, and throws ParseError where an object has a key twice: parsers take the first or
/// the last of them, each another one.
class RefuseDeepAndTwice {
public:
    template <class Event, class Json>
    bool operator()(int depth, Event event, const Json& parsed) {
        (void)RefuseDeep()(depth, event, parsed);
        // An object that begins at depth d has keys at depth d + 1.
        const auto at = std::size_t(event == Event::key ? depth - 1 : depth);
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
