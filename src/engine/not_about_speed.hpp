// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <set>
#include <string>
#include <vector>

namespace servetune {

/// The flags that an engine's file lists under `not_about_speed`. `--a_b`, `--a-b`, `--no-a-b` and
/// `--a-b=value` are the same flag.
class NotAboutSpeed {
public:
    explicit NotAboutSpeed(const Engine& engine);

    /// Whether this word of a command is such a flag.
    [[nodiscard]] bool has(const std::string& word) const;
    /// Takes such flags and their values out of the words of a command; those that set a parameter
    /// stay.
    void take_from(std::vector<std::string>& words) const;

private:
    std::set<std::string> listed_{};
    std::set<std::string> kept_{};  ///< flags of parameters and of the launch command
};

}  // namespace servetune
