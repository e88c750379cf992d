// SPDX-License-Identifier: Apache-2.0
// What a study makes of the engine's parameters: narrowed, fixed, added, without the values that
// its chip refuses. Those of which the chip or the version takes no value leave the space, and what
// names them goes on without them.
#include "base/nearest.hpp"
#include "base/present.hpp"
#include "engine_space.hpp"
#include "engine_value.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "space/expression_rewriting.hpp"

#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace servetune {
namespace {

std::vector<Value> ends_or_values(const Domain& domain) {
    if (const auto* range = std::get_if<IntegerDomain>(&domain)) return {range->low, range->high};
    if (const auto* interval = std::get_if<RealDomain>(&domain))
        return {interval->low, interval->high};
    if (const auto* choice = std::get_if<ChoiceDomain>(&domain)) return choice->values;
    if (std::holds_alternative<TextDomain>(domain)) return {};
    return {false, true};
}

/// What the engine takes: the searched values, and those beside them.
std::string taken_text(const EngineParameter& declared) {
    std::string result = declared.parameter.domain_text();
    if (declared.also)
        result += "; also " + Parameter{"", declared.also->domain, {}}.domain_text() +
                  (declared.also->since.empty() ? "" : " from " + declared.also->since);
    for (const auto& [word, value] : declared.same_as)
        result += "; " + word + " is " + text_of(value);
    return result + (declared.suffixes ? "; 8k is 8000, 8K is 8192" : "");
}

/// Of a bool that has a flag for true only: `false` passes nothing, so it is what the engine does
/// by itself.
bool false_passes_nothing(const EngineParameter& declared) {
    const Destination& to = declared.destination;
    return std::holds_alternative<BoolDomain>(declared.parameter.domain) && !to.flag.empty() &&
           to.off_flag.empty() && to.environment.empty() && to.option.empty();
}

/// Throws for a model of a value that is not tried: it would never be used.
void check_models(const SpaceEntry& entry, const Parameter& tried) {
    for (const auto& [value, model] : entry.checkpoints)
        if (!tried.contains(value_of(value)) && !tried.contains(Value(value)))
            throw EntryErrors(entry.name, "'checkpoints' has a model for " + value +
                                              ", which is not among the values (" +
                                              tried.domain_text() +
                                              "); add it to them, or leave it out");
}

/// Whether the parameter is a part of a JSON flag that has no place for "not set": its value is
/// always written.
bool always_written(const Engine& engine, const Parameter& declared) {
    if (declared.offers_unset) return false;
    const auto decides = [&](const JsonFlag& flag) {
        return any_of(flag.when, [&](const Condition& c) { return c.parent == declared.name; });
    };
    return any_of(engine.json_flags, [&](const JsonFlag& flag) {
        return !decides(flag) && any_of(flag.fields, [&](const auto& field) {
            return field.second == declared.name;
        });
    });
}

/// What is left of an engine's parameters, and what those that left come to.
struct LeftOut {
    std::map<std::string, Parameter> held{};  ///< no flag is passed: the engine's own default
    std::set<std::string> inactive{};         ///< their conditions can never hold

