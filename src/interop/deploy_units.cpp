// SPDX-License-Identifier: Apache-2.0
#include "deploy_units.hpp"

#include "deploy_edit.hpp"
#include "engine/command_reader.hpp"
#include "servetune/catalogue.hpp"
#include "shell_programs.hpp"

#include <algorithm>

namespace servetune {

std::string FlagUnit::text() const {
    std::string result;
    for (const std::string& word : words) result += (result.empty() ? "" : " ") + word;
    return result;
}

std::vector<FlagUnit> flag_units(const std::vector<std::string>& words, const Engine& engine,
                                 const CommandReader& reader) {
    std::vector<FlagUnit> result;
    for (const Setting& setting : reader.flags(words, engine).settings) {
        using Kind = Setting::Kind;
        if (!setting.key.empty() || setting.kind == Kind::unread || setting.kind == Kind::variable)
            continue;
        FlagUnit unit{.flag = setting.name,
                      .value = setting.value,
                      .words = setting.words,
                      .begin = setting.at,
                      .end = setting.at + setting.words.size()};
        const std::string base = setting.name.substr(0, setting.name.find('.'));
        const bool json = std::any_of(engine.json_flags.begin(), engine.json_flags.end(),
                                      [&](const JsonFlag& flag) { return flag.flag == base; });
        unit.dotted = json && base.size() < setting.name.size();
        unit.alone = setting.alone || (setting.words.size() == 1 &&
                                       setting.words.front().find('=') == std::string::npos);
        unit.not_about_speed = setting.not_about_speed;
        unit.key = setting.kind == Kind::model    ? "{model}"
                   : setting.kind == Kind::launch ? "{launch}"
                   : json                         ? base
                                                  : setting.name;
        if (setting.kind == Kind::parameter && !json && !setting.parameters.empty()) {
            const auto* ours = engine.find(setting.parameters.front()->parameter.name);
            unit.parameter = ours;
            if (ours != nullptr) unit.key = ours->parameter.name;
        }
        if (setting.kind == Kind::model) unit.not_about_speed = true;
        result.push_back(std::move(unit));
    }
    return result;
}

const FlagUnit* model_unit(const std::vector<FlagUnit>& units) {
    const auto found = std::find_if(units.rbegin(), units.rend(),
                                    [](const FlagUnit& unit) { return unit.key == "{model}"; });
    return found == units.rend() ? nullptr : &*found;
}

bool is_gpu_count(const std::string& text) {
    return !text.empty() && text.size() <= 6 &&
           text.find_first_not_of("0123456789") == std::string::npos;
}

DeployWish wish_of(const StudySetup& setup, const Configuration& configuration,
                   const DeploymentModel& deployment) {
    DeployWish wish;
    const Composition& composition = *setup.file.composition;
    wish.engine = composition.engine_of(configuration);
    wish.reader = std::make_shared<const CommandReader>(std::vector{wish.engine},
                                                        setup.file.catalogue().root());
    wish.model = deployment.model;
    wish.other_models = composition.checkpoints();
    if (!wish.other_models.empty() && !setup.file.model.empty())
        wish.other_models.insert(setup.file.model);
    wish.other_models.erase(wish.model);
    wish.copies = deployment.copies();
    wish.gpus = deployment.first().gpus;
    std::vector<bool> secret;
    for (const Word& word : deployment.first().flags()) {
        std::string text;
        for (const WordPiece& piece : word)
            text += piece.variable ? "${" + piece.text + "}" : piece.text;
        wish.flags.push_back(text);
        secret.push_back(has_variable(word));
    }
    // A flag with a secret stays as the file has it.
    std::vector<std::string> kept;
    for (const FlagUnit& unit : flag_units(wish.flags, wish.engine, *wish.reader)) {
        bool hidden = false;
        for (std::size_t i = unit.begin; i < unit.end; ++i) hidden = hidden || secret[i];
        if (!hidden && !unit.key.starts_with("{"))
            kept.insert(kept.end(), unit.words.begin(), unit.words.end());
    }
    wish.flags = std::move(kept);
    for (const auto& [name, word] : deployment.first().environment)
        if (!has_variable(word) && !changes_nothing(name))
            wish.environment[name] = word.empty() ? "" : word.front().text;
    for (const auto& [name, content] : deployment.first().files)
        wish.left_to_them.push_back("the engine reads its settings from " + name +
                                    ": `recommend --as` writes it");
    for (const PassedSetting& passed : composition.passed(wish.engine)) {
        if (!passed.place.empty()) continue;
        const bool json =
            std::any_of(wish.engine.json_flags.begin(), wish.engine.json_flags.end(),
                        [&](const JsonFlag& flag) { return flag.flag == passed.flag; });
        for (const std::string& one : {json ? passed.flag : passed.declared, passed.environment})
            if (!one.empty()) wish.tuned.insert(one);
    }
    return wish;
}

}  // namespace servetune
