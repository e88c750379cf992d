// SPDX-License-Identifier: Apache-2.0
#include "servetune/engine/composition.hpp"

#include "servetune/base/error.hpp"
#include "servetune/base/nearest.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace servetune {
namespace {

/// Whether an engine takes `value` for a parameter. Steps and powers of two are where a search looks, not what the engine takes.
bool admits(const Parameter& declared, const Value& value) {
    if (is_unset(value)) return declared.offers_unset;
    if (const auto* range = std::get_if<IntegerDomain>(&declared.domain)) {
        const auto* integer = std::get_if<std::int64_t>(&value);
        return integer != nullptr && *integer >= range->low && *integer <= range->high;
    }
    return declared.contains(value);
}

std::vector<Value> ends_or_values(const Domain& domain) {
    if (const auto* range = std::get_if<IntegerDomain>(&domain)) return {range->low, range->high};
    if (const auto* interval = std::get_if<RealDomain>(&domain)) return {interval->low, interval->high};
    if (const auto* choice = std::get_if<ChoiceDomain>(&domain)) return choice->values;
    return {false, true};
}

bool contains(const std::vector<Value>& values, const Value& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

/// The parameter as the study wants it: narrowed, fixed or as declared.
Parameter narrowed(const Engine& engine, const Parameter& declared, const SpaceEntry& entry) {
    const auto check = [&](const Value& value) {
        if (!admits(declared, value) && !entry.checkpoints.contains(text_of(value)))
            throw SpaceError("'" + entry.name + "': " + engine.name + " does not take " + text_of(value) + " for '" + declared.name +
                             "' (" + declared.domain_text() + ") and no checkpoint serves it");
    };
    Parameter result = declared;
    if (entry.fixed) {
        check(*entry.default_value);
        result.domain = ChoiceDomain{{*entry.default_value}};
        result.default_value = *entry.default_value;
        result.offers_unset = false;
        return result;
    }
    if (entry.domain) {
        for (const Value& value : ends_or_values(*entry.domain)) check(value);
        result.domain = *entry.domain;
        result.offers_unset = entry.offers_unset.value_or(false);
        if (result.offers_unset) check(Unset{});
        if (!result.contains(result.default_value)) result.default_value = ends_or_values(*entry.domain).front();
    }
    if (entry.default_value) result.default_value = *entry.default_value;
    return result;
}

}  // namespace

Composition::Composition(SpaceDescription description) : description_(std::move(description)) {
    std::vector<Engine>& engines = description_.engines;
    if (engines.empty()) throw SpaceError("a study needs at least one engine");
    for (const auto& [name, words] : description_.arguments)
        if (std::none_of(engines.begin(), engines.end(), [&, wanted = name](const Engine& engine) { return engine.name == wanted; }))
            throw SpaceError("arguments are given for '" + name + "', which is none of the study's engines");
    if (engines.size() > 1) {
        std::vector<Value> names;
        for (const Engine& engine : engines) names.emplace_back(engine.name);
        parameters_.push_back(Parameter::choice("engine", std::move(names)));
    }
    for (const SpaceEntry& entry : description_.entries) {
        if (!entry.added) continue;
        for (Engine& engine : engines) {
            const std::string qualifier = engine.name + ".";
            const bool qualified = entry.name.find('.') != std::string::npos;
            if (qualified && !entry.name.starts_with(qualifier)) continue;
            EngineParameter added = *entry.added;
            added.parameter.name = qualified ? entry.name.substr(qualifier.size()) : entry.name;
            if (engine.find(added.parameter.name) == nullptr) engine.parameters.push_back(std::move(added));
        }
    }
    check_entries();
    for (std::size_t i = 0; i < engines.size(); ++i) add_engine(i);

    // A condition may only ask for values its parent still has; what can never be active leaves the space.
    for (bool changed = true; changed;) {
        changed = false;
        for (auto at = parameters_.begin(); at != parameters_.end(); ++at) {
            bool possible = true;
            for (Condition& condition : at->active_when) {
                const auto parent =
                    std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.name == condition.parent; });
                std::erase_if(condition.values,
                              [&](const Value& value) { return parent == parameters_.end() || !parent->level_of(value); });
                possible = possible && !condition.values.empty();
            }
            if (possible) continue;
            for (const SpaceEntry& entry : description_.entries)
                if (entry.name == at->name)
                    throw SpaceError("'" + entry.name +
                                     "' can never be active: its conditions ask for values that this study does not offer");
            for (auto& [engine, names] : names_)
                for (auto& [local, where] : names.locals)
                    if (where.name_in_space == at->name) where.name_in_space.clear();
            parameters_.erase(at);
            changed = true;
            break;
        }
    }
    for (const Engine& engine : engines) add_constraints(engine);
    for (const Constraint& constraint : description_.constraints) {
        if (const auto* rule = std::get_if<Require>(&constraint))
            constraints_.emplace_back(
                Require{rule->expression.renamed([&](const std::string& name) { return resolve(name); }), rule->because});
        else if (const auto* forbid = std::get_if<Forbid>(&constraint)) {
            Forbid renamed{{}, forbid->because};
            for (const auto& [name, values] : forbid->values) renamed.values[resolve(name)] = values;
            constraints_.emplace_back(std::move(renamed));
        } else constraints_.push_back(constraint);
    }
}

