// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace servetune {

/// Any text as text of an HTML page, in an element or in an attribute: nothing in it is markup, and
/// what a terminal or a reader could act on stands as `\u001b` (detail/base/printable.hpp).
std::string html_text(std::string_view text);

/// JSON as the content of a script element: no `<` in it can end the element.
std::string html_json(std::string_view json);

/// Text of others in a paragraph, a list or a table of Markdown, in one line, as plain text: no
/// HTML, no link, no code, no cell of a table ends in it. What CommonMark and GitHub would act on
/// stands behind a backslash, or a comment parts it; neither is shown.
std::string markdown_text(std::string_view text);

/// Text of others as code inside a line; it may stand in a table.
std::string markdown_code(std::string_view text);

/// A block of code, its fence longer than any run of backticks inside. `indent` stands before each
/// line, as in a list; ends with a line end.
std::string markdown_block(std::string_view language, std::string_view text,
                           std::string_view indent = "");

}  // namespace servetune
