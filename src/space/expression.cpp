// SPDX-License-Identifier: Apache-2.0
#include "servetune/expression.hpp"
#include "servetune/detail/base/ranges.hpp"

#include <cctype>

namespace servetune {

std::vector<std::pair<std::string, Value>> Expression::values_compared() const {
    std::vector<std::pair<std::string, Value>> found;
    for (const Node& node : nodes_) {
        if (node.kind != Kind::equal && node.kind != Kind::not_equal && node.kind != Kind::in)
            continue;
        for (std::size_t i = 1; i < node.operands.size(); ++i) {
            const Node* named = &nodes_[node.operands.front()];
            const Node* other = &nodes_[node.operands[i]];
            if (named->kind == Kind::literal) std::swap(named, other);
            if (named->kind == Kind::name && other->kind == Kind::literal &&
                !is_unset(other->literal))
                found.emplace_back(names_[named->index], other->literal);
        }
    }
    return found;
}

bool Expression::boolean(const Value& value) const {
    if (const auto* result = std::get_if<bool>(&value)) return *result;
    mismatch("true or false", value);
}

double Expression::number(const Value& value) const {
    if (const auto result = number_of(value)) return *result;
    mismatch("a number", value);
}

std::optional<bool> Expression::compared(Kind kind, const Value& left, const Value& right) const {
    if (kind == Kind::equal || kind == Kind::not_equal) {
        const auto a = number_of(left);
        const auto b = number_of(right);
        const bool same = a && b ? *a == *b : left == right;
        return same == (kind == Kind::equal);
    }
    const double a = number(left);
    const double b = number(right);
    switch (kind) {
        case Kind::less: return a < b;
        case Kind::less_equal: return a <= b;
        case Kind::greater: return a > b;
        default: return a >= b;
    }
}

std::string Expression::spelled(std::size_t at) const {
    static constexpr std::string_view symbols[] = {"",  "",   "-",  "+",   "-",   "*",
                                                   "/", "%",  "==", "!=",  "<",   "<=",
                                                   ">", ">=", "in", "not", "and", "or"};
    const Node& node = nodes_[at];
    const auto operand = [&](std::size_t i) {
        const bool leaf =
            nodes_[node.operands[i]].operands.empty();  // everything else is put in parentheses
        return leaf ? spelled(node.operands[i]) : "(" + spelled(node.operands[i]) + ")";
    };
    const std::string symbol(symbols[std::size_t(node.kind)]);
    switch (node.kind) {
        case Kind::literal:
            if (is_unset(node.literal)) return "unknown";
            if (const auto* text = std::get_if<std::string>(&node.literal)) {
                const char quote = text->find('\'') == std::string::npos ? '\'' : '"';
                return quote + *text + quote;
            }
            return text_of(node.literal);
        case Kind::name: return names_[node.index];
        case Kind::negate: return "-" + operand(0);
        case Kind::logical_not: return "not " + operand(0);
        case Kind::in: {
            std::string list;
            for (std::size_t i = 1; i < node.operands.size(); ++i)
                list.append(i == 1 ? "" : ", ").append(operand(i));
            return operand(0) + " in [" + list + "]";
        }
        default: return operand(0) + " " + symbol + " " + operand(1);
    }
}

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

Expression parse_expression(std::string_view text) { return ExpressionParser(text).parse(); }

Expression ExpressionParser::parse() {
    if (text_.size() > longest)
        throw ParseError("an expression has at most " + std::to_string(longest) +
                         " characters, got " + std::to_string(text_.size()));
    // A message that quotes it would end there.
    if (contains(text_, '\0')) throw ParseError("an expression has no zero bytes");
    result_.root_ = disjunction();
    skip_space();
    if (at_ < text_.size()) fail("'and', 'or', one of == != <= >= < > or the end");
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
