// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/variable_name.hpp"
#include "servetune/detail/base/option_check.hpp"

#include <sched.h>

#include <map>
#include <string>
#include <vector>

namespace servetune {

inline void check_cores(OptionCheck& check, const std::vector<int>& cores) {
    for (const int core : cores)
        check.that(core >= 0 && core < CPU_SETSIZE, "cores",
                   "numbers in [0, " + std::to_string(CPU_SETSIZE - 1) + "]", std::to_string(core));
}

/// An environment cannot hold such names and values: they would be cut, or be another variable.
inline void check_environment(OptionCheck& check,
                              const std::map<std::string, std::string>& environment) {
    for (const auto& [name, value] : environment)
        check.that(is_variable_name(name) && value.find('\0') == std::string::npos, "environment",
                   "names of letters, digits and _, no digit first, and text without NUL",
                   "'" + name + "'");
}

}  // namespace servetune
