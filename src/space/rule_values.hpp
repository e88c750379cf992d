// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/constraint.hpp"
#include "servetune/parameter.hpp"

namespace servetune {

/// Whether a parameter can have a value. `exactly`: of that type; else as expressions compare,
/// where 512 is 512.0 and what the engine does without a flag counts.
bool can_have(const Parameter& parameter, const Value& value, bool exactly);

/// Calls `found(name, value, exactly)` for each value that a rule names of a parameter.
template <class Found>
void for_each_value(const Constraint& constraint, const Found& found) {
    if (const auto* require = std::get_if<Require>(&constraint))
        for (const auto& [name, value] : require->expression.values_compared())
            found(name, value, false);
    if (const auto* forbid = std::get_if<Forbid>(&constraint))
        for (const auto& [name, values] : forbid->values)
            for (const Value& value : values) found(name, value, true);
    if (const auto* allow = std::get_if<Allow>(&constraint))
        for (const Allow::Row& row : allow->rows)
            for (std::size_t i = 0; i < row.size() && i < allow->names.size(); ++i)
                if (row[i]) found(allow->names[i], *row[i], true);
}

/// Whether a rule may name values that its space does not have.
inline bool of_larger_space(const Constraint& constraint) {
    return std::visit([](const auto& rule) { return rule.of_larger_space; }, constraint);
}

/// Says that a rule names a value which does not exist: without it the rule would silently say
/// nothing.
[[noreturn]] inline void refuse_value(const Constraint& constraint, const std::string& name,
                                      const Value& value, const std::string& domain) {
    throw SpaceError("constraint '" + text_of(constraint) + "' names " + name + "=" +
                     text_of(value) + ", but '" + name + "' is " + domain);
}

}  // namespace servetune
