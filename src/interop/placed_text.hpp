// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Bytes of a file, from `begin` up to `end`.
struct Span {
    std::size_t begin = 0, end = 0;
};

/// How a text stands in the one around it.
enum class Quoting {
    none,
    yaml_single,
    yaml_double,
    shell_single,
    shell_double,
    unit_single,
    unit_double
};

/// A text that a file holds, perhaps in quotes or folded: for each byte the bytes of the file that
/// make it.
struct PlacedText {
    std::string text{};
    std::vector<Span> from{};  ///< one a byte of `text`
    std::vector<Quoting>
        within{};  ///< outermost first: what a text has to be escaped for that is put in here
    bool expanded = false;  ///< `$` anywhere in it stands for something else, also in single quotes
    void add(char c, Span place) {
        text += c;
        from.push_back(place);
    }
    [[nodiscard]] static PlacedText whole_file(std::string_view text);
};

/// A word of a command in a file.
struct FileWord {
    enum class Stands {
        in_text,   ///< among others in one text
        as_item,   ///< an item of a YAML list
        as_entry,  ///< `key: value` of a YAML mapping: `--key=value`
    };
    PlacedText value{};   ///< what the program gets
    Span file{};          ///< with its own quotes; of an entry its value
    bool varies = false;  ///< a part of it is known only where it runs
    Stands stands = Stands::in_text;
    Quoting quote = Quoting::none;  ///< its own
    std::vector<Quoting> within{};  ///< of the text that it stands in
    std::size_t group = 0;          ///< words of one list, text or mapping have one number
    bool in_flow = false;           ///< of an item: `[a, b]`
    bool unit = false;              ///< in a text of systemd
    Span key{};                     ///< of an entry

    [[nodiscard]] const std::string& text() const { return value.text; }
};

/// A simple command of a shell, or the words of an array `NAME=( ... )`.
struct PlacedCommand {
    std::string array{};  ///< its name; empty: a command
    std::vector<FileWord> words{};
};

/// The commands of a shell text, in order. Comments and here-documents are passed over; words that
/// only the shell knows (`$X`, `$(...)`) vary. Throws ParseError for a quote or bracket that is not
/// closed.
std::vector<PlacedCommand> shell_commands(const PlacedText& text);
/// The words of a line of a systemd unit, with its continuation lines (systemd.service(5)).
std::vector<FileWord> unit_words(const PlacedText& text);

/// `text` so that it can stand in the place of `old`, or beside it as a word of its own.
std::string text_for(const std::string& text, const FileWord& like);
/// Escaped for the texts around it.
std::string embedded(std::string text, const std::vector<Quoting>& within);

/// The changed lines as a unified diff with three lines of context; empty: none.
std::string unified_diff(std::string_view before, std::string_view after, const std::string& name);

}  // namespace servetune
