// SPDX-License-Identifier: Apache-2.0
#include "document.hpp"

#include "base/text.hpp"
#include "escape.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace servetune {
namespace {

/// Columns that text takes: bytes that begin a character.
std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

class TextWriter {
public:
    TextWriter(const Redactor& secrets, bool markdown) : secrets_(secrets), markdown_(markdown) {}

    std::string written(const Document& document) {
        if (!document.title.empty()) head("#", document.title);
        for (const Section& section : document.sections) {
            if (section.page_only ||
                std::all_of(section.blocks.begin(), section.blocks.end(), [](const Block& block) {
                    const auto* table = std::get_if<Table>(&block);
                    return std::holds_alternative<Figure>(block) ||
                           (table != nullptr && table->folded);
                }))
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
        out_ += mark + shown(paragraph.text) + mark + "\n\n";
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
    void write(const Figure&) {}
    void write(const Table& table) {
        if (table.folded) return;
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

    HtmlContent written(const Document& document) {
        for (const Section& section : document.sections) {
            result_.contents +=
                fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id, shown(section.title));
            out_ += fmt::format("<section{2} aria-labelledby=\"{0}\"><h2 id=\"{0}\">{1}</h2>\n",
                                section.id, shown(section.title),
                                section.kind.empty() ? "" : " class=\"" + section.kind + "\"");
            for (const Block& block : section.blocks)
                std::visit([this](const auto& one) { write(one); }, block);
            out_ += "</section>\n";
        }
        return std::move(result_);
    }

private:
    [[nodiscard]] std::string shown(const std::string& text) const {
        return html_text(secrets_(text));
    }
    void write(const Heading& heading) { out_ += "<h3>" + shown(heading.text) + "</h3>\n"; }
    void write(const Paragraph& paragraph) {
        out_ += paragraph.strong ? "<p><strong>" + shown(paragraph.text) + "</strong></p>\n"
                                 : "<p>" + shown(paragraph.text) + "</p>\n";
    }
    void write(const List& list) {
        out_ += "<ul>\n";
        for (const Item& item : list.items)
            out_ += "<li>" + shown(item.text) +
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
    void write(const Table& table) {
        const std::string title = shown(table.title);
        if (table.folded)
            out_ += "<details class=\"data\"><summary>" + title + " as a table</summary>\n";
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
                    (row.data.empty() ? "" : " data-" + row.data) + ">";
            for (std::size_t i = 0; i < row.cells.size(); ++i) {
                const Cell& cell = row.cells[i];
                out_ += "<td";
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
        out_ += table.folded ? "</tbody></table></div></details>\n" : "</tbody></table></div>\n";
    }

    const Redactor& secrets_;
    HtmlContent result_{};
    std::string& out_ = result_.body;
};

}  // namespace

std::string markdown_of(const Document& document, const Redactor& secrets) {
    return TextWriter(secrets, true).written(document);
}
std::string text_of(const Document& document, const Redactor& secrets) {
    return TextWriter(secrets, false).written(document);
}
HtmlContent html_of(const Document& document, const Redactor& secrets) {
    return HtmlWriter(secrets).written(document);
}

}  // namespace servetune
