// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <cstddef>
#include <utility>
#include <vector>

namespace servetune {

/// A condition over parameters, parsed once (`parse_expression`) and evaluated many times.
///
///     max_num_batched_tokens >= max_num_seqs
///     enable_chunked_prefill or max_num_batched_tokens >= 32768
///     kv_cache_dtype not in ['fp8', 'fp8_e4m3'] and tensor_parallel_size * pipeline_parallel_size <= 8
///
/// Grammar, weakest first: `or`, `and`, `not`, one of `== != < <= > >= in [..] not in [..]`, `+ -`,
/// `* / %`, unary `-`, then numbers, 'strings', true, false, names, parentheses. Arithmetic is in
/// double precision (IEEE: x/0 is infinite, a comparison with 0/0 is false).
///
/// Three values: a name without a value (inactive, or left to the engine whose default is not
/// known) is *unknown*, and so is what depends on it; `false and unknown` is false, `true or
/// unknown` is true (Kleene's strong logic).
class Expression {
public:
    [[nodiscard]] const std::string& text() const { return text_; }
    /// The names it mentions, each once, in the order of their first mention; `evaluate`'s lookup
    /// gets these indices.
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

    /// The same expression with its names replaced by `rename(name)`; the text follows.
    template <class Rename>
    [[nodiscard]] Expression renamed(const Rename& rename) const {
        Expression result = *this;
        for (std::size_t i = 0; i < names_.size(); ++i) result.names_[i] = rename(names_[i]);
        result.text_ = result.spelled(result.root_);
        return result;
    }

    /// Its value, where it is one literal.
    [[nodiscard]] std::optional<bool> constant() const {
        const bool* value = nodes_[root_].kind == Kind::literal
                                ? std::get_if<bool>(&nodes_[root_].literal)
                                : nullptr;
        return value != nullptr ? std::optional<bool>(*value) : std::nullopt;
    }

    /// Each name that is compared with a literal by ==, != or in, and the literal.
    [[nodiscard]] std::vector<std::pair<std::string, Value>> values_compared() const;

    // For spaces of several engines.

    /// The same with one of its names held at `value`, for good; Unset: unknown, for good.
    [[nodiscard]] Expression with_constant(std::string_view name, const Value& value) const;
    /// The same rule without the parts that constants decide. A rule passes unless it is false, so
    /// a part that is unknown for good is left out: `enabled or (limit >= unknown)` can never be
    /// broken and becomes `true`.
    [[nodiscard]] Expression simplified_rule() const;
    /// `name != value or (this)`: the rule of one engine among several.
    [[nodiscard]] Expression only_if(const std::string& name, const Value& value) const;

    /// `value_of_name(i)` returns the Value of names()[i] as a pointer, or null when it is unknown.
    /// Nothing: the answer is unknown. Throws SpaceError where types do not fit (`'fp8' + 1`, `not
    /// 5`).
    template <class Lookup>
    [[nodiscard]] std::optional<bool> evaluate(const Lookup& value_of_name) const {
        const std::optional<Value> result = value_at(root_, value_of_name);
        if (!result) return std::nullopt;
        return boolean(*result);
    }

    /// The same of an expression that need not be a condition.
    template <class Lookup>
    [[nodiscard]] std::optional<Value> value(const Lookup& value_of_name) const {
        return value_at(root_, value_of_name);
    }

    // For the feasible set.

    /// A name in a configuration that may be half made.
    struct NameState {
        bool decided = false;
        const Value* value = nullptr;  ///< null: unknown
    };
    /// What the rule has to remember of the decided names: the values of its largest parts that are
    /// certain. Half made configurations with the same words have the same answer, whatever the
    /// undecided names become.
    template <class StateOf>
    void append_state(const StateOf& state_of, std::vector<std::uint32_t>& words) const;
    /// Where along the numbers of `name` (an index), `number_at(first)` < ... < `number_at(last)`,
    /// the rule's state changes, the others being as they are: each such place, in no order, some
    /// perhaps twice. Looks at intervals, not at each number, unless the rule does more than
    /// compare; returns at how many.
    template <class StateOf, class NumberAt>
    std::size_t append_changes(std::size_t name, const StateOf& state_of, std::uint32_t first,
                               std::uint32_t last, const NumberAt& number_at,
                               std::vector<std::uint32_t>& changes) const;

private:
    enum class Kind {
        literal,
        name,
        negate,
        add,
        subtract,
        multiply,
        divide,
        modulo,
        equal,
        not_equal,
        less,
        less_equal,
        greater,
        greater_equal,
        in,
        logical_not,
        logical_and,
        logical_or
    };
    struct Node {
        Kind kind;
        Value literal{};                      // literal
        std::size_t index = 0;                // name: into names_
        std::vector<std::size_t> operands{};  // into nodes_; `in`: the left side, then the list
    };
    friend class ExpressionParser;

