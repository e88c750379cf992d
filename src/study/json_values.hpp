// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"
#include "space/value_json.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace servetune {

/// JSON texts are UTF-8. In a message replaced bytes do no harm; in what tells two things apart
/// they would make them one, so there they are refused. Throws UsageError, which calls the text
/// `what`.
void check_utf8(const std::string& text, const std::string& what);

nlohmann::ordered_json to_json(const Metrics& metrics);

}  // namespace servetune
