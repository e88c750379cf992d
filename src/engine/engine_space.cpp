// SPDX-License-Identifier: Apache-2.0
#include "engine_space.hpp"

#include "base/nearest.hpp"
#include "base/present.hpp"
#include "engine_value.hpp"
#include "load_level.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "version.hpp"

#include <set>

namespace servetune {
EngineSpace::EngineSpace(SpaceDescription description) : description_(std::move(description)) {
    std::vector<Engine>& engines = description_.engines;
    if (engines.empty()) throw SpaceError("a study needs at least one engine");
    if (several_engines()) {
        std::vector<Value> names;
        for (const Engine& engine : engines) names.emplace_back(engine.name);
        parameters_.push_back(Parameter::choice("engine", std::move(names)));
    }
    add_own_parameters();
    for (Engine& engine : engines) {
        keep_wrong([&] { keep_version(engine); });
        state_model(engine);
        keep_architecture(engine);
        keep_wrong([&] { leave_out_emptied(engine); });
        read_entries(engine);
        keep_preset(engine);
    }
    check_entries();
    commands_.emplace(engines);
    for (const Engine& engine : engines)
        if (!description_.set_by_arguments.contains(engine.name))
            description_.set_by_arguments[engine.name] =
                commands_->flags(arguments_of(engine), engine).values();
    for (const Engine& engine : engines) add_engine(engine);
    throw_wrong();
    for (Engine& engine : engines) bound_devices(engine);
    if (description_.roles) add_roles();
    merge_same_commands();
    leave_out_inactive();
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
    for (const auto& [role, own] : role_locals_) add_constraints(engines.front(), role);
    if (description_.roles) bound_roles(engines.front());
    ConstraintErrors::Each wrong;
    for (std::size_t i = 0; i < description_.constraints.size(); ++i) try {
            add_constraint(description_.constraints[i]);
        } catch (const SpaceError& error) {
            wrong.emplace_back(i, error.what());
        }
    if (!wrong.empty()) throw ConstraintErrors(std::move(wrong));
}

/// A condition may only ask for values its parent still has; what can never be active leaves the
/// space.
void EngineSpace::leave_out_inactive() {
    for (auto at = parameters_.begin(); at != parameters_.end();) {
        std::string needed;  // by the first condition that can never hold
        for (Condition& condition : at->active_when) {
            std::string wanted;
            for (const Value& value : condition.values)
                wanted += (wanted.empty() ? "" : "|") + text_of(value);
            const Parameter* parent = find(condition.parent);
            std::erase_if(condition.values, [&](const Value& value) {
                return parent == nullptr || !parent->level_of(value);
            });
            if (condition.values.empty() && needed.empty())
                needed = condition.parent + "=" + wanted;
        }
        if (needed.empty()) {
            ++at;
            continue;
        }
        std::vector<SpaceEntry> said = description_.entries;
        if (description_.roles)
            for (const auto& [role, entries] : *description_.roles)
                said.insert(said.end(), entries.begin(), entries.end());
        for (const SpaceEntry& entry : said)
            if (entry.name == at->name)
                throw EntryErrors(entry.name, "it can never be active: it needs " + needed +
                                                  ", which this study does not offer");
        for (auto& [engine, locals] : locals_)
            for (auto& [name, local] : locals)
                if (local.name_in_space == at->name) local.name_in_space.clear();
        for (auto& [role, locals] : role_locals_)
            std::erase_if(locals,
                          [&](const auto& own) { return own.second.name_in_space == at->name; });
        parameters_.erase(at);
        at = parameters_.begin();  // others may have depended on it
    }
}

/// Puts figures of the model in place of their names in rules. A rule that needs one that is not
/// known says nothing.
void EngineSpace::state_model(Engine& engine) const {
    for (Constraint& constraint : engine.constraints)
        if (auto* rule = std::get_if<Require>(&constraint))
            rule->expression = with_model_facts(rule->expression, description_.model_facts);
    // Without a flag the longest request is what the model was made for.
    if (const auto* context = entry_in(description_.model_facts, "model.context_tokens"))
        for (EngineParameter& declared : engine.parameters)
            if (declared.parameter.concept_name == "max_context_tokens" &&
                declared.parameter.offers_unset && !declared.parameter.value_when_unset)
                declared.parameter.value_when_unset = Value(*context);
}

/// Drops what the version of the study does not have: parameters, and values of choices.
void EngineSpace::keep_version(Engine& engine) const {
    const std::string version = version_of(engine);
    for (const SpaceEntry& entry : description_.entries) {
        const bool qualified = entry.name.starts_with(engine.name + ".");
        const EngineParameter* declared =
            engine.find(qualified ? entry.name.substr(engine.name.size() + 1) : entry.name);
        if (declared == nullptr || version_within(version, declared->since, declared->until))
            continue;
        if (!qualified && several_engines()) continue;  // shared: other engines may have it
        throw EntryErrors(
            entry.name,
            engine.name + " has it" + (declared->since.empty() ? "" : " from " + declared->since) +
                (declared->until.empty() ? "" : " to " + declared->until) +
                ", and the study is for " +
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
            const bool orphan = any_of(conditions, [&](const Condition& condition) {
                return gone.contains(condition.parent);
            });
            if (orphan) gone.insert(declared.parameter.name);
            return orphan;
        });
    }
    const auto speaks_of_gone = [&](const Constraint& constraint) {
        const std::vector<std::string> names = names_of(constraint);
        return any_of(names, [&](const std::string& name) {
            return !contains(model_facts, name) && engine.find(name) == nullptr;
        });
    };
    const auto of_other_version = [&](const Constraint& constraint) {
        const auto* bounds = entry_in(engine.constraint_versions, text_of(constraint));
        return bounds != nullptr && !version_within(version, bounds->first, bounds->second);
    };
    std::erase_if(engine.constraints, speaks_of_gone);
    std::erase_if(engine.constraints, of_other_version);
    for (JsonFlag& flag : engine.json_flags)
        std::erase_if(flag.fields,
                      [&](const auto& field) { return engine.find(field.second) == nullptr; });
}

