// SPDX-License-Identifier: Apache-2.0
#include "seen_flags.hpp"

#include "base/nesting.hpp"
#include "engine/engine_value.hpp"
#include "engine/version.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>

namespace servetune {
namespace {

const Destination& destination_in(const EngineParameter& declared, const std::string& version) {
    const bool old = !version.empty() && !declared.earlier_until.empty() && compare_to_bound(version, declared.earlier_until) <= 0;
    return old ? declared.earlier : declared.destination;
}

std::string name_of_flag(const std::string& flag) {
    std::string name;
    for (const char c : flag.substr(std::min(flag.find_first_not_of('-'), flag.size())))
        name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? static_cast<char>(std::tolower(static_cast<unsigned char>(c))) : '_';
    return name;
}

}  // namespace

SeenFlags seen_flags(const Engine& engine, const Command& command, const std::string& version) {
    SeenFlags seen;
    std::size_t at = 0;
    while (at < engine.launch.size() && engine.launch[at].find('{') == std::string::npos && !engine.launch[at].starts_with("--")) ++at;
    const auto model = std::find(engine.launch.begin(), engine.launch.end(), "{model}");
    const std::string model_flag =
        model != engine.launch.begin() && model != engine.launch.end() && (model - 1)->starts_with('-') ? *(model - 1) : "";
    const std::vector<std::string>& words = command.argv;
    const auto set = [&](const EngineParameter& declared, const Value& value) {
        const Value taken = as_engine_takes(declared, value);
        if (is_unset(taken)) seen.values.erase(declared.parameter.name);  // another word for no flag
        else seen.values[declared.parameter.name] = taken;
    };
    // Two parameters may share a flag under different conditions.
    std::vector<std::pair<std::vector<const EngineParameter*>, Value>> shared;
    for (; at < words.size(); ++at) {
        const std::string& word = words[at];
        if (!word.starts_with('-')) {
            if (seen.model.empty() && model_flag.empty()) seen.model = word;
            else seen.unread.push_back(word);
            continue;
        }
        const auto equals = word.find('=');
        const std::string flag = word.substr(0, equals);
        const bool has_next =
            equals == std::string::npos && at + 1 < words.size() && (!words[at + 1].starts_with('-') || real_of(words[at + 1]));
        const auto argument = [&] {
            return equals != std::string::npos ? word.substr(equals + 1) : has_next ? words[++at] : std::string();
        };
        if (flag == model_flag) {
            seen.model = argument();
            continue;
        }
        if (const auto ours = std::find(engine.launch.begin(), engine.launch.end(), flag); ours != engine.launch.end()) {
            if (ours + 1 != engine.launch.end() && (ours + 1)->starts_with("{")) (void)argument();  // where it listens
            continue;
        }
        std::vector<const EngineParameter*> sharing;
        bool off = false;
        for (const EngineParameter& declared : engine.parameters) {
            const Destination& to = destination_in(declared, version);
            const bool switches_off = !to.off_flag.empty() && to.off_flag == flag;
            if (to.flag == flag || switches_off) sharing.push_back(&declared);
            off = off || switches_off;
        }
        const auto group =
            std::find_if(engine.json_flags.begin(), engine.json_flags.end(), [&](const JsonFlag& json) { return json.flag == flag; });
        if (!sharing.empty()) {
            const bool is_switch = std::holds_alternative<BoolDomain>(sharing.front()->parameter.domain);
            shared.emplace_back(sharing, is_switch ? Value(!off) : value_of(argument()));
        } else if (group != engine.json_flags.end()) {
            const std::string text = argument();
            const auto object = shallow_json<nlohmann::json>(text);
            if (!object.is_object()) {
                seen.unread.push_back(word);
                continue;
            }
            for (const auto& [key, value] : object.items()) {
                const auto field =
                    std::find_if(group->fields.begin(), group->fields.end(), [&, k = key](const auto& each) { return each.first == k; });
                const EngineParameter* declared = field == group->fields.end() ? nullptr : engine.find(field->second);
                if (declared == nullptr) seen.unread.push_back(flag + " " + key);
                else set(*declared, value_of(value.is_string() ? value.get<std::string>() : value.dump()));
            }
        } else {
            const bool is_switch = equals == std::string::npos && !has_next;
            const std::string name = name_of_flag(flag);
            seen.unknown[name] = is_switch ? "true" : argument();
            seen.unknown_flags[name] = {flag, "", is_switch};
        }
    }
    for (const auto& [sharing, value] : shared) {
        const auto holds = [&](const EngineParameter* declared) {
            return std::all_of(
                declared->parameter.active_when.begin(), declared->parameter.active_when.end(), [&](const Condition& condition) {
                    const auto parent = seen.values.find(condition.parent);
                    return parent != seen.values.end() &&
                           std::find(condition.values.begin(), condition.values.end(), parent->second) != condition.values.end();
                });
        };
        const auto active = std::find_if(sharing.begin(), sharing.end(), holds);
        if (sharing.size() == 1 || active == sharing.end()) set(*sharing.front(), value);
        else set(**active, value);
    }
    for (const auto& [name, value] : command.environment) {
        const auto known = std::find_if(engine.parameters.begin(), engine.parameters.end(), [&, n = name](const EngineParameter& declared) {
            return destination_in(declared, version).environment == n;
        });
        if (known != engine.parameters.end()) {
            set(*known, value_of(value));
            continue;
        }
        const std::string slug = name_of_flag(name);
        seen.unknown[slug] = value;
        seen.unknown_flags[slug] = {"", name, false};
    }
    return seen;
}

}  // namespace servetune
