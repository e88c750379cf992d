// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The command of an engine in a text that people wrote.
struct ServingCommand {
    std::string text{};                     ///< from the launcher on, its environment before it; flags only where `engine` is empty
    std::string engine{};                   ///< empty: flags only, or not recognised
    std::string not_recognised{};           ///< as printed, where it serves and begins with no launcher that we know
    std::vector<ServingCommand> several{};  ///< not recognised because there are these
};

/// Finds serving commands in shell text by what the engine files say: `launch`, `started_as`,
/// `images`.
///
/// Before the launcher may stand a prompt (`$`), `NAME=value`, `export` lines, `nohup`, `sudo`,
/// `env`, `uv run`, `docker run ... image`, `docker exec name` and the like. Exported variables
/// stay in front of the command, but for those that change no measurement (devices, tokens of hubs,
/// logging). Variables that the text itself sets are put in. What follows `#`, `&&`, `|`, `;`, `&`
/// or `>` belongs to another command.
class ServingCommands {
public:
    explicit ServingCommands(const std::vector<Engine>& engines) : engines_(engines) {}

    /// Of a fence with a shell text. Nothing where nothing in it serves; a manifest and several
    /// different commands are not recognised. `is_shell`: the fence says so; in others only a line
    /// that says that it serves is taken for an unknown command.
    [[nodiscard]] std::optional<ServingCommand> in_fence(std::string_view text, bool is_shell) const;
    /// Of a line of prose: only one that begins with it.
    [[nodiscard]] std::optional<ServingCommand> in_line(std::string_view line) const;

    /// The only engine that a title names, in lower case; empty when it names none or several.
    [[nodiscard]] std::string engine_named(std::string_view title) const;
    /// Whether a word is a value of some flag that chooses among words.
    [[nodiscard]] bool is_choice(std::string_view word) const;
    /// The command with that word in place of the value of its only flag that could have it;
    /// nothing where there is none or several.
    [[nodiscard]] std::optional<std::string> with_choice(const std::string& command, std::string_view word) const;
    /// Whether a line speaks of a launch that is not `command`: `Server: vllm serve org/model -tp
    /// 2`.
    [[nodiscard]] bool names_other_launch(std::string_view line, std::string_view command) const;
    /// The kind of failure that a line tells of: one of an engine's patterns, or the words of a
    /// crash. Empty: none.
    [[nodiscard]] std::string failure_in(std::string_view line) const;

private:
    using Variables = std::map<std::string, std::string>;
    [[nodiscard]] std::optional<ServingCommand> in_script(std::string_view text, bool is_shell) const;
    [[nodiscard]] std::optional<ServingCommand> in_segment(std::vector<std::string> words, const Variables& exported) const;
    [[nodiscard]] std::optional<ServingCommand> in_shell_line(std::string_view line, Variables& shell, Variables& exported) const;
    [[nodiscard]] const Engine* launched_at(const std::vector<std::string>& words, std::size_t at) const;
    [[nodiscard]] const Engine* engine_of_image(const std::string& word) const;

    std::vector<Engine> engines_;
};

}  // namespace servetune
