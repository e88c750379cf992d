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

/// The words of a title in lower case; dots, dashes, `_` and `=` inside them are kept.
std::vector<std::string> words_of_title(std::string_view title);

/// The lines of a shell text without its comments, continuations joined: after a backslash, and
/// lines of flags that lost theirs.
std::vector<std::string> shell_lines(std::string_view text);

/// The name in `NAME=value` or `NAME+=value`; empty: the word is neither.
std::string_view assigned_name(std::string_view word);

/// Words as one text, from which shell_words reads them again.
std::string joined_words(const std::vector<std::string>& words);

/// Replaces the flags of a command that `flags` has too, and adds the others; a flag may take
/// several words.
std::string with_flags(const std::string& command, const std::string& flags);

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
