// SPDX-License-Identifier: Apache-2.0
#include "token_shapes.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "variable_name.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

namespace servetune {
namespace {

constexpr std::size_t least_secret = 8;

/// How tokens begin, and the fewest characters behind that. Sources: the reference pages on access
/// tokens of each service, and detectors of GitHub's secret scanning.
constexpr std::array<std::pair<std::string_view, std::size_t>, 12> token_beginnings{
    {{"hf_", 16},
     {"sk-", 16},
     {"ghp_", 16},
     {"gho_", 16},
     {"ghs_", 16},
     {"github_pat_", 16},
     {"glpat-", 16},
     {"nvapi-", 16},
     {"AKIA", 16},
     {"ASIA", 16},
     {"xoxb-", 16},
     {"xoxp-", 16}}};

bool is_word_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}
/// What a token is made of (RFC 6750, b64token).
bool is_token_character(char c) { return is_word_character(c) || contains(".~+/=%", c); }

bool same_letters(std::string_view a, std::string_view b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
               return (x >= 'A' && x <= 'Z' ? static_cast<char>(x + 32) : x) == y;
           });
}

/// One pass over a text.
class ShapeScan {
public:
    explicit ShapeScan(std::string_view text) : text_(text) {}

    std::string result() {
        while (at_ < text_.size()) {
            if (text_.substr(at_).starts_with("://")) address();
            else if (is_word_character(text_[at_])) word();
            else keep(at_ + 1);
        }
        return std::move(result_);
    }

private:
    void keep(std::size_t end) {
        result_ += text_.substr(at_, end - at_);
        at_ = end;
    }
    void hide(std::size_t end) {
        result_ += "***";
        at_ = end;
    }
    [[nodiscard]] std::size_t end_of(std::size_t from, bool (*belongs)(char)) const {
        while (from < text_.size() && belongs(text_[from])) ++from;
        return from;
    }

    /// Behind `://`: `user:password@`.
    void address() {
        keep(at_ + 3);
        const std::size_t end = std::min(text_.find_first_of(" \t\r\n\"'<>/?#", at_), text_.size());
        const std::size_t user = text_.substr(at_, end - at_).rfind('@');
        if (user != std::string_view::npos && user > 0) hide(at_ + user);
    }

    void word() {
        const std::size_t end = end_of(at_, is_word_character);
        const std::string_view word = text_.substr(at_, end - at_);
        for (const auto& [beginning, least] : token_beginnings)
            if (word.starts_with(beginning) && word.size() >= beginning.size() + least &&
                !is_name(word))
                return hide(end_of(end, is_token_character));
        keep(end);
        const std::string_view option =
            word.substr(std::min(word.find_first_not_of('-'), word.size()));
        if (same_letters(word, "bearer")) value(" \t", least_secret);
        else if (same_letters(option, "api_key") || same_letters(option, "api-key"))
            value("=: '\"[(", least_secret);
        else if (at_ < text_.size() && text_[at_] == '=' && names_secret(word) &&
                 (in_query(end - word.size()) || is_upper(word)))
            value("='\"", 1);
    }

    /// What stands behind a name and at most six of the characters between them.
    void value(std::string_view between, std::size_t least) {
        constexpr std::size_t most_between = 6;
        std::size_t from = at_;
        while (from < text_.size() && from - at_ < most_between && contains(between, text_[from]))
            ++from;
        const std::size_t end = end_of(from, is_token_character);
        if (from == at_ || end - from < least) return;
        keep(from);
        hide(end);
    }

    /// `hf_xet_high_performance`: tokens of that service have no further `_`.
    static bool is_name(std::string_view word) {
        return word.starts_with("hf_") && word.find('_', 3) != std::string_view::npos;
    }
    [[nodiscard]] bool in_query(std::size_t begin) const {
        return begin > 0 && (text_[begin - 1] == '?' || text_[begin - 1] == '&');
    }
    static bool is_upper(std::string_view word) {
        return none_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
    }

    std::string_view text_;
    std::string result_{};
    std::size_t at_ = 0;
};

}  // namespace

std::string without_token_shapes(std::string_view text) { return ShapeScan(text).result(); }

}  // namespace servetune
