// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace servetune {

/// The text of an answer that was not streamed, its reasoning included. Throws IoError for what is
/// no whole answer.
std::string text_of_answer(const std::string& body);

}  // namespace servetune
