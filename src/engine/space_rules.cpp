// SPDX-License-Identifier: Apache-2.0
// The rules of a space: the engines' and the study's under its names, and how many devices a
// layout, or all servers together, may take.
#include "base/present.hpp"
#include "engine_space.hpp"
#include "engine_value.hpp"
#include "servetune/error.hpp"
#include "servetune/expression.hpp"
#include "space/expression_rewriting.hpp"
#include "space/rule_values.hpp"

#include <algorithm>

namespace servetune {
namespace {

std::int64_t largest(const Domain& domain) {
    if (const auto* range = std::get_if<IntegerDomain>(&domain)) return range->high;
    std::int64_t result = 0;
    if (const auto* choice = std::get_if<ChoiceDomain>(&domain))
        for (const Value& value : choice->values)
            if (const auto* count = std::get_if<std::int64_t>(&value))
                result = std::max(result, *count);
    return result;
}

std::string name_of_role(const EngineRole& role, const std::string& parameter) {
    return role.name + "." + parameter;
}

/// Whose number a factor is, and what it depends on.
std::vector<std::string> names_of_factor(const DeviceFactor& factor) {
    std::vector<std::string> result{factor.parameter};
    for (const Condition& condition : factor.unless) result.push_back(condition.parent);
    return result;
}

}  // namespace

Expression with_model_facts(Expression rule, const std::map<std::string, std::int64_t>& known) {
    for (const std::string_view name : model_facts) {
        const auto* fact = entry_in(known, std::string(name));
        rule = rule.with_constant(name, fact == nullptr ? Value(Unset{}) : Value(*fact));
    }
    return rule;
}

/// A rule of the study, in the names of the space.
void EngineSpace::add_constraint(const Constraint& constraint) {
    if (const auto* rule = std::get_if<Require>(&constraint))
        constraints_.emplace_back(Require{
            rule->expression.renamed([&](const std::string& name) { return resolve(name); }),
            rule->because, true});
    else if (const auto* forbid = std::get_if<Forbid>(&constraint)) {
        Forbid renamed{{}, forbid->because, true};
        for (const auto& [name, values] : forbid->values) {
            std::vector<Value>& taken = renamed.values[resolve(name)];
            for (const Value& value : values) taken.push_back(normalized(resolve(name), value));
        }
        constraints_.emplace_back(std::move(renamed));
    } else constraints_.push_back(constraint);
    check_values(constraints_.back());
}

/// A rule of the study may name a value that only its engines have, not one that nothing has.
void EngineSpace::check_values(const Constraint& constraint) const {
    for_each_value(constraint, [&](const std::string& name, const Value& value, bool exactly) {
        const Parameter* searched = find(name);
        if (searched == nullptr || can_have(*searched, value, exactly)) return;
        bool known = false;
        for_each_local([&](const Engine&, const Local& local) {
            known = known || (local.name_in_space == name &&
                              can_have(local.parameter->parameter, value, exactly));
        });
        if (!known) refuse_value(constraint, name, value, searched->domain_text());
    });
}

/// Values of parameters that are not in the space in place of their names, and the space's names
/// of the others. `locals`: by the rule's names; others are the space's already.
Expression EngineSpace::in_space(Expression rule, const Engine& engine,
                                 const std::map<std::string, const Local*>& locals) const {
    std::map<std::string, std::string> renames;
    for (const auto& [name, local] : locals) {
        const Parameter& declared = local->parameter->parameter;
        if (const auto said = set_by_arguments(engine, *local->parameter))
            rule = rule.with_constant(name, *said);
        else if (!local->name_in_space.empty()) renames[name] = local->name_in_space;
        else
            rule = rule.with_constant(name, is_unset(declared.default_value)
                                                ? declared.value_when_unset.value_or(Unset{})
                                                : declared.default_value);
    }
    rule = rule.simplified_rule();
    if (rule.constant()) return rule;
    for (const auto& [name, in_space] : renames)
        rule = where_a_number(rule, name, *locals.at(name)->parameter, in_space);
    return rule.renamed([&](const std::string& name) {
        const auto* known = entry_in(renames, name);
        return known == nullptr ? name : *known;
    });
}

/// `role`: the rules that speak of what this role has of its own; empty: all rules.
void EngineSpace::add_constraints(const Engine& engine, std::string_view role) {
    const auto impossible = [&](const Constraint& constraint) {
        const std::string& why = reason(constraint);
        throw SpaceError(engine.name + ": '" + text_of(constraint) +
                         "' cannot hold with the other parameters at their defaults" +
                         (why.empty() ? "" : " (" + why + ")"));
    };
    for (const Constraint& constraint : engine.constraints) {
        std::map<std::string, const Local*> locals;
        for (const std::string& name : names_of(constraint))
            locals[name] = &local_of(engine, role, name);
        const auto is_own = [&](const auto& one) {
            return role_locals_.find(role)->second.contains(one.first);
        };
        if (!role.empty() && none_of(locals, is_own)) continue;
        if (const auto* rule = std::get_if<Require>(&constraint)) {
            Expression expression = in_space(rule->expression, engine, locals);
            if (const auto always = expression.constant()) {
                if (!*always) impossible(constraint);
                continue;
            }
            if (several_engines()) expression = expression.only_if("engine", engine.name);
            if (!role.empty()) expression = expression.only_if("roles", std::string("apart"));
            constraints_.emplace_back(Require{std::move(expression), rule->because, true});
        } else if (const auto* declared = std::get_if<Forbid>(&constraint)) {
            Forbid renamed{{}, declared->because, true};
            bool can_match = true;
            for (const auto& [name, values] : declared->values) {
                const Local& local = local_of(engine, role, name);
                const Parameter& of_engine = local.parameter->parameter;
                const Parameter* searched = find(local.name_in_space);
                if (!local.name_in_space.empty())
                    renamed.values[local.name_in_space] =
                        searched != nullptr && searched->offers_unset
                            ? with_unset(values, of_engine)
                            : values;
                else can_match = can_match && contains(values, of_engine.default_value);
            }
            if (!can_match) continue;
            if (renamed.values.empty()) impossible(constraint);
            if (several_engines()) renamed.values["engine"] = {engine.name};
            if (!role.empty()) renamed.values["roles"] = {std::string("apart")};
            constraints_.emplace_back(std::move(renamed));
        }
    }
}

/// The rule where the parameter has a number of its scale: a word such as -1
/// (`EngineParameter::also`) says nothing of how much.
Expression EngineSpace::where_a_number(const Expression& rule, const std::string& name,
                                       const EngineParameter& declared,
                                       const std::string& name_in_space) const {
    const auto* range = std::get_if<IntegerDomain>(&declared.parameter.domain);
    const auto* words = declared.also ? std::get_if<ChoiceDomain>(&declared.also->domain) : nullptr;
    const Parameter* searched = find(name_in_space);
    if (range == nullptr || words == nullptr || searched == nullptr) return rule;
    std::string text;
    for (const Value& word : words->values)
        if (searched->contains(word)) text += name + " in [" + text_of(word) + "] or ";
    return text.empty() ? rule : parse_expression(text + "(" + rule.text() + ")");
}

std::optional<std::int64_t> EngineSpace::set_by_arguments(const Engine& engine,
                                                          const EngineParameter& declared) const {
    const Assignment& set = description_.set_by_arguments.at(engine.name);
    const auto* said = entry_in(set, declared.parameter.name);
    const Value value = said == nullptr ? Value() : normalized_value(declared, *said);
    const auto* count = std::get_if<std::int64_t>(&value);
    return count != nullptr ? std::optional(*count) : std::nullopt;
}

/// Adds the rule that a layout fits the machine. Without a stated count one device is taken, and
/// what asks for more is an error.
void EngineSpace::bound_devices(Engine& engine) {
    if (!description_.devices || engine.devices.empty()) return;
    const DeviceLimit& limit = *description_.devices;
    const auto refuse_unstated = [&](const std::string& what, std::int64_t count) {
        if (limit.stated || count <= 1) return;
        throw SpaceError(
            what + " asks " + engine.name + " for several devices (up to " + std::to_string(count) +
            "), and the study does not say how many there are: write `hardware: {count: N}`");
    };
    const auto factor_text = [&](const DeviceFactor& factor) {
        const EngineParameter& declared = *engine.find(factor.parameter);
        const auto said = set_by_arguments(engine, declared);
        if (!said) return factor.parameter;
        refuse_unstated("'arguments': " + destination_of(engine, declared).flag, *said);
        return std::to_string(*said);
    };
    std::vector<DeviceFactor> factors;  // of this version
    for (const DeviceFactor& factor : engine.devices) {
        const EngineParameter* declared = engine.find(factor.parameter);
        if (declared == nullptr) continue;
        const bool held = !description_.others_searched && entry_for(engine, *declared) == nullptr;
        const bool always_one = held && declared->parameter.default_value == Value(std::int64_t{1});
        if (!always_one || factor_text(factor) != factor.parameter) factors.push_back(factor);
    }
    for (const DeviceFactor& factor : factors) {
        const SpaceEntry* entry = entry_for(engine, *engine.find(factor.parameter));
        if (entry == nullptr) continue;
        const Value named = entry->default_value.value_or(Unset{});
        const auto* count = std::get_if<std::int64_t>(&named);
        refuse_unstated(
            "'" + entry->name + "'",
            std::max(count != nullptr ? *count : 0, entry->domain ? largest(*entry->domain) : 0));
    }
    for (const DeviceFactor& factor : factors) {
        const SpaceEntry* entry = entry_for(engine, *engine.find(factor.parameter));
        const auto* choice = entry != nullptr && entry->domain && !entry->of_preset
                                 ? std::get_if<ChoiceDomain>(&*entry->domain)
                                 : nullptr;
        if (choice == nullptr || !factor.unless.empty()) continue;
        for (const Value& value : choice->values)
            if (const auto* count = std::get_if<std::int64_t>(&value);
                count != nullptr && *count > limit.count)
                notes_.push_back("'" + entry->name + "': " + text_of(value) +
                                 " is not tried: a trial may take " + std::to_string(limit.count) +
                                 (limit.count == 1 ? " device" : " devices"));
    }
    std::string rule;
    for (const DeviceProduct& one : device_products(engine, factors, "", factor_text)) {
        if (one.product.empty()) continue;
        const std::string alternative =
            one.conditions + one.product + " <= " + std::to_string(limit.count);
        rule += rule.empty() ? alternative : " or (" + alternative + ")";
    }
    if (rule.empty()) return;
    engine.constraints.push_back(
        require(rule, limit.stated ? "the machine has " + std::to_string(limit.count) +
                                         (limit.count == 1 ? " device" : " devices")
                                   : "the study does not say how many devices there are, so one is "
                                     "taken; write `hardware: {count: N}`"));
}

/// The rule that all servers together fit the machine.
void EngineSpace::bound_roles(const Engine& engine) {
    if (!description_.devices) return;
    const auto always_one = [&](const EngineRole& role, const std::string& name) {
        const Local& local = local_of(engine, role.name, name);
        return local.name_in_space.empty() &&
               local.parameter->parameter.default_value == Value(std::int64_t{1}) &&
               !set_by_arguments(engine, *local.parameter);
    };
    // Of a role: one alternative for each set of factors that share devices. Names are
    // `role.local`.
    const auto alternatives = [&](const EngineRole& role) {
        std::vector<DeviceFactor> factors;
        for (const DeviceFactor& factor : engine.devices)
            if (engine.find(factor.parameter) != nullptr && !always_one(role, factor.parameter))
                factors.push_back(factor);
        const std::string count = name_of_role(role, "count");
        const auto text = [&](const DeviceFactor& factor) {
            return name_of_role(role, factor.parameter);
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
    std::map<std::string, const Local*> locals;
    for (const EngineRole& role : roles)
        for (const DeviceFactor& factor : engine.devices)
            for (const std::string& name : names_of_factor(factor))
                if (engine.find(name) != nullptr)
                    locals[name_of_role(role, name)] = &local_of(engine, role.name, name);
    const std::string devices = std::to_string(description_.devices->count);
    constraints_.emplace_back(Require{
        in_space(parse_expression(text), engine, locals).only_if("roles", std::string("apart")),
        "the machine has " + devices + " devices for all roles together", true});
}

}  // namespace servetune