bool Composition::knows(const Engine& engine, const SpaceEntry& entry) const {
    return std::any_of(engine.parameters.begin(), engine.parameters.end(),
                       [&](const EngineParameter& declared) { return entry_for(engine, declared) == &entry; });
}

void Composition::check_entries() const {
    std::vector<std::string> known;
    for (const Engine& engine : description_.engines)
        for (const EngineParameter& declared : engine.parameters) known.push_back(prefix(engine) + declared.parameter.name);
    for (const SpaceEntry& entry : description_.entries)
        if (std::none_of(description_.engines.begin(), description_.engines.end(),
                         [&](const Engine& engine) { return knows(engine, entry); }))
            throw SpaceError("'" + entry.name +
                             "' is no parameter or concept of the study's engines; known: " + listed(nearest_first(entry.name, known)));
}

const SpaceEntry* Composition::entry_for(const Engine& engine, const EngineParameter& declared) const {
    const std::string& name = declared.parameter.name;
    const std::string& idea = declared.parameter.concept_name;
    for (const std::string& wanted : {engine.name + "." + name, engine.name + "." + idea, name, idea}) {
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
        const bool held = entry != nullptr ? entry->fixed && is_unset(*entry->default_value) : !description_.others_searched;
        const bool shared = description_.engines.size() > 1 && entry != nullptr && entry->name.find('.') == std::string::npos;
        Local local{&declared, held ? "" : shared ? entry->name : prefix(engine) + declared.parameter.name};
        if (entry != nullptr) local.checkpoints = entry->checkpoints;
        names_[engine.name].locals.emplace(declared.parameter.name, std::move(local));
    }
    for (const EngineParameter& declared : engine.parameters) add_parameter(engine, declared, entry_for(engine, declared));
}

void Composition::add_parameter(const Engine& engine, const EngineParameter& declared, const SpaceEntry* entry) {
    const auto& locals = names_[engine.name].locals;
    const Local& local = locals.find(declared.parameter.name)->second;
    if (local.name_in_space.empty()) return;
    Parameter parameter = entry != nullptr ? narrowed(engine, declared.parameter, *entry) : declared.parameter;
    parameter.name = local.name_in_space;
    const bool several = description_.engines.size() > 1;
    const bool shared = several && entry != nullptr && entry->name.find('.') == std::string::npos;
    const auto same = std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.name == parameter.name; });
    if (shared && same != parameters_.end()) {
        for (Condition& condition : same->active_when)
            if (condition.parent == "engine") condition.values.emplace_back(engine.name);
        return;
    }
    if (shared && !declared.parameter.active_when.empty())
        throw SpaceError("'" + entry->name + "': it has conditions in " + engine.name + ", so engines cannot share it; write " +
                         engine.name + "." + entry->name);
    parameter.active_when.clear();
    if (several) parameter.active_when.push_back({"engine", {engine.name}});
    for (const Condition& condition : declared.parameter.active_when) {
        const Local& parent = locals.at(condition.parent);
        if (!parent.name_in_space.empty()) parameter.active_when.push_back({parent.name_in_space, condition.values});
        else if (!contains(condition.values, parent.parameter->parameter.default_value))
            parameter.active_when.push_back({parent.parameter->parameter.name, {}});
    }
    parameters_.push_back(std::move(parameter));
}

