// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace servetune {

/// SHA-256 (FIPS 180-4, sections 5.1.1, 5.3.3 and 6.2.2). Tells whether a file was changed, also by
/// somebody who means to hide it; it does not tell who wrote it.
class Sha256 {
public:
    void add(std::string_view bytes);
    /// 64 hexadecimal digits of all that was added. Ends the sum: nothing may be added after it.
    [[nodiscard]] std::string digits();

private:
    static constexpr std::size_t block_bytes = 64;
    void take(const unsigned char* block);

    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<unsigned char, block_bytes> rest_{};
    std::uint64_t bytes_ = 0;
};

[[nodiscard]] std::string sha256_of(std::string_view bytes);
/// Of a file, read in pieces. Throws IoError.
[[nodiscard]] std::string sha256_of_file(const std::filesystem::path& file);

}  // namespace servetune
