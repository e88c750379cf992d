// SPDX-License-Identifier: Apache-2.0
// Parameters of which the study's chip or version takes no value: they leave the space, and what
// names them goes on without them.
#include "engine/constraint_errors.hpp"
#include "json_form.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "space/expression_rewriting.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace servetune {
namespace {

bool is_among(const std::vector<Value>& values, const Value& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

/// What is left of an engine's parameters, and what those that left come to.
struct LeftOut {
    std::map<std::string, Parameter> held{};  ///< no flag is passed: the engine's own default
    std::set<std::string> inactive{};         ///< their conditions can never hold

    /// Whether a condition or rule that wants one of `values` of a held parameter has it.
    [[nodiscard]] bool holds(const std::string& name, const std::vector<Value>& values) const {
        const Parameter& parameter = held.at(name);
        if (is_among(values, parameter.default_value)) return true;
        return is_unset(parameter.default_value) && parameter.value_when_unset &&
               is_among(values, *parameter.value_when_unset);
    }
    /// What stays of some conditions; nothing where they can never hold.
    [[nodiscard]] std::optional<std::vector<Condition>> rest_of(
        const std::vector<Condition>& conditions) const {
        std::vector<Condition> rest;
        for (const Condition& condition : conditions) {
            if (inactive.contains(condition.parent)) return std::nullopt;
            if (!held.contains(condition.parent)) rest.push_back(condition);
            else if (!holds(condition.parent, condition.values)) return std::nullopt;
        }
        return rest;
    }
    [[nodiscard]] bool has(const std::string& name) const {
        return held.contains(name) || inactive.contains(name);
    }
};

/// The rule with what is known of those that left; nothing where it can no longer be broken. A rule
/// that is always broken stays: whoever adds it to the space says so.
std::optional<Constraint> without(const Constraint& constraint, const LeftOut& left) {
    if (const auto* rule = std::get_if<Require>(&constraint)) {
        Expression expression = rule->expression;
        for (const std::string& name : rule->expression.names()) {
            if (left.inactive.contains(name)) expression = expression.with_constant(name, Unset{});
            if (const auto held = left.held.find(name); held != left.held.end()) {
                const Parameter& parameter = held->second;
                const Value& usual = parameter.default_value;
                expression = expression.with_constant(
                    name, is_unset(usual) ? parameter.value_when_unset.value_or(Unset{}) : usual);
            }
        }
        expression = expression.simplified_rule();
        if (expression.constant() == true) return std::nullopt;
        return Require{expression, rule->because};
    }
    const auto* forbid = std::get_if<Forbid>(&constraint);
    if (forbid == nullptr) return constraint;
    Forbid rest{{}, forbid->because};
    for (const auto& [name, values] : forbid->values) {
        if (left.inactive.contains(name)) return std::nullopt;
        if (!left.held.contains(name)) rest.values[name] = values;
        else if (!left.holds(name, values)) return std::nullopt;
    }
    return rest;
}

}  // namespace

/// A study that names values of such a parameter is told why there is none.
void Composition::refuse_emptied(const Engine& engine, const EngineParameter& declared) const {
    const SpaceEntry* entry = entry_for(engine, declared);
    const bool wants_none =
        entry != nullptr && !entry->domain && is_unset(entry->default_value.value_or(Unset{}));
    if (entry == nullptr || entry->of_preset || wants_none) return;
    if (description_.engines.size() > 1 && !entry->name.starts_with(engine.name + "."))
        return;  // shared: others may have it
    std::set<std::string> chips;
    for (const auto& [value, takers] : declared.architectures)
        chips.insert(takers.begin(), takers.end());
    throw EntryErrors(
        entry->name,
        engine.name + " takes none of its values " +
            (declared.architectures.empty() ? "in version " + version_of(engine)
             : chips.empty()
                 ? "on " + description_.architecture + ", only where it serves from processors"
                 : "on " + description_.architecture + "; it takes some on " +
                       listed(std::vector<std::string>(chips.begin(), chips.end()))));
}

/// Takes out the parameters of choices without a value, and those that then can never be active.
/// Where only the default is refused, no flag takes its place.
void Composition::leave_out_emptied(Engine& engine) {
    LeftOut left;
    for (EngineParameter& declared : engine.parameters) {
        Parameter& parameter = declared.parameter;
        const auto* choice = std::get_if<ChoiceDomain>(&parameter.domain);
        if (choice == nullptr) continue;
        if (choice->values.empty()) {
            refuse_emptied(engine, declared);
            left.held.emplace(parameter.name, parameter);
        } else if (!is_unset(parameter.default_value) &&
                   !is_among(choice->values, parameter.default_value)) {
            parameter.default_value = Unset{};
            parameter.offers_unset = true;
        }
    }
    if (left.held.empty()) return;
    for (const auto& [name, parameter] : left.held) {
        const SpaceEntry* entry = entry_for(engine, *engine.find(name));
        if (entry != nullptr ? entry->of_preset : description_.others_searched)
            notes_.push_back("'" + prefix(engine) + name + "' is left out: " + engine.name +
                             " takes none of its values " +
                             (description_.architecture.empty()
                                  ? "in this version"
                                  : "on " + description_.architecture));
    }
    for (std::size_t known = 0; known != left.held.size() + left.inactive.size();) {
        known = left.held.size() + left.inactive.size();
        for (const EngineParameter& declared : engine.parameters)
            if (!left.has(declared.parameter.name) && !left.rest_of(declared.parameter.active_when))
                left.inactive.insert(declared.parameter.name);
    }
    // What a preset, or a study that fixes `engine`, says of them is said.
    for (const EngineParameter& declared : engine.parameters)
        if (left.held.contains(declared.parameter.name))
            if (const SpaceEntry* entry = entry_for(engine, declared);
                entry != nullptr &&
                (description_.engines.size() == 1 || entry->name.starts_with(engine.name + ".")))
                description_.entries.erase(description_.entries.begin() +
                                           (entry - description_.entries.data()));
    std::erase_if(engine.parameters, [&](const EngineParameter& declared) {
        return left.has(declared.parameter.name);
    });
    for (EngineParameter& declared : engine.parameters)
        declared.parameter.active_when = *left.rest_of(declared.parameter.active_when);
    std::vector<Constraint> rules;
    for (const Constraint& constraint : engine.constraints)
        if (auto rest = without(constraint, left)) rules.push_back(std::move(*rest));
    engine.constraints = std::move(rules);
    std::erase_if(engine.json_flags,
                  [&](const JsonFlag& flag) { return !left.rest_of(flag.when); });
    for (JsonFlag& flag : engine.json_flags) {
        flag.when = *left.rest_of(flag.when);
        remove_keys(flag, [&](const std::string& name) { return left.has(name); });
    }
}

}  // namespace servetune
