// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/redactor.hpp"

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace autotune {

/// The secrets that this process knows: what `${NAME}` gave in its files, keys, passwords, values
/// of headers. `put` takes them out of all that it prints. They are added before the first thread
/// starts.
servetune::Redactor& secrets();

/// Prints text that may hold foreign words (paths, logs, answers of servers): secrets are taken
/// out, and nothing in it can act on a terminal (detail/base/printable.hpp). Text for standard
/// error goes through the screen (screen.hpp), a whole line or several. Never throws: a screen that
/// is gone is no reason to lose a trial.
void put_text(std::FILE* to, std::string_view text) noexcept;

/// The same, formatted.
template <class... Arguments>
void put(std::FILE* to, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    put_text(to, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// One message on standard error.
template <class... Arguments>
void complain(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    put_text(stderr, fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// What is said of an error: `autotune: MESSAGE`; of a file with several, how many and a line for
/// each.
std::string complaint_of(const std::exception& error);

/// A JSON value and a line end. Secrets are taken out of its texts; bytes that are not UTF-8 become
/// U+FFFD.
void put_json(const nlohmann::ordered_json& value);

/// Prints words of our own as they are, control characters too (the status line of a terminal).
void put_controls(std::FILE* to, std::string_view text) noexcept;

/// The key in an environment variable that `--api-key-env` names, kept as a secret. Throws
/// UsageError where it is not set.
[[nodiscard]] std::string api_key_in(const std::string& variable);

/// To be called before any file is opened. A standard stream that is closed would give its number
/// to the next file, and what is printed would go into that: /dev/null takes its place, opened so
/// that a use of it is an error, as a use of the closed stream would be.
void occupy_standard_streams() noexcept;

/// `code`, or environment_error, with a message, where what was printed has not all reached
/// standard output. Without a message where its reader has gone: then reader_gone in place of
/// `done`.
int with_output_written(int code) noexcept;

}  // namespace autotune
