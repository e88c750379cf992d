// SPDX-License-Identifier: Apache-2.0
// All commands and options (templates/commands.in) with the members that they set, and what is made
// of them: help, manual page, completions and Markdown.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace autotune {

/// What an option's text has to be.
struct OptionBounds {
    enum class Kind { any, integer, positive, positive_or_inf, share, time };
    Kind kind = Kind::any;
    std::uint64_t least = 0, most = std::numeric_limits<std::int64_t>::max();

    /// What is wrong with a text, such as `a number above 0 wanted, got 'abc'`; empty: nothing. A
    /// time becomes seconds; from a minute on it has to say its unit.
    [[nodiscard]] std::string why_wrong(std::string& text) const;
};

/// The member of a command's arguments that an option sets.
using OptionTarget =
    std::variant<bool*, std::string*, std::filesystem::path*, int*, std::int64_t*, std::uint64_t*,
                 double*, std::optional<std::string>*, std::optional<std::filesystem::path>*,
                 std::optional<std::int64_t>*, std::optional<std::uint64_t>*,
                 std::optional<double>*, std::vector<std::string>*, std::vector<double>*,
                 std::vector<std::filesystem::path>*>;

/// One row: an option, its member, what it wants and what it does. The default is the member's.
struct OptionRow {
    std::string names{};  ///< `--as`; `!--no-installed` clears its flag; `STUDY`: by its place
    std::string help{};
    OptionTarget target{};
    OptionBounds bounds{};
    std::string value{};               ///< stands for its value; empty: as its type says
    std::vector<std::string> words{};  ///< all that it takes; empty: any
    bool required = false;
    bool list = false;                             ///< of values with commas
    bool many = false;                             ///< takes all values up to the next option
    bool input = false;                            ///< a file; `-` is standard input
    std::vector<std::string> needs{}, excludes{};  ///< other options of the command
    std::optional<std::string> if_alone{};         ///< its value if only its name is given

    [[nodiscard]] bool by_place() const { return names.front() != '-' && names.front() != '!'; }
    /// `--help`, `-h`: as they are typed; empty: by its place.
    [[nodiscard]] std::vector<std::string> spellings() const;
    [[nodiscard]] bool takes_value() const { return !std::holds_alternative<bool*>(target); }
    [[nodiscard]] bool takes_several() const;
    /// What stands for its value: its words, `N`, `NUMBER`, `TIME`, `FILE`, `VALUE`; empty: a flag.
    [[nodiscard]] std::string value_text() const;
    /// Its help with bounds, default, and whether it is required or can be repeated.
    [[nodiscard]] std::string described() const;
};

/// A command: how it is called, what it does, and the function that does it once the options have
/// been read.
struct CommandRow {
    std::string name, group, what;
    std::vector<OptionRow> options;
    std::function<int()> run;
};

/// In the order of the help. Each call makes new arguments.
std::vector<CommandRow> commands();

/// What the exit codes mean.
const std::vector<std::pair<int, std::string>>& exit_codes();

/// What to do in place of an option or command of earlier versions; empty: there was none.
std::string instead_of(const std::string& gone);

/// What is wrong with a word of an option that takes a few, with the nearest, or what to use
/// instead; empty: it is one of them.
std::string why_no_word(const std::string& text, const std::vector<std::string>& words);

/// `autotune --help`: all commands and the exit codes.
std::string help_text(const std::vector<CommandRow>& all);
/// `autotune COMMAND --help`.
std::string help_text(const CommandRow& command);
/// `autotune help [COMMAND]`; empty: of all.
std::string help_text(const std::vector<CommandRow>& all, const std::string& command);

/// For `bash`, `zsh` or `fish`: asks `autotune completion words` for what it offers.
std::string completion_script(const std::string& shell);

/// What can stand at the last of `words`, behind those that are typed: a line each, what it does
/// behind a tab. Empty: files.
std::string completions(const std::vector<CommandRow>& all, std::span<const char* const> words);

/// The names of a kind of file that ship, such as `hardware`.
std::vector<std::string> shipped(const std::string& kind);

/// The page of `man autotune`, as roff.
std::string manual_page(const std::vector<CommandRow>& all);

/// The blocks of docs/reference/commands.md: the options of each command, and the exit codes.
std::string markdown_page(const std::vector<CommandRow>& all);

/// What is wrong with a command line that did not parse: the command or option that there is not,
/// with the nearest that there are or what to use instead, else `parser_says`; and where help is.
std::string complaint_of(const std::vector<CommandRow>& all, const std::string& parser_says,
                         std::span<const char* const> words);

}  // namespace autotune
