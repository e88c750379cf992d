// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// A file of the source in the program (cmake/embed.cmake).
struct EmbeddedFile {
    std::string_view text;
    std::string_view sha256;  ///< in hexadecimal
};

/// What fills a template: texts, and lists whose entries have texts and lists of their own.
struct TemplateValues {
    std::map<std::string, std::string, std::less<>> texts{};
    std::map<std::string, std::vector<TemplateValues>, std::less<>> lists{};
};

/// Makes a text safe at its place: `yaml` for `{{name|yaml}}`.
using TemplateEscapes =
    std::map<std::string, std::function<std::string(const std::string&)>, std::less<>>;

/// Fills `{{name}}` with a text. `{{#name}}...{{/name}}` stands once for each entry of a list, or
/// once if a text is not empty; `{{^name}}...{{/name}}` if it is empty or unknown. An entry sees
/// the values around it. A line with nothing but such a mark vanishes; so does one with nothing but
/// a place whose text is empty. Several lines get the indentation of a place that is alone on its
/// line. What is filled in is not looked at again. Throws std::logic_error for an unknown text or
/// escape, and a section without its end.
std::string fill_template(std::string_view text, const TemplateValues& values,
                          const TemplateEscapes& escapes = {});

}  // namespace servetune
