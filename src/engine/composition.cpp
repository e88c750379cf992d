// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/engine/composition.hpp"

#include "command_reader.hpp"
#include "condition_text.hpp"
#include "constraint_errors.hpp"
#include "engine_value.hpp"
#include "json_form.hpp"
#include "load_level.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/base/present.hpp"
#include "servetune/detail/space/expression_parser.hpp"
#include "servetune/detail/space/rule_values.hpp"
#include "servetune/error.hpp"
#include "space/expression_rewriting.hpp"
#include "version.hpp"

#include <algorithm>
#include <set>

namespace servetune {
namespace {

bool contains(const std::vector<Value>& values, const Value& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

Expression with_model_facts(Expression rule, const std::map<std::string, std::int64_t>& known) {
    for (const std::string_view name : model_facts) {
        const auto fact = known.find(std::string(name));
        rule = rule.with_constant(name, fact == known.end() ? Value(Unset{}) : Value(fact->second));
    }
    return rule;
}

Composition::Composition(SpaceDescription description) : description_(std::move(description)) {
    std::vector<Engine>& engines = description_.engines;
    if (engines.empty()) throw SpaceError("a study needs at least one engine");
    for (const auto& [name, words] : description_.arguments)
        if (std::none_of(engines.begin(), engines.end(), [&, wanted = name](const Engine& engine) {
                return engine.name == wanted;
            }))
            throw SpaceError("arguments are given for '" + name +
                             "', which is none of the study's engines");
    if (engines.size() > 1) {
        std::vector<Value> names;
        for (const Engine& engine : engines) names.emplace_back(engine.name);
        parameters_.push_back(Parameter::choice("engine", std::move(names)));
    }
    add_own_parameters();
    for (Engine& engine : engines) {
        keep_version(engine);
        state_model(engine);
        keep_architecture(engine);
        leave_out_emptied(engine);
        read_entries(engine);
        keep_preset(engine);
    }
    check_entries();
    commands_ = std::make_shared<const CommandReader>(engines);
    for (const Engine& engine : engines)
        if (!description_.set_by_arguments.contains(engine.name))
            description_.set_by_arguments[engine.name] =
                commands_->flags(arguments_of(engine), engine).values();
    for (Engine& engine : engines) bound_devices(engine);
    for (std::size_t i = 0; i < engines.size(); ++i) add_engine(i);
    if (description_.roles) add_roles();

    merge_same_commands();

    // A condition may only ask for values its parent still has; what can never be active leaves the
    // space.
    for (bool changed = true; changed;) {
        changed = false;
        for (auto at = parameters_.begin(); at != parameters_.end(); ++at) {
            bool possible = true;
            std::string needed;
            for (Condition& condition : at->active_when) {
                std::string wanted;
                for (const Value& value : condition.values)
                    wanted += (wanted.empty() ? "" : "|") + text_of(value);
                const auto parent =
                    std::find_if(parameters_.begin(), parameters_.end(),
                                 [&](const Parameter& p) { return p.name == condition.parent; });
                std::erase_if(condition.values, [&](const Value& value) {
                    return parent == parameters_.end() || !parent->level_of(value);
                });
                if (condition.values.empty() && possible) needed = condition.parent + "=" + wanted;
                possible = possible && !condition.values.empty();
            }
            if (possible) continue;
            std::vector<SpaceEntry> said = description_.entries;
            for (const auto& [role, entries] :
                 description_.roles.value_or(std::map<std::string, std::vector<SpaceEntry>>{}))
                said.insert(said.end(), entries.begin(), entries.end());
            for (const SpaceEntry& entry : said)
                if (entry.name == at->name)
                    throw EntryErrors(entry.name, "it can never be active: it needs " + needed +
                                                      ", which this study does not offer");
            for (auto& [engine, names] : names_)
                for (auto& [local, where] : names.locals)
                    if (where.name_in_space == at->name) where.name_in_space.clear();
            for (auto& [role, names] : role_names_)
                std::erase_if(names.locals, [&](const auto& local) {
                    return local.second.name_in_space == at->name;
                });
            parameters_.erase(at);
            changed = true;
            break;
        }
    }
    for (const Parameter& level : description_.load_levels) {
        check_load_level(level);
        if (&level != &description_.load_levels.front())
            throw SpaceError("a load is either a concurrency or a request rate, not both");
        parameters_.push_back(level);
    }
    if (description_.images.size() > 1) {
        std::vector<Value> images(description_.images.begin(), description_.images.end());
        parameters_.push_back(Parameter::choice("container.image", std::move(images)));
    }
    for (const Engine& engine : engines) add_constraints(engine, "");
    for (const auto& [role, own] : role_names_) add_constraints(engines.front(), role);
    if (description_.roles) bound_roles(engines.front());
    ConstraintErrors::Each wrong;
    for (std::size_t i = 0; i < description_.constraints.size(); ++i) try {
            add_constraint(description_.constraints[i]);
        } catch (const SpaceError& error) {
            wrong.emplace_back(i, error.what());
        }
    if (!wrong.empty()) throw ConstraintErrors(std::move(wrong));
}

/// A rule of the study, in the names of the space.
void Composition::add_constraint(const Constraint& constraint) {
    if (const auto* rule = std::get_if<Require>(&constraint))
        constraints_.emplace_back(Require{
            rule->expression.renamed([&](const std::string& name) { return resolve(name); }),
            rule->because, true});
    else if (const auto* forbid = std::get_if<Forbid>(&constraint)) {
        Forbid renamed{{}, forbid->because, true};
        for (const auto& [name, values] : forbid->values) {
            std::vector<Value>& taken = renamed.values[resolve(name)];
            for (const Value& value : values) taken.push_back(as_taken(resolve(name), value));
        }
        constraints_.emplace_back(std::move(renamed));
    } else constraints_.push_back(constraint);
    check_values(constraints_.back());
}

/// A rule of the study may name a value that only its engines have, not one that nothing has.
void Composition::check_values(const Constraint& constraint) const {
    for_each_value(constraint, [&](const std::string& name, const Value& value, bool exactly) {
        const auto searched =
            std::find_if(parameters_.begin(), parameters_.end(),
                         [&](const Parameter& parameter) { return parameter.name == name; });
        if (searched == parameters_.end() || can_have(*searched, value, exactly)) return;
        for (const auto& [engine, names] : names_)
            for (const auto& [declared, local] : names.locals)
                if (local.name_in_space == name &&
                    can_have(local.parameter->parameter, value, exactly))
                    return;
        refuse_value(constraint, name, value, searched->domain_text());
    });
}

/// Puts figures of the model in place of their names in rules. A rule that needs one that is not
/// known says nothing.
void Composition::state_model(Engine& engine) const {
    for (Constraint& constraint : engine.constraints)
        if (auto* rule = std::get_if<Require>(&constraint))
            rule->expression = with_model_facts(rule->expression, description_.model_facts);
    // Without a flag the longest request is what the model was made for.
    if (const auto context = description_.model_facts.find("model.context_tokens");
        context != description_.model_facts.end())
        for (EngineParameter& declared : engine.parameters)
            if (declared.parameter.concept_name == "max_context_tokens" &&
                declared.parameter.offers_unset && !declared.parameter.value_when_unset)
                declared.parameter.value_when_unset = Value(context->second);
}

/// Drops what the version of the study does not have: parameters, and values of choices.
void Composition::keep_version(Engine& engine) const {
    const std::string version = version_of(engine);
    for (const SpaceEntry& entry : description_.entries) {
        const bool qualified = entry.name.starts_with(engine.name + ".");
        const EngineParameter* declared =
            engine.find(qualified ? entry.name.substr(engine.name.size() + 1) : entry.name);
        if (declared == nullptr || version_within(version, declared->since, declared->until))
            continue;
        if (!qualified && description_.engines.size() > 1)
            continue;  // shared: other engines may have it
        throw SpaceError(
            "'" + entry.name + "': " + engine.name + " has it" +
            (declared->since.empty() ? "" : " from " + declared->since) +
            (declared->until.empty() ? "" : " to " + declared->until) + ", and the study is for " +
            (version.empty() ? "the newest (name another under 'engine_versions')" : version));
    }
    std::set<std::string> gone;
    std::erase_if(engine.parameters, [&](const EngineParameter& declared) {
        const bool absent = !version_within(version, declared.since, declared.until);
        if (absent) gone.insert(declared.parameter.name);
        return absent;
    });
    for (EngineParameter& declared : engine.parameters) {
        auto* choice = std::get_if<ChoiceDomain>(&declared.parameter.domain);
        const auto drop = [&](const std::map<std::string, std::vector<Value>>& bounds, bool since) {
            for (const auto& [bound, values] : bounds)
                if (!version_within(version, since ? bound : "", since ? "" : bound))
                    std::erase_if(choice->values, [&, &list = values](const Value& value) {
                        return contains(list, value);
                    });
        };
        if (choice == nullptr) continue;
        drop(declared.values_since, true);
        drop(declared.values_until, false);
    }
    // What depends on a parameter that is gone goes too, and what depends on that.
    for (std::size_t known = 0; known != gone.size();) {
        known = gone.size();
        std::erase_if(engine.parameters, [&](const EngineParameter& declared) {
            const auto& conditions = declared.parameter.active_when;
            const bool orphan = std::any_of(
                conditions.begin(), conditions.end(),
                [&](const Condition& condition) { return gone.contains(condition.parent); });
            if (orphan) gone.insert(declared.parameter.name);
            return orphan;
        });
    }
    const auto speaks_of_gone = [&](const Constraint& constraint) {
        const std::vector<std::string> names = names_of(constraint);
        return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
            return std::find(model_facts.begin(), model_facts.end(), name) == model_facts.end() &&
                   engine.find(name) == nullptr;
        });
    };
    const auto of_other_version = [&](const Constraint& constraint) {
        const auto bounds = engine.constraint_versions.find(text_of(constraint));
        return bounds != engine.constraint_versions.end() &&
               !version_within(version, bounds->second.first, bounds->second.second);
    };
    std::erase_if(engine.constraints, speaks_of_gone);
    std::erase_if(engine.constraints, of_other_version);
    if (engine.nodes && !version_within(version, engine.nodes->since, "")) engine.nodes.reset();
    for (JsonFlag& flag : engine.json_flags)
        remove_keys(flag, [&](const std::string& name) { return engine.find(name) == nullptr; });
}

const Destination& Composition::destination_of(const Engine& engine,
                                               const EngineParameter& declared) const {
    const std::string version = version_of(engine);
    const bool old = !version.empty() && !declared.earlier_until.empty() &&
                     compare_to_bound(version, declared.earlier_until) <= 0;
    return old ? declared.earlier : declared.destination;
}

bool Composition::knows(const Engine& engine, const SpaceEntry& entry) const {
    return std::any_of(
        engine.parameters.begin(), engine.parameters.end(),
        [&](const EngineParameter& declared) { return entry_for(engine, declared) == &entry; });
}

void Composition::check_entries() const {
    std::vector<std::string> known;
    for (const Engine& engine : description_.engines)
        for (const EngineParameter& declared : engine.parameters)
            known.push_back(prefix(engine) + declared.parameter.name);
    EntryErrors::Each unknown;
    for (const SpaceEntry& entry : description_.entries)
        if (std::none_of(description_.engines.begin(), description_.engines.end(),
                         [&](const Engine& engine) { return knows(engine, entry); }))
            unknown.emplace_back(entry.name,
                                 "no parameter or concept of the study's engines; known: " +
                                     listed(nearest_first(entry.name, known)));
    if (!unknown.empty()) throw EntryErrors(std::move(unknown));
}

const SpaceEntry* Composition::entry_for(const Engine& engine,
                                         const EngineParameter& declared) const {
    const std::string& name = declared.parameter.name;
    const std::string& idea = declared.parameter.concept_name;
    for (const std::string& wanted :
         {engine.name + "." + name, engine.name + "." + idea, name, idea}) {
        if (wanted.empty() || wanted.ends_with('.')) continue;
        for (const SpaceEntry& entry : description_.entries)
            if (entry.name == wanted) return &entry;
    }
    return nullptr;
}

void Composition::add_engine(std::size_t which) {
    const Engine& engine = description_.engines[which];
    names_[engine.name];
    for (const EngineParameter& declared : engine.parameters) {
        const SpaceEntry* entry = entry_for(engine, declared);
        const bool text =
            std::holds_alternative<TextDomain>(declared.parameter.domain);  // never searched
        const bool held = entry != nullptr ? entry->fixed && is_unset(present(entry->default_value))
                                           : text || !description_.others_searched;
        const bool shared = description_.engines.size() > 1 && entry != nullptr &&
                            entry->name.find('.') == std::string::npos;
        Local local{&declared, held     ? ""
                               : shared ? entry->name
                                        : prefix(engine) + declared.parameter.name};
        if (entry != nullptr) local.checkpoints = entry->checkpoints;
        names_[engine.name].locals.emplace(declared.parameter.name, std::move(local));
    }
    add_drafts(engine);
    EntryErrors::Each wrong;
    for (const EngineParameter& declared : engine.parameters) try {
            add_parameter(engine, declared, entry_for(engine, declared));
        } catch (const EntryErrors& errors) {
            wrong.insert(wrong.end(), errors.each().begin(), errors.each().end());
        }
    if (!wrong.empty()) throw EntryErrors(std::move(wrong));
}

void Composition::add_parameter(const Engine& engine, const EngineParameter& declared,
                                const SpaceEntry* entry) {
    const auto& locals = names_[engine.name].locals;
    const Local& local = locals.find(declared.parameter.name)->second;
    if (local.name_in_space.empty()) return;
    Parameter parameter =
        entry != nullptr ? narrowed(engine, declared, *entry) : declared.parameter;
    parameter.name = local.name_in_space;
    const bool several = description_.engines.size() > 1;
    const bool shared = several && entry != nullptr && entry->name.find('.') == std::string::npos;
    const auto same = std::find_if(parameters_.begin(), parameters_.end(),
                                   [&](const Parameter& p) { return p.name == parameter.name; });
    if (shared && same != parameters_.end()) {
        for (Condition& condition : same->active_when)
            if (condition.parent == "engine") condition.values.emplace_back(engine.name);
        return;
    }
    if (shared && !declared.parameter.active_when.empty())
        throw EntryErrors(entry->name, "it has conditions in " + engine.name +
                                           ", so engines cannot share it; write " + engine.name +
                                           "." + entry->name);
    parameter.active_when.clear();
    if (several) parameter.active_when.push_back({"engine", {engine.name}});
    for (const Condition& condition : declared.parameter.active_when) {
        const auto known = locals.find(condition.parent);
        if (known == locals.end())
            throw EntryErrors(parameter.name, "its condition names '" + condition.parent +
                                                  "', which is no parameter of " + engine.name);
        const Local& parent = known->second;
        if (!parent.name_in_space.empty())
            parameter.active_when.push_back(
                {parent.name_in_space, with_unset(condition.values, parent.parameter->parameter)});
        else if (!contains(with_unset(condition.values, parent.parameter->parameter),
                           parent.parameter->parameter.default_value))
            parameter.active_when.push_back({parent.parameter->parameter.name, {}});
    }
    parameters_.push_back(std::move(parameter));
}

/// `role`: the rules that speak of what this role has of its own; empty: all rules.
void Composition::add_constraints(const Engine& engine, std::string_view role) {
    const bool several = description_.engines.size() > 1;
    const auto impossible = [&](const Constraint& constraint) {
        const std::string& why = reason(constraint);
        throw SpaceError(engine.name + ": '" + text_of(constraint) +
                         "' cannot hold with the other parameters at their defaults" +
                         (why.empty() ? "" : " (" + why + ")"));
    };
    const auto of_role = [&](const Constraint& constraint) {
        const std::vector<std::string> names = names_of(constraint);
        const auto& own = role_names_.find(role)->second.locals;
        return std::any_of(names.begin(), names.end(),
                           [&](const std::string& name) { return own.contains(name); });
    };
    for (const Constraint& constraint : engine.constraints) {
        if (!role.empty() && !of_role(constraint)) continue;
        if (const auto* rule = std::get_if<Require>(&constraint)) {
            Expression expression = rule->expression;
            std::map<std::string, std::string> renames;
            for (const std::string& name : rule->expression.names()) {
                const Local& local = local_of(engine, role, name);
                const Parameter& declared = local.parameter->parameter;
                if (const auto said = said_in_arguments(engine, *local.parameter))
                    expression = expression.with_constant(name, *said);
                else if (!local.name_in_space.empty()) renames[name] = local.name_in_space;
                else
                    expression = expression.with_constant(
                        name, is_unset(declared.default_value)
                                  ? declared.value_when_unset.value_or(Unset{})
                                  : declared.default_value);
            }
            expression = expression.simplified_rule();
            if (const auto always = expression.constant()) {
                if (!*always) impossible(constraint);
                continue;
            }
            for (const auto& [name, in_space] : renames)
                expression =
                    where_a_number(expression, *local_of(engine, role, name).parameter, in_space);
            expression =
                expression.renamed([&](const std::string& name) { return renames.at(name); });
            if (several) expression = expression.only_if("engine", engine.name);
            if (!role.empty()) expression = expression.only_if("roles", std::string("apart"));
            constraints_.emplace_back(Require{std::move(expression), rule->because, true});
        } else if (const auto* declared = std::get_if<Forbid>(&constraint)) {
            const std::optional<Forbid> forbid = without_drafts(engine, *declared);
            Forbid renamed{{}, declared->because, true};
            bool can_match = forbid.has_value();
            for (const auto& [name, values] : can_match ? forbid->values : declared->values) {
                const Local& local = local_of(engine, role, name);
                const auto searched =
                    std::find_if(parameters_.begin(), parameters_.end(),
                                 [&](const Parameter& p) { return p.name == local.name_in_space; });
                if (!local.name_in_space.empty())
                    renamed.values[local.name_in_space] =
                        searched != parameters_.end() && searched->offers_unset
                            ? with_unset(values, local.parameter->parameter)
                            : values;
                else
                    can_match =
                        can_match && contains(values, local.parameter->parameter.default_value);
            }
            if (!can_match) continue;
            if (renamed.values.empty()) impossible(constraint);
            if (several) renamed.values["engine"] = {engine.name};
            if (!role.empty()) renamed.values["roles"] = {std::string("apart")};
            constraints_.emplace_back(std::move(renamed));
        }
    }
}

/// The rule where the parameter has a number of its scale: a word such as -1
/// (`EngineParameter::also`) says nothing of how much.
Expression Composition::where_a_number(const Expression& rule, const EngineParameter& declared,
                                       const std::string& in_space) const {
    const auto* range = std::get_if<IntegerDomain>(&declared.parameter.domain);
    const auto* words = declared.also ? std::get_if<ChoiceDomain>(&declared.also->domain) : nullptr;
    const auto searched = std::find_if(parameters_.begin(), parameters_.end(),
                                       [&](const Parameter& p) { return p.name == in_space; });
    if (range == nullptr || words == nullptr || searched == parameters_.end()) return rule;
    std::string text;
    for (const Value& word : words->values)
        if (searched->contains(word))
            text += declared.parameter.name + " in [" + text_of(word) + "] or ";
    return text.empty() ? rule : parse_expression(text + "(" + rule.text() + ")");
}

const Composition::Local& Composition::local_of(const Engine& engine, std::string_view role,
                                                std::string_view name) const {
    const auto of_role = role_names_.find(role);
    if (of_role != role_names_.end())
        if (const auto own = of_role->second.locals.find(name); own != of_role->second.locals.end())
            return own->second;
    const auto& locals = names_.at(engine.name).locals;
    const auto found = locals.find(name);
    if (found == locals.end())
        throw SpaceError(engine.name + " renders '" + std::string(name) +
                         "', which is none of its parameters");
    return found->second;
}

Value Composition::as_taken(const std::string& name_in_space, const Value& value) const {
    for (const auto& [role, names] : role_names_)
        for (const auto& [name, local] : names.locals)
            if (local.name_in_space == name_in_space)
                return as_engine_takes(*local.parameter, value);
    for (const auto& [engine, names] : names_)
        for (const auto& [name, local] : names.locals)
            if (local.name_in_space == name_in_space)
                return as_engine_takes(*local.parameter, value);
    return value;
}

std::string Composition::resolve(std::string_view name) const {
    std::vector<std::string> found;
    std::vector<std::string> known;
    for (const Parameter& parameter : parameters_) {
        if (parameter.name == name) return parameter.name;
        known.push_back(parameter.name);
        if (parameter.name.ends_with("." + std::string(name)) || parameter.concept_name == name)
            found.push_back(parameter.name);
    }
    if (found.size() == 1) return found.front();
    if (found.size() > 1)
        throw SpaceError("'" + std::string(name) + "' is ambiguous: write one of " + listed(found));
    throw SpaceError("'" + std::string(name) + "' is not a parameter of this study; known: " +
                     listed(nearest_first(name, known)));
}

}  // namespace servetune