void Composition::add_constraints(const Engine& engine) {
    const bool several = description_.engines.size() > 1;
    const auto& locals = names_[engine.name].locals;
    const auto impossible = [&](const Constraint& constraint) {
        throw SpaceError(engine.name + ": '" + text_of(constraint) + "' cannot hold with the other parameters at their defaults");
    };
    for (const Constraint& constraint : engine.constraints) {
        if (const auto* rule = std::get_if<Require>(&constraint)) {
            Expression expression = rule->expression;
            std::map<std::string, std::string> renames;
            for (const std::string& name : rule->expression.names()) {
                const Local& local = locals.at(name);
                const Parameter& declared = local.parameter->parameter;
                if (!local.name_in_space.empty()) renames[name] = local.name_in_space;
                else
                    expression = expression.with_constant(
                        name, is_unset(declared.default_value) ? declared.value_when_unset.value_or(Unset{}) : declared.default_value);
            }
            if (expression.names().empty()) {
                if (expression.evaluate([](std::size_t) -> const Value* { return nullptr; }) == false) impossible(constraint);
                continue;
            }
            expression = expression.renamed([&](const std::string& name) { return renames.at(name); });
            constraints_.emplace_back(Require{several ? expression.only_if("engine", engine.name) : expression, rule->because});
        } else if (const auto* forbid = std::get_if<Forbid>(&constraint)) {
            Forbid renamed{{}, forbid->because};
            bool can_match = true;
            for (const auto& [name, values] : forbid->values) {
                const Local& local = locals.at(name);
                if (!local.name_in_space.empty()) renamed.values[local.name_in_space] = values;
                else can_match = can_match && contains(values, local.parameter->parameter.default_value);
            }
            if (!can_match) continue;
            if (renamed.values.empty()) impossible(constraint);
            if (several) renamed.values["engine"] = {engine.name};
            constraints_.emplace_back(std::move(renamed));
        }
    }
}

std::string Composition::resolve(std::string_view name) const {
    std::vector<std::string> found;
    std::vector<std::string> known;
    for (const Parameter& parameter : parameters_) {
        if (parameter.name == name) return parameter.name;
        known.push_back(parameter.name);
        if (parameter.name.ends_with("." + std::string(name)) || parameter.concept_name == name) found.push_back(parameter.name);
    }
    if (found.size() == 1) return found.front();
    if (found.size() > 1) throw SpaceError("'" + std::string(name) + "' is ambiguous: write one of " + listed(found));
    throw SpaceError("'" + std::string(name) + "' is not a parameter of this study; known: " + listed(nearest_first(name, known)));
}

// ----------------------------------------------------------------------------------------------------------- rendering

const Engine& Composition::engine_of(const Configuration& configuration) const {
    const Value* chosen = configuration.find("engine");
    for (const Engine& engine : description_.engines)
        if (chosen == nullptr || text_of(*chosen) == engine.name) return engine;
    throw SpaceError("there is no engine '" + text_of(*chosen) + "' in this study");
}

Value Composition::value_of_local(const Engine& engine, std::string_view name, const Configuration& configuration, bool& active) const {
    const auto& locals = names_.at(engine.name).locals;
    const auto found = locals.find(name);
    if (found == locals.end()) throw SpaceError(engine.name + " renders '" + std::string(name) + "', which is none of its parameters");
    const Local& local = found->second;
    const Value* value = local.name_in_space.empty() ? nullptr : configuration.find(local.name_in_space);
    active = value != nullptr || local.name_in_space.empty();
    return value != nullptr ? *value : local.parameter->parameter.default_value;
}

