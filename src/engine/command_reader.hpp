// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// One thing that a command says.
struct Setting {
    enum class Kind {
        parameter,  ///< sets a parameter of the engine file
        model,      ///< `value` is its name
        launch,     ///< where the server listens, or the options file, whose content is read
        json,       ///< a flag that takes JSON, as a whole; its parts follow
        flag,       ///< no flag of the engine file
        variable,   ///< no variable of the engine file
        unread,     ///< a word behind no flag, JSON that is none, an unknown part of JSON or option
    };
    Kind kind = Kind::unread;
    std::size_t at = 0;                ///< index of its first word behind the launcher
    std::vector<std::string> words{};  ///< as written; of an option `path: value`
    /// The flag as the engine file spells it (as written where the file has none), with the dotted
    /// rest of a part of JSON; a variable; empty for bare words and options.
    std::string name{};
    std::string value{};  ///< of a flag that stands alone `true` or `false`
    bool alone = false;
    bool beginning =
        false;  ///< only the beginning of `name`, which some engines take for the whole
    bool not_about_speed = false;
    std::vector<const EngineParameter*>
        parameters{};   ///< several share the flag under different conditions
    std::string key{};  ///< of a part of JSON

    /// As written; of a part of JSON the flag and the key.
    [[nodiscard]] std::string text() const;
};

/// What a command says, read by one engine's file.
struct CommandSettings {
    enum class Start { launcher, flags, unknown };  ///< how its words begin
    const Engine* engine = nullptr;                 ///< of the reader
    Start start = Start::unknown;
    std::string model{};  ///< empty: not named
    std::vector<Setting> settings{};

    /// The values that it sets, by the engine file's names; of several the last counts.
    [[nodiscard]] Assignment values() const;
};

/// The one reader of serving commands: ours, and those that people wrote.
///
/// `launch` and `started_as` of the engine files say which engine a command starts. Flags are read
/// in every spelling: `aliases`, `_` for `-`, negations such as `--no-x`, parts of JSON
/// (`--x.key=1`), and the spellings of all versions whose flags are stored. Behind a flag that
/// nobody knows all words are its values; the model by position is none of them.
class CommandReader {
public:
    /// `root`: the folder of the search spaces, whose `engines/versions/` is read; empty: only the
    /// spellings of the engine files count. Throws IoError and ParseError.
    explicit CommandReader(std::vector<Engine> engines, const std::filesystem::path& root = {});
    CommandReader(const CommandReader&) = delete;  // what it read points into it
    CommandReader& operator=(const CommandReader&) = delete;
    CommandReader(CommandReader&&) = default;
    CommandReader& operator=(CommandReader&&) = default;
    ~CommandReader() = default;

    /// Reads a command with its environment and options file. One that starts no engine is read by
    /// the file of `engine`; where that is empty, by the one that knows most of it.
    [[nodiscard]] CommandSettings read(const Command& command,
                                       const std::string& engine = "") const;
    /// The name that clients ask for: the one that the command gives, else the model's.
    [[nodiscard]] std::string served_name(const Command& command) const;
    /// Reads the flags behind a launcher.
    [[nodiscard]] CommandSettings flags(const std::vector<std::string>& words,
                                        const Engine& engine) const;

private:
    /// A flag, a variable or an option sets a parameter.
    struct Target {
        const EngineParameter* parameter;
        std::string alone{};  ///< the value that the flag says by itself; empty: it takes one
    };
    struct Spelling {
        std::string flag{};  ///< as the engine file has it; `{model}`: it names the model
        bool negated = false;
    };
    enum class Takes { none, one, many };
    struct Known {
        std::size_t launcher = 0;  ///< the words of `launch` that name the program
        std::string model_flag{};  ///< empty: the model stands alone
        std::map<std::string, std::vector<Target>> targets{};
        std::map<std::string, Spelling>
            spellings{};  ///< every spelling with `-` for `_`, without what stands behind a dot
        std::map<std::string, Takes> takes{};  ///< by the versions files; the same keys
        std::set<std::string> not_about_speed{};
    };
    class Reading;

    static Known known_of(const Engine& engine, const std::filesystem::path& root);
    static void add_versions(Known& known, const Engine& engine, const std::filesystem::path& root);

    std::vector<Engine> engines_;
    std::vector<Known> known_;  ///< one an engine
};

}  // namespace servetune
