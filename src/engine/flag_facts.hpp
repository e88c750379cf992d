// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace servetune {

/// What one version of an engine takes on its command line: names, values, nothing else of theirs.
/// Read from search_spaces/engines/versions/<engine>-<version>.json.
struct FlagFacts {
    struct Fact {
        std::string type;  ///< bool, int, float, choice, string or json; empty: not known
        std::vector<std::string>
            values;  ///< when the engine itself refuses everything else; empty: anything
        bool negatable = false;  ///< `--no-...` is a flag too
        std::string name{};    ///< its usual spelling: an alias has the name of what it stands for
        bool negated = false;  ///< this spelling switches it off
        bool list = false;     ///< takes several values, one word each
    };
    std::string engine;
    std::string version;
    std::string source;
    bool complete = true;  ///< false: a flag that is not listed may exist all the same
    std::map<std::string, Fact> flags;
    std::map<std::string, Fact> options;  ///< of the options file, by dotted path
    bool options_complete = true;         ///< false: as `complete`, of an option

    /// Throws IoError and ParseError.
    static FlagFacts load(const std::filesystem::path& file);

    /// Names alone, of the engine that is installed on this machine; `source` is the command that
    /// listed them.
    static FlagFacts of_installed(const std::string& engine, const std::string& source,
                                  const std::set<std::string>& flags);

    /// Why this version would not take `command`, one sentence each with the nearest known flag;
    /// empty when it would. `flags`: gets the flag, or the option's path, of each.
    [[nodiscard]] std::vector<std::string> problems(
        const Command& command, const Engine& by, std::vector<std::string>* flags = nullptr) const;
};

/// The versions of `engine` that are stored below `root` (the search spaces' folder), oldest first.
std::vector<FlagFacts> known_versions(const std::filesystem::path& root, const std::string& engine);

/// The stored facts of exactly this version, else of the last one before it; nothing when none is
/// as old.
std::optional<FlagFacts> facts_for(const std::filesystem::path& root, const std::string& engine,
                                   const std::string& version);

/// That a version is older than all that the engine's file covers, or newer than all that are
/// stored, a sentence each.
std::vector<std::string> version_doubts(const std::filesystem::path& root, const Engine& engine,
                                        const std::string& version);

}  // namespace servetune
