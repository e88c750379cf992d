// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

struct PublishedResult;

/// What a text says of the command that starts an engine.
struct ServingCommand {
    std::string text{};    ///< its environment and words; flags only where `engine` is empty
    std::string engine{};  ///< in lower case; empty: flags only, or no command
    std::string not_recognised{};  ///< why there is no command, where the text seems to have one
};

/// Finds the command in a shell text by what the engine files say: `launch`, `started_as`,
/// `images`.
///
/// Before the launcher may stand a prompt (`$`), `NAME=value`, `export` lines, `nohup`, `sudo`,
/// `env`, `uv run`, `docker run ... image` and the like. Exported variables stay in front of the
/// command, except those that change no measurement (devices, tokens of hubs, logging). Variables
/// that the text sets are filled in.
class ServingCommands {
public:
    explicit ServingCommands(const std::vector<Engine>& engines) : engines_(engines) {}

    /// The only command of a text. None is taken if there are several, if the text has branches
    /// or loops, if settings are in a file, or if words come from another command.
    [[nodiscard]] ServingCommand in_output(std::string_view text) const {
        return in_text(text, false);
    }
    /// The same for a script: every other line must be known to start no server.
    [[nodiscard]] ServingCommand in_script(std::string_view text) const {
        return in_text(text, true);
    }

    /// The only engine that a heading names, in lower case; empty: none or several.
    [[nodiscard]] std::string engine_named(std::string_view heading) const;
    /// Whether a word is a value of a flag that chooses among words.
    [[nodiscard]] bool is_choice(std::string_view word) const;

private:
    using Variables = std::map<std::string, std::string>;
    struct Script;
    [[nodiscard]] ServingCommand in_text(std::string_view text, bool is_script) const;
    void read_line(std::string_view line, Script& script) const;
    void read_segment(std::vector<std::string> words, Script& script) const;
    [[nodiscard]] ServingCommand launched_by(const std::vector<std::string>& words,
                                             const Variables& exported) const;
    [[nodiscard]] const Engine* launched(const std::vector<std::string>& words,
                                         std::size_t at) const;
    [[nodiscard]] const Engine* engine_of_image(const std::string& word) const;

    std::vector<Engine> engines_;
};

/// Gives `command` to each result that has none, with the result's own settings of the server
/// behind it (`changing_settings`). A failure gets it only with settings that are all known. Throws
/// UsageError if the command starts none of `engines`.
void give_command(std::vector<PublishedResult>& results, const std::string& command,
                  const std::vector<Engine>& engines);

}  // namespace servetune
