// SPDX-License-Identifier: Apache-2.0
// From a configuration to commands.
#include "base/present.hpp"
#include "base/text.hpp"
#include "base/variable_name.hpp"
#include "engine_space.hpp"
#include "servetune/detail/base/number_text.hpp"
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
    if (dot == npos) place = to_json(value);
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

using Texts = std::vector<std::pair<std::string, std::string>>;  ///< place -> what stands there

bool names_address(const std::string& word) {
    return contains(word, "{host}") || contains(word, "{port}") ||
           contains(word, "side_port}");  // also `{prefill_side_port}`
}

/// The places of an address, and further ones.
Texts texts_of(const LaunchTarget& target, Texts further) {
    further.insert(further.end(), {{"host", target.host},
                                   {"port", std::to_string(target.port)},
                                   {"side_port", std::to_string(target.side_port)}});
    return further;
}

/// Where no address is given a word that needs it is left out, and the flag before it.
void add_filled(std::vector<std::string>& argv, const std::vector<std::string>& words,
                const Texts& texts, bool has_address) {
    for (const std::string& word : words) {
        if (has_address || !names_address(word)) argv.push_back(filled(word, texts));
        else if (!argv.empty() && argv.back().starts_with("-")) argv.pop_back();
    }
}

/// What a configuration adds to the words of a launch.
struct Words {
    std::string model;  ///< of the target, or a checkpoint's
    std::vector<std::string> flags{};
    std::map<std::string, std::string> environment{}, files{};
};

/// A configuration as its engine, or one role of it, gets it.
class Rendering {
public:
    Rendering(const EngineSpace& space, const Configuration& configuration, std::string_view role)
        : space_(space),
          engine_(space.engine_of(configuration)),
          configuration_(configuration),
          role_(role) {}

    /// Under the engine's own name; nothing: the parameter is not active.
    [[nodiscard]] std::optional<Value> value_of(std::string_view name) const {
        const EngineSpace::Local& local = space_.local_of(engine_, role_, name);
        if (local.name_in_space.empty()) return local.parameter->parameter.default_value;
        const Value* value = configuration_.find(local.name_in_space);
        return value != nullptr ? std::optional(*value) : std::nullopt;
    }
    /// `where_unset`: a condition holds on a parameter that is inactive or not passed.
    [[nodiscard]] bool holds(const Condition& condition, bool where_unset = false) const {
        const auto value = value_of(condition.parent);
        if (where_unset && (!value || is_unset(*value))) return true;
        return value && contains(condition.values, *value);
    }
    [[nodiscard]] bool hold(const std::vector<Condition>& conditions) const {
        return all_of(conditions, [&](const Condition& condition) { return holds(condition); });
    }
    /// `only`: of these parameters; null: of all.
    [[nodiscard]] Words words(const std::string& model,
                              const std::vector<std::string>* only = nullptr) const {
        Words result{model};
        OrderedJson options;
        const auto wanted = [&](const std::string& name) {
            return only == nullptr || contains(*only, name);
        };
        const auto add = [&](const std::string& flag, const std::string& value) {
            if (engine_.flag_style == Engine::FlagStyle::equals)
                result.flags.push_back(flag + "=" + value);
            else result.flags.insert(result.flags.end(), {flag, value});
        };
        for (const EngineParameter& declared : engine_.parameters) {
            const std::string& name = declared.parameter.name;
            const auto value = value_of(name);
            if (!value) continue;
            const auto& checkpoints = space_.local_of(engine_, role_, name).checkpoints;
            if (const auto* checkpoint = entry_in(checkpoints, text_of(*value))) {
                result.model = *checkpoint;
                continue;
            }
            if (is_unset(*value) || *value == declared.parameter.default_value || !wanted(name))
                continue;
            const Destination& to = space_.destination_of(engine_, declared);
            if (!to.environment.empty()) result.environment[to.environment] = text_of(*value);
            if (!to.option.empty()) set_option(options, to.option, *value);
            if (to.flag.empty()) continue;
            if (const bool* on = std::get_if<bool>(&*value)) {
                const std::string& word = *on ? to.flag : to.off_flag;
                if (!word.empty()) result.flags.push_back(word);
            } else add(to.flag, text_of(*value));
        }
        if (!options.is_null()) {
            constexpr const char* options_file = "options.yaml";  // JSON, which is YAML
            result.files[options_file] = options.dump(2) + "\n";
            add(engine_.options_flag, options_file);
        }
        for (const JsonFlag& group : engine_.json_flags) {
            const bool any =
                any_of(group.fields, [&](const auto& field) { return wanted(field.second); });
            if (any && hold(group.when)) add(group.flag, json_of(group).dump());
        }
        return result;
    }
    [[nodiscard]] std::int64_t devices() const {
        std::int64_t result = 1;
        for (const DeviceFactor& factor : engine_.devices) {
            const EngineParameter* declared = engine_.find(factor.parameter);
            if (declared == nullptr) continue;  // not of this version
            if (!factor.unless.empty() && all_of(factor.unless, [&](const Condition& one) {
                    return engine_.find(one.parent) != nullptr && holds(one);
                }))
                continue;
            Value value = value_of(factor.parameter).value_or(Value(std::int64_t{1}));
            if (is_unset(value))
                value = declared->parameter.value_when_unset.value_or(Value(std::int64_t{1}));
            const auto* count = std::get_if<std::int64_t>(&value);
            result *= std::max<std::int64_t>(
                space_.set_by_arguments(engine_, *declared).value_or(count != nullptr ? *count : 1),
                1);
        }
        return result;
    }

private:
    [[nodiscard]] OrderedJson json_of(const JsonFlag& group) const {
        OrderedJson object;
        for (const auto& [key, name] : group.fields) {
            const auto value = value_of(name);
            if (value && !is_unset(*value)) object[key] = to_json(*value);
        }
        return object;
    }

