// SPDX-License-Identifier: Apache-2.0
#include "document.hpp"

#include "base/text.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace servetune {
namespace {

/// Columns that text takes: bytes that begin a character.
std::size_t width_of(const std::string& text) {
    return count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; });
}

class TextWriter {
public:
    TextWriter(const Redactor& secrets, bool markdown) : secrets_(secrets), markdown_(markdown) {}

    std::string written(const Document& document) {
        if (!document.title.empty()) head("#", document.title);
        for (const Section& section : document.sections) {
            if (all_of(section.blocks,
                       [](const Block& block) { return std::holds_alternative<Figure>(block); }))
                continue;
            head("##", section.title);
            for (const Block& block : section.blocks)
                std::visit([this](const auto& one) { write(one); }, block);
        }
        return std::move(out_);
    }

private:
    [[nodiscard]] std::string shown(const std::string& text) const {
        return markdown_ ? markdown_text(secrets_(text)) : printable_line(secrets_(text));
    }
    void head(const char* mark, const std::string& title) {
        out_ += (markdown_ ? std::string(mark) + " " : "") + shown(title) + "\n\n";
    }
    void write(const Heading& heading) { head("###", heading.text); }
    void write(const Paragraph& paragraph) {
        const std::string mark = markdown_ && paragraph.strong ? "**" : "";
        out_ += mark + shown(paragraph.text) + mark + shown(paragraph.rest) + "\n\n";
    }
    void write(const List& list) {
        for (const Item& item : list.items) {
            out_ += (markdown_ ? "- " : "  ") + shown(item.text) + "\n";
            if (!item.log.empty()) out_ += "\n" + markdown_block("text", secrets_(item.log), "  ");
        }
        out_ += "\n";
    }
    void write(const Code& code) {
        out_ += markdown_ ? markdown_block(code.language, secrets_(code.text)) + "\n"
                          : printable(secrets_(code.text)) + "\n\n";
    }
    void write(const Figure& figure) {
        if (!figure.text.empty()) write(Paragraph{figure.text});
    }
    void write(const Facts& facts) {
        List list;
        for (const auto& [name, value] : facts.rows) list.items.push_back({name + ": " + value});
        write(list);
    }
    void write(const Table& table) {
        std::vector<std::vector<std::string>> lines;
        for (const std::string& title : table.header) {
            if (lines.empty()) lines.emplace_back();
            lines.front().push_back(shown(title));
        }
        for (const Row& row : table.rows) {
            auto& line = lines.emplace_back();
            for (const Cell& cell : row.cells) {
                const std::string mark = markdown_ && cell.strong ? "**" : "";
                line.push_back(mark + shown(cell.text) + mark);
            }
        }
        std::vector<std::size_t> widths(table.header.size(), 0);
        for (const auto& line : lines)
            for (std::size_t i = 0; i < line.size() && !markdown_; ++i)
                widths[i] = std::max(widths[i], width_of(line[i]));
        for (std::size_t k = 0; k < lines.size(); ++k) {
            std::string text = markdown_ ? "|" : " ";
            for (std::size_t i = 0; i < lines[k].size(); ++i)
                text += markdown_ ? " " + lines[k][i] + " |"
                                  : " " + lines[k][i] +
                                        std::string(widths[i] + 1 - width_of(lines[k][i]), ' ');
            text.erase(text.find_last_not_of(' ') + 1);
            out_ += text + "\n";
            if (k > 0 || !markdown_) continue;
            out_ += "|";
            for (std::size_t i = 0; i < table.header.size(); ++i)
                out_ += table.has_words(i) ? "---|" : "---:|";
            out_ += "\n";
        }
        out_ += "\n";
    }

    const Redactor& secrets_;
    bool markdown_;
    std::string out_{};
};

class HtmlWriter {
public:
    explicit HtmlWriter(const Redactor& secrets) : secrets_(secrets) {}

    std::string written(const Document& document) {
        std::string contents = "<nav aria-label=\"contents\"><ul>\n";
        std::size_t place = 0;
        for (const Section& section : document.sections) {
            out_ += fmt::format("<section{2} aria-labelledby=\"{0}\"><h2 id=\"{0}\">{1}</h2>\n",
                                section.id, shown(section.title),
                                section.kind.empty() ? "" : " class=\"" + section.kind + "\"");
            for (const Block& block : section.blocks)
                std::visit([this](const auto& one) { write(one); }, block);
            out_ += "</section>\n";
            if (section.id == "verdict") place = out_.size();
            else
                contents += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id,
                                        shown(section.title));
        }
        return out_.insert(place, contents + "</ul></nav>\n");
    }

