// SPDX-License-Identifier: Apache-2.0
#include "servetune/study_file/schema.hpp"

#include "keys.hpp"
#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <span>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson reference(const std::string& name) { return {{"$ref", "#/$defs/" + name}}; }

/// What stands under keys whose value is a mapping (or a list of mappings) with a table of its own; `*` before a name: any key,
/// each with such a value; `[]`: a list of them; `?`: also a plain value; `&`: also a list of words.
const std::map<std::string, std::map<std::string, std::string>, std::less<>>& nested() {
    static const std::map<std::string, std::map<std::string, std::string>, std::less<>> shapes{
        {"engine",
         {{"ready", "ready"},
          {"api", "api"},
          {"between_runs", "[]between_runs"},
          {"failures", "[]failure"},
          {"parameters", "*parameter"},
          {"render", "[]render"},
          {"constraints", "[]constraint"},
          {"devices", "[]?device_factor"}}},
        {"parameter", {{"int", "range"}, {"real", "range"}, {"earlier", "earlier"}}},
        {"workload", {{"dataset", "dataset"}, {"arrival", "arrival"}}},
        {"arrival", {{"ramp", "ramp"}}},
        {"study",
         {{"workloads", "[]?workload"},
          {"report_workloads", "[]?workload"},
          {"objective", "objective"},
          {"hardware", "?machine"},
          {"machine", "machine"},
          {"space", "*?parameter"},
          {"load", "load"},
          {"constraints", "[]constraint"},
          {"strategy", "?strategy"},
          {"knowledge", "[]knowledge"},
          {"budget", "budget"},
          {"evaluator", "evaluator"},
          {"published", "published"}}},
        {"strategy", {{"staged", "staged"}, {"bayesian", "bayesian"}}},
        {"evaluator",
         {{"replay", "?replay"}, {"simulate", "simulate"}, {"attach", "?attach"}, {"deploy", "deploy"}, {"command", "&command"}}},
        {"load", {{"concurrency", "parameter"}, {"request_rate", "parameter"}}},
        {"traits", {{"attention", "*attention"}, {"defects", "[]defect"}}},
        {"model", {{"weights", "*weights"}}},
    };
    return shapes;
}

/// The schema of a value from the words that describe its type in the table.
OrderedJson of_type(std::string_view type) {
    if (type == "integer") return {{"type", "integer"}};
    if (type == "number") return {{"type", "number"}};
    if (type == "bool") return {{"type", "boolean"}};
    if (type.starts_with("list") && type.find(" or ") == std::string_view::npos) return {{"type", "array"}};
    if (type.starts_with("mapping") || type == "{}" || type.find("->") != std::string_view::npos) {
        if (type.find(" or ") == std::string_view::npos) return {{"type", "object"}};
    }
    if (type == "text" || type == "path" || type == "expression" || type == "metric" || type == "name or file" || type == "version")
        return {{"type", OrderedJson::array({"string", "number"})}};
    if (type == "metric or metrics")
        return {{"anyOf", OrderedJson::array({of_type("metric"), {{"type", "array"}, {"items", of_type("metric")}, {"minItems", 1}}})}};
    return OrderedJson::object();
}

class Writer {
public:
    OrderedJson write(const std::string& kind) {
        OrderedJson schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", "servetune " + kind}};
        schema.update(mapping(kind));
        OrderedJson definitions = OrderedJson::object();
        // Definitions are added while others are written.
        while (!wanted_.empty()) {
            const std::string name = wanted_.back();
            wanted_.pop_back();
            if (!definitions.contains(name)) definitions[name] = mapping(name);
        }
        if (!definitions.empty()) schema["$defs"] = definitions;
        return schema;
    }

