// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// `NAME=value`
bool is_assignment(std::string_view word);
/// Without the quotes that a shell takes off a value.
std::string unquoted(std::string_view value);
/// At most so many bytes, and no part of a character.
std::string cut_to(std::string_view text, std::size_t longest);
/// `$ vllm ...`, `(venv) user@host:~$ vllm ...`, `> vllm ...`
std::string_view without_prompt(std::string_view line);
/// `$NAME` and `${NAME}` of variables that the text sets.
std::string filled_in(const std::string& word, const std::map<std::string, std::string>& variables);

/// The lines of a shell text without its comments, continuations joined: after a backslash, and
/// lines of flags that lost theirs.
std::vector<std::string> shell_lines(std::string_view text);

/// The same, and what goes on over lines in parentheses (`NAME=(`, `$(`) joined.
std::vector<std::string> closed_shell_lines(std::string_view text);

/// A line in which each `$(...)` and each text in backticks is one word without blanks.
class Substitutions {
public:
    explicit Substitutions(std::string_view line);
    [[nodiscard]] const std::string& line() const { return line_; }
    /// A part of it as it was printed.
    [[nodiscard]] std::string restored(std::string_view part) const;
    /// What runs inside, where `NAME=$(...)` is the whole word.
    [[nodiscard]] std::string inside(std::string_view word) const;

private:
    std::string line_;
    std::vector<std::string> printed_;
};

/// The words that a word stands for: several where it is `${NAME[@]}`, or the name of a text of
/// flags alone.
std::vector<std::string> filled_in_words(const std::string& word, const std::map<std::string, std::string>& variables);

/// `NAME=(a b)` sets NAME to `a b`, `NAME+=(c)` adds to it. Whether the line is one.
bool set_array(std::string_view line, std::map<std::string, std::string>& variables);

/// The name in `NAME=value` or `NAME+=value`; empty: the word is neither.
std::string_view assigned_name(std::string_view word);

/// Words as one text, from which shell_words reads them again.
std::string joined_words(const std::vector<std::string>& words);

/// A word without what stands behind its `=`.
std::string flag_of(const std::string& word);
/// Replaces the flags of a command that `flags` has too, and adds the others; a flag may take
/// several words.
std::string with_flags(const std::string& command, const std::string& flags);

/// A text in quotes that goes on over lines, behind a command that serves nothing: the body of a
/// request.
class OpenQuotes {
public:
    void begin(std::string_view line);
    /// Whether a line lies in it, or ends it.
    bool goes_on(std::string_view line);

private:
    void read(std::string_view line);
    char open_ = 0;
};

/// Calls `use` with each line of a text, without the blanks around it.
template <class Use>
void for_each_trimmed_line(std::string_view text, const Use& use) {
    while (!text.empty()) {
        const auto end = text.find('\n');
        use(trimmed(text.substr(0, end)));
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
}

}  // namespace servetune
