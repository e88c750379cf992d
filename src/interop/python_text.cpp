// SPDX-License-Identifier: Apache-2.0
#include "python_text.hpp"

#include <algorithm>

namespace servetune {
namespace {

constexpr std::string_view cut_mark = " ... ";
constexpr std::string_view name_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
constexpr std::string_view word_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.+-";

}  // namespace

/// What stands between the quotes here; what comes next is behind them.
std::string_view PythonText::literal() {
    const char quote = text_[at_];
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    const std::string_view result = text_.substr(begin, at_ - begin);
    if (at_ < text_.size()) ++at_;
    return result;
}

bool PythonText::next(Item& item) {
    item = {};
    while (at_ < text_.size()) {
        const char c = text_[at_];
        if (c == '\'' || c == '"') {
            const std::string_view inside = literal();
            if (at_ < text_.size() && text_[at_] == ':' && item.key.empty()) {
                item.key = inside;
                ++at_;
                continue;
            }
            item.value = inside;
            item.is_text = true;
            item.cut = text_.substr(at_).starts_with(cut_mark);
            return true;
        }
        if (c == '[') {
            const std::size_t end = text_.find_first_not_of("0123456789, -", at_ + 1);
            if (end != std::string_view::npos && text_[end] == ']') {
                item.value = text_.substr(at_ + 1, end - at_ - 1);
                at_ = end + 1;
                item.cut = text_.substr(at_).starts_with(cut_mark);
                return true;
            }
        }
        if (c == '[' || c == '{' || c == '(') {
            ++at_;
            if (item.key.empty()) continue;
            item.opens = true;
            return true;
        }
        if (word_characters.find(c) != std::string_view::npos) {
            const std::size_t end =
                std::min(text_.find_first_not_of(name_characters, at_), text_.size());
            const std::string_view word = text_.substr(at_, end - at_);
            if (!word.empty() && end < text_.size() && (text_[end] == '=' || text_[end] == ':')) {
                item.key = word;
                at_ = end + 1;
                continue;
            }
            const std::size_t stop =
                std::min(text_.find_first_not_of(word_characters, at_), text_.size());
            const std::string_view value = text_.substr(at_, stop - at_);
            at_ = stop;
            if (item.key.empty()) continue;
            if (at_ < text_.size() && text_[at_] == '(') {  // a call: its name is no value
                ++at_;
                item.opens = true;
                return true;
            }
            item.value = value;
            return true;
        }
        if (c == ',' || c == ')' || c == '}' || c == ']') item.key = {};
        ++at_;
    }
    return false;
}

std::string PythonText::plain(std::string_view quoted) {
    std::string result;
    result.reserve(quoted.size());
    for (std::size_t i = 0; i < quoted.size(); ++i) {
        if (quoted[i] != '\\' || i + 1 == quoted.size()) {
            result += quoted[i];
            continue;
        }
        const char escaped = quoted[++i];
        if (escaped == 'n') result += '\n';
        else if (escaped == 't') result += '\t';
        else if (escaped == '\'' || escaped == '"' || escaped == '\\') result += escaped;
        else (result += '\\') += escaped;
    }
    return result;
}

}  // namespace servetune