    /// Whether a condition or rule that wants one of `values` of a held parameter has it.
    [[nodiscard]] bool holds(const std::string& name, const std::vector<Value>& values) const {
        const Parameter& parameter = held.at(name);
        if (contains(values, parameter.default_value)) return true;
        return is_unset(parameter.default_value) && parameter.value_when_unset &&
               contains(values, *parameter.value_when_unset);
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
            if (const auto* held = entry_in(left.held, name)) {
                const Parameter& parameter = *held;
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

/// Parameters that no engine file has. Which of their values the engine uses by itself is not
/// known, so every value is passed: their `default` is that of trial 0.
void EngineSpace::add_own_parameters() {
    for (const SpaceEntry& entry : description_.entries) {
        if (!entry.added) continue;
        for (Engine& engine : description_.engines) {
            const std::string qualifier = engine.name + ".";
            const bool qualified = contains(entry.name, '.');
            if (qualified && !entry.name.starts_with(qualifier)) continue;
            EngineParameter added = *entry.added;
            added.parameter.name = qualified ? entry.name.substr(qualifier.size()) : entry.name;
            if (engine.find(added.parameter.name) != nullptr) continue;
            for (Condition& condition : added.parameter.active_when)
                if (condition.parent.starts_with(qualifier))
                    condition.parent.erase(0, qualifier.size());
            if (false_passes_nothing(added)) added.parameter.default_value = false;
            else {
                added.parameter.default_value = Unset{};
                added.parameter.offers_unset = true;
            }
            engine.parameters.push_back(std::move(added));
        }
    }
}

/// What a study says of a parameter, in the values that the engine makes of it: 8K and 8192 are
/// one.
void EngineSpace::read_entries(const Engine& engine) {
    for (SpaceEntry& entry : description_.entries) {
        const auto declared = find_if(engine.parameters, [&](const EngineParameter& each) {
            return entry_for(engine, each) == &entry;
        });
        if (declared == engine.parameters.end() || entry.added) continue;
        if (entry.default_value) entry.default_value = meant_value(*declared, *entry.default_value);
        if (auto* range = entry.domain ? std::get_if<IntegerDomain>(&*entry.domain) : nullptr;
            range != nullptr && is_unset(normalized_value(*declared, range->low)) &&
            range->low + range->step <= range->high) {  // 0 is another word for no flag
            range->low += range->step;
            entry.offers_unset = true;
            if (!entry.default_value) entry.default_value = Unset{};
        }
        auto* choice = entry.domain ? std::get_if<ChoiceDomain>(&*entry.domain) : nullptr;
        if (choice == nullptr) continue;
        std::vector<Value> values;
        std::string twice;
        for (const Value& said : choice->values) {
            const Value value =
                entry.checkpoints.contains(text_of(said)) ? said : meant_value(*declared, said);
            if (is_unset(value)) {
                entry.offers_unset = true;
                if (!entry.default_value) entry.default_value = Unset{};
            } else if (!contains(values, value)) values.push_back(value);
            else twice += (twice.empty() ? "" : ", ") + text_of(said);
        }
        if (!twice.empty())
            notes_.push_back(
                "'" + entry.name + "': " + twice +
                " is another word for a value of the list, so they are one configuration");
        if (values == choice->values) continue;
        choice->values = std::move(values);
        choice->ordered = choice->ordered || are_growing_numbers(choice->values);
    }
}

/// Drops the values of choices that the study's chip refuses.
void EngineSpace::keep_architecture(Engine& engine) const {
    const std::string& chip = description_.architecture;
    if (chip.empty()) return;
    if (!engine.architectures.empty() && !contains(engine.architectures, chip))
        throw SpaceError(engine.name + " does not run on " + chip + "; it runs on " +
                         listed(engine.architectures));
    for (EngineParameter& declared : engine.parameters)
        if (auto* choice = std::get_if<ChoiceDomain>(&declared.parameter.domain))
            std::erase_if(choice->values, [&](const Value& value) {
                const auto* chips = entry_in(declared.architectures, text_of(value));
                return chips != nullptr && !contains(*chips, chip);
            });
}

/// A preset is for all chips and versions: what this engine does not take is not searched. Of what
/// is left without a value the engine's own default stays. A study that names such a value itself
/// is told.
void EngineSpace::keep_preset(const Engine& engine) {
    for (const EngineParameter& declared : engine.parameters)
        for (SpaceEntry& entry : description_.entries) {
            if (!entry.of_preset || entry_for(engine, declared) != &entry) continue;
            auto* choice = entry.domain ? std::get_if<ChoiceDomain>(&*entry.domain) : nullptr;
            if (choice == nullptr) continue;
            std::erase_if(choice->values, [&](const Value& value) {
                return !engine_takes(declared, value, version_of(engine)) &&
                       !entry.checkpoints.contains(text_of(value));
            });
            if (!choice->values.empty()) continue;
            notes_.push_back("'" + entry.name + "' is not searched: " + engine.name +
                             " takes none of the preset's values here");
            entry.domain.reset();
            entry.fixed = true;
            entry.default_value = declared.parameter.default_value;
        }
}

/// The parameter as the study wants it: narrowed, fixed or as declared. What it is narrowed to
/// never decides trial 0: where the engine's own default is not among the values, passing no flag
/// is a level too, and the default.
Parameter EngineSpace::narrowed(const Engine& engine, const EngineParameter& of_engine,
                                const SpaceEntry& entry) const {
    const Parameter& declared = of_engine.parameter;
    EntryErrors::Each wrong;
    const auto check = [&](const Value& value) {
        if (engine_takes(of_engine, value, version_of(engine)) ||
            entry.checkpoints.contains(text_of(value)))
            return;
        std::string& why = wrong.emplace_back(entry.name, "").second;
        if (const auto* chips = entry_in(of_engine.architectures, text_of(value)))
            if (!description_.architecture.empty() &&
                !contains(*chips, description_.architecture)) {
                why = text_of(value) + " of " + engine.name + " does not run on " +
                      description_.architecture + "; it runs on " + listed(*chips);
                return;
            }
        const auto number = number_of(value);
        if (number && (std::holds_alternative<RealDomain>(declared.domain) ||
                       (std::holds_alternative<IntegerDomain>(declared.domain) &&
                        *number == std::trunc(*number))))
            why = text_of(value) + " is outside the range in the file of " + engine.name +
                  " for '" + declared.name + "' (" + taken_text(of_engine) +
                  "); 'engine' may name a copy of that file with a wider one";
        else
            why = engine.name + " does not take " + text_of(value) + " for '" + declared.name +
                  "' (" + taken_text(of_engine) + ")" +
                  (declared.concept_name == "quantization" ? " and no checkpoint serves it" : "");
    };
    const auto all_right = [&] {
        if (!wrong.empty()) throw EntryErrors(std::move(wrong));
    };
    Parameter result = declared;
    result.grows_memory = entry.grows_memory.value_or(declared.grows_memory);
    if (entry.fixed) {
        const Value& value = present(entry.default_value);
        check(value);
        all_right();
        result.domain = ChoiceDomain{{value}};
        result.default_value = value;
        result.offers_unset = false;
        return result;
    }
    if (entry.default_value) result.default_value = *entry.default_value;
    if (!entry.domain) {
        check_models(entry, result);
        return result;
    }
    for (const Value& value : ends_or_values(*entry.domain)) check(value);
    result.domain = *entry.domain;
    result.offers_unset = entry.offers_unset.value_or(false);
    if (result.offers_unset) check(Unset{});
    all_right();
    check_models(entry, result);
    if (entry.default_value || result.contains(declared.default_value)) return result;
    const auto values = ends_or_values(*entry.domain);
    const bool fixed = !entry.of_preset && !result.continuous() && result.level_count() == 1;
    if (!values.empty() &&
        (fixed || !description_.adds_engine_default || always_written(engine, declared))) {
        result.default_value = values.front();
        return result;
    }
    result.offers_unset = true;
    result.default_value = Unset{};
    if (!is_unset(declared.default_value)) result.value_when_unset = declared.default_value;
    return result;
}

/// What a value adds to the commands of the engines that have the parameter; nothing where it adds
/// no words of its own.
std::optional<std::string> EngineSpace::contribution(const Parameter& parameter,
                                                     const Value& value) const {
    std::string result;
    bool adds_words = false;
    bool has_no_place = false;
    for_each_local([&](const Engine& engine, const Local& local) {
        if (local.name_in_space != parameter.name) return;
        adds_words = true;
        const Destination& to = destination_of(engine, *local.parameter);
        const bool* on = std::get_if<bool>(&value);
        if (const auto* checkpoint = entry_in(local.checkpoints, text_of(value)))
            result += "model " + *checkpoint + "\n";
        else if (to.flag.empty() && to.off_flag.empty() && to.environment.empty() &&
                 to.option.empty())
            has_no_place = true;
        else if (is_unset(value) || value == local.parameter->parameter.default_value)
            result += "words \n";
        else if (on != nullptr && to.environment.empty() && to.option.empty())
            result += "words " + (*on ? to.flag : to.off_flag) + "\n";
        else result += "words " + text_of(value) + "\n";
    });
    return adds_words && !has_no_place ? std::optional(result) : std::nullopt;
}

/// Two values with the same command are one configuration: the first stays, or the default.
void EngineSpace::merge_same_commands() {
    for (Parameter& parameter : parameters_) {
        const bool listed_values = std::holds_alternative<BoolDomain>(parameter.domain) ||
                                   std::holds_alternative<ChoiceDomain>(parameter.domain);
        const bool chooses_engine = several_engines() && parameter.name == "engine";
        if (!listed_values || parameter.level_count() < 2 || chooses_engine) continue;
        std::vector<Value> levels{parameter.default_value};
        for (std::size_t i = 0; i < parameter.level_count(); ++i)
            if (parameter.level(i) != parameter.default_value) levels.push_back(parameter.level(i));
        std::map<std::string, Value> kept;
        std::vector<Value> gone;
        for (const Value& level : levels) {
            const auto words = contribution(parameter, level);
            if (!words) continue;
            const auto [same, fresh] = kept.emplace(*words, level);
            if (fresh) continue;
            gone.push_back(level);
            notes_.push_back(
                "'" + parameter.name + "': " + text_of(level) + " and " + text_of(same->second) +
                " give the same command, so they are one configuration: " + text_of(same->second));
        }
        if (gone.empty()) continue;
        ChoiceDomain left;
        left.ordered = parameter.ordered();
        for (std::size_t i = 0; i < parameter.level_count(); ++i)
            if (const Value level = parameter.level(i); !is_unset(level) && !contains(gone, level))
                left.values.push_back(level);
        if (contains(gone, Value(Unset{}))) parameter.offers_unset = false;
        parameter.domain = std::move(left);
    }
}

/// A study that names values of such a parameter is told why there is none.
void EngineSpace::refuse_emptied(const Engine& engine, const EngineParameter& declared) const {
    const SpaceEntry* entry = entry_for(engine, declared);
    const bool wants_none =
        entry != nullptr && !entry->domain && is_unset(entry->default_value.value_or(Unset{}));
    if (entry == nullptr || entry->of_preset || wants_none) return;
    if (several_engines() && !entry->name.starts_with(engine.name + "."))
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
void EngineSpace::leave_out_emptied(Engine& engine) {
    LeftOut left;
    for (EngineParameter& declared : engine.parameters) {
        Parameter& parameter = declared.parameter;
        const auto* choice = std::get_if<ChoiceDomain>(&parameter.domain);
        if (choice == nullptr) continue;
        if (choice->values.empty()) {
            refuse_emptied(engine, declared);
            left.held.emplace(parameter.name, parameter);
        } else if (!is_unset(parameter.default_value) &&
                   !contains(choice->values, parameter.default_value)) {
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
                (!several_engines() || entry->name.starts_with(engine.name + ".")))
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
        std::erase_if(flag.fields, [&](const auto& field) { return left.has(field.second); });
    }
}

}  // namespace servetune
