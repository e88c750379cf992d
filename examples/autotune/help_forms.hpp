// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <memory>
#include <span>
#include <string>

namespace autotune {

// Other forms of `--help`: made of the same commands and options, so that none is forgotten.

/// `--help` in plain words: `--gpus N`, `--as shell|systemd`, without the names of types and
/// checks. To be set before commands are added: each takes its parent's.
std::shared_ptr<CLI::FormatterBase> plain_help();

/// A script by which a shell completes commands, options and words that an option takes: `bash`,
/// `zsh` or `fish`. Throws UsageError for another shell.
std::string completion_script(const CLI::App& app, const std::string& shell);

/// The page of `man autotune`, as roff.
std::string manual_page(const CLI::App& app);

/// What is wrong with a command line that did not parse: the command or option that there is not,
/// with the nearest that there are, or else the `error` of the parser; and where help is.
std::string complaint_of(const CLI::App& app, const CLI::ParseError& error,
                         std::span<const char* const> words);

/// What exit codes mean, a line each: behind `--help`, and in the manual.
std::string exit_codes_text();

/// The version, and what the program was built with.
std::string version_text();

}  // namespace autotune
