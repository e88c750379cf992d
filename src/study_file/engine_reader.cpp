// SPDX-License-Identifier: Apache-2.0
// Engines, and the parameters and rules of engines and studies.
#include "readers.hpp"

#include "base/nearest.hpp"
#include "engine/engine_value.hpp"
#include "engine/version.hpp"
#include "key_reader.hpp"
#include "keys.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "study/plain_value.hpp"

namespace servetune {
namespace {

/// A value for a parameter of this domain: 3 is 3.0 for a real.
Value read_value(const Yaml& node, const Domain& domain) {
    const Value value = as_parameter_has_it({"", domain, {}}, node.value());
    const auto number = number_of(value);
    return number && std::holds_alternative<RealDomain>(domain) ? Value(*number) : value;
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
            if (!contains(choice->values, value))
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
        IntegerDomain range;
        read_table(*at, keys::range, range);
        set(*at, {range});
    }
    if (const Yaml* at = node.find(keys::parameter.real)) {
        RealDomain interval;
        read_table(*at, keys::interval, interval);
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
        if (!contains(known, value))
            below.fail("'" + value +
                       "' is not in the choice: " + listed(nearest_first(value, known)));
}

FurtherValues read_also(const Yaml& node) {
    FurtherValues result;
    read_table(node, keys::also, result);
    if ((node.find(keys::also.int_) == nullptr) == (node.find(keys::also.choice) == nullptr))
        node.fail("`also` is either int or choice");
    if (const Yaml* at = node.find(keys::also.int_)) {
        IntegerDomain range;
        read_table(*at, keys::range, range);
        result.domain = range;
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
        result = read_space_entry(name, node.under(keys::parameter.choice));
        auto& choice = std::get<ChoiceDomain>(*result.domain);
        choice.ordered = are_growing_numbers(choice.values);
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
    if (const Yaml* models = node.find(keys::parameter.checkpoints))
        for (const auto& [value, model] : models->entries())
            result.checkpoints[value] = text_with_home(model);
    if (node.find(keys::parameter.flag) != nullptr || node.find(keys::parameter.env) != nullptr ||
        node.find(keys::parameter.option) != nullptr) {
        if (!domain)
            node.fail("a parameter of the study's own needs bool, int, real, choice or text");
        result.added = read_parameter(name, node.without(keys::parameter.checkpoints));
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

std::string local_name(const std::string& name, const Engine& engine) {
    const std::string own = engine.name + ".";
    return name.starts_with(own) ? name.substr(own.size()) : name;
}

bool speaks_of(const std::string& name, const Engine& engine, const Parameter& parameter) {
    const std::string local = local_name(name, engine);
    return local == parameter.name ||
           (!parameter.concept_name.empty() && local == parameter.concept_name);
}

namespace {

/// Throws for each key with this mark.
void refuse_marked(const Yaml& node, KeyMark mark, const std::string& why) {
    AllErrors errors;
    for (const Key& key : rows_of(keys::parameter))
        if (const Yaml* said = key.has(mark) ? node.find(key) : nullptr)
            errors.in([&] { said->fail(why); });
    errors.throw_any();
}

}  // namespace

void check_keys_of_entry(const std::string& name, const Yaml& node,
                         const std::vector<Engine>& engines) {
    if (!node.is_mapping()) return;
    for (const Engine& engine : engines)
        for (const EngineParameter& declared : engine.parameters)
            if (speaks_of(name, engine, declared.parameter))
                return refuse_marked(
                    node, of_engine,
                    "the file of " + engine.name + " says this of its parameter '" +
                        declared.parameter.name +
                        "'; leave it out, or let 'engine' name a copy of that file");
}

void check_keys_of_unpassed(const Yaml& node) {
    if (node.is_mapping())
        refuse_marked(node, of_flag, "no engine gets this parameter; leave this out");
}

std::vector<Value> condition_values(const std::string& parent, const Yaml& node,
                                    const std::vector<const Engine*>& engines) {
    std::vector<std::string> known;
    std::vector<Value> values = node.values();
    bool found = false;
    for (const Engine* engine : engines) {
        const EngineParameter* declared = engine->find(local_name(parent, *engine));
        for (const EngineParameter& one : engine->parameters) known.push_back(one.parameter.name);
        if (declared == nullptr || found) continue;
        found = true;
        for (Value& value : values) {
            value = meant_value(*declared, value);
            if (!is_unset(value) && !declared->parameter.level_of(value))
                node.fail("'" + text_of(value) + "' is no value of '" + parent + "', which is " +
                          declared->parameter.domain_text());
        }
    }
    if (!found)
        node.fail("'" + parent + "' is not a parameter of " + engines.front()->name +
                  "; known: " + listed(nearest_first(parent, known)));
    return values;
}

void settle_conditions(Engine& engine, const Yaml& parameters) {
    AllErrors errors;
    for (EngineParameter& declared : engine.parameters)
        for (auto& [parent, values] : declared.parameter.active_when) {
            const Yaml& when = parameters.entry(declared.parameter.name)->at(keys::parameter.when);
            errors.in([&, &name = parent, &into = values] {
                into = condition_values(name, *when.entry(name), {&engine});
            });
        }
    errors.throw_any();
}

namespace {

/// Constraints and json flags may only name the engine's own parameters; said where they stand.
void check_names(const Engine& engine, const Yaml& file) {
    const auto& table = keys::engine;
    std::vector<std::string> known;
    for (const EngineParameter& parameter : engine.parameters)
        known.push_back(parameter.parameter.name);
    const auto check = [&](const std::string& name, const Yaml& at) {
        if (engine.find(name) == nullptr)
            at.fail("'" + name + "' is not a parameter of " + engine.name +
                    "; known: " + listed(nearest_first(name, known)));
    };
    const auto check_keys_of = [&](const Yaml* mapping) {
        if (mapping != nullptr)
            for (const auto& [name, node] : mapping->entries()) check(name, node);
    };
    if (const Yaml* aliases = file.find(table.aliases))
        for (const auto& [spelling, meant] : aliases->entries())
            if (!meant.text().starts_with("{model}")) check(meant.text(), meant);
    if (const Yaml* devices = file.find(table.devices)) {
        if (devices->is_sequence())
            for (const Yaml& name : devices->items()) check(name.text(), name);
        else
            for (const auto& [name, unless] : devices->entries()) {
                check(name, unless);
                check_keys_of(&unless);
            }
    }
    const auto check_part = [&](const Key& part, const Key& names, const Key& when) {
        const Yaml* node = file.find(part);
        if (node == nullptr) return;
        for (const Yaml& name : node->at(names).items()) check(name.text(), name);
        check_keys_of(node->find(when));
    };
    check_part(table.weight_cache, keys::weight_cache.parameters, keys::weight_cache.when);
    check_part(table.cache_size, keys::cache_size.free, keys::cache_size.when);
    if (const Yaml* render = file.find(table.render))
        for (std::size_t i = 0; i < engine.json_flags.size(); ++i)
            for (const auto& [key, name] : engine.json_flags[i].fields)
                check(name, render->items()[i]);
    const std::vector<std::string> facts(model_facts.begin(), model_facts.end());
    for (std::size_t i = 0; i < engine.constraints.size(); ++i)
        for (const std::string& name : names_of(engine.constraints[i])) {
            const Yaml& at = file.at(table.constraints).items()[i];
            if (!name.starts_with("model.") ||
                !std::holds_alternative<Require>(engine.constraints[i]))
                check(name, at);
            else if (!contains(facts, name))
                at.fail("'" + name + "' is nothing that rules may ask of a model; known: " +
                        listed(nearest_first(name, facts)));
        }
}

/// `{prefill_url}` in a word names the role it is of.
EngineRoles read_roles(const Yaml& node) {
    const auto& table = keys::roles;
    EngineRoles result;
    read_table(node, table, result);
    for (const Key& key : {table.prefill, table.decode}) {
        EngineRole role{std::string(key.name)};
        read_table(node.at(key), keys::role, role);
        result.each.push_back(std::move(role));
    }
    for (const Yaml& item : node.at(table.router).items()) {
        result.router.emplace_back();
        for (const Yaml& word : item.items_or_one()) result.router.back().push_back(word.text());
    }
    for (const EngineRole& role : result.each) {
        const std::string place = "{" + role.name + "_url}";
        const auto names_it = [&](const std::vector<std::string>& part) {
            return any_of(part, [&](const std::string& word) { return contains(word, place); });
        };
        if (none_of(result.router, names_it))
            node.at(table.router)
                .fail("a list of words with " + place +
                      " wanted: the router must know the servers of this role");
    }
    return result;
}

JsonFlag read_json_flag(const Yaml& item) {
    JsonFlag flag;
    read_table(item, keys::render, flag);
    for (const auto& [key, value] : item.at(keys::render.json).entries()) {
        const std::string text = value.text();
        if (text.size() < 3 || !text.starts_with('{') || !text.ends_with('}'))
            value.fail_wanted("'{parameter}'");
        flag.fields.emplace_back(key, text.substr(1, text.size() - 2));
    }
    return flag;
}

/// Lets the space itself judge the parameters and rules.
void check_space(const Engine& engine, const Yaml& parameters) {
    try {
        std::vector<Parameter> all;
        for (const EngineParameter& parameter : engine.parameters)
            all.push_back(parameter.parameter);
        std::vector<Constraint> rules = engine.constraints;
        for (Constraint& constraint : rules)
            if (auto* rule = std::get_if<Require>(&constraint))
                rule->expression = with_model_facts(rule->expression, {});
        const SearchSpace space(std::move(all), std::move(rules));
    } catch (const SpaceError& error) {
        throw ParseError(parameters.place() + ": " + error.what());
    }
}

}  // namespace

Engine read_engine(const Yaml& file) {
    const auto& table = keys::engine;
    constexpr double first_load_seconds = 20 * 60;  // of a large model, and its compilation
    Engine engine;
    engine.ready_within_seconds = first_load_seconds;
    read_table(file, table, engine);
    if (none_of(engine.launch, [](const std::string& word) { return contains(word, "{model}"); }))
        file.at(table.launch).fail("the command has no {model}");
    std::string api;
    read(file, table.api, api);
    if (api == "completions") engine.api["completions"] = "/v1/completions";
    if (file.find(table.server_info) != nullptr)
        read(file, table.server_info, engine.api["server_info"]);
    std::map<std::string, std::map<std::string, std::string>> needs;
    read(file, table.between_runs, needs);
    engine.between_runs.assign(needs.begin(), needs.end());
    for (const auto& [name, node] : file.at(table.parameters).entries()) {
        engine.parameters.push_back(read_parameter(name, node));
        if (node.find(keys::parameter.option) != nullptr && engine.options_flag.empty())
            node.at(keys::parameter.option).fail("the engine has no options_flag");
    }
    if (const Yaml* list = file.find(table.render))
        for (const Yaml& item : list->items()) engine.json_flags.push_back(read_json_flag(item));
    if (const Yaml* list = file.find(table.constraints))
        for (const Yaml& item : list->items()) {
            engine.constraints.push_back(read_constraint(item));
            std::pair<std::string, std::string> versions;
            read(item, keys::constraint.since, versions.first);
            read(item, keys::constraint.until, versions.second);
            if (!versions.first.empty() || !versions.second.empty())
                engine.constraint_versions[text_of(engine.constraints.back())] =
                    std::move(versions);
        }
    if (const Yaml* daemon = file.find(table.weight_cache);
        daemon != nullptr && daemon->find(keys::weight_cache.ready_within) == nullptr)
        engine.weight_cache->ready_within_seconds = engine.ready_within_seconds;
    if (const Yaml* devices = file.find(table.devices)) {
        if (devices->is_sequence())
            for (const Yaml& item : devices->items()) engine.devices.push_back({item.text()});
        else
            for (const auto& [name, unless] : devices->entries())
                read_as(is::conditions, unless,
                        engine.devices.emplace_back(DeviceFactor{name}).unless);
    }
    if (const Yaml* roles = file.find(table.roles)) engine.roles = read_roles(*roles);
    settle_conditions(engine, file.at(table.parameters));
    check_names(engine, file);
    check_space(engine, file.at(table.parameters));
    return engine;
}

}  // namespace servetune
