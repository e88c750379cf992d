// SPDX-License-Identifier: Apache-2.0
#pragma once

// Words of a command as a POSIX shell reads and writes them (POSIX.1-2024, XCU 2.2 and 2.3).
// `shell_words` (composition.hpp) reads what documents print, which is less strict.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// A word of a shell text: what the program gets, and the bytes [begin, end) that say it, quotes
/// included.
struct ShellWord {
    std::string text{};
    std::size_t begin = 0, end = 0;
    bool literal = true;  ///< no `$NAME`, `$(...)`, "`...`" or `~` in it: the text is all of it
};
using ShellCommand = std::vector<ShellWord>;

/// The simple commands of a text, in order: `;`, `&`, `|`, brackets and ends of lines separate
/// them, a backslash before the end of a line joins. Comments and redirections are passed over.
/// Throws ParseError for a quote or bracket that is not closed, and for a here-document.
std::vector<ShellCommand> shell_commands(std::string_view text);

/// In single quotes, whatever stands in it.
std::string shell_quoted(std::string_view text);
/// As it is where no character of it means anything to a shell, else in quotes.
std::string quoted_where_needed(std::string_view text);
/// Words as one line, from which both readers get them again.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace servetune
