// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace autotune {

// Other forms of `--help`: made of the same commands and options, so that none is forgotten.

/// A script by which a shell completes commands, options and words that an option takes: `bash`, `zsh` or `fish`.
/// Throws UsageError for another shell.
std::string completion_script(const CLI::App& app, const std::string& shell);

/// The page of `man autotune`, as roff.
std::string manual_page(const CLI::App& app);

/// What exit codes mean, a line each: behind `--help`, and in the manual.
std::string exit_codes_text();

/// The version, and what the program was built with.
std::string version_text();

}  // namespace autotune
