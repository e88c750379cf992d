// SPDX-License-Identifier: Apache-2.0
#include "shell_text.hpp"

#include "base/text.hpp"
#include "servetune/detail/engine/composition.hpp"

#include <algorithm>
#include <cctype>

namespace servetune {
namespace {

constexpr std::size_t longest_filled = 16384;  ///< of a word: variables of variables grow without bound

bool is_name(std::string_view text) {
    return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; });
}

/// Whether `word` can be a flag: `-tp`, `--x`, and no negative number.
bool begins_flag(const std::string& word) {
    return word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0 && word[1] != '.';
}

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
    if (in_part == std::string_view::npos || line.find_first_of("'\"", from + in_part) != std::string::npos) return;
    before.read(std::string_view(line).substr(from, in_part));
    if (!before.single && !before.twofold) line.erase(from + in_part);
}

}  // namespace

bool is_assignment(std::string_view word) {
    const auto equals = word.find('=');
    return equals != std::string_view::npos && is_name(word.substr(0, equals));
}

std::string unquoted(std::string_view value) {
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front())
        value = value.substr(1, value.size() - 2);
    return std::string(value);
}

std::string cut_to(std::string_view text, std::size_t longest) {
    std::size_t end = std::min(text.size(), longest);
    while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;  // not inside a character
    return std::string(text.substr(0, end));
}

std::string_view without_prompt(std::string_view line) {
    line = trimmed(line);
    if (line.size() > 2 && line.front() == '`' && line.find('`', 1) == line.size() - 1) line = trimmed(line.substr(1, line.size() - 2));
    for (const std::string_view trace : {"+ ", "++ ", "!"})  // of a shell, of a notebook
        if (line.starts_with(trace) && line.size() > trace.size() && std::isalpha(static_cast<unsigned char>(line[trace.size()])) != 0)
            return trimmed(line.substr(trace.size()));
    for (const std::string_view prompt : {"$ ", "> ", "% "})
        if (line.starts_with(prompt)) return trimmed(line.substr(prompt.size()));
    const auto sign = std::min(line.find("$ "), line.find("# "));
    const std::string_view before = line.substr(0, sign);
    if (sign != std::string_view::npos && before.find('@') != std::string_view::npos && before.find("--") == std::string_view::npos)
        return trimmed(line.substr(sign + 2));
    return line;
}

