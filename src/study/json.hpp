// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/outcome.hpp"

#include <string>
#include <string_view>

namespace servetune {

// Journals hold these texts (docs/reference/journal-format.md): a change needs a new schema
// version.

/// `{"max_num_seqs":512,"quantization":null}`; null is Unset.
std::string json_of(const Configuration& configuration);
/// Throws ParseError.
Configuration configuration_from_json(std::string_view json);

/// `{"metrics":{"total_tokens_per_second":{"value":1.0}},"verdict":"sound","findings":[]}` or
/// `{"failure":"out_of_memory","message":"...","log":"..."}`.
std::string json_of(const Outcome& outcome);
/// Throws ParseError.
Outcome outcome_from_json(std::string_view json);

}  // namespace servetune
