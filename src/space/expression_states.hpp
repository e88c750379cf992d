// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/expression.hpp"

#include <bit>
#include <limits>

// What an expression remembers of a half made configuration, and where its answers change along one
// long scale.

namespace servetune {

/// What a part may come to while one name is any number of an interval.
struct Expression::Possible {
    enum class Kind { unknown, value, numbers, true_or_false } kind = Kind::unknown;
    Value value{};  ///< of `value`
    double low = 0;
    double high = 0;  ///< of `numbers`, in [low, high]; infinite ends: they may be none (0/0)

    static Possible of(std::optional<Value> value) {
        return value ? Possible{Kind::value, std::move(*value)} : Possible{};
    }
    static Possible between(double low, double high) {
        constexpr double any = std::numeric_limits<double>::infinity();
        if (!std::isfinite(low) || !std::isfinite(high)) return {Kind::numbers, {}, -any, any};
        return {Kind::numbers, {}, low, high};
    }
    static Possible either() { return {Kind::true_or_false}; }
    [[nodiscard]] bool certain() const { return kind == Kind::unknown || kind == Kind::value; }
    friend bool operator==(const Possible&, const Possible&) = default;
};

// -------------------------------------------------------------------------------------------------
// states

template <class StateOf>
bool Expression::all_decided(std::size_t at, const StateOf& state_of) const {
    const Node& node = nodes_[at];
    if (node.kind == Kind::name) return state_of(node.index).decided;
    return all_of(node.operands,
                  [&](std::size_t operand) { return all_decided(operand, state_of); });
}

template <class StateOf>
void Expression::append_state(const StateOf& state_of, std::vector<std::uint32_t>& words) const {
    (void)append_part(root_, state_of, words);
}

struct Expression::Part {
    std::optional<Value> value{};
    bool decided = true;  ///< all names in it
    bool never = false;   ///< it stays unknown whatever the undecided names become
};

/// Looks at each part once.
template <class StateOf>
Expression::Part Expression::append_part(std::size_t at, const StateOf& state_of,
                                         std::vector<std::uint32_t>& words) const {
    enum Word : std::uint32_t { open, unknown, truth, lie, number_word, text_word };
    const Node& node = nodes_[at];
    const std::size_t begin = words.size();
    Part result;
    std::size_t seen = 0, never = 0;
    bool first_never = false;
    const auto operand = [&](std::size_t i) {
        Part part = append_part(node.operands[seen = i], state_of, words);
        ++seen;
        never += part.never ? 1 : 0;
        first_never = first_never || (i == 0 && part.never);
        result.decided = result.decided && part.decided;
        return std::move(part.value);
    };
    if (node.kind == Kind::literal)
        return {value_from(node, operand), true, is_unset(node.literal)};
    words.push_back(open);
    if (node.kind == Kind::name) {
        const NameState state = state_of(node.index);
        result.decided = state.decided;
        if (state.value != nullptr) result.value = *state.value;
    } else result.value = value_from(node, operand);
    while (seen < node.operands.size())
        if (!result.value) (void)operand(seen);
        else if (!all_decided(node.operands[seen++], state_of)) result.decided = false;
    const bool logical = node.kind == Kind::logical_and || node.kind == Kind::logical_or;
    result.never = !result.value && (result.decided || (node.kind == Kind::in ? first_never
                                                        : logical ? never == node.operands.size()
                                                                  : never > 0));
    if (!result.value && !result.never) return result;
    words.resize(begin);
    if (!result.value) {
        words.push_back(unknown);
    } else if (const auto* is = std::get_if<bool>(&*result.value)) {
        words.push_back(*is ? truth : lie);
    } else if (const auto found = number_of(*result.value)) {
        const auto bits = std::bit_cast<std::uint64_t>(*found);
        words.insert(words.end(), {number_word, static_cast<std::uint32_t>(bits),
                                   static_cast<std::uint32_t>(bits >> 32U)});
    } else {
        const std::string text = text_of(*result.value);
        words.push_back(text_word + static_cast<std::uint32_t>(text.size()));
        for (const char byte : text) words.push_back(static_cast<unsigned char>(byte));
    }
    return result;
}

// -------------------------------------------------------------------------------------------------
// changes

/// As `value_at`, while `name` is any number of [low, high].
template <class StateOf>
Expression::Possible Expression::possible(std::size_t at, const StateOf& state_of, std::size_t name,
                                          double low, double high) const {
    const Node& node = nodes_[at];
    if (!mentions(at, name))
        return Possible::of(value_at(at, [&](std::size_t i) { return state_of(i).value; }));
    const auto operand = [&](std::size_t i) {
        return possible(node.operands[i], state_of, name, low, high);
    };
    const auto open = [](const Possible& side) { return !side.certain(); };
    switch (node.kind) {
        case Kind::name: return Possible::between(low, high);
        case Kind::negate: {
            const Possible side = operand(0);
            if (side.kind == Possible::Kind::unknown) return side;
            return combined(Kind::subtract, Possible::between(-0.0, -0.0), side);
        }
        case Kind::logical_not: {
            const Possible side = operand(0);
            return side.kind == Possible::Kind::value ? Possible::of(!boolean(side.value)) : side;
        }
        case Kind::logical_and:
        case Kind::logical_or: {
            const bool decisive = node.kind == Kind::logical_or;
            const Possible left = operand(0);
            if (left.kind == Possible::Kind::value && boolean(left.value) == decisive) return left;
            const Possible right = operand(1);
            if (right.kind == Possible::Kind::value && boolean(right.value) == decisive)
                return right;
            if (open(left) || open(right)) return Possible::either();
            return left.kind == Possible::Kind::value ? right : left;
        }
        case Kind::in: {
            const Possible left = operand(0);
            if (left.kind == Possible::Kind::unknown) return left;
            Possible result = Possible::of(false);
            for (std::size_t i = 1; i < node.operands.size(); ++i) {
                const Possible right = operand(i);
                if (right.kind == Possible::Kind::unknown) {
                    if (!open(result)) result = right;
                    continue;
                }
                const Possible same =
                    open(left) || open(right)
                        ? combined(Kind::equal, left, right)
                        : Possible::of(compared(Kind::equal, left.value, right.value) == true);
                if (open(same)) result = same;
                else if (boolean(same.value)) return same;
            }
            return result;
        }
        default: break;
    }
    const Possible left = operand(0);
    const Possible right = operand(1);
    if (left.kind == Possible::Kind::unknown || right.kind == Possible::Kind::unknown) return {};
    return combined(node.kind, left, right);
}

template <class StateOf, class NumberAt>
std::size_t Expression::append_changes(std::size_t name, const StateOf& state_of,
                                       std::uint32_t first, std::uint32_t last,
                                       const NumberAt& number_at,
                                       std::vector<std::uint32_t>& changes) const {
    std::size_t looked_at = 0;
    const auto others_decided = [&](std::size_t i) {
        return NameState{i == name || state_of(i).decided};
    };
    // Halves intervals until each has one answer; those of the left half come first.
    const auto halve = [&](std::size_t part) {
        std::optional<Possible> before;
        std::vector<std::array<std::uint32_t, 2>> left{{first, last}};
        while (!left.empty()) {
            const auto [from, to] = left.back();
            left.pop_back();
            ++looked_at;
            Possible answer;
            if (from == to) {
                const Value value = number_at(from);
                answer = Possible::of(value_at(
                    part, [&](std::size_t i) { return i == name ? &value : state_of(i).value; }));
            } else {
                const Value low = number_at(from);
                const Value high = number_at(to);
                answer = possible(part, state_of, name, number(low), number(high));
            }
            if (!answer.certain()) {
                const std::uint32_t middle = from + (to - from) / 2;
                left.push_back({middle + 1, to});
                left.push_back({from, middle});
                continue;
            }
            if (before && *before != answer) changes.push_back(from);
            before = answer;
        }
    };
    const auto without_name = [&](std::size_t i) { return i == name ? NameState{} : state_of(i); };
    const auto look = [this, name, first, last, &others_decided, &without_name, &halve, &changes](
                          const auto& self, std::size_t at) -> void {
        std::vector<std::uint32_t> words;
        if (!mentions(at, name) || append_part(at, without_name, words).never) return;
        const Node& node = nodes_[at];
        const bool logical = node.kind == Kind::logical_and || node.kind == Kind::logical_or ||
                             node.kind == Kind::logical_not;
        const bool compares = logical || node.kind >= Kind::equal;
        if (compares && all_decided(at, others_decided)) return halve(at);
        if (logical)
            for (const std::size_t operand : node.operands) self(self, operand);
        else
            for (std::uint32_t level = first + 1; level <= last; ++level) changes.push_back(level);
    };
    look(look, root_);
    return looked_at;
}

}  // namespace servetune
