// SPDX-License-Identifier: Apache-2.0
#include "server_settings.hpp"

#include "base/lower_case.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/error.hpp"

#include <algorithm>

namespace servetune {
namespace {

/// `max_num_seqs` of `--max-num-seqs`: what servers call it when they report their settings.
std::string name_of_flag(const EngineParameter& declared) {
    std::string name = declared.destination.flag;
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

}  // namespace

void add_settings(std::string& arguments, const Engine& engine,
                  const std::map<std::string, std::string>& settings) {
    for (const auto& [name, text] : settings) {
        const EngineParameter* declared = engine.find(name);
        for (const EngineParameter& each : engine.parameters)
            if (declared == nullptr &&
                (name_of_flag(each) == name || each.parameter.concept_name == name))
                declared = &each;
        if (declared == nullptr) {
            std::vector<std::string> known;
            for (const EngineParameter& each : engine.parameters)
                known.push_back(each.parameter.name);
            throw SpaceError(
                "--set " + name + ": " + engine.name +
                " has no such parameter; known: " + listed(nearest_first(name, known)));
        }
        const Destination& to = declared->destination;
        const bool is_switch = std::holds_alternative<BoolDomain>(declared->parameter.domain);
        std::string word;
        if (is_switch) {
            const std::string said = lower_case(text);
            const bool on = said == "true" || said == "on" || said == "yes" || said == "1";
            if (!on && said != "false" && said != "off" && said != "no" && said != "0")
                throw SpaceError("--set " + name + ": true or false wanted, got '" + text + "'");
            if (!on && to.off_flag.empty())
                throw SpaceError("--set " + name + "=" + text + ": " + engine.name +
                                 " has no flag that turns it off");
            word = on ? to.flag : to.off_flag;
        } else if (!to.flag.empty()) word = to.flag + "=" + text;
        for (const JsonFlag& json : engine.json_flags)
            for (const auto& [key, parameter] : json.fields)
                if (to.flag.empty() && parameter == declared->parameter.name &&
                    !json.forms.contains(key))
                    word = json.flag + "." + key + "=" + text;
        if (!word.empty()) arguments += (arguments.empty() ? "" : " ") + word;
    }
}

std::map<std::string, std::string> changing_settings(const Engine& engine,
                                                     const PublishedResult& of,
                                                     const std::vector<PublishedResult>& all) {
    std::map<std::string, std::string> changing;
    for (const auto& [name, text] : of.server_settings) {
        const bool differs =
            of.server_settings_are_given ||
            std::any_of(all.begin(), all.end(),
                        [&, n = name, t = text](const PublishedResult& other) {
                            const auto found = other.server_settings.find(n);
                            return !other.server_settings.empty() &&
                                   (found == other.server_settings.end() || found->second != t);
                        });
        if (!differs) continue;
        const bool known =
            std::any_of(engine.parameters.begin(), engine.parameters.end(),
                        [&, n = name](const EngineParameter& each) {
                            return each.parameter.name == n || name_of_flag(each) == n;
                        });
        if (known) changing[name] = text;
    }
    return changing;
}

std::string why_settings_not_known(const Engine& engine, const PublishedResult& of,
                                   const std::map<std::string, std::string>& changing) {
    if (of.failure.empty() || !of.server_settings_are_given) return {};
    for (const auto& [name, text] : of.server_settings)
        if (!changing.contains(name))
            return "it failed with " + name + "=" + text + ", which is no parameter of " +
                   engine.name;
    return {};
}

bool says_settings(const Engine& engine, const PublishedResult& of,
                   const std::vector<PublishedResult>& all) {
    if (!of.server_settings_are_given) return !of.server_settings.empty();
    return std::any_of(all.begin(), all.end(), [&](const PublishedResult& other) {
        return other.tool == of.tool && other.server_settings_are_given &&
               !changing_settings(engine, other, all).empty();
    });
}

}  // namespace servetune
