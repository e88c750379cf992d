// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// The lines of a shell text without its comments, continuations joined: after a backslash, and lines of flags that
/// lost theirs.
std::vector<std::string> shell_lines(std::string_view text);

/// Words as one text, from which shell_words reads them again.
std::string joined_words(const std::vector<std::string>& words);

/// A word without what stands behind its `=`.
std::string flag_of(const std::string& word);
/// Replaces the flags of a command that `flags` has too, and adds the others; a flag may take several words.
std::string with_flags(const std::string& command, const std::string& flags);

/// A text in quotes that goes on over lines, behind a command that serves nothing: the body of a request.
class OpenQuotes {
public:
    void begin(std::string_view line);
    /// Whether a line lies in it, or ends it.
    bool goes_on(std::string_view line);

private:
    void read(std::string_view line);
    char open_ = 0;
};

}  // namespace servetune
