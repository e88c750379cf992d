// SPDX-License-Identifier: Apache-2.0
#include "parameter_reader.hpp"

#include "keys.hpp"
#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"
#include "servetune/io/files.hpp"
#include "servetune/perf/hardware_spec.hpp"

#include <algorithm>
#include <utility>

namespace servetune {
namespace {

Scale read_scale(const Yaml& node) {
    const Yaml* scale = node.find("scale");
    if (scale == nullptr || scale->text() == "linear") return Scale::linear;
    if (scale->text() == "log") return Scale::log;
    if (scale->text() == "log2") return Scale::log2;
    scale->fail_wanted("linear, log or log2");
}

std::string text_or_empty(const Yaml& node, std::string_view key) {
    const Yaml* child = node.find(key);
    return child != nullptr ? child->text() : "";
}

/// A value for a parameter of this domain: 3 is 3.0 for a real.
Value read_value(const Yaml& node, const Domain& domain) {
    Value value = node.value();
    if (const auto number = number_of(value); number && std::holds_alternative<RealDomain>(domain)) return *number;
    return value;
}

Destination read_destination(const Yaml& node) {
    return {text_or_empty(node, "flag"), text_or_empty(node, "off_flag"), text_or_empty(node, "env"), text_or_empty(node, "option")};
}

std::map<std::string, std::vector<Value>> read_values_by_version(const Yaml& node, std::string_view key, const Domain& domain) {
    std::map<std::string, std::vector<Value>> result;
    const Yaml* versions = node.find(key);
    if (versions == nullptr) return result;
    const auto* choice = std::get_if<ChoiceDomain>(&domain);
    if (choice == nullptr) versions->fail("only a choice has values that come and go");
    for (const auto& [version, list] : versions->entries()) {
        result[version] = list.values();
        for (const Value& value : result[version])
            if (std::find(choice->values.begin(), choice->values.end(), value) == choice->values.end())
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
    const Yaml* given = node.find("default");
    if (given != nullptr) {
        parameter.default_value = read_value(*given, read.domain);
        if (is_unset(parameter.default_value)) parameter.offers_unset = true;
    } else if (parameter.offers_unset) parameter.default_value = Unset{};
    else if (const auto* choice = std::get_if<ChoiceDomain>(&read.domain))
        parameter.default_value = choice->values.empty() ? Value{} : choice->values.front();
    else if (const auto* range = std::get_if<IntegerDomain>(&read.domain)) parameter.default_value = range->low;
    else if (const auto* interval = std::get_if<RealDomain>(&read.domain)) parameter.default_value = interval->low;
    else if (std::holds_alternative<TextDomain>(read.domain)) {
        parameter.offers_unset = true;
        parameter.default_value = Unset{};
    } else parameter.default_value = false;
    if (const Yaml* engine_default = node.find("engine_default")) parameter.value_when_unset = read_value(*engine_default, read.domain);
}

}  // namespace

std::optional<ReadDomain> read_domain(const Yaml& node) {
    std::optional<ReadDomain> result;
    const auto set = [&](const Yaml& at, ReadDomain domain) {
        if (result) at.fail("a parameter is one of bool, int, real, choice, text; this one is two");
        result = std::move(domain);
    };
    if (const Yaml* at = node.find("bool")) set(*at, {BoolDomain{}});
    if (const Yaml* at = node.find("int")) {
        at->check_keys(keys::range);
        IntegerDomain range{at->find("low")->integer(), at->find("high")->integer()};
        if (const Yaml* step = at->find("step")) range.step = step->integer();
        range.scale = read_scale(*at);
        set(*at, {range});
    }
    if (const Yaml* at = node.find("real")) {
        at->check_keys(keys::range);
        if (const Yaml* step = at->find("step")) step->fail("a real has no step");
        set(*at, {RealDomain{at->find("low")->real(), at->find("high")->real(), read_scale(*at)}});
    }
    if (const Yaml* at = node.find("text")) set(*at, {TextDomain{}});
    if (const Yaml* at = node.find("choice")) {
        ChoiceDomain choice;
        choice.values = at->values();
        const bool offers_unset = std::erase_if(choice.values, is_unset) > 0;
        if (const Yaml* ordered = node.find("ordered")) choice.ordered = ordered->boolean();
        set(*at, {std::move(choice), offers_unset});
    }
    return result;
}

std::vector<Condition> read_conditions(const Yaml& node) {
    std::vector<Condition> result;
    for (const auto& [parent, values] : node.entries()) result.push_back({parent, values.values()});
    return result;
}

std::vector<std::string> read_text_list(const Yaml& node) {
    std::vector<std::string> result;
    for (const Yaml& item : node.items()) result.push_back(item.text());
    return result;
}

std::size_t read_count(const Yaml& node) {
    if (node.integer() < 0) node.fail_wanted("an integer of at least 0");
    return static_cast<std::size_t>(node.integer());
}

std::size_t read_integer(const Yaml& node, std::int64_t low, std::int64_t high) {
    if (node.integer() < low || node.integer() > high)
        node.fail_wanted("an integer in [" + std::to_string(low) + ", " + std::to_string(high) + "]");
    return static_cast<std::size_t>(node.integer());
}

std::string text_with_home(const Yaml& node) {
    try {
        return with_home(node.text());
    } catch (const IoError& error) {
        node.fail(error.what());
    }
}

bool choice_of_two(const Yaml& node, std::string_view yes, std::string_view no) {
    const std::string text = node.text();
    if (text != yes && text != no) node.fail_wanted(std::string(yes) + " or " + std::string(no));
    return text == yes;
}

std::vector<std::string> read_architectures(const Yaml& node) {
    std::vector<std::string> result;
    for (const Yaml& item : node.is_sequence() ? node.items() : std::vector<Yaml>{node}) {
        if (std::find(architectures.begin(), architectures.end(), item.text()) == architectures.end())
            item.fail("'" + item.text() + "' is no architecture; known: " +
                      listed(nearest_first(item.text(), std::vector<std::string>(architectures.begin(), architectures.end()))));
        result.push_back(item.text());
    }
    return result;
}

std::map<std::string, std::string> read_texts(const Yaml& node) {
    std::map<std::string, std::string> result;
    for (const auto& [key, value] : node.entries()) result[key] = value.text();
    return result;
}

EngineParameter read_parameter(const std::string& name, const Yaml& node) {
    node.check_keys(keys::parameter);
    const auto read = read_domain(node);
    if (!read) node.fail("a parameter needs bool, int, real, choice or text");
    EngineParameter result{{name, {}, {}}};
    read_levels(node, *read, result.parameter);
    if (const Yaml* when = node.find("when")) result.parameter.active_when = read_conditions(*when);
    result.parameter.concept_name = text_or_empty(node, "concept");
    if (const Yaml* grows = node.find("grows_memory")) result.parameter.grows_memory = grows->boolean();
    result.parameter.doc = text_or_empty(node, "doc");
    result.destination = read_destination(node);
    if (const Yaml* earlier = node.find("earlier")) {
        earlier->check_keys(keys::earlier);
        result.earlier = read_destination(*earlier);
        result.earlier_until = earlier->find("until")->text();
    }
    result.values_since = read_values_by_version(node, "values_since", read->domain);
    result.values_until = read_values_by_version(node, "values_until", read->domain);
    if (const Yaml* values = node.find("architectures")) {
        const auto* choice = std::get_if<ChoiceDomain>(&read->domain);
        if (choice == nullptr) values->fail("only values of a choice can be refused by a chip");
        for (const auto& [value, chips] : values->entries()) {
            const auto same = [&, &wanted = value](const Value& known) { return text_of(known) == wanted; };
            if (std::none_of(choice->values.begin(), choice->values.end(), same)) chips.fail("'" + value + "' is not in the choice");
            result.architectures[value] = read_architectures(chips);
        }
    }
    result.since = text_or_empty(node, "since");
    result.until = text_or_empty(node, "until");
    result.source = text_or_empty(node, "source");
    check_parameter(result.parameter, node);
    return result;
}

SpaceEntry read_space_entry(const std::string& name, const Yaml& node) {
    SpaceEntry result{name};
    if (!node.is_mapping()) {
        result.fixed = true;
        result.default_value = node.value();
        if (auto* text = std::get_if<std::string>(&*result.default_value)) *text = text_with_home(node);
        return result;
    }
    node.check_keys(keys::parameter);
    const auto read = read_domain(node);
    if (read) {
        Parameter parameter{name, {}, {}};
        read_levels(node, *read, parameter);
        check_parameter(parameter, node);
        result.domain = parameter.domain;
        result.offers_unset = parameter.offers_unset;
        if (node.find("default") != nullptr || parameter.offers_unset) result.default_value = parameter.default_value;
    } else if (const Yaml* given = node.find("default")) result.default_value = given->value();
    if (const Yaml* grows = node.find("grows_memory")) result.grows_memory = grows->boolean();
    const auto read_models = [&](const char* key, std::map<std::string, std::string>& into) {
        if (const Yaml* models = node.find(key))
            for (const auto& [value, model] : models->entries()) into[value] = text_with_home(model);
    };
    read_models("checkpoints", result.checkpoints);
    read_models("drafts", result.drafts);
    if (node.find("flag") != nullptr || node.find("env") != nullptr || node.find("option") != nullptr) {
        if (!read) node.fail("a parameter of the study's own needs bool, int, real, choice or text");
        result.added = read_parameter(name, node.without("checkpoints").without("drafts"));
    }
    return result;
}

Constraint read_constraint(const Yaml& node) {
    node.check_keys(keys::constraint);
    const std::string because = text_or_empty(node, "because");
    const Yaml* expression = node.find("require");
    const Yaml* forbidden = node.find("forbid");
    if ((expression == nullptr) == (forbidden == nullptr)) node.fail("a constraint is either require or forbid");
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

}  // namespace servetune
