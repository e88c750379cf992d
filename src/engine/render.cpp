// SPDX-License-Identifier: Apache-2.0
// From a configuration to a command.
#include "base/nesting.hpp"
#include "base/variable_name.hpp"
#include "command_reader.hpp"
#include "filled_words.hpp"
#include "json_form.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "shell_word.hpp"
#include "space/value_json.hpp"
#include "version.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// `kv_cache_config.dtype` -> {"kv_cache_config": {"dtype": value}}.
void set_option(OrderedJson& options, std::string_view path, const Value& value) {
    if (!options.is_null() && !options.is_object())
        throw SpaceError("the option '..." + std::string(path) +
                         "' stands below one that another parameter sets to a value");
    const auto dot = path.find('.');
    OrderedJson& place = options[std::string(path.substr(0, dot))];
    if (dot == std::string_view::npos) place = to_json(value);
    else set_option(place, path.substr(dot + 1), value);
}

void flatten(const OrderedJson& object, const std::string& path,
             std::map<std::string, std::string>& into) {
    for (const auto& [key, value] : object.items()) {
        const std::string below = path.empty() ? key : path + "." + key;
        if (value.is_object()) flatten(value, below, into);
        else into[below] = value.is_string() ? value.get<std::string>() : value.dump();
    }
}

}  // namespace

const Engine& Composition::engine_of(const Configuration& configuration) const {
    // Of one engine, a parameter of this name is the study's own.
    const Value* chosen = description_.engines.size() > 1 ? configuration.find("engine") : nullptr;
    for (const Engine& engine : description_.engines)
        if (chosen == nullptr || text_of(*chosen) == engine.name) return engine;
    throw SpaceError("there is no engine '" + text_of(*chosen) + "' in this study");
}

Value Composition::value_of_local(const Engine& engine, std::string_view name,
                                  const Configuration& configuration, bool& active,
                                  std::string_view role) const {
    const Local& local = local_of(engine, role, name);
    if (!local.drafted_by.empty()) {
        const Value method = value_of_local(engine, local.drafted_by, configuration, active, role);
        const auto draft = local.drafts.find(text_of(method));
        if (active && draft != local.drafts.end()) return draft->second;
    }
    const Value* value =
        local.name_in_space.empty() ? nullptr : configuration.find(local.name_in_space);
    active = value != nullptr || local.name_in_space.empty();
    return value != nullptr ? *value : local.parameter->parameter.default_value;
}

Composition::Words Composition::words_of(const Engine& engine, const Configuration& configuration,
                                         const std::string& model,
                                         const std::vector<std::string>* only,
                                         std::string_view role) const {
    Words result{model};
    OrderedJson options;
    const auto wanted = [&](const std::string& name) {
        return only == nullptr || std::find(only->begin(), only->end(), name) != only->end();
    };
    const auto add = [&](const std::string& flag, const std::string& value) {
        if (engine.flag_style == Engine::FlagStyle::equals)
            result.flags.push_back(flag + "=" + value);
        else result.flags.insert(result.flags.end(), {flag, value});
    };
    for (const EngineParameter& declared : engine.parameters) {
        bool active = false;
        const Value value =
            value_of_local(engine, declared.parameter.name, configuration, active, role);
        const auto& checkpoints = local_of(engine, role, declared.parameter.name).checkpoints;
        if (const auto checkpoint = checkpoints.find(text_of(value));
            active && checkpoint != checkpoints.end()) {
            result.model = checkpoint->second;
            continue;
        }
        if (!active || is_unset(value) || value == declared.parameter.default_value ||
            !wanted(declared.parameter.name))
            continue;
        const Destination& to = destination_of(engine, declared);
        if (!to.environment.empty()) result.environment[to.environment] = text_of(value);
        if (!to.option.empty()) set_option(options, to.option, value);
        if (to.flag.empty()) continue;
        if (const bool* on = std::get_if<bool>(&value)) {
            const std::string& word = *on ? to.flag : to.off_flag;
            if (!word.empty()) result.flags.push_back(word);
        } else add(to.flag, text_of(value));
    }
    if (!options.is_null()) {
        constexpr const char* options_file = "options.yaml";  // JSON, which is YAML
        result.files[options_file] = options.dump(2) + "\n";
        add(engine.options_flag, options_file);
    }
    for (const JsonFlag& group : engine.json_flags) {
        const bool any = std::any_of(group.fields.begin(), group.fields.end(),
                                     [&](const auto& field) { return wanted(field.second); });
        if (!any || !conditions_hold(engine, group.when, configuration, false, role)) continue;
        OrderedJson object;
        std::map<std::string, std::map<std::string, std::string>> parts;  // of each form
        for (const auto& [key, name] : group.fields) {
            bool active = false;
            const Value value = value_of_local(engine, name, configuration, active, role);
            if (!active || is_unset(value)) continue;
            if (group.forms.contains(key)) parts[key][name] = to_json(value).dump();
            else object[key] = to_json(value);
        }
        for (const auto& [key, form] : group.forms)
            if (parts[key].size() == names_in_form(form).size())
                object[key] = OrderedJson::parse(filled_form(form, parts[key]), RefuseDeep());
        add(group.flag, object.dump());
    }
    return result;
}

