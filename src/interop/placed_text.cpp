// SPDX-License-Identifier: Apache-2.0
#include "placed_text.hpp"

#include "engine/shell_word.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace servetune {
namespace {

bool is_blank_or_end(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::string escaped_with(std::string_view text, std::string_view special, char with) {
    std::string result;
    for (const char c : text) {
        if (special.find(c) != std::string_view::npos) result += with;
        result += c;
    }
    return result;
}

std::string embedded_once(const std::string& text, Quoting quoting) {
    std::string result;
    switch (quoting) {
        case Quoting::none: return text;
        case Quoting::yaml_single: return escaped_with(text, "'", '\'');
        case Quoting::yaml_double: return escaped_with(text, "\\\"", '\\');
        case Quoting::shell_double: return escaped_with(text, "\\\"$`", '\\');
        case Quoting::unit_single: return escaped_with(text, "\\'", '\\');
        case Quoting::unit_double: return escaped_with(text, "\\\"", '\\');
        case Quoting::shell_single:
            for (const char c : text)
                result += c == '\'' ? std::string("'\\''") : std::string(1, c);
            return result;
    }
    return result;
}

/// Reads words of a text; a shell's, or those of a line of a unit.
class WordReader {
public:
    WordReader(const PlacedText& text, bool unit) : from_(text), text_(text.text), unit_(unit) {}

    std::vector<PlacedCommand> read() {
        while (at_ < text_.size()) step();
        end_command();
        return std::move(commands_);
    }

private:
    [[nodiscard]] char next(std::size_t ahead = 1) const {
        return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
    }
    [[nodiscard]] bool line_end(std::size_t at) const {
        return text_.compare(at, 1, "\n") == 0 || text_.compare(at, 2, "\r\n") == 0;
    }
    [[nodiscard]] Span place(std::size_t at) const { return from_.from[at]; }
    void begin_word() {
        if (in_word_) return;
        in_word_ = true;
        word_ = {};
        word_.within = from_.within;
        word_.unit = unit_;
        word_.file = place(at_);
        word_.value.within = from_.within;
        word_.value.expanded = from_.expanded;
    }
    /// A byte of the text becomes one of the word.
    void take(char c, std::size_t begin, std::size_t end) {
        begin_word();
        word_.value.add(c, {place(begin).begin, place(end - 1).end});
        word_.file.end = place(end - 1).end;
        word_.varies = word_.varies || (from_.expanded && c == '$');
    }
    void end_word() {
        if (!std::exchange(in_word_, false)) return;
        if (word_.quote != Quoting::none) word_.value.within.push_back(word_.quote);
        if (std::exchange(redirected_, false)) return;
        current_.words.push_back(std::move(word_));
    }
    void end_command() {
        end_word();
        if (!current_.words.empty() || !current_.array.empty())
            commands_.push_back(std::move(current_));
        current_ = {};
    }
    void quoted(char quote) {
        const std::size_t begin = at_;
        const bool whole = !in_word_;
        begin_word();
        ++at_;
        const bool escapes = quote == '"' || unit_;
        while (at_ < text_.size() && text_[at_] != quote) {
            if (escapes && text_[at_] == '\\' && at_ + 1 < text_.size()) escaped(true);
            else if (quote == '"' && !unit_ && (text_[at_] == '$' || text_[at_] == '`')) variable();
            else {
                word_.varies = word_.varies || (unit_ && (text_[at_] == '$' || text_[at_] == '%'));
                take(text_[at_], at_, at_ + 1);
                ++at_;
            }
        }
        if (at_ >= text_.size())
            throw ParseError(std::string("a quote ") + quote + " is not closed");
        word_.file.end = place(at_).end;
        ++at_;
        const bool ends =
            at_ >= text_.size() || is_blank_or_end(text_[at_]) ||
            (!unit_ && std::string_view(";&|()<>").find(text_[at_]) != std::string_view::npos);
        if (whole && ends && begin < at_)
            word_.quote = unit_ ? (quote == '"' ? Quoting::unit_double : Quoting::unit_single)
                                : (quote == '"' ? Quoting::shell_double : Quoting::shell_single);
    }
    void escaped(bool in_quotes) {
        const char c = next();
        if (line_end(at_ + 1)) {
            at_ += c == '\r' ? 3 : 2;
            if (!in_quotes && unit_) end_word();
            if (!unit_) return;
            skip_unit_comments();
            return;
        }
        if (unit_) {
            const char meant = c == 's' ? ' ' : c == 't' ? '\t' : c == 'n' ? '\n' : c;
            take(meant, at_, at_ + 2);
        } else if (in_quotes && std::string_view("\\\"$`").find(c) == std::string_view::npos) {
            take('\\', at_, at_ + 1);
            take(c, at_ + 1, at_ + 2);
        } else take(c, at_, at_ + 2);
        at_ += 2;
    }
    /// Lines of comment stand between the lines of one setting.
    void skip_unit_comments() {
        for (;;) {
            std::size_t first = text_.find_first_not_of(" \t", at_);
            if (first == std::string::npos || (text_[first] != '#' && text_[first] != ';')) return;
            const std::size_t end = text_.find('\n', first);
            at_ = end == std::string::npos ? text_.size() : end + 1;
        }
    }
    /// `$NAME`, `${...}`, `$(...)`, "`...`".
    void variable() {
        begin_word();
        word_.varies = true;
        if (text_[at_] == '`') return bracketed('`', '`');
        const char open = next();
        take('$', at_, at_ + 1);
        ++at_;
        if (open == '{') bracketed('{', '}');
        else if (open == '(') bracketed('(', ')');
    }
    void bracketed(char open, char close) {
        std::size_t depth = 0;
        do {
            if (at_ >= text_.size())
                throw ParseError(std::string("a bracket ") + open + " is not closed");
            const char c = text_[at_];
            if (c == close && depth > 0) --depth;
            else if (c == open) ++depth;
            take(c, at_, at_ + 1);
            ++at_;
        } while (depth > 0);
    }
    void here_document() {
        bool indented = text_.compare(at_, 3, "<<-") == 0;
        at_ += indented ? 3 : 2;
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
        std::string mark;
        for (; at_ < text_.size() && !is_blank_or_end(text_[at_]) &&
               std::string_view(";&|)").find(text_[at_]) == std::string_view::npos;
             ++at_)
            if (std::string_view("'\"\\").find(text_[at_]) == std::string_view::npos)
                mark += text_[at_];
        marks_.emplace_back(std::move(mark), indented);
    }
    void skip_here_documents() {
        for (const auto& [mark, indented] : std::exchange(marks_, {}))
            for (bool found = false; !found && at_ < text_.size();) {
                const std::size_t end = std::min(text_.find('\n', at_), text_.size());
                std::string_view line = std::string_view(text_).substr(at_, end - at_);
                while (indented && line.starts_with('\t')) line.remove_prefix(1);
                if (line.ends_with('\r')) line.remove_suffix(1);
                found = line == mark;
                at_ = std::min(end + 1, text_.size());
            }
    }
    void redirection() {
        if (in_word_ && std::all_of(word_.text().begin(), word_.text().end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; }))
            in_word_ = false;  // `2>`: the number of a stream
        end_word();
        if (text_.compare(at_, 3, "<<<") == 0) at_ += 3;
        else if (text_.compare(at_, 2, "<<") == 0) return here_document();
        else at_ += next() == '>' || next() == '&' || next() == '<' || next() == '|' ? 2 : 1;
        redirected_ = true;
    }
    void step() {
        const char c = text_[at_];
        if (c == '\\') {
            if (at_ + 1 < text_.size()) escaped(false);
            else ++at_;
        } else if (c == '\'' || c == '"') quoted(c);
        else if (c == '\n' && !unit_) {
            if (array_) end_word();
            else end_command();
            ++at_;
            skip_here_documents();
        } else if (is_blank_or_end(c)) {
            end_word();
            ++at_;
        } else if (unit_) {
            begin_word();
            word_.varies = word_.varies || c == '$' || c == '%';
            take(c, at_, at_ + 1);
            ++at_;
        } else if (c == '#' && !in_word_) at_ = std::min(text_.find('\n', at_), text_.size());
        else if (c == '$' || c == '`') variable();
        else if (c == '<' || c == '>') redirection();
        else if (c == '&' && next() == '>') {
            end_word();
            ++at_;
        } else if (c == '(' && in_word_ && word_.text().ends_with('=')) {
            const std::string name = word_.text().substr(
                0, word_.text().size() - (word_.text().ends_with("+=") ? 2 : 1));
            in_word_ = false;
            end_command();
            current_.array = name;
            array_ = true;
            ++at_;
        } else if (std::string_view(";&|()").find(c) != std::string_view::npos) {
            array_ = false;
            end_command();
            ++at_;
        } else {
            take(c, at_, at_ + 1);
            ++at_;
        }
    }

    const PlacedText& from_;
    const std::string& text_;
    bool unit_;
    std::size_t at_ = 0;
    bool in_word_ = false, redirected_ = false, array_ = false;
    FileWord word_{};
    PlacedCommand current_{};
    std::vector<PlacedCommand> commands_{};
    std::vector<std::pair<std::string, bool>>
        marks_{};  ///< of here-documents that begin behind this line
};

/// Whether YAML reads a plain scalar of these bytes as this very text, in a list in brackets too.
bool plain_in_yaml(std::string_view text) {
    constexpr std::string_view safe =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./+@";
    const bool word = !text.empty() && text.find_first_not_of(safe) == std::string_view::npos;
    return word && text.starts_with("--") && text != "---";
}

std::vector<std::string_view> diff_lines(std::string_view text) {
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end);
    }
    return lines;
}

}  // namespace

