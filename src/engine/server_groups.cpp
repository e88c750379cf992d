// SPDX-License-Identifier: Apache-2.0
// Prefill and decode apart: the parameters of roles, the servers of a configuration, their
// commands, and how many devices they may take together.
#include "device_products.hpp"
#include "filled_words.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/space/expression_parser.hpp"
#include "servetune/error.hpp"
#include "space/expression_rewriting.hpp"
#include "version.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace servetune {
namespace {

constexpr std::string_view choice_of_roles = "roles";
const Value together(std::string("together"));
const Value apart(std::string("apart"));
constexpr std::string_view count_of_role = "count";

/// `prefill.count`.
std::string name_in_role(const EngineRole& role, std::string_view parameter) {
    return role.name + "." + std::string(parameter);
}

/// Concepts that say what a cache holds, and what computes it.
bool is_of_both_roles(const Parameter& parameter) {
    constexpr std::array<std::string_view, 5> concepts{
        "quantization", "weight_dtype", "kv_cache_dtype", "value_cache_dtype", "state_cache_dtype"};
    return std::find(concepts.begin(), concepts.end(), parameter.concept_name) != concepts.end();
}

/// The servers of a role where the study does not say how many: what the machine may hold.
Parameter default_count(const EngineRole& role, const std::optional<DeviceLimit>& devices,
                      std::size_t roles) {
    const std::string name = name_in_role(role, count_of_role);
    if (!devices)
        throw SpaceError(
            "'" + name +
            "': nothing says how many devices there are, so say how many servers to try");
    const std::int64_t others = static_cast<std::int64_t>(roles) - 1;
    return Parameter{name, IntegerDomain{1, devices->count - others}, std::int64_t{1}};
}

/// As the study says it.
Parameter stated_count(const SpaceEntry& entry) {
    Parameter result{entry.name, IntegerDomain{1, 1}, std::int64_t{1}};
    if (entry.domain) result.domain = *entry.domain;
    else if (entry.default_value) result.domain = ChoiceDomain{{*entry.default_value}};
    const bool integers = std::holds_alternative<IntegerDomain>(result.domain) ||
                          std::holds_alternative<ChoiceDomain>(result.domain);
    if (!integers || entry.offers_unset.value_or(false))
        throw SpaceError("'" + entry.name + "': whole numbers of servers wanted");
    for (std::size_t i = 0; i < result.level_count(); ++i) {
        const Value level = result.level(i);
        const auto* count = std::get_if<std::int64_t>(&level);
        if (count == nullptr || *count < 1)
            throw SpaceError("'" + entry.name + "': whole numbers of servers from 1 wanted, got " +
                             text_of(level));
    }
    result.default_value = entry.default_value.value_or(result.level(0));
    return result;
}

}  // namespace

/// What a study says of roles. They are tried beside the one server that does both, which stays the
/// default.
void Composition::add_roles() {
    if (description_.engines.size() > 1)
        throw SpaceError("'roles': one engine wanted, got " +
                         std::to_string(description_.engines.size()));
    const Engine& engine = description_.engines.front();
    const std::string version = version_of(engine);
    if (!engine.roles)
        throw SpaceError("'roles': the file of " + engine.name +
                         " does not say how it runs prefill and decode apart (its key `roles`)");
    if (!version_within(version, engine.roles->since, ""))
        throw SpaceError("'roles': " + engine.name + " runs prefill and decode apart from " +
                         engine.roles->since + ", and the study is for " + version);
    const auto& roles = engine.roles->each;
    if (description_.devices &&
        description_.devices->count < static_cast<std::int64_t>(roles.size()))
        throw SpaceError(
            "'roles': prefill and decode apart take at least " + std::to_string(roles.size()) +
            " devices, and the " +
            (description_.devices->stated
                 ? "machine has " + std::to_string(description_.devices->count)
                 : std::string(
                       "study does not say how many there are: write `hardware: {count: N}`")));
    if (std::any_of(parameters_.begin(), parameters_.end(),
                    [](const Parameter& one) { return one.name == choice_of_roles; }))
        throw SpaceError(
            "'roles': a parameter of the study has this name already; give it another");
    for (const auto& [name, entries] : *description_.roles) {
        std::vector<std::string> known;
        for (const EngineRole& role : roles) known.push_back(role.name);
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw SpaceError("'roles': " + engine.name + " has no role '" + name + "'; it has " +
                             listed(known));
    }
    parameters_.insert(parameters_.begin(),
                       Parameter::choice(std::string(choice_of_roles), {together, apart}));
    std::string wrong;  // all of it, a line each
    for (const EngineRole& role : roles) {
        role_names_[role.name];
        std::optional<Parameter> count;
        const auto said = description_.roles->find(role.name);
        for (const SpaceEntry& entry :
             said == description_.roles->end() ? std::vector<SpaceEntry>{} : said->second)
            try {
                if (entry.name == name_in_role(role, count_of_role)) count = stated_count(entry);
                else add_role_parameter(role, entry);
            } catch (const SpaceError& error) {
                wrong += (wrong.empty() ? "" : "\n") + std::string(error.what());
            }
        if (!count) count = default_count(role, description_.devices, roles.size());
        count->active_when = {{std::string(choice_of_roles), {apart}}};
        count->grows_memory = false;
        parameters_.push_back(std::move(*count));
    }
    if (!wrong.empty()) throw SpaceError(wrong);
    // What each role has of its own, nothing else asks for.
    for (Parameter& parameter : parameters_)
        for (const auto& [name, local] : names_.at(engine.name).locals) {
            if (local.name_in_space != parameter.name) continue;
            if (std::all_of(
                    role_names_.begin(), role_names_.end(),
                    [&, &own = name](const auto& one) { return one.second.locals.contains(own); }))
                parameter.active_when.push_back({std::string(choice_of_roles), {together}});
        }
}

