// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace servetune {

/// The lines of a text from a place on, each without the blanks and quotation marks (`>`) around
/// it.
class PrintedLines {
public:
    PrintedLines(std::string_view text, std::size_t at) : text_(text), at_(at), begin_(at) {}

    /// The next line; nothing at the end of the text.
    std::optional<std::string_view> next() {
        if (at_ >= text_.size()) return std::nullopt;
        begin_ = at_;
        const auto end = text_.find('\n', at_);
        std::string_view line = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
        at_ = end == std::string_view::npos ? text_.size() : end + 1;
        const auto first = line.find_first_not_of("> \t");
        return first == std::string_view::npos ? std::string_view() : trimmed(line.substr(first));
    }

    [[nodiscard]] std::size_t begin() const { return begin_; }  ///< of the last line
    [[nodiscard]] std::size_t end() const { return at_; }       ///< behind the last line

private:
    std::string_view text_;
    std::size_t at_, begin_;
};

/// Whether a line ends whatever a benchmark printed above it: a fence, or a result block.
inline bool ends_printed_output(std::string_view line) {
    return line.starts_with("```") || line.starts_with("~~~") ||
           line.find("Serving Benchmark Result") != std::string_view::npos;
}

/// The cells of a row `| a | b |`, or of one drawn with `│` or `┃`, without blanks and without the
/// marks of bold type and of code around them. None: no row, or one of more cells than any tool
/// prints.
inline std::vector<std::string_view> cells_of_row(std::string_view line) {
    constexpr std::size_t most = 64;
    constexpr std::array<std::string_view, 3> bars{"|", "│", "┃"};
    const auto bar = std::find_if(bars.begin(), bars.end(),
                                  [&](std::string_view one) { return line.starts_with(one); });
    if (bar == bars.end()) return {};
    line.remove_prefix(bar->size());
    std::vector<std::string_view> cells;
    while (!trimmed(line).empty()) {
        if (cells.size() == most) return {};
        const auto end = line.find(*bar);
        std::string_view cell = trimmed(line.substr(0, end));
        while (cell.size() > 1 && cell.front() == cell.back() &&
               (cell.front() == '*' || cell.front() == '`')) {
            cell.remove_prefix(1);
            cell.remove_suffix(1);
        }
        cells.push_back(trimmed(cell));
        if (end == std::string_view::npos) break;
        line.remove_prefix(end + bar->size());
    }
    return cells;
}

/// Whether a row is the rule below a header: `| --- | ---: |`, `|------|`.
inline bool is_rule(const std::vector<std::string_view>& cells) {
    return !cells.empty() && std::all_of(cells.begin(), cells.end(), [](std::string_view cell) {
        return !cell.empty() && cell.find_first_not_of("-:") == std::string_view::npos;
    });
}

/// The digits that a text begins with, at most nine; nothing where it begins with none or goes on
/// with more.
inline std::optional<std::size_t> leading_count(std::string_view& text) {
    std::size_t digits = 0, count = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9')
        if (++digits > 9) return std::nullopt;
        else count = 10 * count + static_cast<std::size_t>(text[digits - 1] - '0');
    if (digits == 0) return std::nullopt;
    text.remove_prefix(digits);
    return count;
}

}  // namespace servetune
