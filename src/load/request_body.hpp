// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/load/load_generator.hpp"

#include <string>
#include <vector>

namespace servetune {

/// Where this server is asked for answers: `/v1/chat/completions` or `/v1/completions`, unless the
/// endpoint has another path.
std::string path_of(const Endpoint& endpoint);

/// Whether this field of ours is sent: the server has not refused it.
bool takes_field(const Endpoint& endpoint, const std::string& field);

/// The JSON that asks for `request`; `turns` is what its conversation has said before it: user,
/// answer, user, answer, ...
std::string request_body(const Endpoint& endpoint, const PlannedRequest& request,
                         const std::vector<std::string>& turns, bool ignore_eos);

/// The text of an answer that was not streamed, its reasoning included. Throws IoError for what is
/// no whole answer.
std::string text_of_answer(const std::string& body);

}  // namespace servetune