    template <class Lookup>
    std::optional<Value> value_at(std::size_t at, const Lookup& value_of_name) const;
    template <class Operand>
    std::optional<Value> value_from(const Node& node, const Operand& operand) const;
    std::optional<bool> compared(Kind kind, const Value& left, const Value& right) const;
    [[nodiscard]] bool boolean(const Value& value) const;
    [[nodiscard]] double number(const Value& value) const;
    [[nodiscard]] std::string spelled(std::size_t at) const;
    struct Possible;
    template <class StateOf>
    [[nodiscard]] bool all_decided(std::size_t at, const StateOf& state_of) const;
    struct Part;
    template <class StateOf>
    Part append_part(std::size_t at, const StateOf& state_of,
                     std::vector<std::uint32_t>& words) const;
    [[nodiscard]] Possible combined(Kind kind, const Possible& left, const Possible& right) const;
    template <class StateOf>
    [[nodiscard]] Possible possible(std::size_t at, const StateOf& state_of, std::size_t name,
                                    double low, double high) const;
    [[nodiscard]] bool mentions(std::size_t at, std::size_t name) const;
    struct Folded {
        bool fixed = false;            ///< whatever the names become
        std::optional<Value> value{};  ///< of a fixed one; nothing: unknown for good
    };
    [[nodiscard]] Folded folded(std::size_t at) const;
    std::size_t without_constants(std::size_t at, bool unknown_passes_as, Expression& into) const;
    std::size_t copied(std::size_t at, Expression& into) const;
    [[noreturn]] void mismatch(std::string_view wanted, const Value& got) const {
        throw SpaceError("'" + text_ + "': " + std::string(wanted) + " wanted, got '" +
                         text_of(got) + "'");
    }

    std::string text_;
    std::vector<std::string> names_;
    std::vector<Node> nodes_;
    std::size_t root_ = 0;
};

// -------------------------------------------------------------------------------------------------
// evaluation

template <class Lookup>
std::optional<Value> Expression::value_at(std::size_t at, const Lookup& value_of_name) const {
    const Node& node = nodes_[at];
    if (node.kind == Kind::name) {
        const Value* value = value_of_name(node.index);
        return value != nullptr ? std::optional<Value>(*value) : std::nullopt;
    }
    return value_from(node,
                      [&](std::size_t i) { return value_at(node.operands[i], value_of_name); });
}

/// Of any node but a name; `operand(i)` is the value of its i-th, asked for at most once, in order.
template <class Operand>
std::optional<Value> Expression::value_from(const Node& node, const Operand& operand) const {
    switch (node.kind) {
        case Kind::literal:
            return is_unset(node.literal) ? std::nullopt : std::optional<Value>(node.literal);
        case Kind::negate:
        case Kind::logical_not: {
            const auto value = operand(0);
            if (!value) return std::nullopt;
            if (node.kind == Kind::negate) return -number(*value);
            return !boolean(*value);
        }
        case Kind::logical_and:
        case Kind::logical_or: {
            const bool decisive = node.kind == Kind::logical_or;
            const auto left = operand(0);
            if (left && boolean(*left) == decisive) return decisive;
            const auto right = operand(1);
            if (right && boolean(*right) == decisive) return decisive;
            return left && right ? std::optional<Value>(!decisive) : std::nullopt;
        }
        case Kind::in: {
            const auto left = operand(0);
            if (!left) return std::nullopt;
            bool all_known = true;
            for (std::size_t i = 1; i < node.operands.size(); ++i) {
                const auto right = operand(i);
                if (right && compared(Kind::equal, *left, *right) == true) return true;
                all_known = all_known && right.has_value();
            }
            return all_known ? std::optional<Value>(false) : std::nullopt;
        }
        default: break;
    }
    const auto left = operand(0);
    const auto right = operand(1);
    if (!left || !right) return std::nullopt;
    switch (node.kind) {
        case Kind::add: return number(*left) + number(*right);
        case Kind::subtract: return number(*left) - number(*right);
        case Kind::multiply: return number(*left) * number(*right);
        case Kind::divide: return number(*left) / number(*right);
        case Kind::modulo: return std::fmod(number(*left), number(*right));
        default: return compared(node.kind, *left, *right);
    }
}

/// Reads the grammar above. Throws ParseError with the column (from 1), what was wanted there and
/// what was got.
Expression parse_expression(std::string_view text);

}  // namespace servetune