Command Composition::render(const Configuration& configuration, const LaunchTarget& target) const {
    const Engine& engine = engine_of(configuration);
    Command command;
    std::vector<std::string> flags;
    std::string model = target.model;
    const auto add = [&](const std::string& flag, const std::string& value) {
        if (engine.flag_style == Engine::FlagStyle::equals) flags.push_back(flag + "=" + value);
        else flags.insert(flags.end(), {flag, value});
    };
    for (const EngineParameter& declared : engine.parameters) {
        bool active = false;
        const Value value = value_of_local(engine, declared.parameter.name, configuration, active);
        const auto& checkpoints = names_.at(engine.name).locals.at(declared.parameter.name).checkpoints;
        if (const auto checkpoint = checkpoints.find(text_of(value)); active && checkpoint != checkpoints.end()) {
            model = checkpoint->second;
            continue;
        }
        if (!active || is_unset(value) || value == declared.parameter.default_value) continue;
        if (!declared.environment.empty()) command.environment[declared.environment] = text_of(value);
        else if (const bool* on = std::get_if<bool>(&value); on != nullptr && !declared.flag.empty()) {
            const std::string& word = *on ? declared.flag : declared.off_flag;
            if (!word.empty()) flags.push_back(word);
        } else if (!declared.flag.empty()) add(declared.flag, text_of(value));
    }
    for (const JsonFlag& group : engine.json_flags) {
        bool wanted = true;
        for (const Condition& condition : group.when) {
            bool active = false;
            const Value value = value_of_local(engine, condition.parent, configuration, active);
            wanted = wanted && active && contains(condition.values, value);
        }
        if (!wanted) continue;
        nlohmann::ordered_json object;
        for (const auto& [key, name] : group.fields) {
            bool active = false;
            const Value value = value_of_local(engine, name, configuration, active);
            if (!active || is_unset(value)) continue;
            std::visit(
                [&, k = key](const auto& v) {
                    if constexpr (!std::is_same_v<std::decay_t<decltype(v)>, Unset>) object[k] = v;
                },
                value);
        }
        add(group.flag, object.dump());
    }
    const auto substitute = [](std::string word, const std::string& key, const std::string& value) {
        for (auto at = word.find(key); at != std::string::npos; at = word.find(key, at + value.size())) word.replace(at, key.size(), value);
        return word;
    };
    for (const std::string& word : engine.launch) {
        if (target.host.empty() && (word.find("{host}") != std::string::npos || word.find("{port}") != std::string::npos)) {
            if (!command.argv.empty() && command.argv.back().starts_with("-")) command.argv.pop_back();
            continue;
        }
        command.argv.push_back(
            substitute(substitute(substitute(word, "{model}", model), "{host}", target.host), "{port}", std::to_string(target.port)));
    }
    command.argv.insert(command.argv.end(), flags.begin(), flags.end());
    if (const auto always = description_.arguments.find(engine.name); always != description_.arguments.end())
        command.argv.insert(command.argv.end(), always->second.begin(), always->second.end());
    return command;
}

std::string Command::text() const {
    const auto quoted = [](const std::string& word) {
        constexpr std::string_view safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,@+%";
        if (!word.empty() && word.find_first_not_of(safe) == std::string::npos) return word;
        std::string result = "'";
        for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
        return result + "'";
    };
    std::string result;
    for (const auto& [name, value] : environment) result += name + "=" + quoted(value) + " ";
    for (std::size_t i = 0; i < argv.size(); ++i) result += (i == 0 ? "" : " ") + quoted(argv[i]);
    return result;
}

// ------------------------------------------------------------------------------------------------------------- parsing

Composition::Parsed Composition::parse(const std::vector<std::string>& words, const std::string& model) const {
    Parsed best;
    for (const Engine& engine : description_.engines) {
        std::size_t prefix_length = 0;
        while (prefix_length < engine.launch.size() && engine.launch[prefix_length].find('{') == std::string::npos &&
               !engine.launch[prefix_length].starts_with("--"))
            ++prefix_length;
        const bool whole = words.size() >= prefix_length &&
                           std::equal(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(prefix_length), engine.launch.begin());
        if (whole) return parse_flags(engine, words, prefix_length, model);
        if (!words.empty() && !words.front().starts_with("-")) continue;
        Parsed parsed = parse_flags(engine, words, 0, model);
        if (best.engine == nullptr || (parsed.unknown.empty() && !best.unknown.empty())) best = std::move(parsed);
    }
    if (best.engine == nullptr) best.unknown = words;
    return best;
}

