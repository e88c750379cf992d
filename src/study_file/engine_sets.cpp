// SPDX-License-Identifier: Apache-2.0
#include "engine_sets.hpp"

#include "engine/version.hpp"

#include <variant>

namespace servetune {

std::optional<SetByEngine> set_by_engine(const Engine& engine,
                                         const std::map<std::string, Value>& values,
                                         const std::string& version) {
    const auto value_of_name = [&](const std::string& name) -> const Value* {
        if (const auto given = values.find(name); given != values.end()) return &given->second;
        const EngineParameter* declared = engine.find(name);
        if (declared == nullptr) return nullptr;  // a fact of the model
        const Parameter& parameter = declared->parameter;
        if (!is_unset(parameter.default_value)) return &parameter.default_value;
        return parameter.value_when_unset ? &*parameter.value_when_unset : nullptr;
    };
    for (const Constraint& constraint : engine.constraints) {
        const auto* rule = std::get_if<Require>(&constraint);
        if (rule == nullptr) continue;
        const auto equal = rule->expression.names_demanded_equal();
        if (!equal || values.contains(equal->first) || engine.find(equal->first) == nullptr)
            continue;
        const auto bounds = engine.constraint_versions.find(text_of(constraint));
        if (bounds != engine.constraint_versions.end() && !version.empty() &&
            !version_within(version, bounds->second.first, bounds->second.second))
            continue;
        const std::vector<std::string>& names = rule->expression.names();
        const Value* wanted = value_of_name(equal->second);
        if (wanted == nullptr || rule->expression.evaluate([&](std::size_t i) {
                return value_of_name(names[i]);
            }) != false)
            continue;
        return SetByEngine{equal->first, *wanted, rule->because};
    }
    return std::nullopt;
}

}  // namespace servetune
