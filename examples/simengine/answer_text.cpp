// SPDX-License-Identifier: Apache-2.0
#include "answer_text.hpp"

#include "servetune/detail/base/rng.hpp"

#include <array>
#include <cmath>

namespace simengine {
namespace {

/// With the blank that stands before them; 64, so that six bits choose one.
constexpr std::array<std::string_view, 64> spoken{
    " a",     " the",   " river",  " stone", " light",  " wind",  " slow",  " quick",
    " under", " over",  " engine", " step",  " cache",  " token", " and",   " then",
    " where", " old",   " young",  " tree",  " bird",   " paper", " glass", " night",
    " day",   " early", " late",   " warm",  " cold",   " north", " south", " east",
    " west",  " road",  " bridge", " house", " garden", " water", " salt",  " sand",
    " ship",  " rope",  " iron",   " gold",  " green",  " blue",  " white", " dark",
    " seven", " nine",  " many",   " few",   " turns",  " runs",  " waits", " comes",
    " goes",  " falls", " grows",  " keeps", " finds",  " says",  " asks",  " ends"};

std::size_t choice(std::uint64_t key, std::int64_t at) {
    return servetune::mix64(key + static_cast<std::uint64_t>(at) * 0x9e3779b97f4a7c15ULL) %
           spoken.size();
}

}  // namespace

std::string_view AnswerText::token(std::int64_t at) const {
    const std::string_view text = spoken[choice(key_, at)];
    return at == 0 ? text.substr(1) : text;
}

void AnswerText::encode(std::int64_t count, const Tokenizer& tokenizer,
                        std::vector<Token>& tokens) const {
    for (std::int64_t i = 0; i < count; ++i) tokens.push_back(tokenizer.token_of(token(i)));
}

std::int64_t natural_length(std::uint64_t key) {
    const double uniform = static_cast<double>(servetune::mix64(key ^ 0x1e47ULL) >> 11U) * 0x1p-53;
    return 1 + static_cast<std::int64_t>(-250 * std::log1p(-uniform));
}

}  // namespace simengine
