// SPDX-License-Identifier: Apache-2.0
#include "written_space.hpp"

#include "engine/engine_value.hpp"
#include "servetune/value.hpp"
#include "study_file/yaml_text.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>

namespace servetune {
namespace {

/// A value as YAML reads it back.
std::string yaml_value(const Value& value) {
    return std::holds_alternative<std::string>(value) ? yaml_text(text_of(value)) : text_of(value);
}

/// The name of a parameter for a flag or a variable.
std::string name_for(const Setting& setting) {
    std::string name;
    for (const char c :
         setting.name.substr(std::min(setting.name.find_first_not_of('-'), setting.name.size())))
        name += std::isalnum(static_cast<unsigned char>(c)) != 0
                    ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
                    : '_';
    return name;
}

/// The values of a parameter in the rows of an engine, `engine` (no flag) among them where a row
/// has none.
struct Levels {
    std::vector<Value> values{};
    bool missing = false;
    bool number = true;
};
template <class ValueOf>
Levels levels_of(const std::vector<const SeenRow*>& rows, const ValueOf& value_of_row) {
    Levels levels;
    for (const SeenRow* row : rows) {
        const std::optional<Value> value = value_of_row(*row);
        if (!value) levels.missing = true;
        else if (std::find(levels.values.begin(), levels.values.end(), *value) ==
                 levels.values.end())
            levels.values.push_back(*value);
    }
    levels.number = std::all_of(levels.values.begin(), levels.values.end(), [](const Value& value) {
        return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
    });
    if (levels.number)
        std::sort(levels.values.begin(), levels.values.end(), [](const Value& a, const Value& b) {
            return real_of(text_of(a)) < real_of(text_of(b));
        });
    return levels;
}
std::string choice_text(const Levels& levels, const std::string& absent) {
    std::string text;
    if (levels.missing) text = absent;
    for (const Value& value : levels.values)
        if (const std::string one = yaml_value(value); !levels.missing || one != absent)
            text += (text.empty() ? "" : ", ") + one;
    return text;
}

}  // namespace

SeenRow seen_row(std::size_t index, const Engine& engine, const CommandSettings& command) {
    SeenRow row{.index = index, .engine = &engine, .model = command.model};
    const auto set = [&](const EngineParameter& declared, const Setting& setting) {
        const Value taken = as_engine_takes(declared, value_of(setting.value));
        if (is_unset(taken)) row.values.erase(declared.parameter.name);  // another word for no flag
        else row.values[declared.parameter.name] = taken;
    };
    const auto is_active = [&](const EngineParameter* declared) {
        const auto& conditions = declared->parameter.active_when;
        return std::all_of(conditions.begin(), conditions.end(), [&](const Condition& condition) {
            const auto parent = row.values.find(condition.parent);
            return parent != row.values.end() &&
                   std::find(condition.values.begin(), condition.values.end(), parent->second) !=
                       condition.values.end();
        });
    };
    for (const bool shared :
         {false, true})  // which of those that share a flag is active, the others say
        for (const Setting& setting : command.settings) {
            const auto& declared = setting.parameters;
            if (declared.empty() || shared != (declared.size() > 1)) continue;
            const auto active = std::find_if(declared.begin(), declared.end(), is_active);
            set(active == declared.end() ? *declared.front() : **active, setting);
        }
    for (const Setting& setting : command.settings) {
        const bool several = setting.kind == Setting::Kind::flag &&
                             setting.words.size() > 2;  // a parameter has one value
        if (setting.kind == Setting::Kind::unread || several)
            row.unread = row.unread.empty() ? setting.text() : row.unread;
        else if (setting.kind == Setting::Kind::flag || setting.kind == Setting::Kind::variable)
            row.unknown[name_for(setting)] = setting;
    }
    return row;
}

std::string space_of_rows(const std::vector<SeenRow>& all,
                          const std::map<std::string, std::string>& checkpoints,
                          std::vector<std::string>& remarks, const SeenRow* start) {
    std::vector<const Engine*> used;
    for (const SeenRow& row : all)
        if (std::find(used.begin(), used.end(), row.engine) == used.end())
            used.push_back(row.engine);
    std::string text;
    const bool several = used.size() > 1;
    // One quantization for all engines: by flag, or another checkpoint.
    std::vector<std::string> quantizations{"none"};
    const auto quantization_of = [](const SeenRow& row) {
        const auto given = row.values.find("quantization");
        return !row.variant.empty()        ? row.variant
               : given == row.values.end() ? "none"
                                           : text_of(given->second);
    };
    for (const SeenRow& row : all) {
        const std::string value = quantization_of(row);
        if (std::find(quantizations.begin(), quantizations.end(), value) == quantizations.end())
            quantizations.push_back(value);
    }
    if (quantizations.size() > 1) {
        text += "  quantization:\n    choice: [";
        for (std::size_t i = 0; i < quantizations.size(); ++i)
            text += (i > 0 ? ", " : "") + yaml_text(quantizations[i]);
        text += "]\n";
        if (start != nullptr) text += "    default: " + yaml_text(quantization_of(*start)) + "\n";
        if (!checkpoints.empty()) text += "    checkpoints:\n";
        for (const auto& [variant, served] : checkpoints)
            text += "      " + yaml_text(variant) + ": " + yaml_text(served) + "\n";
    }
    for (const Engine* engine : used) {
        std::vector<const SeenRow*> rows;
        std::set<std::string> names, unknown;
        for (const SeenRow& row : all) {
            if (row.engine != engine) continue;
            rows.push_back(&row);
            for (const auto& [name, value] : row.values) names.insert(name);
            for (const auto& [name, value] : row.unknown) unknown.insert(name);
        }
        const bool starts = start != nullptr && start->engine == engine;
        const std::string prefix = several ? engine->name + "." : "";
        for (const EngineParameter& declared :
             engine->parameters) {  // parents before what depends on them
            const std::string& name = declared.parameter.name;
            if (!names.contains(name) || declared.parameter.concept_name == "quantization")
                continue;
            const Levels levels = levels_of(rows, [&](const SeenRow& row) -> std::optional<Value> {
                const auto found = row.values.find(name);
                return found == row.values.end() ? std::nullopt : std::optional(found->second);
            });
            const bool one =
                levels.values.size() == 1 &&
                (!levels.missing || std::holds_alternative<TextDomain>(declared.parameter.domain));
            const std::string usual = is_unset(declared.parameter.default_value)
                                          ? std::string(unset_text)
                                          : yaml_value(declared.parameter.default_value);
            // What is only active under others' values must be written whenever it is.
            const bool conditional =
                !declared.parameter.active_when.empty() && !declared.parameter.offers_unset;
            text += "  " + prefix + name + ": ";
            if (one || (conditional && levels.values.size() == 1))
                text += yaml_value(levels.values.front()) + "\n";
            else {
                text += "{choice: [" + choice_text(levels, usual) + "]" +
                        (levels.number ? ", ordered: true" : "");
                if (starts) {
                    const auto found = start->values.find(name);
                    if (found != start->values.end())
                        text += ", default: " + yaml_value(found->second);
                    else if (!conditional) text += ", default: " + usual;
                }
                text += "}\n";
            }
        }
        for (const std::string& name : unknown) {
            const Levels levels = levels_of(rows, [&](const SeenRow& row) -> std::optional<Value> {
                const auto found = row.unknown.find(name);
                return found == row.unknown.end() ? std::nullopt
                                                  : std::optional(value_of(found->second.value));
            });
            Setting flag;
            for (const SeenRow* row : rows)
                if (const auto found = row->unknown.find(name); found != row->unknown.end())
                    flag = found->second;
            const bool is_variable = flag.kind == Setting::Kind::variable;
            text += "  " + prefix + name + ": {" +
                    (is_variable ? "env: " + yaml_text(flag.name) : "flag: \"" + flag.name + "\"");
            const bool has_it = starts && start->unknown.contains(name);
            if (flag.alone)
                text += std::string(", bool: {}, default: ") +
                        ((starts ? has_it : !levels.missing) ? "true" : "false") + "}\n";
            else {
                text += ", choice: [" + choice_text(levels, "engine") + "]";
                if (starts)
                    text +=
                        ", default: " +
                        (has_it ? yaml_value(value_of(start->unknown.at(name).value)) : "engine");
                text += "}\n";
            }
            remarks.push_back(engine->name + ": " + flag.name +
                              " is not in the engine file; the study adds it");
        }
    }
    return text;
}

}  // namespace servetune
