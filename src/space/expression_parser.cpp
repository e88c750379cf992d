// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/space/expression_parser.hpp"

#include "servetune/error.hpp"

namespace servetune {

Expression ExpressionParser::parse() {
    if (text_.size() > longest)
        throw ParseError("an expression has at most " + std::to_string(longest) +
                         " characters, got " + std::to_string(text_.size()));
    // A message that quotes it would end there.
    if (text_.find('\0') != std::string_view::npos)
        throw ParseError("an expression has no zero bytes");
    result_.root_ = disjunction();
    skip_space();
    if (at_ < text_.size()) fail("an operator or the end");
    return std::move(result_);
}

std::size_t ExpressionParser::comparison() {
    const std::size_t left = sum();
    if (word("in")) return membership(left);
    if (word("not")) {
        if (!word("in")) fail("'in' after 'not'");
        return node(Kind::logical_not, {membership(left)});
    }
    static constexpr std::pair<std::string_view, Kind> operators[] = {
        {"==", Kind::equal},         {"!=", Kind::not_equal}, {"<=", Kind::less_equal},
        {">=", Kind::greater_equal}, {"<", Kind::less},       {">", Kind::greater}};
    for (const auto& [symbol, kind] : operators)
        if (symbol_is(symbol)) return node(kind, {left, sum()});
    return left;
}

std::size_t ExpressionParser::term() {
    skip_space();
    if (symbol_is("(")) {
        const std::size_t inner = disjunction();
        if (!symbol_is(")")) fail("')'");
        return inner;
    }
    if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) return quoted();
    if (at_ < text_.size() && (digit(text_[at_]) || text_[at_] == '.')) return numeral();
    if (at_ < text_.size() && starts_name(text_[at_])) return name();
    fail("a number, a 'string', a name or '('");
}

std::size_t ExpressionParser::numeral() {
    std::size_t end = at_;
    while (end < text_.size() &&
           (digit(text_[end]) || text_[end] == '.' || text_[end] == 'e' || text_[end] == 'E' ||
            ((text_[end] == '-' || text_[end] == '+') &&
             (text_[end - 1] == 'e' || text_[end - 1] == 'E'))))
        ++end;
    const auto value = real_of(text_.substr(at_, end - at_));
    if (!value) fail("a number");
    at_ = end;
    return literal(*value);
}

std::size_t ExpressionParser::name() {
    const std::size_t start = at_;
    while (at_ < text_.size() &&
           (starts_name(text_[at_]) || digit(text_[at_]) || text_[at_] == '.'))
        ++at_;
    const std::string text(text_.substr(start, at_ - start));
    if (text == "true" || text == "false") return literal(text == "true");
    if (text == "and" || text == "or" || text == "not" || text == "in") {
        at_ = start;
        fail("a number, a 'string', a name or '('");
    }
    std::size_t index = 0;
    while (index < result_.names_.size() && result_.names_[index] != text) ++index;
    if (index == result_.names_.size()) result_.names_.push_back(text);
    const std::size_t made = node(Kind::name, {});
    result_.nodes_[made].index = index;
    return made;
}

}  // namespace servetune
