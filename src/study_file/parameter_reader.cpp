// SPDX-License-Identifier: Apache-2.0
#include "parameter_reader.hpp"

#include "all_errors.hpp"
#include "engine/engine_value.hpp"
#include "key_reader.hpp"
#include "keys.hpp"
#include "base/nearest.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace servetune {
namespace {

/// A value for a parameter of this domain: 3 is 3.0 for a real.
Value read_value(const Yaml& node, const Domain& domain) {
    Value value = node.value();
    if (const auto number = number_of(value); number && std::holds_alternative<RealDomain>(domain))
        return *number;
    return value;
}

std::map<std::string, std::vector<Value>> read_values_by_version(const Yaml& node, const Key& key,
                                                                 const Domain& domain) {
    std::map<std::string, std::vector<Value>> result;
    const Yaml* versions = node.find(key);
    if (versions == nullptr) return result;
    const auto* choice = std::get_if<ChoiceDomain>(&domain);
    if (choice == nullptr) versions->fail("only a choice has values that come and go");
    for (const auto& [version, list] : versions->entries()) {
        result[version] = list.values();
        for (const Value& value : result[version])
            if (std::find(choice->values.begin(), choice->values.end(), value) ==
                choice->values.end())
                list.fail("'" + text_of(value) + "' is not in the choice");
    }
    return result;
}

/// Lets the space itself judge the parameter, and adds where it stands.
void check_parameter(const Parameter& parameter, const Yaml& node) {
    try {
        Parameter alone = parameter;
        alone.active_when.clear();
        const SearchSpace space({alone});
    } catch (const SpaceError& error) {
        throw ParseError(node.place() + ": " + error.what());
    }
}

/// The domain, default and engine_default of a parameter into `parameter`.
void read_levels(const Yaml& node, const ReadDomain& read, Parameter& parameter) {
    parameter.domain = read.domain;
    parameter.offers_unset = read.offers_unset;
    const Yaml* given = node.find(keys::parameter.default_);
    if (given != nullptr) {
        parameter.default_value = read_value(*given, read.domain);
        if (is_unset(parameter.default_value)) parameter.offers_unset = true;
    } else if (parameter.offers_unset) parameter.default_value = Unset{};
    else if (const auto* choice = std::get_if<ChoiceDomain>(&read.domain))
        parameter.default_value = choice->values.empty() ? Value{} : choice->values.front();
    else if (const auto* range = std::get_if<IntegerDomain>(&read.domain))
        parameter.default_value = range->low;
    else if (const auto* interval = std::get_if<RealDomain>(&read.domain))
        parameter.default_value = interval->low;
    else if (std::holds_alternative<TextDomain>(read.domain)) {
        parameter.offers_unset = true;
        parameter.default_value = Unset{};
    } else parameter.default_value = false;
    if (const Yaml* engine_default = node.find(keys::parameter.engine_default))
        parameter.value_when_unset = read_value(*engine_default, read.domain);
}

IntegerDomain read_bounds(const Yaml& range) {
    return {range.at(keys::range.low).integer(), range.at(keys::range.high).integer()};
}

/// Throws for a list of more.
void check_count_of_values(const Yaml& list) {
    if (list.items().size() > most_listed_values)
        list.fail("a parameter has at most " + std::to_string(most_listed_values) +
                  " listed values, got " + std::to_string(list.items().size()) +
                  "; numbers can be a range (int or real)");
}

}  // namespace

std::optional<ReadDomain> read_domain(const Yaml& node) {
    std::optional<ReadDomain> result;
    const auto set = [&](const Yaml& at, ReadDomain domain) {
        if (result) at.fail("a parameter is one of bool, int, real, choice, text; this one is two");
        result = std::move(domain);
    };
    if (const Yaml* at = node.find(keys::parameter.bool_)) set(*at, {BoolDomain{}});
    if (const Yaml* at = node.find(keys::parameter.int_)) {
        at->check_keys(keys::range);
        IntegerDomain range = read_bounds(*at);
        read(*at, keys::range.step, range.step);
        read_word<keys::scales>(*at, keys::range.scale, range.scale);
        set(*at, {range});
    }
    if (const Yaml* at = node.find(keys::parameter.real)) {
        if (const Yaml* step = at->find(keys::range.step)) step->fail("a real has no step");
        at->check_keys(keys::range);
        RealDomain interval{read<double>(*at, keys::range.low),
                            read<double>(*at, keys::range.high)};
        read_word<keys::scales>(*at, keys::range.scale, interval.scale);
        set(*at, {interval});
    }
    if (const Yaml* at = node.find(keys::parameter.text)) set(*at, {TextDomain{}});
    if (const Yaml* at = node.find(keys::parameter.choice)) {
        ChoiceDomain choice;
        if (at->is_sequence()) check_count_of_values(*at);
        choice.values = at->values();
        const bool offers_unset = std::erase_if(choice.values, is_unset) > 0;
        read(node, keys::parameter.ordered, choice.ordered);
        set(*at, {std::move(choice), offers_unset});
    }
    return result;
}

