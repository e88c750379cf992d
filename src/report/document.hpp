// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/redactor.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace servetune {

// A report as a value: built once, written as Markdown, as text of a terminal and as HTML. All
// texts in it may be of others: the writers take secrets out and escape.

struct Heading {
    std::string text;
};
struct Paragraph {
    std::string text;
    bool strong = false;
};
struct Item {
    std::string text;
    std::string log{};  ///< lines below it, as they are
};
struct List {
    std::vector<Item> items;
};
struct Cell {
    Cell(std::string of) : text(std::move(of)) {}  // NOLINT: a cell is a text
    Cell(const char* of) : text(of) {}             // NOLINT
    Cell(std::string of, std::optional<double> number) : text(std::move(of)), sorted_by(number) {}

    std::string text;
    std::optional<double> sorted_by{};  ///< in a table that can be sorted
    bool strong = false;
};
struct Row {
    std::vector<Cell> cells;
    std::string kind{};  ///< a class of the page
    std::string data{};  ///< for the page's script: `of="3"` is the attribute `data-of`
};
struct Table {
    std::string title;
    std::vector<std::string> header;
    std::vector<Row> rows{};
    std::string id{};
    bool sortable = false;
    bool folded = false;    ///< on a page opened on demand: it has the data of a drawing
    std::size_t texts = 1;  ///< leading columns of words; the others are figures

    [[nodiscard]] bool has_words(std::size_t column) const {
        return column < texts || header[column] == "verdict" || header[column] == "the first";
    }
};
struct Code {
    std::string language, text;
    std::string id{};  ///< of one that can be copied
};
/// A drawing or a field of the page, as HTML that is safe. Other writers leave it out.
struct Figure {
    std::string html;
};
using Block = std::variant<Heading, Paragraph, List, Table, Code, Figure>;

struct Section {
    std::string id, title;
    std::vector<Block> blocks{};
    std::string kind{};      ///< classes on the page; those with `brief` are printed on paper
    bool page_only = false;  ///< text leaves it out

    void say(std::string text) {
        if (!text.empty()) blocks.emplace_back(Paragraph{std::move(text)});
    }
    void draw(std::string html) {
        if (!html.empty()) blocks.emplace_back(Figure{std::move(html)});
    }
    void list(std::vector<Item> items) {
        if (!items.empty()) blocks.emplace_back(List{std::move(items)});
    }
    void list(const std::vector<std::string>& texts) {
        list(std::vector<Item>(texts.begin(), texts.end()));
    }
    void show(Table table) {
        if (!table.rows.empty()) blocks.emplace_back(std::move(table));
    }
};

struct Document {
    std::string title;
    std::vector<Section> sections{};

    /// Sections without a block are left out.
    void add(Section section) {
        if (!section.blocks.empty()) sections.push_back(std::move(section));
    }
};

std::string markdown_of(const Document& document, const Redactor& secrets);
/// For a terminal: tables with even columns, nothing escaped but what a terminal would act on.
std::string text_of(const Document& document, const Redactor& secrets);
/// The sections, and the list that leads to them.
struct HtmlContent {
    std::string contents, body;
};
HtmlContent html_of(const Document& document, const Redactor& secrets);

}  // namespace servetune
