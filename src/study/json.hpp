// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"
#include "space/value_json.hpp"

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

/// JSON texts are UTF-8. In a message replaced bytes do no harm; in what tells two things apart
/// they would make them one, so there they are refused. Throws UsageError, which calls the text
/// `what`.
void check_utf8(const std::string& text, const std::string& what);

nlohmann::ordered_json to_json(const Metrics& metrics);

}  // namespace servetune
