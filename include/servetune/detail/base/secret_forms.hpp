// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/printable.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// RFC 4648, section 4, with padding.
std::string base64(std::string_view bytes);

/// How a secret may stand in a text: as it is (the first), in a quoted word of a shell, in JSON
/// with and without characters beyond ASCII, percent-encoded (RFC 3986), in hexadecimal digits, and
/// in base64, of its own or in the middle of other bytes, in both alphabets. None stands twice.
std::vector<std::string> secret_forms(const std::string& secret);

}  // namespace servetune
