// SPDX-License-Identifier: Apache-2.0
#include "escape.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace servetune {
namespace {

std::size_t longest_run(std::string_view text, char wanted) {
    std::size_t longest = 0;
    std::size_t run = 0;
    for (const char c : text) {
        run = c == wanted ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    return longest;
}

bool goes_on_with(std::string_view text, std::string_view lower_case) {
    return text.size() >= lower_case.size() &&
           std::equal(lower_case.begin(), lower_case.end(), text.begin(),
                      [](char wanted, char got) {
                          return wanted ==
                                 static_cast<char>(std::tolower(static_cast<unsigned char>(got)));
                      });
}

/// Whether what stands at `at` would be acted on. GitHub makes links of `://` and `www.` without
/// any brackets.
bool acts(std::string_view text, std::size_t at) {
    const char c = text[at];
    const std::string_view rest = text.substr(at);
    const auto is = [&](std::size_t i, const auto& wanted) {
        return i < rest.size() && wanted(static_cast<unsigned char>(rest[i])) != 0;
    };
    if (std::string_view("`*[|").find(c) != std::string_view::npos) return true;
    if (c == '\\')
        return rest.size() == 1 || is(1, [](unsigned char next) { return std::ispunct(next); });
    if (c == '<')
        return is(1, [](unsigned char next) {
            return std::isalpha(next) != 0 ||
                   std::string_view("/!?").find(static_cast<char>(next)) != std::string_view::npos;
        });
    if (c == '&')
        return is(1, [](unsigned char next) {
            return std::isalnum(next) != 0 || next == '#';
        });  // &lt; would be shown as another text
    if (c == '~') return goes_on_with(rest, "~~");
    if (c == ':') return goes_on_with(rest, "://") || goes_on_with(rest, ":\\");
    if (c == '.') return at >= 3 && goes_on_with(text.substr(at - 3), "www.");
    if (c == '_') {  // inside a word it is an underscore
        const auto letter = [&](std::size_t i) {
            return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
        };
        const std::size_t before = text.find_last_not_of('_', at);  // a run of them acts as one
        return before == std::string_view::npos || !letter(before) ||
               !letter(text.find_first_not_of('_', at));
    }
    if (at > 0) return false;
    if (std::string_view("#=>").find(c) != std::string_view::npos) return true;
    return (c == '-' || c == '+') && rest.size() > 1 && (rest[1] == ' ' || rest[1] == '-');
}

/// Whether GitHub makes a link of what stands around this `@`: an address of mail (`a@b.c`), or a
/// person (`@name`). It looks for them in the text that is left when backslashes are gone.
bool makes_link(std::string_view text, std::size_t at) {
    const auto letter = [&](std::size_t i) {
        return i < text.size() && std::isalnum(static_cast<unsigned char>(text[i])) != 0;
    };
    if (text[at] != '@') return false;
    const std::size_t end = text.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._", at + 1);
    const bool mail = text.substr(at + 1, end - at - 1).find('.') != std::string_view::npos;
    return mail || (letter(at + 1) && (at == 0 || !letter(at - 1)));
}

}  // namespace

std::string html_text(std::string_view text) {
    std::string result;
    for (const char c : printable(text)) {
        switch (c) {
            case '&': result += "&amp;"; break;
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '"': result += "&quot;"; break;
            case '\'': result += "&#39;"; break;
            default: result += c;
        }
    }
    return result;
}

std::string html_json(std::string_view json) {
    std::string result;
    result.reserve(json.size());
    for (const char c : json) {
        if (c == '<') result += "\\u003c";
        else result += c;
    }
    return result;
}

std::string markdown_text(std::string_view text) {
    const std::string line = printable_line(text);
    std::string result;
    for (std::size_t i = 0; i < line.size(); ++i) {
        // `1. x` at the beginning is a list.
        const bool numbered = (line[i] == '.' || line[i] == ')') && i > 0 &&
                              line.find_first_not_of("0123456789") == i &&
                              (i + 1 == line.size() || line[i + 1] == ' ');
        if (numbered || acts(line, i)) result += '\\';
        result += line[i];
        if (makes_link(line, i))
            result += "<!-- -->";  // a text ends here, and none of it is a link
    }
    return result;
}

std::string markdown_code(std::string_view text) {
    std::string line = printable_line(text);
    const std::string fence(longest_run(line, '`') + 1, '`');
    const bool touches = line.empty() || line.front() == '`' || line.back() == '`';
    if (touches) line = " " + line + " ";
    std::string result = fence;
    for (const char c : line)
        result += c == '|' ? std::string("\\|")
                           : std::string(1, c);  // tables are cut before code is read
    return result + fence;
}

std::string markdown_block(std::string_view language, std::string_view text,
                           std::string_view indent) {
    const std::string shown = printable(text);
    const std::string fence =
        std::string(indent) +
        std::string(std::max<std::size_t>(3, longest_run(shown, '`') + 1), '`');
    std::string result = fence + std::string(language) + "\n" + std::string(indent);
    const std::size_t end = shown.find_last_not_of('\n') + 1;
    for (const char c : std::string_view(shown).substr(0, end)) {
        result += c;
        if (c == '\n') result += indent;
    }
    return result + "\n" + fence + "\n";
}

}  // namespace servetune