    const EngineSpace& space_;
    const Engine& engine_;
    const Configuration& configuration_;
    std::string_view role_;
};

/// Its roles; nullptr: its servers do all by themselves.
const EngineRoles* roles_apart(const EngineSpace& space, const Configuration& configuration) {
    const Value* chosen = space.description().roles ? configuration.find("roles") : nullptr;
    return chosen != nullptr && *chosen == Value(std::string("apart"))
               ? &present(space.engine_of(configuration).roles)
               : nullptr;
}

}  // namespace

bool Composition::needs_router(const Configuration& configuration) const {
    return roles_apart(*space_, configuration) != nullptr;
}

std::vector<ServerGroup> Composition::groups(const Configuration& configuration) const {
    const EngineRoles* roles = roles_apart(*space_, configuration);
    if (roles == nullptr) return {{"", 1, Rendering(*space_, configuration, "").devices()}};
    std::vector<ServerGroup> result;
    for (const EngineRole& role : roles->each)
        result.push_back({role.name, configuration.integer(role.name + ".count"),
                          Rendering(*space_, configuration, role.name).devices()});
    return result;
}

std::int64_t Composition::devices_of(const Configuration& configuration) const {
    std::int64_t devices = 0;
    for (const ServerGroup& group : groups(configuration)) devices += group.count * group.devices;
    return devices;
}

Command Composition::render(const Configuration& configuration, const LaunchTarget& target,
                            std::string_view name) const {
    const Engine& engine = engine_of(configuration);
    const EngineRole* role = nullptr;
    if (const EngineRoles* roles = roles_apart(*space_, configuration))
        for (const EngineRole& one : roles->each)
            if (one.name == name) role = &one;
    if (!name.empty() && role == nullptr)
        throw SpaceError("the configuration " + configuration.text() + " has no role '" +
                         std::string(name) + "'");
    Words words = Rendering(*space_, configuration, name).words(target.model);
    Command command{{}, std::move(words.environment), std::move(words.files)};
    const Texts texts = texts_of(target, {{"model", words.model}});
    const bool has_address = !target.host.empty();
    add_filled(command.argv, engine.launch, texts, has_address);
    command.argv.insert(command.argv.end(), words.flags.begin(), words.flags.end());
    if (role != nullptr) {
        add_filled(command.argv, role->arguments, texts, has_address);
        for (const auto& [variable, value] : role->environment)
            if (has_address || !names_address(value))
                command.environment[variable] = filled(value, texts);
    }
    const std::vector<std::string> always = arguments_of(engine);
    command.argv.insert(command.argv.end(), always.begin(), always.end());
    return command;
}