private:
    [[nodiscard]] std::string shown(const std::string& text) const {
        return html_text(secrets_(text));
    }
    /// No line ends before a `%`.
    [[nodiscard]] std::string prose(const std::string& text) const {
        std::string result = shown(text);
        for (auto at = result.find(" %"); at != std::string::npos; at = result.find(" %", at))
            result.replace(at, 1, "&nbsp;");
        return result;
    }
    void write(const Heading& heading) { out_ += "<h3>" + shown(heading.text) + "</h3>\n"; }
    void write(const Paragraph& paragraph) {
        const std::string text = prose(paragraph.text);
        out_ += "<p>" + (paragraph.strong ? "<strong>" + text + "</strong>" : text) +
                shown(paragraph.rest) + "</p>\n";
    }
    void write(const List& list) {
        out_ += "<ul>\n";
        for (const Item& item : list.items)
            out_ += "<li>" + prose(item.text) +
                    (item.log.empty() ? "" : "<pre>" + shown(item.log) + "</pre>") + "</li>\n";
        out_ += "</ul>\n";
    }
    void write(const Code& code) {
        if (code.id.empty()) {
            out_ += "<pre>" + shown(code.text) + "</pre>\n";
            return;
        }
        out_ += fmt::format(
            "<pre id=\"{0}\" tabindex=\"0\" aria-label=\"the command to serve\">{1}</pre>\n<div "
            "class=\"only-script\">"
            "<button type=\"button\" data-copy=\"{0}\">Copy the command</button></div>\n",
            code.id, shown(code.text));
    }
    void write(const Figure& figure) { out_ += figure.html; }
    void write(const Facts& facts) {
        out_ += "<dl>";
        for (const auto& [name, value] : facts.rows)
            out_ += "<div><dt>" + shown(name) + "</dt><dd>" + shown(value) + "</dd></div>\n";
        out_ += "</dl>\n";
    }
    void write(const Table& table) {
        if (table.text_only) return;
        const std::string title = shown(table.title);
        out_ += fmt::format(
            "<div class=\"wide\" tabindex=\"0\" role=\"region\" "
            "aria-label=\"{0}\"><table aria-label=\"{0}\"{1}{2}><thead><tr>",
            title, table.id.empty() ? "" : " id=\"" + table.id + "\"",
            table.sortable ? " class=\"sortable\"" : "");
        for (std::size_t i = 0; i < table.header.size(); ++i)
            out_ +=
                fmt::format("<th scope=\"col\"{}>{}</th>",
                            table.has_words(i) ? " class=\"text\"" : "", shown(table.header[i]));
        out_ += "</tr></thead><tbody>\n";
        for (const Row& row : table.rows) {
            out_ += "<tr" + (row.kind.empty() ? "" : " class=\"" + row.kind + "\"") +
                    (row.of ? fmt::format(" data-of=\"{}\"", *row.of) : "") + ">";
            for (std::size_t i = 0; i < row.cells.size(); ++i) {
                const Cell& cell = row.cells[i];
                out_ += "<td";
                if (cell.bad) out_ += " class=\"broken\"";
                if (table.has_words(i)) out_ += " class=\"text\"";
                else if (table.sortable)
                    out_ += cell.sorted_by ? fmt::format(" data-value=\"{:.9g}\"", *cell.sorted_by)
                                           : " data-value=\"\"";
                out_ +=
                    ">" +
                    (cell.strong ? "<strong>" + shown(cell.text) + "</strong>" : shown(cell.text)) +
                    "</td>";
            }
            out_ += "</tr>\n";
        }
        out_ += "</tbody></table></div>\n";
    }

    const Redactor& secrets_;
    std::string out_{};
};

}  // namespace

std::string markdown_of(const Document& document, const Redactor& secrets) {
    return TextWriter(secrets, true).written(document);
}
std::string text_of(const Document& document, const Redactor& secrets) {
    return TextWriter(secrets, false).written(document);
}
std::string html_of(const Document& document, const Redactor& secrets) {
    return HtmlWriter(secrets).written(document);
}

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
    if (contains("`*[|", c)) return true;
    if (c == '\\')
        return rest.size() == 1 || is(1, [](unsigned char next) { return std::ispunct(next); });
    if (c == '<')
        return is(1, [](unsigned char next) {
            return std::isalpha(next) != 0 || contains("/!?", static_cast<char>(next));
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
        return before == npos || !letter(before) || !letter(text.find_first_not_of('_', at));
    }
    if (at > 0) return false;
    if (contains("#=>", c)) return true;
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
    const bool mail = contains(text.substr(at + 1, end - at - 1), '.');
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
