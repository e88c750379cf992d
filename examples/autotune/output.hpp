// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"
#include "servetune/detail/base/redactor.hpp"

#include <fmt/format.h>
#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace autotune {

using OrderedJson = nlohmann::ordered_json;

/// The secrets that this process knows: what `${NAME}` gave in its files, keys, passwords, values
/// of headers. `put` takes them out of all that it prints. They are added before the first thread
/// starts.
servetune::Redactor& secrets();

/// Prints text that may hold foreign words (paths, logs, answers of servers): secrets are taken
/// out, and nothing in it can act on a terminal (detail/base/printable.hpp). Text for standard
/// error goes through the screen (below), a whole line or several. Never throws: a screen that
/// is gone is no reason to lose a trial.
void put_text(std::FILE* to, std::string_view text) noexcept;

/// What stands in a format: of a text one line, for no word of others may begin a line of its own
/// (`::error` is a command of a CI log).
template <class T>
decltype(auto) shown_in_format(const T& value) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>)
        return servetune::printable_line(secrets()(value));
    else return (value);
}

/// The same, formatted; each text in one line.
template <class... Arguments>
void put(std::FILE* to, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const auto print = [&](const auto&... shown) {
        put_text(to, fmt::vformat(format, fmt::make_format_args(shown...)));
    };
    print(shown_in_format(arguments)...);
}

/// One message on standard error.
template <class... Arguments>
void complain(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    put(stderr, format, std::forward<Arguments>(arguments)...);
}

/// What is said of an error: `autotune: MESSAGE`; of a file with several, how many and a line for
/// each.
std::string complaint_of(const std::exception& error);

/// A JSON value and a line end. Secrets are taken out of its texts; bytes that are not UTF-8 become
/// U+FFFD.
void put_json(const nlohmann::ordered_json& value);

/// The same as text; `indent`: -1 for one line.
std::string shown_json(nlohmann::ordered_json value, int indent = -1);

/// Each in a line of its own, with `before` in front.
void put_each(std::FILE* to, std::string_view before, const std::vector<std::string>& lines);

/// The time now, as strftime has it.
std::string local_time(const char* format);

/// Whether an environment variable has a text.
bool is_set(const char* name);

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

/// How a line looks on a terminal that has colours.
enum class LineStyle { plain, good, bad, faint };

/// Columns that a line of a terminal may fill; 80 where it does not tell.
std::size_t columns_of_terminal(int descriptor) noexcept;

/// Standard error, which this class alone writes to while a command runs: lines, and on a terminal
/// status lines below them that are written anew in place. A line that comes meanwhile takes the
/// status lines away, is printed, and they come back under it. Elsewhere than on a terminal there
/// are lines only, without control characters.
///
/// Nothing here throws, and nothing waits for a reader for longer than a second: a screen that is
/// full, closed or stopped must not cost a measurement. What could not be printed is counted and
/// told with the next line that can be. Any thread may call.
class Screen {
public:
    explicit Screen(int descriptor);
    ~Screen();  ///< the status lines stay where they are, the cursor goes below them
    Screen(const Screen&) = delete;
    Screen& operator=(const Screen&) = delete;

    [[nodiscard]] bool terminal() const noexcept { return terminal_; }
    /// Whether lines have colours: on a terminal, unless NO_COLOR is set or TERM says that it is
    /// dumb.
    [[nodiscard]] bool colours() const noexcept { return colours_; }
    [[nodiscard]] std::size_t width() const noexcept { return columns_of_terminal(descriptor_); }
    /// Prints `text`, which may have several lines.
    void line(std::string_view text, LineStyle style = LineStyle::plain) noexcept;
    /// Replaces the status lines; each is cut at the terminal's width. Nothing where this is no
    /// terminal. The second and further ones are faint.
    void status(std::vector<std::string> lines) noexcept;
    /// For a program that is about to leave without ending its threads: no status line stays open.
    void leave() noexcept;

private:
    void write_with_status(const std::string& text);
    [[nodiscard]] std::string status_text() const;
    [[nodiscard]] std::string styled(const std::string& text, LineStyle style) const;
    void put(std::string_view bytes) noexcept;

    int descriptor_;
    bool terminal_;
    bool colours_;
    std::mutex mutex_{};
    std::vector<std::string> status_{};
    std::size_t shown_ = 0;  ///< status lines that are on the terminal now
    std::size_t lost_ = 0;   ///< lines that could not be printed
    bool stuck_ = false;     ///< nobody read it when it was written to last
};

/// The one for standard error.
Screen& screen();

/// Columns that a text takes: its code points.
std::size_t columns_of(std::string_view text) noexcept;
/// As many columns of it as fit, the last three "..." where it is cut.
std::string cut_to(std::string_view text, std::size_t columns);

/// Rows of at most so many columns, broken between words; those after the first begin with two
/// blanks. A word that fits in no row is left to the terminal.
std::string wrapped(std::string_view text, std::size_t columns);

/// A part of a line; of those that do not all fit the ones with the highest `rank` are shortened
/// first, then left out.
struct LinePart {
    std::string text;
    int rank = 0;
};
/// The parts with " | " between them in at most so many columns; empty ones are left out.
std::string fitted(std::vector<LinePart> parts, std::size_t columns);

}  // namespace autotune
