// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace servetune {

/// A 64-bit name for a content: equal content, equal fingerprint, on every machine and compiler.
/// Journals hold it, so the function below may never change. Not for security.
struct Fingerprint {
    std::uint64_t bits = 0;

    friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;

    /// 16 hexadecimal digits.
    [[nodiscard]] std::string text() const {
        constexpr std::string_view digits = "0123456789abcdef";
        std::string result(16, '0');
        for (int i = 0; i < 16; ++i) result[std::size_t(i)] = digits[(bits >> (60 - 4 * i)) & 0xfU];
        return result;
    }
};

/// FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv). With the few thousand configurations of
/// a study the chance of any collision is below 1e-12.
constexpr Fingerprint fingerprint_of(std::string_view bytes) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    return {hash};
}

}  // namespace servetune
