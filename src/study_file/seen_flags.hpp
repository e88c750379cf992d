// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"

#include <map>
#include <string>
#include <vector>

namespace servetune {

/// A parameter that commands set and the engine file does not have.
struct UnknownFlag {
    std::string flag{};  ///< one of the two
    std::string environment{};
    bool is_switch = false;
};

/// What one command says, by the names of the engine file.
struct SeenFlags {
    std::string model{};                           ///< as written; empty: none
    std::map<std::string, Value> values{};         ///< parameter -> value
    std::map<std::string, std::string> unknown{};  ///< name made of the flag -> text of the value
    std::map<std::string, UnknownFlag> unknown_flags{};
    std::vector<std::string> unread{};  ///< words that are neither
};

/// Reads a command that is spelled as the engine file spells it (CommandReader::spelled_out).
/// `version` decides how values are passed; empty: the newest.
SeenFlags seen_flags(const Engine& engine, const Command& command, const std::string& version);

}  // namespace servetune