std::string filled_in(const std::string& word, const std::map<std::string, std::string>& variables) {
    std::string result;
    for (std::size_t i = 0; i < word.size(); ++i) {
        if (word[i] != '$') {
            result += word[i];
            continue;
        }
        const bool braces = i + 1 < word.size() && word[i + 1] == '{';
        std::size_t begin = i + (braces ? 2 : 1);
        std::size_t end = begin;
        while (end < word.size() && (std::isalnum(static_cast<unsigned char>(word[end])) != 0 || word[end] == '_')) ++end;
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

std::vector<std::string> shell_lines(std::string_view text) {
    std::vector<std::string> lines;
    bool goes_on = false;
    std::size_t part = 0;  // where the last part of the last line begins: what stands before it is read once
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
        const bool short_flag = line.size() > 2 && line[0] == '-' && std::isalpha(static_cast<unsigned char>(line[1])) != 0;
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

std::vector<std::string> closed_shell_lines(std::string_view text) {
    constexpr std::size_t most = 100;  // lines of one command
    std::size_t in_vain = 0;           // lines read for an end that never came: a hostile text has only such
    std::vector<std::string> lines = shell_lines(text), result;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const bool array = lines[i].find("=(") != std::string::npos;
        std::string whole = lines[i];
        if ((!array && whole.find("$(") == std::string::npos) || in_vain > 10 * most) {
            result.push_back(std::move(whole));
            continue;
        }
        int open = 0;
        const auto count = [&](const std::string& line) {
            for (const char c : line) open += c == '(' ? 1 : c == ')' ? -1 : 0;
        };
        remove_comment(whole);
        count(whole);
        std::size_t last = i;
        while (open > 0 && last + 1 < lines.size() && last - i < most) {
            std::string next = lines[++last];
            remove_comment(next);
            count(next);
            whole += (array || next.starts_with(')') ? " " : " ; ") + next;
        }
        result.push_back(open <= 0 ? std::move(whole) : lines[i]);
        if (open <= 0) i = last;
        else in_vain += last - i;
    }
    return result;
}

Substitutions::Substitutions(std::string_view line) {
    constexpr char sign = '\x1f';
    bool parentheses = true, ticks = true;  // one that does not end reads to the end of the line: no more of them
    bool literal = false;                   // in single quotes, in none of the others
    bool quoted = false;
    const auto end_of = [&](std::size_t at) {
        if (line[at] == '`') return line.find('`', at + 1);
        int open = 0;
        char quote = 0;
        for (std::size_t i = at + 1; i < line.size(); ++i) {
            if (line[i] == '\\' && quote != '\'') ++i;
            else if (quote != 0) quote = line[i] == quote ? '\0' : quote;
            else if (line[i] == '"' || line[i] == '\'') quote = line[i];
            else if (line[i] == '(') ++open;
            else if (line[i] == ')' && --open == 0) return i;
        }
        return std::string_view::npos;
    };
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (c == sign) continue;
        if (c == '\\' && !literal && i + 1 < line.size()) {
            line_ += line.substr(i++, 2);
            continue;
        }
        if (c == '\'' && !quoted) literal = !literal;
        if (c == '"' && !literal) quoted = !quoted;
        const bool opens = c == '$' && i + 1 < line.size() && line[i + 1] == '(';
        bool& may = opens ? parentheses : ticks;
        if (literal || (!opens && c != '`') || !may) {
            line_ += c;
            continue;
        }
        const std::size_t end = end_of(i);
        may = end != std::string_view::npos;
        if (!may) {
            line_ += c;
            continue;
        }
        line_ += sign + std::to_string(printed_.size()) + sign;
        printed_.emplace_back(line.substr(i, end + 1 - i));
        i = end;
    }
}

std::string Substitutions::restored(std::string_view part) const {
    std::string result;
    for (std::size_t i = 0; i < part.size(); ++i) {
        const auto end = part[i] == '\x1f' ? part.find('\x1f', i + 1) : std::string_view::npos;
        if (end == std::string_view::npos) {
            result += part[i];
            continue;
        }
        result += printed_.at(std::stoul(std::string(part.substr(i + 1, end - i - 1))));
        i = end;
    }
    return result;
}

std::string Substitutions::inside(std::string_view word) const {
    const std::string_view name = assigned_name(word);
    if (name.empty()) return "";
    const std::string value = unquoted(word.substr(word.find('=') + 1));
    if (value.find('\x1f') != 0 || value.find('\x1f', 1) != value.size() - 1) return "";
    const std::string printed = restored(value);
    const std::size_t front = printed.front() == '`' ? 1 : 2;
    return printed.substr(front, printed.size() - front - 1);
}

std::vector<std::string> filled_in_words(const std::string& word, const std::map<std::string, std::string>& variables) {
    const bool array = word.starts_with("${") && (word.ends_with("[@]}") || word.ends_with("[*]}"));
    const bool braces = word.starts_with("${") && word.ends_with('}');
    if (word.starts_with('$') && word.size() > (array ? 6U : braces ? 3U : 1U)) {
        const std::size_t front = braces ? 2 : 1;
        const auto known = variables.find(word.substr(front, word.size() - front - (array ? 4 : braces ? 1 : 0)));
        if (known != variables.end()) {
            const std::string& value = known->second;
            const bool flags = value.find(" -") != std::string::npos || (value.starts_with('-') && value.find(' ') != std::string::npos);
            const bool one = value.starts_with('{') || value.starts_with('$') || value.starts_with('`');
            if (array || (flags && !one)) return shell_words(value);
        }
    }
    return {filled_in(word, variables)};
}

bool set_array(std::string_view line, std::map<std::string, std::string>& variables) {
    line = trimmed(line);
    for (const std::string_view word : {"export ", "local ", "readonly ", "declare -a ", "declare "})
        if (line.starts_with(word)) line = trimmed(line.substr(word.size()));
    const auto equals = line.find("=(");
    if (equals == std::string_view::npos || !line.ends_with(')')) return false;
    const std::string name(assigned_name(line.substr(0, equals + 1)));
    if (name.empty()) return false;
    const bool adds = line[equals - 1] == '+';
    std::vector<std::string> words = adds ? shell_words(variables[name]) : std::vector<std::string>();
    const Substitutions inner(line.substr(equals + 2, line.size() - equals - 3));
    for (const std::string& word : shell_words(inner.line()))
        for (const std::string& one : filled_in_words(inner.restored(word), variables)) words.push_back(one);
    std::string value = joined_words(words);
    if (value.size() <= longest_filled) variables[name] = std::move(value);
    else variables.erase(name);
    return true;
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

std::string flag_of(const std::string& word) { return word.substr(0, word.find('=')); }

std::string with_flags(const std::string& command, const std::string& flags) {
    std::vector<std::string> words = shell_words(command);
    const std::vector<std::string> changes = shell_words(flags);
    for (std::size_t i = 0; i < changes.size();) {
        std::size_t end = i + 1;
        while (end < changes.size() && !begins_flag(changes[end])) ++end;
        const auto same =
            std::find_if(words.begin(), words.end(), [&](const std::string& word) { return flag_of(word) == flag_of(changes[i]); });
        auto at = same;
        if (same != words.end()) {
            auto behind = same + 1;
            // Its values go with it; a plain word behind `--flag=value` or behind a switch is the
            // model.
            const bool separate = same->find('=') == std::string::npos && changes[i].find('=') == std::string::npos && end > i + 1;
            const bool other_style = same->find('=') == std::string::npos && changes[i].find('=') != std::string::npos;
            if (separate || other_style)
                while (behind != words.end() && !begins_flag(*behind)) ++behind;
            at = words.erase(same, behind);
        }
        words.insert(at, changes.begin() + static_cast<std::ptrdiff_t>(i), changes.begin() + static_cast<std::ptrdiff_t>(end));
        i = end;
    }
    return joined_words(words);
}

void OpenQuotes::begin(std::string_view line) {
    open_ = 0;
    read(line);
}

bool OpenQuotes::goes_on(std::string_view line) {
    if (open_ == 0) return false;
    read(line);
    return true;
}

void OpenQuotes::read(std::string_view line) {
    for (std::size_t i = 0; i < line.size(); ++i)
        if (line[i] == '\\' && open_ != '\'') ++i;
        else if (open_ != 0 && line[i] == open_) open_ = 0;
        else if (open_ == 0 && (line[i] == '"' || line[i] == '\'')) open_ = line[i];
}

}  // namespace servetune
