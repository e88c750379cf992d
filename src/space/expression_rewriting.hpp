// SPDX-License-Identifier: Apache-2.0
#pragma once

// Expressions made of expressions: with constants in place of names, without what constants decide,
// for one engine only.

#include "servetune/expression.hpp"

namespace servetune {

inline Expression Expression::with_constant(std::string_view name, const Value& value) const {
    Expression result = *this;
    std::size_t held = 0;
    while (held < names_.size() && names_[held] != name) ++held;
    if (held == names_.size()) return result;
    result.names_.erase(result.names_.begin() + std::ptrdiff_t(held));
    for (Node& node : result.nodes_) {
        if (node.kind != Kind::name || node.index < held) continue;
        if (node.index > held) --node.index;
        else node = {Kind::literal, value};
    }
    result.text_ = result.spelled(result.root_);
    return result;
}

/// What a part comes to when nothing is known of the names.
inline Expression::Folded Expression::folded(std::size_t at) const {
    const Node& node = nodes_[at];
    const auto nothing_known = [](std::size_t) -> const Value* { return nullptr; };
    if (node.kind == Kind::literal) return {true, value_at(at, nothing_known)};
    if (node.kind == Kind::name) return {};
    std::vector<Folded> operands;
    for (const std::size_t operand : node.operands) operands.push_back(folded(operand));
    if (node.kind == Kind::logical_and || node.kind == Kind::logical_or) {
        const Value decisive = node.kind == Kind::logical_or;
        for (const Folded& operand : operands)
            if (operand.fixed && operand.value == decisive) return operand;
    } else {
        const auto is_null = [](const Folded& operand) { return operand.fixed && !operand.value; };
        if (is_null(operands.front()) || (node.kind != Kind::in && is_null(operands.back())))
            return {true, std::nullopt};
    }
    for (const Folded& operand : operands)
        if (!operand.fixed) return {};
    return {true, value_at(at, nothing_known)};
}

inline std::size_t Expression::copied(std::size_t at, Expression& into) const {
    Node node = nodes_[at];
    for (std::size_t& operand : node.operands) operand = copied(operand, into);
    if (node.kind == Kind::name) {
        std::size_t index = 0;
        while (index < into.names_.size() && into.names_[index] != names_[node.index]) ++index;
        if (index == into.names_.size()) into.names_.push_back(names_[node.index]);
        node.index = index;
    }
    into.nodes_.push_back(std::move(node));
    return into.nodes_.size() - 1;
}

/// `unknown_passes_as`: the answer of a part with which the rule is not broken; under `not` it is
/// the other one.
inline std::size_t Expression::without_constants(std::size_t at, bool unknown_passes_as,
                                                 Expression& into) const {
    const auto literal = [&](bool value) {
        into.nodes_.push_back({Kind::literal, value});
        return into.nodes_.size() - 1;
    };
    const Node& node = nodes_[at];
    if (const Folded whole = folded(at); whole.fixed)
        return literal(whole.value ? boolean(*whole.value) : unknown_passes_as);
    const bool combines = node.kind == Kind::logical_and || node.kind == Kind::logical_or ||
                          node.kind == Kind::logical_not;
    if (!combines) return copied(at, into);
    const auto value_of = [&](std::size_t made) {
        return std::get_if<bool>(&into.nodes_[made].literal);
    };
    if (node.kind == Kind::logical_not) {
        const std::size_t operand = without_constants(node.operands[0], !unknown_passes_as, into);
        if (const bool* value = value_of(operand)) return literal(!*value);
        into.nodes_.push_back({Kind::logical_not, {}, 0, {operand}});
        return into.nodes_.size() - 1;
    }
    const bool decisive = node.kind == Kind::logical_or;
    const std::size_t left = without_constants(node.operands[0], unknown_passes_as, into);
    if (const bool* value = value_of(left))
        return *value == decisive ? left
                                  : without_constants(node.operands[1], unknown_passes_as, into);
    const std::size_t right = without_constants(node.operands[1], unknown_passes_as, into);
    if (const bool* value = value_of(right)) return *value == decisive ? right : left;
    into.nodes_.push_back({node.kind, {}, 0, {left, right}});
    return into.nodes_.size() - 1;
}

inline Expression Expression::simplified_rule() const {
    Expression parts;
    parts.root_ = without_constants(root_, true, parts);
    Expression result;  // only what is left of it, with the names that it still mentions
    result.root_ = parts.copied(parts.root_, result);
    result.text_ = result.spelled(result.root_);
    return result;
}

inline Expression Expression::only_if(const std::string& name, const Value& value) const {
    Expression result = *this;
    std::size_t index = 0;
    while (index < result.names_.size() && result.names_[index] != name) ++index;
    if (index == result.names_.size()) result.names_.push_back(name);
    const std::size_t first = result.nodes_.size();
    result.nodes_.push_back({Kind::name, {}, index, {}});
    result.nodes_.push_back({Kind::literal, value});
    result.nodes_.push_back({Kind::not_equal, {}, 0, {first, first + 1}});
    result.nodes_.push_back({Kind::logical_or, {}, 0, {first + 2, root_}});
    result.root_ = first + 3;
    result.text_ = result.spelled(result.root_);
    return result;
}

}  // namespace servetune