/// The keys of a mapping must be values of the choice that the parameter is; `no_choice`: the error
/// where it is none.
void check_values(const Yaml& mapping, const Domain& domain, const std::string& no_choice) {
    const auto* choice = std::get_if<ChoiceDomain>(&domain);
    if (choice == nullptr) mapping.fail(no_choice);
    std::vector<std::string> known;
    for (const Value& value : choice->values) known.push_back(text_of(value));
    for (const auto& [value, below] : mapping.entries())
        if (std::find(known.begin(), known.end(), value) == known.end())
            below.fail("'" + value +
                       "' is not in the choice: " + listed(nearest_first(value, known)));
}

FurtherValues read_also(const Yaml& node) {
    FurtherValues result;
    read_table(node, keys::also, result);
    if ((node.find(keys::also.int_) == nullptr) == (node.find(keys::also.choice) == nullptr))
        node.fail("`also` is either int or choice");
    if (const Yaml* at = node.find(keys::also.int_)) {
        at->check_keys(keys::range);
        result.domain = read_bounds(*at);
    } else result.domain = ChoiceDomain{node.at(keys::also.choice).values()};
    return result;
}

/// The words of `same_as`: what they stand for is a value that the parameter has.
void read_same_as(const Yaml& node, EngineParameter& into) {
    for (const auto& [word, meant] : node.entries()) {
        const Value value = read_value(meant, into.parameter.domain);
        const bool known =
            is_unset(value) ? into.parameter.offers_unset : engine_takes(into, value, "");
        if (!known) meant.fail("'" + text_of(value) + "' is no value of this parameter");
        into.same_as[word] = value;
    }
}

EngineParameter read_parameter(const std::string& name, const Yaml& node) {
    const auto& table = keys::parameter;
    EngineParameter result{{name, {}, {}}};
    read_table(node, table, result);
    const auto domain = read_domain(node);
    if (!domain) node.fail("a parameter needs bool, int, real, choice or text");
    read_levels(node, *domain, result.parameter);
    if (const Yaml* earlier = node.find(table.earlier)) {
        read_table(*earlier, keys::earlier, result);
        (void)earlier->at(keys::earlier.until);
    }
    result.values_since = read_values_by_version(node, table.values_since, domain->domain);
    result.values_until = read_values_by_version(node, table.values_until, domain->domain);
    if (const Yaml* values = node.find(table.architectures))
        check_values(*values, domain->domain, "only values of a choice can be refused by a chip");
    if (const Yaml* also = node.find(table.also)) result.also = read_also(*also);
    if (const Yaml* words = node.find(table.same_as)) read_same_as(*words, result);
    const auto* range = std::get_if<IntegerDomain>(&domain->domain);
    result.suffixes = range != nullptr && range->high >= 1000;  // 8k is 8000
    if (const Yaml* values = node.find(table.means)) {
        const bool of_also = !std::holds_alternative<ChoiceDomain>(domain->domain) && result.also &&
                             std::holds_alternative<ChoiceDomain>(result.also->domain);
        check_values(*values, of_also ? result.also->domain : domain->domain,
                     "only values of a choice have a meaning of their own");
    }
    check_parameter(result.parameter, node);
    return result;
}

SpaceEntry read_space_entry(const std::string& name, const Yaml& node) {
    SpaceEntry result{name};
    if (node.is_sequence()) {
        check_count_of_values(node);
        ChoiceDomain choice;
        choice.values = node.values();
        result.offers_unset = std::erase_if(choice.values, is_unset) > 0;
        choice.ordered = are_growing_numbers(choice.values);
        Parameter parameter{name, choice, {}};
        parameter.offers_unset = *result.offers_unset;
        parameter.default_value =
            parameter.offers_unset || choice.values.empty() ? Value{} : choice.values.front();
        check_parameter(parameter, node);
        if (parameter.offers_unset) result.default_value = Value{};
        result.domain = std::move(choice);
        return result;
    }
    if (!node.is_mapping()) {
        result.fixed = true;
        result.default_value = node.value();
        if (auto* text = std::get_if<std::string>(&*result.default_value))
            *text = text_with_home(node);
        return result;
    }
    node.check_keys(keys::parameter);
    const auto domain = read_domain(node);
    if (domain) {
        Parameter parameter{name, {}, {}};
        read_levels(node, *domain, parameter);
        check_parameter(parameter, node);
        result.domain = parameter.domain;
        result.offers_unset = parameter.offers_unset;
        if (node.find(keys::parameter.default_) != nullptr || parameter.offers_unset)
            result.default_value = parameter.default_value;
    } else if (const Yaml* given = node.find(keys::parameter.default_))
        result.default_value = given->value();
    read(node, keys::parameter.grows_memory, result.grows_memory);
    const auto read_models = [&](const Key& key, std::map<std::string, std::string>& into) {
        if (const Yaml* models = node.find(key))
            for (const auto& [value, model] : models->entries())
                into[value] = text_with_home(model);
    };
    read_models(keys::parameter.checkpoints, result.checkpoints);
    read_models(keys::parameter.drafts, result.drafts);
    if (node.find(keys::parameter.flag) != nullptr || node.find(keys::parameter.env) != nullptr ||
        node.find(keys::parameter.option) != nullptr) {
        if (!domain)
            node.fail("a parameter of the study's own needs bool, int, real, choice or text");
        result.added = read_parameter(
            name, node.without(keys::parameter.checkpoints).without(keys::parameter.drafts));
    }
    return result;
}