    static const std::map<std::string, std::span<const Key>, std::less<>>& tables() {
        static const std::map<std::string, std::span<const Key>, std::less<>> all{{"engine", keys::engine},
                                                                                  {"ready", keys::ready},
                                                                                  {"api", keys::api},
                                                                                  {"between_runs", keys::between_runs},
                                                                                  {"failure", keys::failure},
                                                                                  {"parameter", keys::parameter},
                                                                                  {"earlier", keys::earlier},
                                                                                  {"range", keys::range},
                                                                                  {"render", keys::render},
                                                                                  {"constraint", keys::constraint},
                                                                                  {"dataset", keys::dataset},
                                                                                  {"arrival", keys::arrival},
                                                                                  {"ramp", keys::ramp},
                                                                                  {"workload", keys::workload},
                                                                                  {"study", keys::study},
                                                                                  {"preset", keys::preset},
                                                                                  {"objective", keys::objective},
                                                                                  {"strategy", keys::strategy},
                                                                                  {"staged", keys::staged},
                                                                                  {"stage", keys::stage},
                                                                                  {"budget", keys::budget},
                                                                                  {"evaluator", keys::evaluator},
                                                                                  {"replay", keys::replay},
                                                                                  {"published", keys::published},
                                                                                  {"hardware", keys::hardware},
                                                                                  {"model", keys::model},
                                                                                  {"weights", keys::weights},
                                                                                  {"simulate", keys::simulate},
                                                                                  {"load", keys::load},
                                                                                  {"attach", keys::attach},
                                                                                  {"deploy", keys::deploy},
                                                                                  {"traits", keys::traits},
                                                                                  {"attention", keys::attention},
                                                                                  {"defect", keys::defect},
                                                                                  {"machine", keys::machine},
                                                                                  {"device_factor", keys::device_factor},
                                                                                  {"command", keys::command},
                                                                                  {"bayesian", keys::bayesian},
                                                                                  {"knowledge", keys::knowledge}};
        return all;
    }

private:
    OrderedJson mapping(const std::string& name) {
        OrderedJson result{{"type", "object"}, {"additionalProperties", false}, {"properties", OrderedJson::object()}};
        OrderedJson required = OrderedJson::array();
        bool uses_another = false;
        for (const Key& key : tables().find(name)->second) {
            OrderedJson value = shape(name, key);
            value["description"] = key.doc;
            result["properties"][std::string(key.name)] = value;
            if (key.required) required.push_back(key.name);
            uses_another = uses_another || key.name == "use";
        }
        // A file that uses another need not be complete itself.
        if (!required.empty() && uses_another)
            result["anyOf"] = OrderedJson::array({{{"required", OrderedJson::array({"use"})}}, {{"required", required}}});
        else if (!required.empty()) result["required"] = required;
        return result;
    }

    OrderedJson shape(const std::string& parent, const Key& key) {
        const auto of_parent = nested().find(parent);
        if (of_parent == nested().end()) return of_type(key.type);
        const auto found = of_parent->second.find(std::string(key.name));
        if (found == of_parent->second.end()) return of_type(key.type);
        std::string text = found->second;
        const bool list = text.starts_with("[]");
        if (list) text.erase(0, 2);
        const bool any_key = text.starts_with("*");
        if (any_key) text.erase(0, 1);
        const bool or_plain = text.starts_with("?");
        if (or_plain) text.erase(0, 1);
        const bool or_words = text.starts_with("&");
        if (or_words) text.erase(0, 1);
        wanted_.push_back(text);
        OrderedJson value = reference(text);
        if (or_plain) value = {{"anyOf", OrderedJson::array({value, {{"type", OrderedJson::array({"string", "number", "boolean"})}}})}};
        if (or_words) value = {{"anyOf", OrderedJson::array({value, {{"type", "array"}, {"items", of_type("text")}}})}};
        if (any_key) return {{"type", "object"}, {"additionalProperties", value}};
        if (list) return {{"type", "array"}, {"items", value}};
        return value;
    }

    std::vector<std::string> wanted_;
};

}  // namespace

std::vector<std::string> schema_kinds() { return {"engine", "workload", "study", "preset", "hardware", "model", "traits"}; }

std::string json_schema(std::string_view kind) {
    const std::vector<std::string> kinds = schema_kinds();
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
        throw UsageError("there is no schema of '" + std::string(kind) + "'; known: " + listed(nearest_first(kind, kinds)));
    return Writer().write(std::string(kind)).dump(2) + "\n";
}

}  // namespace servetune
