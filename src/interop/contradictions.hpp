// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Titles that say something else of a server than the command above them: then nobody knows
/// whether the result below was measured with that command.
class Contradictions {
public:
    explicit Contradictions(const std::vector<Engine>& engines);

    /// Whether a title says of the server what the command does not:
    /// - `MTP = 1`, or a part of it `max_num_seqs=64`: what an engine calls so has a number that
    ///   stands nowhere in the command
    /// - `TP4`, `tp=4`, `DP 2`: likewise
    /// - `with --enable-x`, `--max-num-seqs 64`, `enforce-eager`: a flag that it does not have, or
    ///   not with that value; `without --enable-x`: one that it has
    /// - `VLLM_X=0`: a variable of an engine that it does not have, or not with that value
    /// - a size such as `32B` where the command's model has another
    [[nodiscard]] bool between(std::string_view title, std::string_view command) const;
    /// Whether `NAME=value` sets a variable of an engine.
    [[nodiscard]] bool is_variable(std::string_view word) const;

private:
    [[nodiscard]] bool gives_number(std::string_view title, std::string_view command) const;
    [[nodiscard]] bool names_flag(const std::vector<std::string>& words, std::string_view command) const;
    [[nodiscard]] bool names_setting(const std::vector<std::string>& words, std::string_view command) const;
    [[nodiscard]] bool names_variable(const std::string& word, std::string_view command) const;

    std::set<std::string> names_;     ///< of parameters, their flags without dashes and their words, in lower case
    std::set<std::string> switches_;  ///< flags without a value
    std::set<std::string> settings_;  ///< flags with one
    std::set<std::string> prefixes_;  ///< of the engines' variables
};

}  // namespace servetune
