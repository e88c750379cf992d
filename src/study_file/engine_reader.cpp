// SPDX-License-Identifier: Apache-2.0
// Engines: search_spaces/engines/*.yaml.
#include "all_errors.hpp"
#include "base/nesting.hpp"
#include "engine/engine_value.hpp"
#include "key_reader.hpp"
#include "keys.hpp"
#include "parameter_reader.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/search_space.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace servetune {
namespace {

/// Conditions, constraints and json flags may only name the engine's own parameters; said where
/// they stand.
void check_names(const Engine& engine, const Yaml& file) {
    const auto& table = keys::engine;
    std::vector<std::string> known;
    for (const EngineParameter& parameter : engine.parameters)
        known.push_back(parameter.parameter.name);
    const auto check = [&](const std::string& name, const Yaml& at) {
        if (engine.find(name) == nullptr)
            at.fail("'" + name + "' is not a parameter of " + engine.name +
                    "; known: " + listed(nearest_first(name, known)));
    };
    const auto check_keys_of = [&](const Yaml* mapping) {
        if (mapping != nullptr)
            for (const auto& [name, node] : mapping->entries()) check(name, node);
    };
    for (const auto& [name, node] : file.at(table.parameters).entries())
        check_keys_of(node.find(keys::parameter.when));
    if (const Yaml* aliases = file.find(table.aliases))
        for (const auto& [spelling, meant] : aliases->entries())
            if (!meant.text().starts_with("{model}")) check(meant.text(), meant);
    if (const Yaml* devices = file.find(table.devices)) {
        if (devices->is_sequence())
            for (const Yaml& name : devices->items()) check(name.text(), name);
        else
            for (const auto& [name, unless] : devices->entries()) {
                check(name, unless);
                check_keys_of(&unless);
            }
    }
    if (const Yaml* cache = file.find(table.weight_cache)) {
        for (const Yaml& name : cache->at(keys::weight_cache.parameters).items())
            check(name.text(), name);
        check_keys_of(cache->find(keys::weight_cache.when));
    }
    if (const Yaml* render = file.find(table.render))
        for (std::size_t i = 0; i < engine.json_flags.size(); ++i)
            for (const auto& [key, name] : engine.json_flags[i].fields)
                check(name, render->items()[i]);
    const std::vector<std::string> facts(model_facts.begin(), model_facts.end());
    for (std::size_t i = 0; i < engine.constraints.size(); ++i)
        for (const std::string& name : names_of(engine.constraints[i])) {
            const Yaml& at = file.at(table.constraints).items()[i];
            if (!name.starts_with("model.") ||
                !std::holds_alternative<Require>(engine.constraints[i]))
                check(name, at);
            else if (std::find(facts.begin(), facts.end(), name) == facts.end())
                at.fail("'" + name + "' is nothing that rules may ask of a model; known: " +
                        listed(nearest_first(name, facts)));
        }
}

/// `{prefill_url}` in a word names the role it is of.
EngineRoles read_roles(const Yaml& node) {
    const auto& table = keys::roles;
    EngineRoles result;
    read_table(node, table, result);
    for (const Key& key : {table.prefill, table.decode}) {
        EngineRole role{std::string(key.name)};
        read_table(node.at(key), keys::role, role);
        result.each.push_back(std::move(role));
    }
    for (const Yaml& item : node.at(table.router).items()) {
        result.router.emplace_back();
        for (const Yaml& word : item.is_sequence() ? item.items() : std::vector<Yaml>{item})
            result.router.back().push_back(word.text());
    }
    for (const EngineRole& role : result.each) {
        const std::string place = "{" + role.name + "_url}";
        const auto names_it = [&](const std::vector<std::string>& part) {
            return std::any_of(part.begin(), part.end(), [&](const std::string& word) {
                return word.find(place) != std::string::npos;
            });
        };
        if (std::none_of(result.router.begin(), result.router.end(), names_it))
            node.at(table.router)
                .fail("a list of words with " + place +
                      " wanted: the router must know the servers of this role");
    }
    return result;
}

JsonFlag read_json_flag(const Yaml& item) {
    JsonFlag flag;
    read_table(item, keys::render, flag);
    for (const auto& [key, value] : item.at(keys::render.json).entries()) {
        const std::string text = value.text();
        const std::vector<std::string> names = names_in_form(text);
        std::map<std::string, std::string> ones;
        for (const std::string& name : names) {
            flag.fields.emplace_back(key, name);
            ones[name] = "1";
        }
        if (names.empty() || shallow_json<nlohmann::json>(filled_form(text, ones)).is_discarded())
            value.fail_wanted("'{parameter}', or JSON with {parameter} in it");
        if (text != "{" + names.front() + "}") flag.forms.emplace(key, text);
    }
    return flag;
}

/// Lets the space itself judge the parameters and rules.
void check_space(const Engine& engine, const Yaml& parameters) {
    try {
        std::vector<Parameter> all;
        for (const EngineParameter& parameter : engine.parameters)
            all.push_back(parameter.parameter);
        std::vector<Constraint> rules = engine.constraints;
        for (Constraint& constraint : rules)
            if (auto* rule = std::get_if<Require>(&constraint))
                rule->expression = with_model_facts(rule->expression, {});
        const SearchSpace space(std::move(all), std::move(rules));
    } catch (const SpaceError& error) {
        throw ParseError(parameters.place() + ": " + error.what());
    }
}

}  // namespace

