// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "markdown.hpp"
#include "report_view.hpp"

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

namespace servetune {

/// Markdown of our own.
struct Markup {
    std::string text;
};

/// What a page shows of an argument: numbers and words of this source as they are, any other text
/// as text.
template <class Argument>
using Shown =
    std::conditional_t<std::is_arithmetic_v<Argument>, Argument,
                       std::conditional_t<std::is_convertible_v<const Argument&, const char*>,
                                          const char*, std::string>>;

/// A page of Markdown that is being written, line by line.
class MarkdownPage {
protected:
    explicit MarkdownPage(const ReportView& view)
        : view_(view), file_(view.setup.file), result_(view.recommendation) {}

    // A text is of others (names, logs, answers of servers) and is shown as plain text, wherever it
    // came from.
    [[nodiscard]] std::string shown(const std::string& text) const {
        return markdown_text(file_.secrets(text));
    }
    [[nodiscard]] std::string shown(std::string_view text) const {
        return markdown_text(file_.secrets(text));
    }
    [[nodiscard]] static const char* shown(const char* literal) { return literal; }
    [[nodiscard]] static std::string shown(const Markup& ours) { return ours.text; }
    template <class Number>
    requires std::is_arithmetic_v<Number>
    [[nodiscard]] static Number shown(Number number) { return number; }
    template <class... Arguments>
    void line(fmt::format_string<Shown<Arguments>...> format, const Arguments&... arguments) {
        fmt::format_to(std::back_inserter(out_), format, shown(arguments)...);
        out_ += '\n';
    }

    void block(std::string_view language, const std::string& text) {
        out_ += markdown_block(language, text) + '\n';
    }

    [[nodiscard]] static std::string difference(const Configuration& configuration,
                                                const Configuration& base) {
        const std::string text = difference_text(configuration, base);
        return text.empty() ? "the default" : text;
    }

    const ReportView& view_;
    const StudyFile& file_;
    const Recommendation& result_;
    std::string out_{};
};

}  // namespace servetune
