// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace autotune {

/// What an argument of a tool is, and with that how it is checked and given on.
enum class Takes {
    text,        ///< one line
    catalogued,  ///< a name of the catalogue, or a file in the folder
    model,       ///< a name on the hub, or a file in the folder
    count,       ///< a whole number of at least 0
    number,      ///< above 0
    flag,        ///< true: the option is given
    file,        ///< in the folder
    files,       ///< several of them
    settings,    ///< parameter -> value, each a `--set`
    choice,      ///< one of `choices`
    url,         ///< of a server of this machine
};

struct ToolArgument {
    std::string_view name;
    Takes takes = Takes::text;
    std::string_view option{};  ///< of the subcommand; empty: a word by itself
    std::string_view what{};    ///< for the agent
    bool required = false;
    std::span<const std::string_view> choices{};
};

/// A tool that is a subcommand.
struct ToolEntry {
    std::string_view name;
    std::string_view what;  ///< for the agent: what it does, when to use it, what comes back
    std::span<const std::string_view> words;
    std::span<const ToolArgument> arguments;
    bool reads_only = false;
    bool takes_long = false;  ///< it may outlast a call, and has `wait_seconds`
    bool destroys = false;    ///< it may replace a file, or end what runs
};

/// Whether what it gives may be a job.
constexpr bool makes_jobs(const ToolEntry& entry) {
    return entry.takes_long && !entry.words.empty();
}

/// All of them. Those without words are done by Tools itself.
std::span<const ToolEntry> tool_table();

}  // namespace autotune