PlacedText PlacedText::whole_file(std::string_view text) {
    PlacedText result;
    for (std::size_t i = 0; i < text.size(); ++i) result.add(text[i], {i, i + 1});
    return result;
}

std::vector<PlacedCommand> shell_commands(const PlacedText& text) {
    return WordReader(text, false).read();
}

std::vector<FileWord> unit_words(const PlacedText& text) {
    std::vector<PlacedCommand> commands = WordReader(text, true).read();
    return commands.empty() ? std::vector<FileWord>() : std::move(commands.front().words);
}

std::string embedded(std::string text, const std::vector<Quoting>& within) {
    for (auto quoting = within.rbegin(); quoting != within.rend(); ++quoting)
        text = embedded_once(text, *quoting);
    return text;
}

std::string text_for(const std::string& text, const FileWord& like) {
    if (like.stands != FileWord::Stands::in_text) {
        if (like.quote == Quoting::yaml_single)
            return "'" + embedded_once(text, Quoting::yaml_single) + "'";
        const bool plain_entry =
            like.stands == FileWord::Stands::as_entry && !text.empty() &&
            text.find_first_not_of(
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") ==
                std::string::npos;
        if (like.quote == Quoting::none && (plain_in_yaml(text) || plain_entry)) return text;
        return "\"" + embedded_once(text, Quoting::yaml_double) + "\"";
    }
    std::string word;
    const bool plain = quoted_where_needed(text) == text;
    if (like.quote == Quoting::shell_double || like.quote == Quoting::unit_double ||
        (like.unit && !plain))
        word = "\"" +
               embedded_once(text, like.unit ? Quoting::unit_double : Quoting::shell_double) + "\"";
    else if (like.quote == Quoting::unit_single)
        word = "'" + embedded_once(text, Quoting::unit_single) + "'";
    else word = like.quote == Quoting::shell_single || !plain ? shell_quoted(text) : text;
    return embedded(word, like.within);
}

std::string unified_diff(std::string_view before, std::string_view after, const std::string& name) {
    const std::vector<std::string_view> old_lines = diff_lines(before),
                                        new_lines = diff_lines(after);
    std::size_t same = 0, tail = 0;
    const std::size_t least = std::min(old_lines.size(), new_lines.size());
    while (same < least && old_lines[same] == new_lines[same]) ++same;
    while (tail + same < least &&
           old_lines[old_lines.size() - 1 - tail] == new_lines[new_lines.size() - 1 - tail])
        ++tail;
    if (same == old_lines.size() && same == new_lines.size()) return "";
    const std::size_t rows = old_lines.size() - same - tail,
                      columns = new_lines.size() - same - tail;
    constexpr std::size_t most_cells = 4'000'000;
    const bool small =
        (rows + 1) * (columns + 1) <= most_cells;  // else the whole part in between is one change
    std::vector<std::size_t> common(small ? (rows + 1) * (columns + 1) : 0);
    const auto cell = [&](std::size_t i, std::size_t j) -> std::size_t& {
        return common[i * (columns + 1) + j];
    };
    for (std::size_t i = rows; small && i-- > 0;)
        for (std::size_t j = columns; j-- > 0;)
            cell(i, j) = old_lines[same + i] == new_lines[same + j]
                             ? cell(i + 1, j + 1) + 1
                             : std::max(cell(i + 1, j), cell(i, j + 1));
    struct Line {
        char mark;
        std::string_view text;
    };
    std::vector<Line> lines;
    for (std::size_t i = 0; i < same; ++i) lines.push_back({' ', old_lines[i]});
    for (std::size_t i = 0, j = 0; i < rows || j < columns;) {
        if (small && i < rows && j < columns && old_lines[same + i] == new_lines[same + j]) {
            lines.push_back({' ', old_lines[same + i++]});
            ++j;
        } else if (i < rows && (!small || j == columns || cell(i + 1, j) >= cell(i, j + 1)))
            lines.push_back({'-', old_lines[same + i++]});
        else lines.push_back({'+', new_lines[same + j++]});
    }
    for (std::size_t i = old_lines.size() - tail; i < old_lines.size(); ++i)
        lines.push_back({' ', old_lines[i]});
    std::string result = "--- a/" + name + "\n+++ b/" + name + "\n";
    constexpr std::size_t context = 3;
    for (std::size_t at = 0, old_at = 0, new_at = 0; at < lines.size();) {
        std::size_t first = at;
        while (first < lines.size() && lines[first].mark == ' ') ++first;
        if (first == lines.size()) break;
        const std::size_t begin = first - std::min(first - at, context);
        std::size_t last = first;
        for (std::size_t i = first; i < lines.size() && i <= last + 2 * context + 1; ++i)
            if (lines[i].mark != ' ') last = i;
        const std::size_t end = std::min(lines.size(), last + 1 + context);
        old_at += begin - at;
        new_at += begin - at;
        std::size_t olds = 0, news = 0;
        std::string body;
        for (std::size_t i = begin; i < end; ++i) {
            olds += lines[i].mark != '+' ? 1 : 0;
            news += lines[i].mark != '-' ? 1 : 0;
            body += std::string(1, lines[i].mark) + std::string(lines[i].text);
            if (!lines[i].text.ends_with('\n')) body += "\n\\ No newline at end of file\n";
        }
        const auto hunk = [](std::size_t from, std::size_t count) {
            return std::to_string(count == 0 ? from : from + 1) + "," + std::to_string(count);
        };
        result += "@@ -" + hunk(old_at, olds) + " +" + hunk(new_at, news) + " @@\n" + body;
        old_at += olds;
        new_at += news;
        at = end;
    }
    return result;
}

}  // namespace servetune
