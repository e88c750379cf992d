// SPDX-License-Identifier: Apache-2.0
#pragma once

// A made-up server that counts the tokens of a text, to be calibrated against.

#include "base/text.hpp"
#include "servetune/detail/load/calibration.hpp"

#include <cstdint>
#include <set>
#include <string>

namespace servetune::test {

/// A server: 11 tokens around a text, one a word but for these, which are two.
struct TokenizeServer {
    std::set<std::string> long_words{};
    std::int64_t around = 11;
    int asked = 0;
    std::int64_t operator()(const std::string& text) {
        ++asked;
        std::int64_t tokens = around;
        for (const std::string& word : words_of(text)) tokens += long_words.contains(word) ? 2 : 1;
        return tokens;
    }
};

inline Calibration calibrated(TokenizeServer& server) {
    return calibrate([&](const std::string& text) { return server(text); });
}

}  // namespace servetune::test