Composition::Parsed Composition::parse_flags(const Engine& engine, const std::vector<std::string>& words, std::size_t from,
                                             const std::string& model) const {
    Parsed result{&engine};
    if (description_.engines.size() > 1) result.values["engine"] = engine.name;
    const auto& locals = names_.at(engine.name).locals;
    const auto set = [&](const std::string& local_name, Value value, const std::string& word) {
        const Local& local = locals.at(local_name);
        if (local.name_in_space.empty()) {
            if (value != local.parameter->parameter.default_value) result.unknown.push_back(word);
            return;
        }
        const auto parameter =
            std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.name == local.name_in_space; });
        if (parameter->contains(value)) result.values[local.name_in_space] = std::move(value);
        else result.unknown.push_back(word);
    };
    const auto serve = [&](const std::string& served) {
        if (served == model) return;
        for (const auto& [name, local] : locals)
            for (const auto& [value, checkpoint] : local.checkpoints)
                if (checkpoint == served) return set(name, value_of(value), served);
        result.unknown.push_back(served);
    };
    const auto model_at = std::find(engine.launch.begin(), engine.launch.end(), "{model}");
    const std::string model_flag =
        model_at != engine.launch.begin() && model_at != engine.launch.end() && (model_at - 1)->starts_with("--") ? *(model_at - 1) : "";
    const auto always = description_.arguments.find(engine.name);
    for (std::size_t i = from; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (always != description_.arguments.end() && std::find(always->second.begin(), always->second.end(), word) != always->second.end())
            continue;
        const auto equals = word.find('=');
        const std::string flag = word.substr(0, equals);
        const bool has_next = i + 1 < words.size() && !words[i + 1].starts_with("--");
        const auto argument = [&] { return equals != std::string::npos ? word.substr(equals + 1) : has_next ? words[++i] : ""; };
        if (!word.starts_with("-")) {
            if (model_flag.empty()) serve(word);
            else result.unknown.push_back(word);
            continue;
        }
        if (flag == model_flag) {
            serve(argument());
            continue;
        }
        const auto declared = std::find_if(engine.parameters.begin(), engine.parameters.end(), [&](const EngineParameter& p) {
            return p.flag == flag || (!p.off_flag.empty() && p.off_flag == flag);
        });
        const auto group =
            std::find_if(engine.json_flags.begin(), engine.json_flags.end(), [&](const JsonFlag& g) { return g.flag == flag; });
        if (declared != engine.parameters.end()) {
            const bool is_switch = std::holds_alternative<BoolDomain>(declared->parameter.domain);
            if (is_switch) set(declared->parameter.name, flag == declared->flag, word);
            else set(declared->parameter.name, value_of(argument()), word);
        } else if (group != engine.json_flags.end()) {
            const auto object = nlohmann::json::parse(argument(), nullptr, false);
            if (!object.is_object()) {
                result.unknown.push_back(word);
                continue;
            }
            for (const auto& [key, value] : object.items()) {
                const auto field =
                    std::find_if(group->fields.begin(), group->fields.end(), [k = key](const auto& f) { return f.first == k; });
                if (field == group->fields.end()) result.unknown.push_back(flag + " " + key);
                else set(field->second, value_of(value.is_string() ? value.get<std::string>() : value.dump()), flag + " " + key);
            }
        } else result.unknown.push_back(word);
    }
    return result;
}

std::vector<std::string> shell_words(std::string_view line) {
    std::vector<std::string> words;
    std::string word;
    bool in_word = false;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        const bool blank = c == ' ' || c == '\n' || c == '\t' || c == '\r';
        if (quote != 0) {
            if (c == quote) quote = 0;
            else word += c;
        } else if (c == '\\') {
            if (i + 1 < line.size() && line[i + 1] != '\n' && line[i + 1] != ' ') word += line[i + 1], in_word = true;
            ++i;
        } else if ((c == '\'' || c == '"') && !in_word) {
            quote = c;
            in_word = true;
        } else if (!blank) {
            word += c;
            in_word = true;
        }
        if (blank && quote == 0 && in_word) {
            words.push_back(std::move(word));
            word.clear();
            in_word = false;
        }
    }
    if (in_word) words.push_back(std::move(word));
    return words;
}

}  // namespace servetune
