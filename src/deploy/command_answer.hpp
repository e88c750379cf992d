// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/trial/outcome.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What a measuring program printed, read as an outcome.
struct CommandAnswer {
    Outcome outcome;            ///< whatever is wrong with what was printed is Failure{invalid_result} with the reason
    bool says_failure = false;  ///< the failure is the program's own word
};

/// `goals`: the metrics that must be there, each above 0. Never throws.
CommandAnswer read_command_answer(std::string_view printed, const std::vector<std::string>& goals);

}  // namespace servetune
