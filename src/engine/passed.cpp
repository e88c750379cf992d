// SPDX-License-Identifier: Apache-2.0
// What the commands of a study pass by themselves, so that nothing else may set it.
#include "servetune/detail/engine/composition.hpp"

#include <algorithm>

namespace servetune {

std::vector<PassedSetting> Composition::passed(const Engine& engine) const {
    std::vector<PassedSetting> result;
    for (std::size_t i = 0; i + 1 < engine.launch.size(); ++i)
        if (engine.launch[i].starts_with('-') && engine.launch[i + 1].starts_with('{'))
            result.push_back({.place = engine.launch[i + 1], .flag = engine.launch[i]});
    const auto setting_of = [&](const Local& local) {
        // A draft model that follows the method of speculation is passed where that is.
        PassedSetting setting{
            .parameter = local.drafted_by.empty() ? local.name_in_space : local.drafted_by,
            .declared = local.parameter->parameter.name};
        const auto found =
            std::find_if(parameters_.begin(), parameters_.end(),
                         [&](const Parameter& p) { return p.name == local.name_in_space; });
        if (found != parameters_.end() && !found->continuous() && found->level_count() == 1)
            setting.always = found->level(0);
        return setting;
    };
    const auto add = [&](const Local& local) {
        if (local.name_in_space.empty() && local.drafted_by.empty()) return;
        const Destination& to = destination_of(engine, *local.parameter);
        PassedSetting setting = setting_of(local);
        setting.environment = to.environment;
        setting.option = to.option;
        setting.flag = to.flag;
        result.push_back(setting);
        if (to.off_flag.empty()) return;
        setting.flag = to.off_flag;
        result.push_back(std::move(setting));
    };
    for (const EngineParameter& declared : engine.parameters)
        add(names_.at(engine.name).locals.at(declared.parameter.name));
    for (const auto& [role, own] : role_names_)
        for (const auto& [name, local] : own.locals) add(local);
    if (description_.roles && engine.roles)
        for (const EngineRole& role : engine.roles->each) {
            for (const std::string& word : role.arguments)
                if (word.starts_with("--")) result.push_back({.parameter = "roles", .flag = word});
            for (const auto& [name, value] : role.environment)
                result.push_back({.parameter = "roles", .environment = name});
        }
    for (const JsonFlag& group : engine.json_flags)
        for (const auto& [key, name] : group.fields) {
            const Local& local = names_.at(engine.name).locals.at(name);
            if (local.name_in_space.empty() && local.drafted_by.empty()) continue;
            PassedSetting setting = setting_of(local);
            setting.always.reset();  // it is passed with the other parts
            setting.flag = group.flag;
            result.push_back(std::move(setting));
        }
    return result;
}

}  // namespace servetune
