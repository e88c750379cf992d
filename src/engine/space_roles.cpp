// SPDX-License-Identifier: Apache-2.0
// Prefill and decode apart: the parameters that each role has of its own.
#include "base/nearest.hpp"
#include "engine_space.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "version.hpp"

#include <array>
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
    return contains(concepts, parameter.concept_name);
}

/// The servers of a role where the study does not say how many: what the machine may hold.
Parameter default_count(const EngineRole& role, const std::optional<DeviceLimit>& devices,
                        std::size_t roles) {
    const std::string name = name_in_role(role, count_of_role);
    if (!devices)
        throw EntryErrors(
            name, "nothing says how many devices there are, so say how many servers to try");
    const std::int64_t others = std::int64_t(roles) - 1;
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
        throw EntryErrors(entry.name, "whole numbers of servers wanted");
    for (std::size_t i = 0; i < result.level_count(); ++i) {
        const Value level = result.level(i);
        const auto* count = std::get_if<std::int64_t>(&level);
        if (count == nullptr || *count < 1)
            throw EntryErrors(entry.name,
                              "whole numbers of servers from 1 wanted, got " + text_of(level));
    }
    result.default_value = entry.default_value.value_or(result.level(0));
    return result;
}

}  // namespace

/// What a study says of roles. They are tried beside the one server that does both, which stays the
/// default.
void EngineSpace::add_roles() {
    if (several_engines())
        throw EntryErrors("roles",
                          "one engine wanted, got " + std::to_string(description_.engines.size()));
    const Engine& engine = description_.engines.front();
    const std::string version = version_of(engine);
    if (!engine.roles)
        throw EntryErrors(
            "roles", "the file of " + engine.name +
                         " does not say how it runs prefill and decode apart (its key `roles`)");
    if (!version_within(version, engine.roles->since, ""))
        throw EntryErrors("roles", engine.name + " runs prefill and decode apart from " +
                                       engine.roles->since + ", and the study is for " + version);
    const auto& roles = engine.roles->each;
    if (description_.devices && description_.devices->count < std::int64_t(roles.size()))
        throw EntryErrors(
            "roles",
            "prefill and decode apart take at least " + std::to_string(roles.size()) +
                " devices, and the " +
                (description_.devices->stated
                     ? "machine has " + std::to_string(description_.devices->count)
                     : std::string(
                           "study does not say how many there are: write `hardware: {count: N}`")));
    if (find(choice_of_roles) != nullptr)
        throw EntryErrors("roles",
                          "a parameter of the study has this name already; give it another");
    for (const auto& [name, entries] : *description_.roles) {
        std::vector<std::string> known = names_in(roles);
        if (!contains(known, name))
            throw EntryErrors("roles",
                              engine.name + " has no role '" + name + "'; it has " + listed(known));
    }
    parameters_.insert(parameters_.begin(),
                       Parameter::choice(std::string(choice_of_roles), {together, apart}));
    for (const EngineRole& role : roles) {
        role_locals_[role.name];
        std::optional<Parameter> count;
        const auto* said = entry_in(*description_.roles, role.name);
        for (const SpaceEntry& entry : said == nullptr ? std::vector<SpaceEntry>{} : *said)
            keep_wrong([&] {
                if (entry.name == name_in_role(role, count_of_role)) count = stated_count(entry);
                else add_role_parameter(role, entry);
            });
        if (!count) count = default_count(role, description_.devices, roles.size());
        count->active_when = {{std::string(choice_of_roles), {apart}}};
        count->grows_memory = false;
        parameters_.push_back(std::move(*count));
    }
    throw_wrong();
    // What each role has of its own, nothing else asks for.
    for (Parameter& parameter : parameters_)
        for (const auto& [name, local] : locals(engine)) {
            if (local.name_in_space != parameter.name) continue;
            if (all_of(role_locals_,
                       [&, &own = name](const auto& one) { return one.second.contains(own); }))
                parameter.active_when.push_back({std::string(choice_of_roles), {together}});
        }
}

/// A parameter of the engine that a role has for itself: under the name of the role, where roles
/// are apart. What it depends on is the role's own too where that is so.
void EngineSpace::add_role_parameter(const EngineRole& role, const SpaceEntry& entry) {
    const Engine& engine = description_.engines.front();
    const std::string name = entry.name.substr(role.name.size() + 1);
    const auto is_it = [&](const EngineParameter& one) {
        return one.parameter.name == name || one.parameter.concept_name == name;
    };
    const auto declared = find_if(engine.parameters, is_it);
    if (declared == engine.parameters.end()) {
        std::vector<std::string> known{std::string(count_of_role)};
        for (const EngineParameter& one : engine.parameters) known.push_back(one.parameter.name);
        throw EntryErrors(entry.name, "'" + name + "' is no parameter of " + engine.name +
                                          "; known: " + listed(nearest_first(name, known)));
    }
    if (is_of_both_roles(declared->parameter))
        throw EntryErrors(
            entry.name, "prefill and decode hand over caches, so it is the same for both: write '" +
                            declared->parameter.name + "' under 'space'");
    if (!entry.checkpoints.empty())
        throw EntryErrors(entry.name, "checkpoints belong under 'space'");
    Parameter parameter = narrowed(engine, *declared, entry);
    parameter.name = name_in_role(role, declared->parameter.name);
    parameter.concept_name.clear();  // of the engine's own there is one
    parameter.active_when = {{std::string(choice_of_roles), {apart}}};
    for (const Condition& condition : declared->parameter.active_when) {
        const Local& parent = local_of(engine, role.name, condition.parent);
        const std::vector<Value> values = with_unset(condition.values, parent.parameter->parameter);
        if (!parent.name_in_space.empty())
            parameter.active_when.push_back({parent.name_in_space, values});
        else if (!contains(values, parent.parameter->parameter.default_value))
            throw EntryErrors(entry.name, "it can never be active: it needs another " +
                                              condition.parent +
                                              ", which this study does not offer");
    }
    role_locals_[role.name].emplace(declared->parameter.name, Local{&*declared, parameter.name});
    parameters_.push_back(std::move(parameter));
}

}  // namespace servetune
