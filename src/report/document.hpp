// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/redactor.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace servetune {

/// Any text as text of an HTML page, in an element or in an attribute: nothing in it is markup, and
/// what a terminal or a reader could act on stands as `\u001b` (detail/base/printable.hpp).
std::string html_text(std::string_view text);

/// JSON as the content of a script element: no `<` in it can end the element.
std::string html_json(std::string_view json);

/// Text of others in a paragraph, a list or a table of Markdown, in one line, as plain text: no
/// HTML, no link, no code, no cell of a table ends in it. What CommonMark and GitHub would act on
/// stands behind a backslash, or a comment parts it; neither is shown.
std::string markdown_text(std::string_view text);

/// A block of code, its fence longer than any run of backticks inside. `indent` stands before each
/// line, as in a list; ends with a line end.
std::string markdown_block(std::string_view language, std::string_view text,
                           std::string_view indent = "");

// A report as a value: built once, written as Markdown, as text of a terminal and as HTML. All
// texts in it may be of others: the writers take secrets out and escape.

struct Heading {
    std::string text;
};
struct Paragraph {
    std::string text;
    bool strong = false;
    std::string rest{};  ///< goes on in plain letters
};
struct Item {
    std::string text;
    std::string log{};  ///< lines below it, as they are
};
struct List {
    std::vector<Item> items;
};
/// What is known, by name: tiles on the page.
struct Facts {
    std::vector<std::pair<std::string, std::string>> rows{};
};
struct Cell {
    Cell(std::string of) : text(std::move(of)) {}  // NOLINT: a cell is a text
    Cell(const char* of) : text(of) {}             // NOLINT
    Cell(std::string of, std::optional<double> number) : text(std::move(of)), sorted_by(number) {}

    std::string text;
    std::optional<double> sorted_by{};  ///< in a table that can be sorted
    bool strong = false;
    bool bad = false;
};
struct Row {
    std::vector<Cell> cells;
    std::string kind{};               ///< a class of the page
    std::optional<std::size_t> of{};  ///< for the page's script: place of the configuration
};
struct Table {
    std::string title;
    std::vector<std::string> header;
    std::vector<Row> rows{};
    std::string id{};
    bool sortable = false;
    bool text_only = false;  ///< the page shows a drawing in its place
    std::size_t texts = 1;   ///< leading columns of words; the others are figures

    [[nodiscard]] bool has_words(std::size_t column) const {
        return column < texts || header[column] == "verdict" || header[column] == "the first";
    }
};
struct Code {
    std::string language, text;
    std::string id{};  ///< of one that can be copied
};
/// A drawing or a field of the page, as HTML that is safe, and what stands in its place in text.
struct Figure {
    std::string html;
    std::string text{};
};
using Block = std::variant<Heading, Paragraph, List, Facts, Table, Code, Figure>;

struct Section {
    std::string id, title;
    std::vector<Block> blocks{};
    std::string kind{};  ///< classes on the page; those with `brief` are printed on paper
    bool vague = false;  ///< it says that nothing is known, which only who asks wants to hear

    void say(std::string text) {
        if (!text.empty()) blocks.emplace_back(Paragraph{std::move(text)});
    }
    void draw(std::string html, std::string text = "") {
        if (!html.empty()) blocks.emplace_back(Figure{std::move(html), std::move(text)});
        else say(std::move(text));
    }
    void list(std::vector<Item> items) {
        if (!items.empty()) blocks.emplace_back(List{std::move(items)});
    }
    void list(const std::vector<std::string>& texts) {
        std::vector<Item> items;
        for (const std::string& text : texts) items.push_back({text});
        list(std::move(items));
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
/// The sections; below the verdict the list that leads to all others.
std::string html_of(const Document& document, const Redactor& secrets);

}  // namespace servetune
