// SPDX-License-Identifier: Apache-2.0
#include "sha256.hpp"

#include "servetune/error.hpp"

#include <algorithm>
#include <bit>
#include <fstream>

namespace servetune {
namespace {

/// FIPS 180-4, section 4.2.2.
constexpr std::array<std::uint32_t, 64> sha256_constants{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::take(const unsigned char* block) {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t t = 0; t < 16; ++t)
        w[t] = std::uint32_t{block[4 * t]} << 24U | std::uint32_t{block[4 * t + 1]} << 16U |
               std::uint32_t{block[4 * t + 2]} << 8U | block[4 * t + 3];
    for (std::size_t t = 16; t < 64; ++t) {
        const std::uint32_t small0 =
            std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ w[t - 15] >> 3U;
        const std::uint32_t small1 =
            std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ w[t - 2] >> 10U;
        w[t] = w[t - 16] + small0 + w[t - 7] + small1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t t = 0; t < 64; ++t) {
        const std::uint32_t large1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const std::uint32_t first = h + large1 + ((e & f) ^ (~e & g)) + sha256_constants[t] + w[t];
        const std::uint32_t large0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const std::uint32_t second = large0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    const std::array<std::uint32_t, 8> more{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < more.size(); ++i) state_[i] += more[i];
}

void Sha256::add(std::string_view bytes) {
    std::size_t held = bytes_ % block_bytes;
    bytes_ += bytes.size();
    while (!bytes.empty()) {
        const std::size_t part = std::min(bytes.size(), block_bytes - held);
        std::copy_n(bytes.begin(), part, rest_.begin() + std::ptrdiff_t(held));
        bytes.remove_prefix(part);
        held += part;
        if (held < block_bytes) return;
        take(rest_.data());
        held = 0;
    }
}

std::string Sha256::digits() {
    const std::uint64_t bits = bytes_ * 8;
    constexpr std::size_t before_length = 56;
    add(std::string(1, '\x80') +
        std::string((before_length + block_bytes - (bytes_ + 1) % block_bytes) % block_bytes,
                    '\0'));
    std::string length;
    for (int shift = 56; shift >= 0; shift -= 8)
        length += static_cast<char>(bits >> static_cast<unsigned>(shift) & 0xFFU);
    add(length);
    std::string result;
    for (const std::uint32_t word : state_)
        for (int shift = 28; shift >= 0; shift -= 4)
            result += "0123456789abcdef"[word >> static_cast<unsigned>(shift) & 0xFU];
    return result;
}

std::string sha256_of(std::string_view bytes) {
    Sha256 sum;
    sum.add(bytes);
    return sum.digits();
}

std::string sha256_of_file(const std::filesystem::path& file) {
    std::ifstream stream(file, std::ios::binary);
    Sha256 sum;
    std::string piece(std::size_t{1} << 16U, '\0');
    while (stream.read(piece.data(), std::streamsize(piece.size())) || stream.gcount() > 0)
        sum.add(std::string_view(piece).substr(0, std::size_t(stream.gcount())));
    if (!stream.eof()) throw IoError("cannot read " + file.string());
    return sum.digits();
}

}  // namespace servetune
