// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace servetune {

/// How a value becomes text at a place. Throws UsageError for what the place cannot hold.
struct WordEscape {
    std::function<std::string(const nlohmann::ordered_json& value)> text;
    std::string_view between = " ";  ///< the items of a list; empty: it takes the list itself
    bool several_lines = false;      ///< they are as far in as the line of the place
};

struct WordTemplates {
    std::map<std::string_view, WordEscape> escapes{};
    std::map<std::string_view, std::string_view> templates{};  ///< for {{>name}}
};

/// A text with places:
///     {{name}}        a number, or a plain word: letters, digits, and -_=./:,@+
///     {{kind:name}}   escaped for what stands around it; {{a:b:name}}: by b, then by a
///     {{#name}} ... {{/name}}   once for each item of a list, whose keys count first
///     {{?name}} ... {{/name}}   where it is not empty; {{^name}} ... {{/name}} where it is
///     {{>name}}       another template
///     {{!words}}      a comment
/// A mark of the last four kinds that is alone on its line takes the line with it. A template that
/// is put in is as far in as its line. Nothing that is put in is read again. `.` is the item
/// itself. Throws UsageError for a value that the place cannot hold, std::logic_error for a
/// template that is wrong.
std::string fill_words(std::string_view text, const nlohmann::ordered_json& values,
                       const WordTemplates& parts = {});

}  // namespace servetune
