// SPDX-License-Identifier: Apache-2.0
// From a command back to the parameters it sets.
#include "base/lower_case.hpp"
#include "base/nesting.hpp"
#include "engine_value.hpp"
#include "servetune/detail/engine/composition.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace servetune {
namespace {

/// Whether a served name is a copy of that checkpoint on a disk: a path, or a cache of downloads
/// (`models--owner--name/snapshots/...`), or its name without the owner.
bool is_copy_of(const std::string& served, const std::string& checkpoint) {
    const auto slash = checkpoint.rfind('/');
    std::string cached = lower_case(checkpoint);
    if (slash != std::string::npos) cached.replace(cached.rfind('/'), 1, "--");
    const std::string low = lower_case(served);
    if (low.find("models--" + cached + "/") != std::string::npos || low.ends_with("models--" + cached)) return true;
    std::string path = low;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const bool local = path.find('/') == std::string::npos || path.starts_with('/') || path.starts_with('.') || path.starts_with('~') ||
                       std::count(path.begin(), path.end(), '/') > 1;
    return local && path.substr(path.rfind('/') + 1) == lower_case(checkpoint).substr(slash == std::string::npos ? 0 : slash + 1);
}

}  // namespace

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

Composition::Parsed Composition::parse(const Command& command, const std::string& model) const {
    Parsed result = parse(command.argv, model);
    if (result.engine == nullptr) return result;
    const Engine& engine = *result.engine;
    const auto set = [&](const std::string& said, const std::string& text, const auto& is_its_place) {
        bool taken = false;
        for (const EngineParameter& declared : engine.parameters)
            taken =
                (is_its_place(destination_of(engine, declared)) && set_parsed(result, declared.parameter.name, value_of(text))) || taken;
        if (!taken) result.unknown.push_back(said);
    };
    for (const auto& [name, value] : command.environment)
        set(name + "=" + value, value, [&, &wanted = name](const Destination& to) { return to.environment == wanted; });
    for (const auto& [path, value] : command.options())
        set(path + ": " + value, value, [&, &wanted = path](const Destination& to) { return to.option == wanted; });
    std::erase_if(result.unknown, [&](const std::string& word) {  // the file, which is read
        return !command.files.empty() &&
               (word == engine.options_flag || word.starts_with(engine.options_flag + "=") || command.files.contains(word));
    });
    return result;
}

/// False: the study cannot have that value. What the study holds at its default may be said, and
/// says nothing.
bool Composition::set_parsed(Parsed& parsed, const std::string& local_name, const Value& value) const {
    const Local& local = names_.at(parsed.engine->name).locals.at(local_name);
    const Value taken = as_engine_takes(*local.parameter, value);
    if (!local.drafted_by.empty())  // the method decides which draft model it is
        return std::any_of(local.drafts.begin(), local.drafts.end(), [&](const auto& draft) { return draft.second == text_of(value); });
    if (local.name_in_space.empty()) return taken == local.parameter->parameter.default_value;
    const auto parameter =
        std::find_if(parameters_.begin(), parameters_.end(), [&](const Parameter& p) { return p.name == local.name_in_space; });
    if (!parameter->contains(taken)) return false;
    parsed.values[local.name_in_space] = taken;
    return true;
}

Composition::Parsed Composition::parse_flags(const Engine& engine, const std::vector<std::string>& words, std::size_t from,
                                             const std::string& model) const {
    Parsed result{&engine};
    if (description_.engines.size() > 1) result.values["engine"] = engine.name;
    const auto& locals = names_.at(engine.name).locals;
    const auto set = [&](const std::string& name, const Value& value) { return set_parsed(result, name, value); };
    const auto serve = [&](const std::string& served) {
        if (served == model) return;
        for (const bool copies : {false, true}) {
            for (const auto& [name, local] : locals)
                for (const auto& [value, checkpoint] : local.checkpoints)
                    if ((copies ? is_copy_of(served, checkpoint) : checkpoint == served) && set(name, value_of(value))) return;
            if (copies && is_copy_of(served, model)) return;
        }
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
        const bool has_next = i + 1 < words.size() && (!words[i + 1].starts_with('-') || real_of(words[i + 1]));
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
        if (const auto ours = std::find(engine.launch.begin(), engine.launch.end(), flag); ours != engine.launch.end()) {
            if (ours + 1 != engine.launch.end() && (ours + 1)->starts_with("{")) (void)argument();  // where it listens
            continue;
        }
        const auto group =
            std::find_if(engine.json_flags.begin(), engine.json_flags.end(), [&](const JsonFlag& g) { return g.flag == flag; });
        // Two parameters may share a flag under different conditions; which of them counts, the
        // conditions decide.
        std::vector<const EngineParameter*> sharing;
        for (const EngineParameter& declared : engine.parameters) {
            const Destination& to = destination_of(engine, declared);
            const auto is_here = [&](const std::string& own) { return own == flag || own == word; };  // `--passes.fuse=true` is one, too
            if (is_here(to.flag) || (!to.off_flag.empty() && is_here(to.off_flag))) sharing.push_back(&declared);
        }
        if (!sharing.empty()) {
            const bool is_switch = std::holds_alternative<BoolDomain>(sharing.front()->parameter.domain);
            const std::string& own = destination_of(engine, *sharing.front()).flag;
            const Value value = is_switch ? Value(own == flag || own == word) : value_of(argument());
            std::size_t taken = 0;
            for (const EngineParameter* declared : sharing) taken += set(declared->parameter.name, value) ? 1 : 0;
            if (taken == 0) result.unknown.push_back(word);
        } else if (group != engine.json_flags.end()) {
            const auto object = shallow_json<nlohmann::json>(argument());
            if (!object.is_object()) {
                result.unknown.push_back(word);
                continue;
            }
            for (const auto& [key, value] : object.items()) {
                const auto field =
                    std::find_if(group->fields.begin(), group->fields.end(), [k = key](const auto& f) { return f.first == k; });
                const Value given = value_of(value.is_string() ? value.get<std::string>() : value.dump());
                if (field == group->fields.end() || !set(field->second, given)) result.unknown.push_back(flag + " " + key);
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
            if (i + 1 < line.size() && line[i + 1] != '\n' && line[i + 1] != '\r' && line[i + 1] != ' ')
                word += line[i + 1], in_word = true;
            ++i;
        } else if ((c == '\'' || c == '"') && (!in_word || word.ends_with('='))) {
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
