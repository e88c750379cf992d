// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"

#include <string_view>

namespace servetune {

/// What a measuring program printed, read as an outcome.
struct CommandAnswer {
    Outcome
        outcome;  ///< whatever is wrong with what was printed is Failure{invalid_result} with the reason
    bool says_failure = false;  ///< the failure is the program's own word
};

/// Never throws.
CommandAnswer read_command_answer(std::string_view printed);

}  // namespace servetune
