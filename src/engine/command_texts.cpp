// SPDX-License-Identifier: Apache-2.0
#include "command_texts.hpp"

#include "base/nesting.hpp"
#include "servetune/error.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace servetune {
namespace {

/// Out of the options files: of a dotted path the last part goes.
void take_text_options(const Engine& engine, std::map<std::string, std::string>& files, Assignment& taken) {
    for (auto& [file, content] : files) {
        auto object = shallow_json<nlohmann::json>(content);
        if (!object.is_object()) continue;
        for (const EngineParameter& declared : engine.parameters)
            for (const std::string& path : {declared.destination.option, declared.earlier.option}) {
                if (path.empty() || !is_text(declared)) continue;
                nlohmann::json* at = &object;
                std::size_t from = 0;
                for (std::size_t dot = path.find('.'); at != nullptr && dot != std::string::npos; dot = path.find('.', from)) {
                    const std::string key = path.substr(from, dot - from);
                    at = at->contains(key) ? &(*at)[key] : nullptr;
                    from = dot + 1;
                }
                const std::string key = path.substr(from);
                if (at == nullptr || !at->contains(key) || !(*at)[key].is_string()) continue;
                taken[declared.parameter.name] = (*at)[key].get<std::string>();
                at->erase(key);
            }
        content = object.dump();
    }
}

}  // namespace

std::string model_word(const Engine& engine, const std::vector<std::string>& words) {
    const auto at = std::find(engine.launch.begin(), engine.launch.end(), "{model}");
    if (at != engine.launch.begin() && (at - 1)->starts_with("-")) {
        const std::string flag = *(at - 1);
        for (std::size_t i = 0; i < words.size(); ++i) {
            if (words[i] == flag && i + 1 < words.size()) return words[i + 1];
            if (words[i].starts_with(flag + "=")) return words[i].substr(flag.size() + 1);
        }
        throw UsageError(engine.name + ": " + flag + " is missing: no model is named");
    }
    const auto place = static_cast<std::size_t>(at - engine.launch.begin());
    if (place < words.size() && !words[place].starts_with("-")) return words[place];
    throw UsageError(engine.name + ": the model's name is wanted behind '" + (place > 0 ? engine.launch[place - 1] : engine.name) + "'");
}

Assignment take_texts(const Engine& engine, Command& command) {
    Assignment result;
    take_text_options(engine, command.files, result);
    std::vector<std::string>& words = command.argv;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const auto equals = words[i].find('=');
        const std::string flag = words[i].substr(0, equals);
        const bool apart = equals == std::string::npos && i + 1 < words.size();
        const auto named = std::find_if(engine.parameters.begin(), engine.parameters.end(),
                                        [&](const EngineParameter& p) { return is_text(p) && p.destination.flag == flag; });
        const auto group =
            std::find_if(engine.json_flags.begin(), engine.json_flags.end(), [&](const JsonFlag& g) { return g.flag == flag; });
        std::string value = equals != std::string::npos ? words[i].substr(equals + 1) : apart ? words[i + 1] : "";
        if (named != engine.parameters.end()) {
            result[named->parameter.name] = value;
            const auto from = words.begin() + static_cast<std::ptrdiff_t>(i);
            words.erase(from, from + (apart ? 2 : 1));
            --i;
        } else if (group != engine.json_flags.end()) {
            auto object = shallow_json<nlohmann::json>(value);
            if (!object.is_object()) continue;
            for (const auto& [key, name] : group->fields)
                if (const EngineParameter* field = engine.find(name);
                    field != nullptr && is_text(*field) && object.contains(key) && object[key].is_string()) {
                    result[name] = object[key].get<std::string>();
                    object.erase(key);
                }
            (apart ? words[i + 1] : words[i]) = (apart ? "" : flag + "=") + object.dump();
        }
    }
    return result;
}

}  // namespace servetune