std::vector<std::string> Composition::arguments_of(const Engine& engine) const {
    const auto always = description_.arguments.find(engine.name);
    return always == description_.arguments.end() ? std::vector<std::string>{} : always->second;
}

Command Composition::render(const Configuration& configuration, const LaunchTarget& target,
                            std::string_view name) const {
    const EngineRole* role = name.empty() ? nullptr : role_of(configuration, name);
    const Engine& engine = engine_of(configuration);
    Words words = words_of(engine, configuration, target.model, nullptr, name);
    Command command{{}, std::move(words.environment), std::move(words.files)};
    const Texts texts = texts_of(target, {{"model", words.model}});
    const bool has_address = !target.host.empty();
    add_filled(command.argv, engine.launch, texts, has_address);
    command.argv.insert(command.argv.end(), words.flags.begin(), words.flags.end());
    if (role != nullptr) {
        add_filled(command.argv, role->arguments, texts, has_address);
        for (const auto& [name, value] : role->environment)
            if (has_address || !names_address(value))
                command.environment[name] = with_texts(value, texts);
    }
    const std::vector<std::string> always = arguments_of(engine);
    command.argv.insert(command.argv.end(), always.begin(), always.end());
    return command;
}

bool Composition::conditions_hold(const Engine& engine, const std::vector<Condition>& conditions,
                                  const Configuration& configuration, bool where_unset,
                                  std::string_view role) const {
    return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
        bool active = false;
        const Value value = value_of_local(engine, condition.parent, configuration, active, role);
        if (where_unset && (!active || is_unset(value))) return true;
        return active && std::find(condition.values.begin(), condition.values.end(), value) !=
                             condition.values.end();
    });
}

std::string Composition::why_no_weight_cache(const Engine& engine) const {
    if (!engine.weight_cache) return engine.name + " has none";
    const std::string version = version_of(engine);
    if (version_within(version, engine.weight_cache->since, "")) return {};
    return engine.name + " has one from " + engine.weight_cache->since + ", and the study is for " +
           version;
}

std::string Composition::why_no_weight_cache(const Configuration& configuration) const {
    const Engine& engine = engine_of(configuration);
    if (std::string why = why_no_weight_cache(engine); !why.empty()) return why;
    for (const Condition& condition : engine.weight_cache->when)
        if (engine.find(condition.parent) != nullptr &&
            !conditions_hold(engine, {condition}, configuration, true, "")) {
            bool active = false;
            return engine.name + " takes no weights from it with " + condition.parent + " " +
                   text_of(value_of_local(engine, condition.parent, configuration, active, ""));
        }
    return {};
}

WeightCacheCommands Composition::render_weight_cache(const Configuration& configuration,
                                                     const std::string& model,
                                                     const std::string& folder) const {
    const Engine& engine = engine_of(configuration);
    const WeightCacheDaemon& declared = present(engine.weight_cache);
    Words words = words_of(engine, configuration, model, &declared.parameters, "");
    const std::vector<std::pair<std::string, std::string>> values{{"model", words.model},
                                                                  {"folder", folder}};
    WeightCacheCommands result{words.model,
                               {{}, std::move(words.environment), std::move(words.files)}};
    for (const std::string& word : declared.launch)
        result.daemon.argv.push_back(with_texts(word, values));
    result.daemon.argv.insert(result.daemon.argv.end(), words.flags.begin(), words.flags.end());
    std::set<std::string> shared(declared.arguments.begin(), declared.arguments.end());
    for (const std::string& name : declared.parameters)
        if (const EngineParameter* parameter = engine.find(name))
            shared.insert(destination_of(engine, *parameter).flag);
    for (const Setting& setting : commands_->flags(arguments_of(engine), engine).settings)
        if (shared.contains(setting.name) && setting.key.empty())
            result.daemon.argv.insert(result.daemon.argv.end(), setting.words.begin(),
                                      setting.words.end());
    for (const std::string& word : declared.engine)
        result.engine_adds.argv.push_back(with_texts(word, values));
    for (const auto& [name, value] : declared.environment)
        result.daemon.environment[name] = result.engine_adds.environment[name] =
            with_texts(value, values);
    result.ready = declared.ready;
    result.used = declared.used;
    result.ready_within_seconds = declared.ready_within_seconds;
    return result;
}

std::string Command::text() const {
    std::string result;
    for (const auto& [name, value] : environment)
        result += (is_variable_name(name) ? name : quoted_where_needed(name)) + "=" +
                  quoted_where_needed(value) + " ";
    for (std::size_t i = 0; i < argv.size(); ++i)
        result += (i == 0 ? "" : " ") + quoted_where_needed(argv[i]);
    return result;
}

std::map<std::string, std::string> Command::options() const {
    std::map<std::string, std::string> result;
    for (const auto& file : files) flatten(OrderedJson::parse(file.second), "", result);
    return result;
}

}  // namespace servetune
