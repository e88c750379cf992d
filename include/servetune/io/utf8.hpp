// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace servetune {

/// What some editors put before UTF-8 text.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// The text in `bytes`, without a byte order mark; it views `bytes`. Throws ParseError `name:line:column:` (columns in
/// bytes) for what is not UTF-8 (RFC 3629) and for NUL bytes.
std::string_view utf8_text(std::string_view bytes, const std::string& name);

}  // namespace servetune
