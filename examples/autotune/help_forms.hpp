// SPDX-License-Identifier: Apache-2.0
// Help, manual page, completions and Markdown, made of the table of commands.
#pragma once

#include "command_table.hpp"

#include <span>
#include <string>
#include <vector>

namespace autotune {

/// `autotune --help`: all commands and the exit codes.
std::string help_text(const std::vector<CommandRow>& all);
/// `autotune COMMAND --help`.
std::string help_text(const CommandRow& command);

/// For `bash`, `zsh` or `fish`: asks `autotune completion words` for what it offers.
std::string completion_script(const std::string& shell);

/// What can stand at the last of `words`, behind those that are typed: a line each, what it does
/// behind a tab. Empty: files.
std::string completions(const std::vector<CommandRow>& all, std::span<const char* const> words);

/// The page of `man autotune`, as roff.
std::string manual_page(const std::vector<CommandRow>& all);

/// The blocks of docs/reference/commands.md: the options of each command, and the exit codes.
std::string markdown_page(const std::vector<CommandRow>& all);

/// What is wrong with a command line that did not parse: the command or option that there is not,
/// with the nearest that there are or what to use instead, else `parser_says`; and where help is.
std::string complaint_of(const std::vector<CommandRow>& all, const std::string& parser_says,
                         std::span<const char* const> words);

/// The version, and what the program was built with.
std::string version_text();

}  // namespace autotune
