// SPDX-License-Identifier: Apache-2.0
#include "servetune/constraint.hpp"

#include "servetune/configuration.hpp"
#include "servetune/detail/space/expression.hpp"

namespace servetune {

std::vector<std::string> names_of(const Constraint& constraint) {
    struct {
        std::vector<std::string> operator()(const Require& rule) const {
            return rule.expression.names();
        }
        std::vector<std::string> operator()(const Allow& rule) const { return rule.names; }
        std::vector<std::string> operator()(const Forbid& rule) const {
            std::vector<std::string> names;
            for (const auto& entry : rule.values) names.push_back(entry.first);
            return names;
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

}  // namespace servetune
