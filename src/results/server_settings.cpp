// SPDX-License-Identifier: Apache-2.0
#include "server_settings.hpp"

#include "base/text.hpp"
#include "engine/shell_word.hpp"
#include "printed_block.hpp"
#include "base/nearest.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <optional>

namespace servetune {
namespace {

/// By its name, its concept, or its flag as servers report it: `max_num_seqs` of `--max-num-seqs`.
const EngineParameter* parameter_called(const Engine& engine, const std::string& name) {
    if (const EngineParameter* declared = engine.find(name)) return declared;
    for (const EngineParameter& each : engine.parameters) {
        std::string flag = each.destination.flag;
        flag.erase(0, std::min(flag.find_first_not_of('-'), flag.size()));
        std::replace(flag.begin(), flag.end(), '-', '_');
        if (flag == name || each.parameter.concept_name == name) return &each;
    }
    return nullptr;
}

std::optional<bool> truth_in(const std::string& text) {
    const std::string said = lower_case(text);
    for (const char* yes : {"true", "on", "yes", "1"})
        if (said == yes) return true;
    for (const char* no : {"false", "off", "no", "0"})
        if (said == no) return false;
    return std::nullopt;
}

}  // namespace

void add_settings(std::string& arguments, const Engine& engine,
                  const std::map<std::string, std::string>& settings) {
    for (const auto& [name, text] : settings) {
        const EngineParameter* declared = parameter_called(engine, name);
        if (declared == nullptr) {
            std::vector<std::string> known;
            for (const EngineParameter& each : engine.parameters)
                known.push_back(each.parameter.name);
            throw SpaceError(
                "--set " + name + ": " + engine.name +
                " has no such parameter; known: " + listed(nearest_first(name, known)));
        }
        const Destination& to = declared->destination;
        std::string word;
        if (std::holds_alternative<BoolDomain>(declared->parameter.domain)) {
            const auto on = truth_in(text);
            if (!on)
                throw SpaceError("--set " + name + ": true or false wanted, got '" + text + "'");
            if (!*on && to.off_flag.empty())
                throw SpaceError("--set " + name + "=" + text + ": " + engine.name +
                                 " has no flag that turns it off");
            word = *on ? to.flag : to.off_flag;
        } else if (!to.flag.empty()) word = to.flag + "=" + text;
        for (const JsonFlag& json : engine.json_flags)
            for (const auto& [key, parameter] : json.fields)
                if (to.flag.empty() && parameter == declared->parameter.name &&
                    !json.forms.contains(key))
                    word = json.flag + "." + key + "=" + text;
        if (!word.empty()) arguments += (arguments.empty() ? "" : " ") + quoted_where_needed(word);
    }
}

std::map<std::string, std::string> changing_settings(const Engine& engine,
                                                     const PublishedResult& of,
                                                     const std::vector<PublishedResult>& all) {
    auto changing = of.server_settings;
    std::erase_if(changing, [&](const auto& setting) {
        if (parameter_called(engine, setting.first) == nullptr) return true;
        return !of.server_settings_are_given &&
               std::all_of(all.begin(), all.end(), [&](const PublishedResult& other) {
                   const auto found = other.server_settings.find(setting.first);
                   return other.server_settings.empty() ||
                          (found != other.server_settings.end() && found->second == setting.second);
               });
    });
    return changing;
}

bool says_settings(const Engine& engine, const PublishedResult& of,
                   const std::vector<PublishedResult>& all) {
    if (!of.server_settings_are_given) return !of.server_settings.empty();
    return std::any_of(all.begin(), all.end(), [&](const PublishedResult& other) {
        return other.tool == of.tool && other.server_settings_are_given &&
               !changing_settings(engine, other, all).empty();
    });
}

void give_command(std::vector<PublishedResult>& results, const std::string& command,
                  const std::vector<Engine>& engines) {
    const ServingCommand given = serving_command(command, engines);
    if (given.text.empty())
        throw UsageError("--command: wanted the command that starts an engine, got '" + command +
                         "': " + given.not_recognised);
    const auto engine = std::find_if(engines.begin(), engines.end(), [&](const Engine& one) {
        return lower_case(one.name) == given.engine;
    });
    for (PublishedResult& result : results) {
        if (!result.arguments_unknown) continue;
        result.arguments = given.text;
        add_settings(result.arguments, *engine, changing_settings(*engine, result, results));
        result.engine = given.engine;
        result.arguments_unknown = false;
        result.not_recognised.clear();
    }
}

}  // namespace servetune