const Destination& EngineSpace::destination_of(const Engine& engine,
                                               const EngineParameter& declared) const {
    const std::string version = version_of(engine);
    const bool old = !version.empty() && !declared.earlier_until.empty() &&
                     compare_to_bound(version, declared.earlier_until) <= 0;
    return old ? declared.earlier : declared.destination;
}

void EngineSpace::check_entries() {
    std::vector<std::string> known;
    for (const Engine& engine : description_.engines)
        for (const EngineParameter& declared : engine.parameters)
            known.push_back(prefix(engine) + declared.parameter.name);
    const auto knows = [&](const SpaceEntry& entry) {
        return [&](const Engine& engine) {
            return any_of(engine.parameters, [&](const EngineParameter& declared) {
                return entry_for(engine, declared) == &entry;
            });
        };
    };
    for (const SpaceEntry& entry : description_.entries)
        if (none_of(description_.engines, knows(entry)))
            keep_wrong([&] {
                throw EntryErrors(entry.name,
                                  "no parameter or concept of the study's engines; known: " +
                                      listed(nearest_first(entry.name, known)));
            });
}

const SpaceEntry* EngineSpace::entry_for(const Engine& engine,
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

void EngineSpace::add_engine(const Engine& engine) {
    Locals& locals = locals_[engine.name];
    for (const EngineParameter& declared : engine.parameters) {
        const SpaceEntry* entry = entry_for(engine, declared);
        const bool text =
            std::holds_alternative<TextDomain>(declared.parameter.domain);  // never searched
        const bool held = entry != nullptr ? entry->fixed && is_unset(present(entry->default_value))
                                           : text || !description_.others_searched;
        const bool shared = several_engines() && entry != nullptr && !contains(entry->name, '.');
        Local local{&declared, held     ? ""
                               : shared ? entry->name
                                        : prefix(engine) + declared.parameter.name};
        if (entry != nullptr) local.checkpoints = entry->checkpoints;
        locals.emplace(declared.parameter.name, std::move(local));
    }
    for (const EngineParameter& declared : engine.parameters)
        keep_wrong([&] { add_parameter(engine, declared, entry_for(engine, declared)); });
}

void EngineSpace::add_parameter(const Engine& engine, const EngineParameter& declared,
                                const SpaceEntry* entry) {
    const Locals& locals = locals_[engine.name];
    const Local& local = locals.find(declared.parameter.name)->second;
    if (local.name_in_space.empty()) return;
    Parameter parameter =
        entry != nullptr ? narrowed(engine, declared, *entry) : declared.parameter;
    parameter.name = local.name_in_space;
    const bool several = several_engines();
    const bool shared = several && entry != nullptr && !contains(entry->name, '.');
    const auto same =
        find_if(parameters_, [&](const Parameter& p) { return p.name == parameter.name; });
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
        const auto* known = entry_in(locals, condition.parent);
        if (known == nullptr)
            throw EntryErrors(parameter.name, "its condition names '" + condition.parent +
                                                  "', which is no parameter of " + engine.name);
        const Local& parent = *known;
        std::vector<Value> values = condition.values;
        if (entry != nullptr && entry->added)
            for (Value& value : values) value = meant_value(*parent.parameter, value);
        values = with_unset(std::move(values), parent.parameter->parameter);
        if (!parent.name_in_space.empty())
            parameter.active_when.push_back({parent.name_in_space, std::move(values)});
        else if (!contains(values, parent.parameter->parameter.default_value))
            parameter.active_when.push_back({parent.parameter->parameter.name, {}});
    }
    parameters_.push_back(std::move(parameter));
}

const EngineSpace::Local& EngineSpace::local_of(const Engine& engine, std::string_view role,
                                                std::string_view name) const {
    if (const auto* of_role = entry_in(role_locals_, role))
        if (const auto* own = entry_in(*of_role, name)) return *own;
    const auto* found = entry_in(locals(engine), name);
    if (found == nullptr)
        throw SpaceError(engine.name + " renders '" + std::string(name) +
                         "', which is none of its parameters");
    return *found;
}

const Parameter* EngineSpace::find(std::string_view name) const {
    const auto found = find_if(parameters_, [&](const Parameter& one) { return one.name == name; });
    return found == parameters_.end() ? nullptr : &*found;
}

const Engine& EngineSpace::engine_of(const Configuration& configuration) const {
    // Of one engine, a parameter of this name is the study's own.
    const Value* chosen = several_engines() ? configuration.find("engine") : nullptr;
    for (const Engine& engine : engines())
        if (chosen == nullptr || text_of(*chosen) == engine.name) return engine;
    throw SpaceError("there is no engine '" + text_of(*chosen) + "' in this study");
}

std::string EngineSpace::version_of(const Engine& engine) const {
    const auto* named = entry_in(description_.versions, engine.name);
    return named == nullptr ? "" : *named;
}

std::vector<std::string> EngineSpace::arguments_of(const Engine& engine) const {
    const auto* always = entry_in(description_.arguments, engine.name);
    return always == nullptr ? std::vector<std::string>{} : *always;
}

Value EngineSpace::normalized(std::string_view name_in_space, const Value& value) const {
    Value result = value;
    for_each_local([&](const Engine&, const Local& local) {
        if (local.name_in_space == name_in_space) result = meant_value(*local.parameter, value);
    });
    return result;
}

std::string EngineSpace::resolve(std::string_view name) const {
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
