// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/space/expression.hpp"
#include "servetune/error.hpp"

#include <cctype>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// Recursive descent over the grammar above; one object reads one text.
class ExpressionParser {
public:
    explicit ExpressionParser(std::string_view text) : text_(text) {
        result_.text_ = std::string(text);
    }

    Expression parse();

private:
    using Kind = Expression::Kind;
    // Bounds on the stack that parsing and evaluation need, far above any rule that people write.
    static constexpr int deepest = 200;
    static constexpr std::size_t longest = 10'000;

    std::size_t disjunction() {
        std::size_t left = conjunction();
        while (word("or")) left = node(Kind::logical_or, {left, conjunction()});
        return left;
    }
    std::size_t conjunction() {
        std::size_t left = negation();
        while (word("and")) left = node(Kind::logical_and, {left, negation()});
        return left;
    }
    std::size_t negation() {
        const Depth depth(*this);
        return word("not") ? node(Kind::logical_not, {negation()}) : comparison();
    }
    std::size_t comparison();
    std::size_t membership(std::size_t left) {
        if (!symbol_is("[")) fail("'[' after 'in'");
        std::vector<std::size_t> operands{left};
        do operands.push_back(sum());
        while (symbol_is(","));
        if (!symbol_is("]")) fail("',' or ']'");
        return node(Kind::in, std::move(operands));
    }
    std::size_t sum() {
        std::size_t left = product();
        for (;;) {
            if (symbol_is("+")) left = node(Kind::add, {left, product()});
            else if (symbol_is("-")) left = node(Kind::subtract, {left, product()});
            else return left;
        }
    }
    std::size_t product() {
        std::size_t left = signed_term();
        for (;;) {
            if (symbol_is("*")) left = node(Kind::multiply, {left, signed_term()});
            else if (symbol_is("/")) left = node(Kind::divide, {left, signed_term()});
            else if (symbol_is("%")) left = node(Kind::modulo, {left, signed_term()});
            else return left;
        }
    }
    std::size_t signed_term() {
        const Depth depth(*this);
        return symbol_is("-") ? node(Kind::negate, {signed_term()}) : term();
    }
    std::size_t term();
    std::size_t quoted() {
        const char quote = text_[at_];
        const auto end = text_.find(quote, at_ + 1);
        if (end == std::string_view::npos) fail("a closing quote");
        const std::string content(text_.substr(at_ + 1, end - at_ - 1));
        at_ = end + 1;
        return literal(content);
    }
    std::size_t numeral();
    std::size_t name();

    std::size_t node(Kind kind, std::vector<std::size_t> operands) {
        result_.nodes_.push_back({kind, {}, 0, std::move(operands)});
        return result_.nodes_.size() - 1;
    }
    std::size_t literal(Value value) {
        const std::size_t made = node(Kind::literal, {});
        result_.nodes_[made].literal = std::move(value);
        return made;
    }

    void skip_space() {
        while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
            ++at_;
    }
    bool symbol_is(std::string_view symbol) {
        skip_space();
        if (text_.substr(at_, symbol.size()) != symbol) return false;
        at_ += symbol.size();
        return true;
    }
    bool word(std::string_view wanted) {
        skip_space();
        const std::size_t end = at_ + wanted.size();
        if (text_.substr(at_, wanted.size()) != wanted) return false;
        if (end < text_.size() &&
            (starts_name(text_[end]) || digit(text_[end]) || text_[end] == '.'))
            return false;
        at_ = end;
        return true;
    }
    static bool digit(char c) { return c >= '0' && c <= '9'; }
    static bool starts_name(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    }

    [[noreturn]] void fail(std::string_view wanted) const {
        const std::string got =
            at_ < text_.size() ? "'" + std::string(text_.substr(at_, 12)) + "'" : "the end";
        throw ParseError("'" + std::string(text_) + "': column " + std::to_string(at_ + 1) + ": " +
                         std::string(wanted) + " wanted, got " + got);
    }

    struct Depth {
        explicit Depth(ExpressionParser& parser) : parser_(parser) {
            if (++parser_.depth_ > deepest)
                parser_.fail("at most " + std::to_string(deepest) + " nested terms");
        }
        ~Depth() { --parser_.depth_; }
        Depth(const Depth&) = delete;
        Depth& operator=(const Depth&) = delete;
        ExpressionParser& parser_;
    };

    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0;
    Expression result_;
};

/// Reads the grammar of expression.hpp. Throws ParseError with the column (from 1), what was wanted
/// there and what was got.
inline Expression parse_expression(std::string_view text) { return ExpressionParser(text).parse(); }

}  // namespace servetune