Constraint read_constraint(const Yaml& node) {
    node.check_keys(keys::constraint);
    std::string because;
    read(node, keys::constraint.because, because);
    const Yaml* expression = node.find(keys::constraint.require);
    const Yaml* forbidden = node.find(keys::constraint.forbid);
    if ((expression == nullptr) == (forbidden == nullptr))
        node.fail("a constraint is either require or forbid");
    if (expression != nullptr) {
        try {
            return require(expression->text(), because);
        } catch (const ParseError& error) {
            expression->fail(error.what());
        }
    }
    Forbid result{{}, because};
    for (const auto& [name, values] : forbidden->entries()) result.values[name] = values.values();
    if (result.values.empty()) forbidden->fail("forbid needs at least one parameter");
    return result;
}

namespace {

/// Keys of the parameters of engines: where the engine's file says them, a study cannot.
struct EntryKey {
    const Key* key;
    std::string_view instead;   ///< what a study does; empty: it may say this
    bool only_of_flags = true;  ///< it says nothing of what no engine gets
};
constexpr const auto& in_entry = keys::parameter;
constexpr std::string_view how_passed = "give a parameter of your own another name";
constexpr std::string_view which_versions =
    "'engine_versions' says which version runs, 'choice' which values are tried";
constexpr std::string_view in_own_file = "let 'engine' name a copy of that file with your change";
constexpr std::array<EntryKey, 18> entry_keys{{
    {&in_entry.flag, how_passed},
    {&in_entry.off_flag, how_passed},
    {&in_entry.env, how_passed},
    {&in_entry.option, how_passed},
    {&in_entry.earlier, how_passed},
    {&in_entry.since, which_versions},
    {&in_entry.until, which_versions},
    {&in_entry.values_since, which_versions},
    {&in_entry.values_until, which_versions},
    {&in_entry.architectures, which_versions},
    {&in_entry.also, "write these values under 'choice'"},
    {&in_entry.same_as, in_own_file},
    {&in_entry.means, in_own_file},
    {&in_entry.drafts, ""},
    {&in_entry.checkpoints, ""},
    {&in_entry.when, "a rule under 'constraints' says which values may come together", false},
    {&in_entry.concept_, in_own_file, false},
    {&in_entry.engine_default, in_own_file, false},
}};

}  // namespace

bool speaks_of(const std::string& name, const Engine& engine, const Parameter& parameter) {
    const std::string own = engine.name + ".";
    const std::string local = name.starts_with(own) ? name.substr(own.size()) : name;
    return local == parameter.name ||
           (!parameter.concept_name.empty() && local == parameter.concept_name);
}

void check_keys_of_entry(const std::string& name, const Yaml& node,
                         const std::vector<Engine>& engines) {
    if (!node.is_mapping()) return;
    for (const Engine& engine : engines)
        for (const EngineParameter& declared : engine.parameters) {
            if (!speaks_of(name, engine, declared.parameter)) continue;
            AllErrors errors;
            for (const EntryKey& one : entry_keys)
                if (const Yaml* said = one.instead.empty() ? nullptr : node.find(*one.key))
                    errors.in([&] {
                        said->fail("the file of " + engine.name + " says this of its parameter '" +
                                   declared.parameter.name + "'; leave it out, or " +
                                   std::string(one.instead));
                    });
            return errors.throw_any();
        }
}

void check_keys_of_unpassed(const Yaml& node) {
    if (!node.is_mapping()) return;
    AllErrors errors;
    for (const EntryKey& one : entry_keys)
        if (const Yaml* said = one.only_of_flags ? node.find(*one.key) : nullptr)
            errors.in([&] { said->fail("no engine gets this parameter; leave this out"); });
    errors.throw_any();
}

}  // namespace servetune
