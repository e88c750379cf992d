// SPDX-License-Identifier: Apache-2.0
#include "command_reader.hpp"

#include "base/variable_name.hpp"
#include "flag_facts.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

namespace servetune {
namespace {

/// A flag with its value, written `--flag=value` or `--flag value`; a word without a flag has an
/// empty one.
struct Argument {
    std::string flag;
    std::string value;
};

std::vector<Argument> arguments_of(const std::vector<std::string>& words, std::size_t from) {
    std::vector<Argument> result;
    for (std::size_t i = from; i < words.size(); ++i) {
        if (!words[i].starts_with('-')) {
            result.push_back({"", words[i]});
            continue;
        }
        const auto equals = words[i].find('=');
        if (equals != std::string::npos) result.push_back({words[i].substr(0, equals), words[i].substr(equals + 1)});
        else if (i + 1 < words.size() && !words[i + 1].starts_with('-')) {
            result.push_back({words[i], words[i + 1]});
            ++i;
        } else result.push_back({words[i], ""});
    }
    return result;
}

/// The words of `launch` before the first flag or blank to fill in: `python3 -m module`.
std::vector<std::string> program_words(const std::vector<std::string>& launch) {
    std::vector<std::string> result;
    for (const std::string& word : launch) {
        if (word.find('{') != std::string::npos || word.starts_with("--")) break;
        result.push_back(word);
    }
    if (!result.empty() && result.back().starts_with('-')) result.pop_back();  // the flag that takes the first blank
    return result;
}

/// A program is the same wherever it lies, and one Python is as good as another.
bool same_program(const std::string& a, const std::string& b) {
    const auto last_part = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
    const std::string one = last_part(a), other = last_part(b);
    return one == other || (one.starts_with("python") && other.starts_with("python"));
}

bool begins_at(const std::vector<std::string>& words, std::size_t at, const std::vector<std::string>& start) {
    if (start.empty() || at + start.size() > words.size() || !same_program(words[at], start.front())) return false;
    return std::equal(start.begin() + 1, start.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1);
}

/// The number behind `"key":` in a JSON text, whose quotes a shell may have taken.
std::optional<double> number_behind(const std::string& json, const std::string& key) {
    auto at = json.find(key);
    if (at == std::string::npos) return std::nullopt;
    at = json.find_first_of("0123456789", at + key.size());
    if (at == std::string::npos) return std::nullopt;
    return real_of(json.substr(at, json.find_first_not_of("0123456789", at) - at));
}

/// Parsers take `_` for `-`; what no parser takes is refused by the engine.
std::string with_hyphens(std::string flag) {
    std::replace(flag.begin(), flag.end(), '_', '-');
    return flag;
}

std::string before_dot(const std::string& flag) { return flag.substr(0, flag.find('.')); }

bool is_no(const std::string& value) { return value == "false" || value == "False" || value == "0" || value == "off"; }

}  // namespace

CommandReader::CommandReader(const std::vector<Engine>& engines, const std::filesystem::path& root) {
    for (const Engine& engine : engines) {
        Known known{engine.name, engine.started_as, false, program_words(engine.launch), "", flags_of(engine), {}, {}};
        known.starts.push_back(known.program);
        const auto model = std::find(engine.launch.begin(), engine.launch.end(), "{model}");
        known.model_by_position = model != engine.launch.end() && (model == engine.launch.begin() || !(model - 1)->starts_with('-'));
        if (model != engine.launch.end() && !known.model_by_position) {
            known.model_flag = *(model - 1);
            known.flags[known.model_flag] = {Meaning::model};
        }
        for (const auto& [spelling, meant] : engine.aliases) {
            const EngineParameter* declared = engine.find(meant);
            known.spelling[spelling] = declared == nullptr ? "" : declared->destination.flag;
        }
        add_spellings(known, engine, root);
        known_.push_back(std::move(known));
    }
}

CommandReader::Meaning CommandReader::meaning_of(const Engine& engine, const EngineParameter& declared) {
    const std::string& idea = declared.parameter.concept_name;
    if (std::any_of(engine.devices.begin(), engine.devices.end(),
                    [&](const DeviceFactor& factor) { return factor.parameter == declared.parameter.name; }))
        return Meaning::devices;
    if (idea == "quantization") return Meaning::quantization;
    if (idea == "prefix_cache") return Meaning::prefix_cache;
    if (idea == "no_prefix_cache") return Meaning::no_prefix_cache;
    if (idea == "speculative_tokens" || idea == "speculative_tree_tokens" || idea == "speculative_ngram_tokens") return Meaning::guesses;
    return idea == "draft_model" || idea.starts_with("speculative") ? Meaning::speculation : Meaning::none;
}

CommandReader::Flags CommandReader::flags_of(const Engine& engine) {
    Flags result;
    const auto flag_for = [&](const EngineParameter& declared) {
        const Value& usual = declared.parameter.default_value;
        return Flag{meaning_of(engine, declared), false, is_unset(usual) ? "" : text_of(usual)};
    };
    for (const EngineParameter& declared : engine.parameters) {
        const Flag flag = flag_for(declared);
        Flag off = flag;
        off.switches_off = true;
        for (const Destination* to : {&declared.destination, &declared.earlier}) {
            if (!to->flag.empty()) result.emplace(to->flag, flag);
            if (!to->off_flag.empty()) result.emplace(to->off_flag, off);
            if (!to->option.empty()) result.emplace("--" + to->option, flag);
        }
    }
    for (const JsonFlag& json : engine.json_flags) {
        Flag& whole = result[json.flag];
        for (const auto& [key, name] : json.fields) {
            const EngineParameter* declared = engine.find(name);
            if (declared == nullptr) continue;
            const Flag flag = flag_for(*declared);
            whole.fields.emplace_back(key, flag.meaning);
            result.emplace(json.flag + "." + key, flag);
        }
    }
    for (const auto& [spelling, meant] : engine.aliases) {
        const EngineParameter* declared = engine.find(meant);
        result[spelling] = declared != nullptr ? flag_for(*declared) : Flag{Meaning::model};
    }
    return result;
}

/// Other spellings of the same flag, in any version whose flags are stored.
void CommandReader::add_spellings(Known& known_engine, const Engine& engine, const std::filesystem::path& root) {
    Flags& flags = known_engine.flags;
    std::set<std::string> ours;  // as the engine file spells them
    std::map<std::string, std::string> way_off;
    for (const EngineParameter& declared : engine.parameters)
        for (const Destination* to : {&declared.destination, &declared.earlier}) {
            for (const std::string& flag : {to->flag, to->off_flag})
                if (!flag.empty()) ours.insert({flag, before_dot(flag)});
            if (!to->off_flag.empty()) way_off[to->flag] = to->off_flag;
        }
    for (const JsonFlag& json : engine.json_flags) ours.insert(json.flag);
    if (!engine.options_flag.empty()) ours.insert(engine.options_flag);
    for (const std::string& word : engine.launch)
        if (word.starts_with("--")) ours.insert(word);
    for (const FlagFacts& facts : known_versions(root, engine.name)) {
        Flags by_name;  // the usual spelling of the version -> what it means by one of its spellings
        std::map<std::string, std::string> our_spelling;
        for (const auto& [spelling, fact] : facts.flags) {
            if (fact.negated) continue;
            if (const auto known = flags.find(spelling); known != flags.end()) by_name.emplace(fact.name, known->second);
            if (ours.contains(spelling)) our_spelling.emplace(fact.name, spelling);
            else if (const auto alias = known_engine.spelling.find(spelling); alias != known_engine.spelling.end())
                our_spelling.emplace(fact.name, alias->second);
        }
        for (const auto& [spelling, fact] : facts.flags) {
            if (const auto our = our_spelling.find(fact.name); our != our_spelling.end() && !ours.contains(spelling)) {
                const auto off = way_off.find(our->second);
                if (!fact.negated) known_engine.spelling.emplace(spelling, our->second);
                else if (off != way_off.end()) known_engine.spelling.emplace(spelling, off->second);
            }
            if (const auto our = our_spelling.find(fact.name); our == our_spelling.end())
                known_engine.of_others.insert(with_hyphens(spelling));
            else if (fact.negated)
                known_engine.plain.emplace(with_hyphens(spelling), SpelledFlag{.flag = our->second, .switches_off = true});
            const auto known = by_name.find(fact.name);
            if (known == by_name.end()) continue;
            Flag flag = known->second;
            flag.switches_off = flag.switches_off != fact.negated;
            flags.emplace(spelling, flag);
            if (fact.negatable && !fact.negated && spelling.starts_with("--")) {
                flag.switches_off = true;
                flags.emplace("--no-" + spelling.substr(2), flag);
            }
        }
    }
    add_plain_spellings(known_engine, ours);
}

void CommandReader::add_plain_spellings(Known& known, const std::set<std::string>& ours) {
    for (const std::string& flag : ours) known.plain.emplace(with_hyphens(before_dot(flag)), SpelledFlag{.flag = before_dot(flag)});
    for (const auto& [spelling, our] : known.spelling)
        known.plain.emplace(with_hyphens(spelling), SpelledFlag{.flag = our, .is_model = our.empty() || our == known.model_flag});
    if (!known.model_flag.empty()) known.plain[with_hyphens(known.model_flag)] = {.flag = known.model_flag, .is_model = true};
    for (const auto& entry : known.plain) known.of_others.erase(entry.first);
}

std::optional<SpelledFlag> CommandReader::flag_of(const std::string& spelling, const std::string& engine) const {
    const auto known = std::find_if(known_.begin(), known_.end(), [&](const Known& each) { return each.engine == engine; });
    return known == known_.end() ? std::nullopt : flag_of(spelling, *known);
}

std::optional<SpelledFlag> CommandReader::flag_of(const std::string& spelling, const Known& known) {
    const std::string base = with_hyphens(before_dot(spelling));
    const auto with_rest = [&](SpelledFlag found) {
        if (!found.is_model) found.flag += spelling.substr(before_dot(spelling).size());
        return found;
    };
    if (const auto found = known.plain.find(base); found != known.plain.end()) return with_rest(found->second);
    if (known.of_others.contains(base)) return std::nullopt;
    if (base.starts_with("--no-"))
        if (auto found = flag_of("--" + spelling.substr(5), known); found && !found->beginning) {
            found->switches_off = !found->switches_off;
            return found;
        }
    if (!base.starts_with("--") || base.size() < 4) return std::nullopt;
    for (const auto& [whole, found] : known.plain)
        if (whole.starts_with(base)) {
            SpelledFlag result = with_rest(found);
            result.beginning = true;
            return result;
        }
    return std::nullopt;
}

Command CommandReader::spelled_out(const std::vector<std::string>& words, const std::string& engine) const {
    Command result;
    const Start start = start_of(words);
    const Known* known = start.known;
    std::size_t at = start.behind;
    if (known == nullptr) {
        for (const Known& each : known_)
            if (each.engine == engine && (words.empty() || words.front().starts_with('-'))) known = &each;
        at = 0;
    } else
        for (std::size_t i = 0; i < at; ++i)
            if (const auto equals = words[i].find('='); equals != std::string::npos && is_variable_name(words[i].substr(0, equals)))
                result.environment[words[i].substr(0, equals)] = words[i].substr(equals + 1);
    if (known == nullptr) {
        result.argv = words;
        return result;
    }
    result.argv = known->program;
    for (; at < words.size(); ++at) {
        const std::string& word = words[at];
        const auto equals = word.find('=');
        const auto found = known->spelling.find(word.substr(0, equals));
        const std::string value = equals == std::string::npos ? "" : word.substr(equals);
        if (found == known->spelling.end() && word.starts_with('-'))
            if (const auto flag = flag_of(word.substr(0, equals), *known);
                flag && !flag->beginning && !flag->switches_off && !flag->is_model) {
                result.argv.push_back(flag->flag + value);
                continue;
            }
        if (found == known->spelling.end() || !word.starts_with('-')) {
            // A model by position where the engine takes a flag: `sglang serve x`.
            const bool first = at == start.behind && !word.starts_with('-') && !known->model_flag.empty();
            if (first) result.argv.push_back(known->model_flag);
            result.argv.push_back(word);
        } else if (!found->second.empty()) result.argv.push_back(found->second + value);
        else if (!known->model_flag.empty()) result.argv.push_back(known->model_flag + value);
        else if (!value.empty()) result.argv.push_back(value.substr(1));
        // else the next word is the model, by position
    }
    return result;
}

CommandReader::Start CommandReader::start_of(const std::vector<std::string>& words) const {
    Start best;
    for (std::size_t at = 0; at < words.size() && best.known == nullptr; ++at)
        for (const Known& known : known_)
            for (const std::vector<std::string>& start : known.starts)
                if (begins_at(words, at, start) && at + start.size() > best.behind) best = {&known, at + start.size()};
    return best;
}

CommandReader::Flag CommandReader::meaning_of(const Known* known, const std::string& flag) const {
    for (const Known& each : known_) {
        if (known != nullptr && known != &each) continue;
        if (const auto found = each.flags.find(flag); found != each.flags.end()) return found->second;
    }
    return {flag.find("speculative") != std::string::npos ? Meaning::speculation : Meaning::none};
}

void CommandReader::apply(const Flag& flag, const std::string& value, CommandFacts& facts) {
    const auto guess = [&](const std::optional<double>& tokens) {
        facts.speculates = true;
        if (tokens) facts.guesses = std::max(facts.guesses.value_or(0), *tokens);
    };
    const bool changes = value.empty() || value != flag.usual;
    switch (flag.meaning) {
        case Meaning::none: break;
        case Meaning::model: facts.model = value; break;
        case Meaning::quantization:
            if (changes) facts.quantization = value;
            break;
        case Meaning::devices: facts.devices *= std::max(1.0, real_of(value).value_or(1)); break;
        case Meaning::prefix_cache:
            if (flag.switches_off || is_no(value)) facts.prefix_cache_off = true;
            break;
        case Meaning::no_prefix_cache:
            if (!flag.switches_off && !is_no(value)) facts.prefix_cache_off = true;
            break;
        case Meaning::speculation:
            if (changes && !flag.switches_off) facts.speculates = true;
            break;
        case Meaning::guesses: guess(real_of(value)); break;
    }
    for (const auto& [key, meaning] : flag.fields) {
        const bool of_speculation = meaning == Meaning::speculation || meaning == Meaning::guesses;
        if (!of_speculation || value.find(key) == std::string::npos) continue;
        guess(meaning == Meaning::guesses ? number_behind(value, key) : std::nullopt);
    }
}

CommandFacts CommandReader::read(const std::vector<std::string>& words) const {
    const Start start = start_of(words);
    CommandFacts facts;
    if (start.known != nullptr) facts.engine = start.known->engine;
    std::string first_word;
    for (const auto& [flag, value] : arguments_of(words, start.behind)) {
        if (!flag.empty()) apply(meaning_of(start.known, flag), value, facts);
        else if (first_word.empty()) first_word = value;
    }
    if (facts.model.empty() && (start.known == nullptr || start.known->model_by_position)) facts.model = first_word;
    return facts;
}

}  // namespace servetune
