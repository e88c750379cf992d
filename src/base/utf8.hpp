// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace servetune {

/// What some editors put before UTF-8 text.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// The text in `bytes`, without a byte order mark; it views `bytes`. Throws ParseError
/// `name:line:column:` (columns in bytes) for what is not UTF-8 (RFC 3629) and for NUL bytes.
std::string_view utf8_text(std::string_view bytes, const std::string& name);

/// The text, or the beginning of a longer one and `...`: about `longest` bytes, and no part of a
/// character.
std::string start_of(std::string_view text, std::size_t longest);

}  // namespace servetune
