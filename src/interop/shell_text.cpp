// SPDX-License-Identifier: Apache-2.0
#include "shell_text.hpp"

#include "base/text.hpp"
#include "servetune/detail/engine/composition.hpp"

#include <algorithm>
#include <cctype>

namespace servetune {
namespace {

constexpr std::size_t longest_filled =
    16384;  ///< of a word: variables of variables grow without bound

bool is_name(std::string_view text) {
    return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
           std::all_of(text.begin(), text.end(),
                       [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

/// Whether `word` can be a flag: `-tp`, `--x`, and no negative number.
bool begins_flag(const std::string& word) {
    return word.size() > 1 && word[0] == '-' &&
           std::isdigit(static_cast<unsigned char>(word[1])) == 0 && word[1] != '.';
}

/// A word without what stands behind its `=`.
std::string flag_of(const std::string& word) { return word.substr(0, word.find('=')); }

/// Quotation marks of a text, modulo 2.
struct OddQuotes {
    bool single = false, twofold = false;
    void read(std::string_view text) {
        for (const char c : text) {
            single ^= c == '\'';
            twofold ^= c == '"';
        }
    }
};

/// Takes a comment off the end of a line that another one is joined to. `from`: where the part
/// begins that was joined to it last, `before`: the marks of what stands before that.
void remove_comment(std::string& line, std::size_t from = 0, OddQuotes before = {}) {
    const auto in_part = std::string_view(line).substr(from).rfind(" #");
    if (in_part == std::string_view::npos ||
        line.find_first_of("'\"", from + in_part) != std::string::npos)
        return;
    before.read(std::string_view(line).substr(from, in_part));
    if (!before.single && !before.twofold) line.erase(from + in_part);
}

}  // namespace

bool is_assignment(std::string_view word) {
    const auto equals = word.find('=');
    return equals != std::string_view::npos && is_name(word.substr(0, equals));
}

std::string unquoted(std::string_view value) {
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') &&
        value.back() == value.front())
        value = value.substr(1, value.size() - 2);
    return std::string(value);
}

std::string cut_to(std::string_view text, std::size_t longest) {
    std::size_t end = std::min(text.size(), longest);
    while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
        --end;  // not inside a character
    return std::string(text.substr(0, end));
}

std::string_view without_prompt(std::string_view line) {
    line = trimmed(line);
    if (line.size() > 2 && line.front() == '`' && line.find('`', 1) == line.size() - 1)
        line = trimmed(line.substr(1, line.size() - 2));
    for (const std::string_view trace : {"+ ", "++ ", "!"})  // of a shell, of a notebook
        if (line.starts_with(trace) && line.size() > trace.size() &&
            std::isalpha(static_cast<unsigned char>(line[trace.size()])) != 0)
            return trimmed(line.substr(trace.size()));
    for (const std::string_view prompt : {"$ ", "> ", "% "})
        if (line.starts_with(prompt)) return trimmed(line.substr(prompt.size()));
    const auto sign = std::min(line.find("$ "), line.find("# "));
    const std::string_view before = line.substr(0, sign);
    if (sign != std::string_view::npos && before.find('@') != std::string_view::npos &&
        before.find("--") == std::string_view::npos)
        return trimmed(line.substr(sign + 2));
    return line;
}

std::string filled_in(const std::string& word,
                      const std::map<std::string, std::string>& variables) {
    std::string result;
    for (std::size_t i = 0; i < word.size(); ++i) {
        if (word[i] != '$') {
            result += word[i];
            continue;
        }
        const bool braces = i + 1 < word.size() && word[i + 1] == '{';
        std::size_t begin = i + (braces ? 2 : 1);
        std::size_t end = begin;
        while (end < word.size() &&
               (std::isalnum(static_cast<unsigned char>(word[end])) != 0 || word[end] == '_'))
            ++end;
        const auto known = variables.find(word.substr(begin, end - begin));
        if (known == variables.end() || (braces && (end == word.size() || word[end] != '}'))) {
            result += word[i];
            continue;
        }
        if (result.size() + known->second.size() > longest_filled) return word;
        result += known->second;
        i = end - (braces ? 0 : 1);
    }
    return result;
}

std::vector<std::string> words_of_title(std::string_view title) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : std::string(title) + " ") {
        const auto u = static_cast<unsigned char>(c);
        if (std::isalnum(u) != 0 || u >= 0x80 ||
            std::string_view("-_.=").find(c) != std::string_view::npos)
            word += static_cast<char>(std::tolower(u));
        else {
            while (word.ends_with('.') || word.ends_with('-')) word.pop_back();
            if (!word.empty()) words.push_back(word);
            word.clear();
        }
    }
    return words;
}

std::vector<std::string> shell_lines(std::string_view text) {
    std::vector<std::string> lines;
    bool goes_on = false;
    std::size_t part =
        0;  // where the last part of the last line begins: what stands before it is read once
    OddQuotes before;
    while (!text.empty()) {
        const auto end = text.find('\n');
        std::string_view line = trimmed(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        if (line.empty() || line.starts_with('#')) {
            // A comment between continued lines is none to a shell, but documents have them.
            goes_on = goes_on && !line.empty();
            continue;
        }
        const bool continues = line.ends_with('\\');
        if (continues) line = trimmed(line.substr(0, line.size() - 1));
        const bool short_flag = line.size() > 2 && line[0] == '-' &&
                                std::isalpha(static_cast<unsigned char>(line[1])) != 0;
        if ((goes_on || line.starts_with("--") || short_flag) && !lines.empty()) {
            std::string& whole = lines.back();
            remove_comment(whole, part, before);
            before.read(std::string_view(whole).substr(part));
            part = whole.size();
            whole.append(" ").append(line);
        } else {
            lines.emplace_back(line);
            part = 0;
            before = {};
        }
        goes_on = continues;
    }
    return lines;
}

std::string_view assigned_name(std::string_view word) {
    const auto equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) return {};
    const std::string_view name = word.substr(0, equals - (word[equals - 1] == '+' ? 1 : 0));
    return is_name(name) ? name : std::string_view();
}

std::string joined_words(const std::vector<std::string>& words) {
    std::string result;
    for (const std::string& word : words) {
        if (!result.empty()) result += ' ';
        const bool blanks = word.empty() || word.find_first_of(" \t\n\r") != std::string::npos;
        const char quote = word.find('\'') == std::string::npos ? '\'' : '"';
        if (blanks && word.find(quote) == std::string::npos) result += quote + word + quote;
        else result += word;
    }
    return result;
}

std::string with_flags(const std::string& command, const std::string& flags) {
    std::vector<std::string> words = shell_words(command);
    const std::vector<std::string> changes = shell_words(flags);
    for (std::size_t i = 0; i < changes.size();) {
        std::size_t end = i + 1;
        while (end < changes.size() && !begins_flag(changes[end])) ++end;
        const auto same = std::find_if(words.begin(), words.end(), [&](const std::string& word) {
            return flag_of(word) == flag_of(changes[i]);
        });
        auto at = same;
        if (same != words.end()) {
            auto behind = same + 1;
            // Its values go with it; a plain word behind `--flag=value` or behind a switch is the
            // model.
            const bool separate = same->find('=') == std::string::npos &&
                                  changes[i].find('=') == std::string::npos && end > i + 1;
            const bool other_style =
                same->find('=') == std::string::npos && changes[i].find('=') != std::string::npos;
            if (separate || other_style)
                while (behind != words.end() && !begins_flag(*behind)) ++behind;
            at = words.erase(same, behind);
        }
        words.insert(at, changes.begin() + static_cast<std::ptrdiff_t>(i),
                     changes.begin() + static_cast<std::ptrdiff_t>(end));
        i = end;
    }
    return joined_words(words);
}

}  // namespace servetune
