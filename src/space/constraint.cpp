// SPDX-License-Identifier: Apache-2.0
#include "servetune/constraint.hpp"
#include "rule_values.hpp"
#include "servetune/configuration.hpp"

namespace servetune {

std::vector<std::string> names_of(const Constraint& constraint) {
    struct {
        std::vector<std::string> operator()(const Require& rule) const {
            return rule.expression.names();
        }
        std::vector<std::string> operator()(const Allow& rule) const { return rule.names; }
        std::vector<std::string> operator()(const Forbid& rule) const {
            return names_in(rule.values);
        }
    } visitor;
    return std::visit(visitor, constraint);
}

std::string text_of(const Constraint& constraint) {
    struct {
        std::string operator()(const Require& rule) const {
            return "require " + rule.expression.text();
        }
        std::string operator()(const Allow& rule) const {
            if (rule.names.empty()) return "only the one configuration that there is";
            std::string names;
            for (const std::string& name : rule.names) names += (names.empty() ? "" : ", ") + name;
            return "only the " + std::to_string(rule.rows.size()) + " known combinations of " +
                   names;
        }
        std::string operator()(const Forbid& rule) const {
            std::string result = "forbid";
            for (const auto& [name, values] : rule.values) {
                result += " " + name + "=";
                for (std::size_t i = 0; i < values.size(); ++i)
                    result.append(i == 0 ? "" : "|").append(text_of(values[i]));
            }
            return result;
        }
    } visitor;
    return std::visit(visitor, constraint);
}

bool can_have(const Parameter& parameter, const Value& value, bool exactly) {
    if (parameter.contains(value)) return true;
    if (exactly) return false;
    if (parameter.value_when_unset == value) return true;
    const auto number = number_of(value);
    constexpr double widest = 9007199254740992.0;  // 2^53: beyond it not every integer is a double
    if (!number || std::abs(*number) > widest) return false;
    const auto unset =
        parameter.value_when_unset ? number_of(*parameter.value_when_unset) : std::nullopt;
    return unset == number || parameter.contains(*number) ||
           (*number == std::floor(*number) && parameter.contains(std::int64_t(*number)));
}

}  // namespace servetune