/// A parameter of the engine that a role has for itself: under the name of the role, where roles
/// are apart. What it depends on is the role's own too where that is so.
void Composition::add_role_parameter(const EngineRole& role, const SpaceEntry& entry) {
    const Engine& engine = description_.engines.front();
    const std::string name = entry.name.substr(role.name.size() + 1);
    const auto is_it = [&](const EngineParameter& one) {
        return one.parameter.name == name || one.parameter.concept_name == name;
    };
    const auto declared = std::find_if(engine.parameters.begin(), engine.parameters.end(), is_it);
    if (declared == engine.parameters.end()) {
        std::vector<std::string> known{std::string(count_of_role)};
        for (const EngineParameter& one : engine.parameters) known.push_back(one.parameter.name);
        throw SpaceError("'" + entry.name + "': '" + name + "' is no parameter of " + engine.name +
                         "; known: " + listed(nearest_first(name, known)));
    }
    if (is_of_both_roles(declared->parameter))
        throw SpaceError(
            "'" + entry.name +
            "': prefill and decode hand over caches, so it is the same for both: write '" +
            declared->parameter.name + "' under 'space'");
    if (!entry.drafts.empty())
        throw SpaceError("'" + entry.name + "': drafts belong under 'space'");
    if (!entry.checkpoints.empty())
        throw SpaceError("'" + entry.name + "': checkpoints belong under 'space'");
    Parameter parameter = narrowed(engine, *declared, entry);
    parameter.name = name_in_role(role, declared->parameter.name);
    parameter.concept_name.clear();  // of the engine's own there is one
    parameter.active_when = {{std::string(choice_of_roles), {apart}}};
    for (const Condition& condition : declared->parameter.active_when) {
        const Local& parent = local_of(engine, role.name, condition.parent);
        const std::vector<Value> values = with_unset(condition.values, parent.parameter->parameter);
        if (!parent.name_in_space.empty())
            parameter.active_when.push_back({parent.name_in_space, values});
        else if (std::find(values.begin(), values.end(),
                           parent.parameter->parameter.default_value) == values.end())
            throw SpaceError("'" + entry.name + "' can never be active: it needs another " +
                             condition.parent + ", which this study does not offer");
    }
    role_names_[role.name].locals.emplace(declared->parameter.name,
                                          Local{&*declared, parameter.name});
    parameters_.push_back(std::move(parameter));
}

