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

/// Makes a text safe at its place: `yaml` for `{{name|yaml}}`. The one without a name is for places
/// that name none.
using TemplateEscapes =
    std::map<std::string, std::function<std::string(const std::string&)>, std::less<>>;
/// Templates that others put in.
using TemplateParts = std::map<std::string_view, std::string_view>;

/// Fills a text:
///     {{name}} {{name|a|b}}    a text, as it is or escaped by `a`, then by `b`
///     {{name|a}} {{name,|a}}   the texts `.` of a list, with blanks or commas between them
///     {{#name}} ... {{/name}}  once for each entry of a list, which sees the values around it
///     {{?name}} ... {{/name}}  once if a text or list is not empty; so does `#` of a text
///     {{^name}} ... {{/name}}  if it is empty or unknown
///     {{>name}} {{!words}}     a part, or a text, as far in as its line; a comment
/// A line with nothing but a section's mark, a comment or a place that is empty vanishes; several
/// lines get the indentation of a place that is alone on its line. What is filled in is not looked
/// at again. Throws std::logic_error for a template that is wrong, and what an escape throws.
std::string fill_template(std::string_view text, const TemplateValues& values,
                          const TemplateEscapes& escapes = {}, const TemplateParts& parts = {});

}  // namespace servetune