Command Composition::render_router(
    const Configuration& configuration, const LaunchTarget& target,
    const std::map<std::string, std::vector<ServerAddress>>& servers) const {
    Command command;
    const EngineRoles* roles = roles_apart(*space_, configuration);
    if (roles == nullptr) throw SpaceError("no router is needed: " + configuration.text());
    for (const ServerGroup& group : groups(configuration))
        if (const auto* known = entry_in(servers, group.role); known == nullptr || known->empty())
            throw SpaceError("the router of " + engine_of(configuration).name +
                             " needs a server of the role '" + group.role + "'");
    const auto add = [&](const std::vector<std::string>& words, Texts further) {
        add_filled(command.argv, words, texts_of(target, std::move(further)), !target.host.empty());
    };
    for (const std::vector<std::string>& part : roles->router) {
        bool for_each_server = false;
        for (const auto& [role, known] : servers) {
            const std::string place = "{" + role + "_";
            if (none_of(part, [&](const std::string& word) { return contains(word, place); }))
                continue;
            for_each_server = true;
            for (const ServerAddress& server : known)
                add(part, {{role + "_url", server.url},
                           {role + "_side_port", std::to_string(server.side_port)}});
        }
        if (!for_each_server) add(part, {});
    }
    return command;
}

std::vector<ServerCommand> Composition::commands(const Configuration& configuration,
                                                 const LaunchTarget& target) const {
    if (!needs_router(configuration))
        return {{"", devices_of(configuration), target.port, render(configuration, target)}};
    const std::string inside = "127.0.0.1";
    std::vector<ServerCommand> result;
    std::vector<std::string> roles;  // of each
    for (const ServerGroup& group : groups(configuration))
        for (std::int64_t i = 1; i <= group.count; ++i) {
            roles.push_back(group.role);
            result.push_back({group.role + "-" + std::to_string(i), group.devices,
                              target.port + static_cast<int>(roles.size())});
        }
    int side_port = target.port + static_cast<int>(result.size()) + 1;
    std::map<std::string, std::vector<ServerAddress>> servers;
    for (std::size_t i = 0; i < result.size(); ++i) {
        ServerCommand& one = result[i];
        one.command = render(configuration, {target.model, inside, one.port, side_port}, roles[i]);
        servers[roles[i]].push_back(
            {"http://" + inside + ":" + std::to_string(one.port), side_port});
        side_port += static_cast<int>(std::max<std::int64_t>(one.devices, 1));
    }
    const std::string host = target.host.empty() ? inside : target.host;
    result.push_back(
        {"router", 0, target.port,
         render_router(configuration, {target.model, host, target.port, side_port}, servers)});
    return result;
}

std::string Composition::shown(const Configuration& configuration,
                               const LaunchTarget& target) const {
    if (!needs_router(configuration)) return render(configuration, target).text();
    constexpr int default_port = 8000;  // vLLM's own
    std::string names;
    std::string ratio;
    for (const ServerGroup& group : groups(configuration)) {
        names += (names.empty() ? "" : " : ") + group.role;
        ratio += (ratio.empty() ? "" : " : ") + std::to_string(group.count * group.devices);
    }
    std::string result = "# devices of " + names + " = " + ratio + "; each server needs its own";
    for (const ServerCommand& one :
         commands(configuration,
                  {target.model, target.host, target.port == 0 ? default_port : target.port}))
        result +=
            "\n# " + one.name +
            (one.devices == 0 ? "" : ": " + counted_text(std::size_t(one.devices), "device")) +
            "\n" + one.command.text();
    return result;
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
    const Rendering rendering(*space_, configuration, "");
    for (const Condition& condition : engine.weight_cache->when)
        if (engine.find(condition.parent) != nullptr && !rendering.holds(condition, true))
            return engine.name + " takes no weights from it with " + condition.parent + " " +
                   text_of(present(rendering.value_of(condition.parent)));
    return {};
}

