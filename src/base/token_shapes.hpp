// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace servetune {

/// A log's text without what looks like a secret, for secrets that this process does not know:
/// tokens with a known beginning (of Hugging Face, OpenAI, GitHub, GitLab, NVIDIA, AWS, Slack),
/// what follows `Bearer` or `api_key`, user and password of a URL, parameters of its query and
/// variables (`NAME=value`) whose names say that they hold one. `***` stands in its place. A secret
/// without such a shape stays: then `Redactor` has to know it. O(length).
[[nodiscard]] std::string without_token_shapes(std::string_view text);

}  // namespace servetune
