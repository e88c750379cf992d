// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/expression.hpp"

#include <map>
#include <set>

namespace servetune {

/// Every configuration must make the expression true; where it is unknown the configuration passes.
struct Require {
    Expression expression;
    std::string because{};
    bool of_larger_space =
        false;  ///< it may name values that this space does not have (as the two below)
};

/// No configuration may have, for every named parameter, one of the values listed for it. An
/// inactive parameter has none.
struct Forbid {
    std::map<std::string, std::vector<Value>> values;
    std::string because{};
    bool of_larger_space = false;
};

/// Only these combinations of the named parameters exist (a table that was measured, say). In a
/// row, nothing stands for "inactive".
struct Allow {
    using Row = std::vector<std::optional<Value>>;  ///< one entry a name
    std::vector<std::string> names;
    std::set<Row> rows;
    std::string because{};
    bool of_larger_space = false;
};

/// A rule that feasible configurations keep, and why it is there (`because`, shown when it is
/// broken).
using Constraint = std::variant<Require, Forbid, Allow>;

inline Constraint require(std::string_view expression, std::string because = {}) {
    return Require{parse_expression(expression), std::move(because)};
}

inline const std::string& reason(const Constraint& constraint) {
    return std::visit([](const auto& rule) -> const std::string& { return rule.because; },
                      constraint);
}

/// The parameters a constraint speaks of, each once.
std::vector<std::string> names_of(const Constraint& constraint);

/// `require a >= b`, `forbid kv_cache_dtype=fp8_e5m2 quantization=fp8`, `only the 24 known
/// combinations of a, b`.
std::string text_of(const Constraint& constraint);

/// `require a >= b (the engine refuses it)`
inline std::string explained_text_of(const Constraint& constraint) {
    return text_of(constraint) +
           (reason(constraint).empty() ? "" : " (" + reason(constraint) + ")");
}

/// A parameter in a configuration that may be half made.
struct Slot {
    enum class State { undecided, inactive, active } state = State::undecided;
    const Value* value = nullptr;  ///< active only
};

/// Whether a (perhaps half made) configuration certainly breaks the rule, whatever the undecided
/// parameters become. `slots[i]` belongs to `names_of(constraint)[i]`; `known(i)` is the value the
/// i-th name has for arithmetic: the slot's, or the engine's own default where it is unset and
/// known, else null.
template <class Slots, class Known>
bool broken(const Constraint& constraint, const Slots& slots, const Known& known) {
    if (const auto* require = std::get_if<Require>(&constraint))
        return require->expression.evaluate(known) == false;
    if (const auto* forbid = std::get_if<Forbid>(&constraint)) {
        std::size_t i = 0;
        for (const auto& [name, values] : forbid->values) {
            const Slot slot = slots(i++);
            if (slot.state != Slot::State::active ||
                std::find(values.begin(), values.end(), *slot.value) == values.end())
                return false;
        }
        return true;
    }
    const auto& allow = std::get<Allow>(constraint);
    Allow::Row decided;
    for (std::size_t i = 0; i < allow.names.size(); ++i) {
        const Slot slot = slots(i);
        if (slot.state == Slot::State::undecided) break;
        decided.push_back(slot.state == Slot::State::active ? std::optional(*slot.value)
                                                            : std::nullopt);
    }
    if (decided.size() == allow.names.size()) return !allow.rows.contains(decided);
    const auto fits = [&](const Allow::Row& row) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            const Slot slot = slots(i);
            if (slot.state == Slot::State::undecided) continue;
            const bool active = slot.state == Slot::State::active;
            if (active != row[i].has_value() || (active && *slot.value != *row[i])) return false;
        }
        return true;
    };
    return std::none_of(allow.rows.begin(), allow.rows.end(), fits);
}

/// Whether a (perhaps half made) configuration certainly keeps the rule, whatever the undecided
/// parameters become. The arguments are those of `broken`. An `Allow` is settled only when nothing
/// is undecided.
template <class Slots, class Known>
bool settled(const Constraint& constraint, const Slots& slots, const Known& known) {
    if (const auto* require = std::get_if<Require>(&constraint))
        return require->expression.evaluate(known) == true;
    const auto* forbid = std::get_if<Forbid>(&constraint);
    if (forbid == nullptr) return false;
    std::size_t i = 0;
    for (const auto& [name, values] : forbid->values) {
        const Slot slot = slots(i++);
        if (slot.state == Slot::State::undecided) continue;
        if (slot.state == Slot::State::inactive ||
            std::find(values.begin(), values.end(), *slot.value) == values.end())
            return true;
    }
    return false;
}

}  // namespace servetune
