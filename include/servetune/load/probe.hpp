// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/load/load_generator.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace servetune {

/// Asks for one token after `text` and says how many tokens the server counted for the request. Throws IoError with the server's answer
/// when there is none, or no `usage.prompt_tokens` in it.
std::int64_t count_prompt_tokens(const Endpoint& endpoint, const std::string& text);

/// The models that the server says it serves (`/v1/models`); empty when it does not say.
std::vector<std::string> served_models(const Endpoint& endpoint);

}  // namespace servetune
