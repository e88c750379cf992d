// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

#include <string>

namespace servetune {

/// Reads `strategy`: a name, or a mapping of one name to its options. `node` may be nullptr: the
/// default. `replaced`: the name that counts in place of the file's, or nothing. Throws ParseError;
/// UsageError where `replaced` is no strategy.
StrategyChoice read_strategy(const Yaml* node, const Composition& composition,
                             const std::string& replaced);

/// The name alone, of a study whose space could not be read. Throws ParseError.
void check_strategy(const Yaml& node);

}  // namespace servetune