WeightCacheCommands Composition::render_weight_cache(const Configuration& configuration,
                                                     const std::string& model,
                                                     const std::string& folder) const {
    const Engine& engine = engine_of(configuration);
    const WeightCacheDaemon& declared = present(engine.weight_cache);
    Words words = Rendering(*space_, configuration, "").words(model, &declared.parameters);
    const std::vector<std::pair<std::string, std::string>> values{{"model", words.model},
                                                                  {"folder", folder}};
    WeightCacheCommands result{words.model,
                               {{}, std::move(words.environment), std::move(words.files)}};
    for (const std::string& word : declared.launch)
        result.daemon.argv.push_back(filled(word, values));
    result.daemon.argv.insert(result.daemon.argv.end(), words.flags.begin(), words.flags.end());
    std::set<std::string> shared(declared.arguments.begin(), declared.arguments.end());
    for (const std::string& name : declared.parameters)
        if (const EngineParameter* parameter = engine.find(name))
            shared.insert(space_->destination_of(engine, *parameter).flag);
    for (const Setting& setting : space_->commands().flags(arguments_of(engine), engine).settings)
        if (shared.contains(setting.name) && setting.key.empty())
            result.daemon.argv.insert(result.daemon.argv.end(), setting.words.begin(),
                                      setting.words.end());
    for (const std::string& word : declared.engine)
        result.engine_adds.push_back(filled(word, values));
    result.ready = declared.ready;
    result.used = declared.used;
    result.ready_within_seconds = declared.ready_within_seconds;
    return result;
}

std::optional<std::string> Composition::cache_size_key(const Configuration& configuration) const {
    const Engine& engine = engine_of(configuration);
    const auto& size = engine.cache_size;
    if (!size || needs_router(configuration) ||
        !version_within(version_of(engine), size->since, ""))
        return std::nullopt;
    const auto sets_it = [&](const auto& setting) { return setting.flag == size->flag; };
    const auto says_it = [&](const Setting& setting) { return setting.name == size->flag; };
    const Rendering rendering(*space_, configuration, "");
    const auto holds = [&](const Condition& condition) {
        return engine.find(condition.parent) == nullptr || rendering.holds(condition, true);
    };
    if (any_of(passed(engine), sets_it) || !all_of(size->when, holds) ||
        any_of(space_->commands().flags(arguments_of(engine), engine).settings, says_it))
        return std::nullopt;
    Assignment key = configuration.assignment();
    for (const std::string& name : size->free)
        if (engine.find(name) != nullptr) key.erase(space_->locals(engine).at(name).name_in_space);
    return engine.name + ' ' + Configuration::of(key).text();
}

std::vector<PassedSetting> Composition::passed(const Engine& engine) const {
    std::vector<PassedSetting> result;
    for (std::size_t i = 0; i + 1 < engine.launch.size(); ++i)
        if (engine.launch[i].starts_with('-') && engine.launch[i + 1].starts_with('{'))
            result.push_back({.place = engine.launch[i + 1], .flag = engine.launch[i]});
    const auto setting_of = [](const EngineSpace::Local& local) {
        return PassedSetting{.parameter = local.name_in_space,
                             .declared = local.parameter->parameter.name};
    };
    const auto add = [&](const EngineSpace::Local& local) {
        if (local.name_in_space.empty()) return;
        const Destination& to = space_->destination_of(engine, *local.parameter);
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
        add(space_->locals(engine).at(declared.parameter.name));
    for (const auto& [role, own] : space_->role_locals())
        for (const auto& [name, local] : own) add(local);
    if (space_->description().roles && engine.roles)
        for (const EngineRole& role : engine.roles->each) {
            for (const std::string& word : role.arguments)
                if (word.starts_with("--")) result.push_back({.parameter = "roles", .flag = word});
            for (const auto& [name, value] : role.environment)
                result.push_back({.parameter = "roles", .environment = name});
        }
    for (const JsonFlag& group : engine.json_flags)
        for (const auto& [key, name] : group.fields) {
            const EngineSpace::Local& local = space_->locals(engine).at(name);
            if (local.name_in_space.empty()) continue;
            PassedSetting setting = setting_of(local);
            setting.flag = group.flag;
            result.push_back(std::move(setting));
        }
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