Engine read_engine(const Yaml& file) {
    const auto& table = keys::engine;
    constexpr double first_load_seconds = 20 * 60;  // of a large model, and its compilation
    Engine engine;
    engine.ready_within_seconds = first_load_seconds;
    read_table(file, table, engine);
    if (std::none_of(engine.launch.begin(), engine.launch.end(), [](const std::string& word) {
            return word.find("{model}") != std::string::npos;
        }))
        file.at(table.launch).fail("the command has no {model}");
    std::string api;
    read(file, table.api, api);
    if (api == "completions") engine.api["completions"] = "/v1/completions";
    if (file.find(table.server_info) != nullptr)
        read(file, table.server_info, engine.api["server_info"]);
    std::map<std::string, std::map<std::string, std::string>> needs;
    read(file, table.between_runs, needs);
    engine.between_runs.assign(needs.begin(), needs.end());
    for (const auto& [name, node] : file.at(table.parameters).entries()) {
        engine.parameters.push_back(read_parameter(name, node));
        if (node.find(keys::parameter.option) != nullptr && engine.options_flag.empty())
            node.at(keys::parameter.option).fail("the engine has no options_flag");
    }
    if (const Yaml* list = file.find(table.render))
        for (const Yaml& item : list->items()) engine.json_flags.push_back(read_json_flag(item));
    if (const Yaml* list = file.find(table.constraints))
        for (const Yaml& item : list->items()) {
            engine.constraints.push_back(read_constraint(item));
            std::pair<std::string, std::string> versions;
            read(item, keys::constraint.since, versions.first);
            read(item, keys::constraint.until, versions.second);
            if (!versions.first.empty() || !versions.second.empty())
                engine.constraint_versions[text_of(engine.constraints.back())] =
                    std::move(versions);
        }
    if (const Yaml* daemon = file.find(table.weight_cache);
        daemon != nullptr && daemon->find(keys::weight_cache.ready_within) == nullptr)
        engine.weight_cache->ready_within_seconds = engine.ready_within_seconds;
    if (const Yaml* devices = file.find(table.devices)) {
        if (devices->is_sequence())
            for (const Yaml& item : devices->items()) engine.devices.push_back({item.text()});
        else
            for (const auto& [name, unless] : devices->entries())
                read_as(is::conditions, unless,
                        engine.devices.emplace_back(DeviceFactor{name}).unless);
    }
    if (const Yaml* roles = file.find(table.roles)) engine.roles = read_roles(*roles);
    check_names(engine, file);
    check_space(engine, file.at(table.parameters));
    return engine;
}

}  // namespace servetune
