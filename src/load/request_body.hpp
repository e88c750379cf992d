// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/load/load_generator.hpp"

#include <string>
#include <vector>

namespace servetune {

/// `/v1/chat/completions` or `/v1/completions`.
const char* path_of(Endpoint::Api api);

/// The JSON that asks for `request`; `turns` is what its conversation has said before it: user, answer, user, answer, ...
std::string request_body(const Endpoint& endpoint, const PlannedRequest& request, const std::vector<std::string>& turns, bool ignore_eos);

}  // namespace servetune
