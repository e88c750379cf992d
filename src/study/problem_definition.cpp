// SPDX-License-Identifier: Apache-2.0
#include "problem_definition.hpp"

namespace servetune {

void add_definition(const SearchSpace& space, const Objective& objective,
                    std::map<std::string, std::string>& definition) {
    definition["objective"] = objective.goals_text();
    for (std::size_t i = 0; i < objective.limits.size(); ++i)
        definition["objective.limits[" + std::to_string(i) + "]"] = objective.limits[i].text();
    for (const Parameter& parameter : space.parameters()) {
        std::string text =
            parameter.domain_text() + ", default " + text_of(parameter.default_value);
        for (const Condition& condition : parameter.active_when) {
            text += ", when " + condition.parent + "=";
            for (std::size_t i = 0; i < condition.values.size(); ++i)
                text += (i == 0 ? "" : "|") + text_of(condition.values[i]);
        }
        definition["space." + parameter.name] = text;
    }
    const auto& constraints = space.constraints();
    for (std::size_t i = 0; i < constraints.size(); ++i)
        definition["constraints[" + std::to_string(i) + "]"] = text_of(constraints[i]);
}

}  // namespace servetune
