// SPDX-License-Identifier: Apache-2.0
#include "base/template.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace servetune {
namespace {

using TemplateScope = std::vector<const TemplateValues*>;  ///< the innermost is the last

[[noreturn]] void wrong_template(const std::string& what, std::string_view name) {
    throw std::logic_error("a template: " + what + " '" + std::string(name) + "'");
}

const std::string* text_in(const TemplateScope& scope, std::string_view name) {
    for (auto one = scope.rbegin(); one != scope.rend(); ++one)
        if (const auto at = (*one)->texts.find(name); at != (*one)->texts.end()) return &at->second;
    return nullptr;
}

const std::vector<TemplateValues>* list_in(const TemplateScope& scope, std::string_view name) {
    for (auto one = scope.rbegin(); one != scope.rend(); ++one)
        if (const auto at = (*one)->lists.find(name); at != (*one)->lists.end()) return &at->second;
    return nullptr;
}

std::string indented_lines(std::string_view text, std::string_view indentation) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        result += text[i];
        if (text[i] == '\n' && i + 1 < text.size() && text[i + 1] != '\n') result += indentation;
    }
    return result;
}

class TemplateFiller {
public:
    TemplateFiller(std::string_view text, const TemplateEscapes& escapes)
        : text_(text), escapes_(escapes) {}

    /// Fills up to the end of the section `within`, or of the text.
    void fill(const TemplateScope& scope, std::string_view within, bool shown) {
        for (;;) {
            const std::size_t open = text_.find("{{", at_);
            const std::size_t close = open == text_.npos ? open : text_.find("}}", open);
            if (close == text_.npos) {
                if (!within.empty()) wrong_template("no end of", within);
                result_.append(text_.substr(at_));
                return;
            }
            const std::string_view mark = text_.substr(open + 2, close - open - 2);
            const bool section = mark.starts_with('#') || mark.starts_with('^');
            const bool end = mark.starts_with('/');
            const std::size_t line = text_.rfind('\n', open) + 1;  // 0 if there is none
            const std::size_t next = close + 2;
            const bool alone = text_.find_first_not_of(' ', line) == open &&
                               (next == text_.size() || text_[next] == '\n');
            const bool drops = alone && (section || end);
            const std::size_t from = at_;
            const std::size_t until = drops ? std::max(line, from) : open;
            if (shown) result_.append(text_.substr(from, until - from));
            at_ = drops ? std::min(next + 1, text_.size()) : next;
            if (end) {
                if (mark.substr(1) != within) wrong_template("no begin of", mark.substr(1));
                return;
            }
            if (section) fill_section(scope, mark, shown);
            else if (shown) fill_place(scope, mark, alone, open - line);
        }
    }

    std::string take() { return std::move(result_); }

private:
    void fill_section(const TemplateScope& scope, std::string_view mark, bool shown) {
        const std::string_view name = mark.substr(1);
        const std::vector<TemplateValues>* list = list_in(scope, name);
        const std::string* text = list == nullptr ? text_in(scope, name) : nullptr;
        const bool there = list != nullptr ? !list->empty() : text != nullptr && !text->empty();
        const std::size_t begin = at_;
        if (!shown || there != mark.starts_with('#')) return fill(scope, name, false);
        if (list == nullptr || !there) return fill(scope, name, true);
        for (const TemplateValues& entry : *list) {
            TemplateScope inner = scope;
            inner.push_back(&entry);
            at_ = begin;
            fill(inner, name, true);
        }
    }

    void fill_place(const TemplateScope& scope, std::string_view mark, bool alone,
                    std::size_t indentation) {
        const std::size_t bar = mark.find('|');
        const std::string* text = text_in(scope, mark.substr(0, bar));
        if (text == nullptr) wrong_template("no text", mark.substr(0, bar));
        std::string shown = *text;
        if (bar != mark.npos) {
            const auto escape = escapes_.find(mark.substr(bar + 1));
            if (escape == escapes_.end()) wrong_template("no escape", mark.substr(bar + 1));
            shown = escape->second(shown);
        }
        if (!alone) {
            result_ += shown;
        } else if (shown.empty()) {
            result_.resize(result_.size() - indentation);
            at_ = std::min(at_ + 1, text_.size());
        } else {
            if (shown.back() == '\n') shown.pop_back();
            result_ += indented_lines(shown, std::string(indentation, ' '));
        }
    }

    std::string_view text_;
    const TemplateEscapes& escapes_;
    std::size_t at_ = 0;
    std::string result_;
};

}  // namespace

std::string fill_template(std::string_view text, const TemplateValues& values,
                          const TemplateEscapes& escapes) {
    TemplateFiller filler(text, escapes);
    filler.fill({&values}, "", true);
    return filler.take();
}

}  // namespace servetune
