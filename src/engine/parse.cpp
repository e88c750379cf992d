// SPDX-License-Identifier: Apache-2.0
// From a command back to the parameters it sets.
#include "base/lower_case.hpp"
#include "command_reader.hpp"
#include "engine_value.hpp"
#include "servetune/detail/engine/composition.hpp"

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
    if (low.find("models--" + cached + "/") != std::string::npos ||
        low.ends_with("models--" + cached))
        return true;
    std::string path = low;
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    const bool local = path.find('/') == std::string::npos || path.starts_with('/') ||
                       path.starts_with('.') || path.starts_with('~') ||
                       std::count(path.begin(), path.end(), '/') > 1;
    return local && path.substr(path.rfind('/') + 1) ==
                        lower_case(checkpoint).substr(slash == std::string::npos ? 0 : slash + 1);
}

}  // namespace

Composition::Parsed Composition::parse(const std::vector<std::string>& words,
                                       const std::string& model) const {
    return parse(Command{words}, model);
}

Composition::Parsed Composition::parse(const Command& command, const std::string& model) const {
    Parsed best;
    for (const Engine& engine : description_.engines) {
        const CommandSettings read = commands_->read(command, engine.name);
        Parsed parsed = parse(read, model);
        if (read.start != CommandSettings::Start::flags) return parsed;
        if (best.engine == nullptr || (parsed.unknown.empty() && !best.unknown.empty()))
            best = std::move(parsed);
    }
    return best;
}

Composition::Parsed Composition::parse(const CommandSettings& read,
                                       const std::string& model) const {
    using Kind = Setting::Kind;
    Parsed result;
    for (const Engine& engine : description_.engines)
        if (read.engine != nullptr && read.engine->name == engine.name &&
            read.start != CommandSettings::Start::unknown)
            result.engine = &engine;
    if (result.engine == nullptr) {
        for (const Setting& setting : read.settings) result.unknown.push_back(setting.text());
        return result;
    }
    if (description_.engines.size() > 1) result.values["engine"] = result.engine->name;
    const std::vector<std::string> always = arguments_of(*result.engine);
    for (const Setting& setting : read.settings) {
        if (setting.kind == Kind::launch || setting.kind == Kind::json) continue;
        if (std::find(always.begin(), always.end(), setting.words.front()) != always.end())
            continue;
        bool taken = setting.kind == Kind::model && serve(result, setting.value, model);
        for (const EngineParameter* declared : setting.parameters)
            taken = set_parsed(result, declared->parameter.name, value_of(setting.value)) || taken;
        if (!taken)
            result.unknown.push_back(setting.kind == Kind::model ? setting.value : setting.text());
    }
    return result;
}

/// Whether the study serves this model: its own, or a checkpoint, which is then set.
bool Composition::serve(Parsed& parsed, const std::string& served, const std::string& model) const {
    if (served == model) return true;
    for (const bool copies : {false, true}) {
        for (const auto& [name, local] : names_.at(parsed.engine->name).locals)
            for (const auto& [value, checkpoint] : local.checkpoints)
                if ((copies ? is_copy_of(served, checkpoint) : checkpoint == served) &&
                    set_parsed(parsed, name, value_of(value)))
                    return true;
        if (copies && is_copy_of(served, model)) return true;
    }
    return false;
}

/// False: the study cannot have that value. What the study holds at its default may be said, and
/// says nothing.
bool Composition::set_parsed(Parsed& parsed, const std::string& local_name,
                             const Value& value) const {
    const auto& locals = names_.at(parsed.engine->name).locals;
    const auto found = locals.find(local_name);
    if (found == locals.end()) return false;  // not of this version
    const Local& local = found->second;
    const Value taken = as_engine_takes(*local.parameter, value);
    if (!local.drafted_by.empty())  // the method decides which draft model it is
        return std::any_of(local.drafts.begin(), local.drafts.end(),
                           [&](const auto& draft) { return draft.second == text_of(value); });
    if (local.name_in_space.empty()) return taken == local.parameter->parameter.default_value;
    const auto parameter =
        std::find_if(parameters_.begin(), parameters_.end(),
                     [&](const Parameter& p) { return p.name == local.name_in_space; });
    if (!parameter->contains(taken)) return false;
    parsed.values[local.name_in_space] = taken;
    return true;
}

}  // namespace servetune
