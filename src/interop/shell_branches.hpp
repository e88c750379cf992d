// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace servetune {

/// Variables that a shell script sets between `if` and `fi`, or `case` and `esac`: nobody knows
/// which branch ran.
class ShellBranches {
public:
    /// Whether a line is a word of the branches themselves.
    bool read(std::string_view line);
    /// Such a variable that a launch uses, or gets from its environment; empty: none.
    [[nodiscard]] std::string depended_on(std::string_view line, const std::map<std::string, std::string>& exported) const;

private:
    [[nodiscard]] std::string used_in(std::string_view line) const;
    void set(std::string_view line);
    std::set<std::string> set_, exported_;
    std::size_t depth_ = 0;
};

}  // namespace servetune