/// The rule that all servers together fit the machine.
void Composition::bound_roles(const Engine& engine) {
    if (!description_.devices) return;
    const auto always_one = [&](const EngineRole& role, const std::string& name) {
        const Local& local = local_of(engine, role.name, name);
        return local.name_in_space.empty() &&
               local.parameter->parameter.default_value == Value(std::int64_t{1}) &&
               !said_in_arguments(engine, *local.parameter);
    };
    // Of a role: one alternative for each set of factors that share devices. Names are
    // `role.local`.
    const auto alternatives = [&](const EngineRole& role) {
        std::vector<DeviceFactor> factors;
        for (const DeviceFactor& factor : engine.devices)
            if (engine.find(factor.parameter) != nullptr && !always_one(role, factor.parameter))
                factors.push_back(factor);
        const std::string count = name_in_role(role, count_of_role);
        const auto text = [&](const DeviceFactor& factor) {
            return name_in_role(role, factor.parameter);
        };
        std::vector<DeviceProduct> result = device_products(engine, factors, role.name + ".", text);
        for (DeviceProduct& one : result)
            one.product = one.product.empty() ? count : count + " * " + one.product;
        return result;
    };
    std::vector<DeviceProduct> all{{"", ""}};
    const auto& roles = present(engine.roles).each;
    for (const EngineRole& role : roles) {
        std::vector<DeviceProduct> longer;
        for (const DeviceProduct& before : all)
            for (const DeviceProduct& one : alternatives(role))
                longer.push_back(
                    {before.conditions + one.conditions,
                     before.product + (before.product.empty() ? "" : " + ") + one.product});
        all = std::move(longer);
    }
    std::string text;
    for (const DeviceProduct& one : all)
        text += (text.empty() ? "(" : " or (") + one.conditions + one.product +
                " <= " + std::to_string(description_.devices->count) + ")";
    Expression rule = parse_expression(text);
    std::map<std::string, std::string> renames;
    const std::vector<std::string> names = rule.names();
    for (const std::string& name : names) {
        const auto dot = name.find('.');
        const std::string local_name = name.substr(dot + 1);
        if (local_name == count_of_role) {
            renames[name] = name;
            continue;
        }
        const Local& local = local_of(engine, name.substr(0, dot), local_name);
        const Parameter& declared = local.parameter->parameter;
        if (const auto said = said_in_arguments(engine, *local.parameter))
            rule = rule.with_constant(name, *said);
        else if (!local.name_in_space.empty()) renames[name] = local.name_in_space;
        else
            rule = rule.with_constant(name, is_unset(declared.default_value)
                                                ? declared.value_when_unset.value_or(Unset{})
                                                : declared.default_value);
    }
    rule = rule.simplified_rule();
    rule = rule.renamed([&](const std::string& name) { return renames.at(name); })
               .only_if(std::string(choice_of_roles), apart);
    constraints_.emplace_back(Require{std::move(rule),
                                      "the machine has " +
                                          std::to_string(description_.devices->count) +
                                          " devices for all roles together",
                                      true});
}

bool Composition::needs_router(const Configuration& configuration) const {
    const Value* chosen = description_.roles ? configuration.find(choice_of_roles) : nullptr;
    return chosen != nullptr && *chosen == apart;
}

std::vector<ServerGroup> Composition::groups(const Configuration& configuration) const {
    if (!needs_router(configuration)) return {{"", 1, devices_of(configuration, "")}};
    std::vector<ServerGroup> result;
    for (const EngineRole& role : present(engine_of(configuration).roles).each)
        result.push_back({role.name, configuration.integer(name_in_role(role, count_of_role)),
                          devices_of(configuration, role.name)});
    return result;
}

Command Composition::render_router(
    const Configuration& configuration, const LaunchTarget& target,
    const std::map<std::string, std::vector<ServerAddress>>& servers) const {
    Command command;
    const Engine& engine = engine_of(configuration);
    if (!needs_router(configuration))
        throw SpaceError("no router is needed: " + configuration.text());
    for (const ServerGroup& group : groups(configuration))
        if (const auto known = servers.find(group.role);
            known == servers.end() || known->second.empty())
            throw SpaceError("the router of " + engine.name + " needs a server of the role '" +
                             group.role + "'");
    const auto add = [&](const std::vector<std::string>& words, Texts further) {
        add_filled(command.argv, words, texts_of(target, std::move(further)), !target.host.empty());
    };
    for (const std::vector<std::string>& part : present(engine.roles).router) {
        bool for_each_server = false;
        for (const auto& [role, known] : servers) {
            const std::string place = "{" + role + "_";
            if (std::none_of(part.begin(), part.end(), [&](const std::string& word) {
                    return word.find(place) != std::string::npos;
                }))
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
        result += "\n# " + one.name +
                  (one.devices == 0 ? "" : ": " + counted_text(one.devices, "device")) + "\n" +
                  one.command.text();
    return result;
}

const EngineRole* Composition::role_of(const Configuration& configuration,
                                       std::string_view role) const {
    if (needs_router(configuration))
        for (const EngineRole& one : present(engine_of(configuration).roles).each)
            if (one.name == role) return &one;
    throw SpaceError("the configuration " + configuration.text() + " has no role '" +
                     std::string(role) + "'");
}

}  // namespace servetune
