// SPDX-License-Identifier: Apache-2.0
#include "shell_word.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace servetune {
namespace {

bool one_of(char c, std::string_view characters) { return contains(characters, c); }

/// Reads the words of a text: as a shell does, or as people print them. Printed text has no
/// operators, variables or comments, and a quote inside a word is a part of it (`--config={"a":1}`)
/// unless the word, or what stands behind its `=`, begins with a quote.
class ShellTextReader {
public:
    ShellTextReader(std::string_view text, bool printed) : text_(text), printed_(printed) {}

    std::vector<ShellCommand> read() {
        while (at_ < text_.size()) step();
        end_command();
        return std::move(commands_);
    }

private:
    [[nodiscard]] char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

    void take(std::size_t bytes, std::string_view text) {
        if (!std::exchange(in_word_, true)) word_ = {.begin = at_};
        word_.text += text;
        word_.end = at_ += bytes;
    }
    void take() { take(1, text_.substr(at_, 1)); }

    void end_word() {
        if (!std::exchange(in_word_, false)) return;
        quotes_ = false;
        if (!std::exchange(redirected_, false)) command_.push_back(std::move(word_));
    }
    void end_command() {
        end_word();
        if (!command_.empty()) commands_.push_back(std::exchange(command_, {}));
    }

    void backslash(std::string_view in_quotes) {
        const std::size_t line_end = next() == '\n' ? 2 : text_.substr(at_, 3) == "\\\r\n" ? 3 : 0;
        if (line_end > 0) at_ += line_end;
        else if (at_ + 1 == text_.size()) ++at_;
        else if (printed_ && in_quotes.empty() && one_of(next(), " \r")) at_ += 2;
        else if (!in_quotes.empty() && !one_of(next(), in_quotes)) take(2, text_.substr(at_, 2));
        else take(2, text_.substr(at_ + 1, 1));
    }

    void quoted(char quote) {
        take(1, "");
        quotes_ = true;
        while (at_ < text_.size() && text_[at_] != quote)
            if (quote == '"' && text_[at_] == '\\') backslash("\\\"$`");
            else if (quote == '"' && !printed_ && one_of(text_[at_], "$`")) variable();
            else take();
        if (at_ == text_.size()) {
            if (printed_) return;
            throw ParseError(std::string("a quote ") + quote + " is not closed");
        }
        take(1, "");
    }

    /// `$NAME`, `${...}`, `$(...)`, "`...`".
    void variable() {
        const char first = text_[at_];
        const char open = first == '`' ? first : next();
        const char close = open == '{' ? '}' : open == '(' ? ')' : first == '`' ? '`' : '\0';
        take();
        word_.literal = false;
        for (std::size_t depth = first == '`' ? 1 : 0; close != '\0';) {
            if (at_ == text_.size())
                throw ParseError(std::string("a bracket ") + open + " is not closed");
            const char c = text_[at_];
            take();
            if (c == close) --depth;
            else if (c == open) ++depth;
            if (depth == 0) return;
        }
    }

    void redirection() {
        if (in_word_ && all_of(word_.text, [](unsigned char c) { return std::isdigit(c) != 0; }))
            in_word_ = false;  // `2>`: the number of a stream
        end_word();
        const bool twice = next() == text_[at_];
        if (twice && text_[at_] == '<') throw ParseError("a here-document");
        at_ += twice || one_of(next(), ">&|") ? 2 : 1;
        redirected_ = true;
    }

    void step() {
        const char c = text_[at_];
        if (c == '\\') backslash("");
        else if (one_of(c, "'\"") &&
                 (!printed_ || !in_word_ || quotes_ || word_.text.ends_with('=')))
            quoted(c);
        else if (one_of(c, " \t\r") || (printed_ && c == '\n')) end_word(), ++at_;
        else if (printed_) take();
        else if (one_of(c, "\n;|()") || (c == '&' && next() != '>')) end_command(), ++at_;
        else if (c == '&') end_word(), ++at_;
        else if (c == '#' && !in_word_) at_ = std::min(text_.find('\n', at_), text_.size());
        else if (one_of(c, "$`")) variable();
        else if (one_of(c, "<>")) redirection();
        else {
            const bool home = c == '~' && (!in_word_ || one_of(text_[at_ - 1], "=:"));
            take();
            word_.literal = word_.literal && !home && !one_of(c, "*?");
        }
    }

    std::string_view text_;
    bool printed_;
    std::size_t at_ = 0;
    bool in_word_ = false, redirected_ = false;
    bool quotes_ = false;  ///< the word has quotes of its own: the next ones are such too
    ShellWord word_{};
    ShellCommand command_{};
    std::vector<ShellCommand> commands_{};
};

}  // namespace

std::vector<ShellCommand> shell_commands(std::string_view text) {
    return ShellTextReader(text, false).read();
}

std::vector<std::string> shell_words(std::string_view line) {
    std::vector<std::string> words;
    for (ShellCommand& command : ShellTextReader(line, true).read())
        for (ShellWord& word : command) words.push_back(std::move(word.text));
    return words;
}

std::string shell_quoted(std::string_view text) {
    std::string result = "'";
    for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return result + "'";
}

std::string quoted_where_needed(std::string_view text) {
    constexpr std::string_view safe =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@+%";
    return !text.empty() && text.find_first_not_of(safe) == std::string_view::npos
               ? std::string(text)
               : shell_quoted(text);
}

std::string shell_line(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words)
        line += (line.empty() ? "" : " ") + quoted_where_needed(word);
    return line;
}

}  // namespace servetune
