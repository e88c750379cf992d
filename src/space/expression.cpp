// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/space/expression.hpp"

namespace servetune {

std::optional<std::pair<std::string, std::string>> Expression::names_demanded_equal() const {
    std::vector<std::pair<std::string, std::string>> found;
    std::vector<std::size_t> parts{root_};
    while (!parts.empty()) {
        const Node& node = nodes_[parts.back()];
        parts.pop_back();
        if (node.kind == Kind::logical_or)
            parts.insert(parts.end(), node.operands.begin(), node.operands.end());
        if (node.kind != Kind::equal) continue;
        const Node &left = nodes_[node.operands.front()], &right = nodes_[node.operands.back()];
        if (left.kind == Kind::name && right.kind == Kind::name)
            found.emplace_back(names_[left.index], names_[right.index]);
    }
    return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

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
    const std::string symbol(symbols[static_cast<std::size_t>(node.kind)]);
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

}  // namespace servetune
