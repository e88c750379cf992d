// SPDX-License-Identifier: Apache-2.0
#include "deploy_edit.hpp"

#include "base/nesting.hpp"
#include "deploy_units.hpp"
#include "engine/command_reader.hpp"
#include "engine/engine_value.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace servetune {
namespace {

bool same_setting(const FlagUnit& a, const FlagUnit& b) {
    if (a.parameter != nullptr)
        return as_engine_takes(*a.parameter, value_of(a.value)) ==
               as_engine_takes(*a.parameter, value_of(b.value));
    const auto x = shallow_json<nlohmann::json>(a.value), y = shallow_json<nlohmann::json>(b.value);
    return x.is_object() && y.is_object() ? x == y : a.value == b.value;
}

bool says_default(const FlagUnit& unit) {
    return unit.parameter != nullptr && as_engine_takes(*unit.parameter, value_of(unit.value)) ==
                                            unit.parameter->parameter.default_value;
}

/// Whether the number of GPUs follows from this flag.
bool takes_devices(const DeployWish& wish, const std::string& key) {
    return std::any_of(wish.engine.devices.begin(), wish.engine.devices.end(),
                       [&](const DeviceFactor& factor) { return factor.parameter == key; });
}

void compare_gpus(const DeployCommand& command, const DeployWish& wish, DeployDifference& result) {
    if (wish.gpus == 0) return;
    const std::string wanted = std::to_string(wish.gpus);
    if (command.label.starts_with("LeaderWorkerSet")) {
        result.by_hand.push_back("GPUs: " + wanted +
                                 " for the whole group; share them out over its pods");
        return;
    }
    std::set<std::string> counts;
    for (const GpuCount& count : command.gpus) counts.insert(count.word.text());
    if (counts.empty())
        result.by_hand.push_back("GPUs: the command takes " + wanted +
                                 "; the file says nowhere how many it gets");
    else if (counts.size() > 1 || !is_gpu_count(*counts.begin()))
        result.by_hand.push_back("GPUs: the command takes " + wanted + "; the file asks for " +
                                 *counts.begin() + (counts.size() > 1 ? " and others" : ""));
    else if (*counts.begin() != wanted) result.changes.push_back({"GPUs", *counts.begin(), wanted});
}

/// A checkpoint is as much a result of the study as a flag: a file that serves another one has not
/// what is recommended.
void compare_models(const std::vector<FlagUnit>& there, const DeployWish& wish,
                    DeployDifference& result) {
    if (wish.model.empty()) return;
    const FlagUnit* now = model_unit(there);
    if (now != nullptr && now->value == wish.model) return;
    const bool known = now != nullptr && now->value.find('$') == std::string::npos;
    if (wish.other_models.empty()) {
        if (known)
            result.risks.push_back("The file serves " + now->value + "; the study measured " +
                                   wish.model + ".");
        return;
    }
    if (!known || !wish.other_models.contains(now->value)) {
        const std::string says = now == nullptr ? "the command names none"
                                 : known        ? "the file serves " + now->value
                                                : now->text();
        result.by_hand.push_back("the model: " + says + "; recommended: " + wish.model);
        return;
    }
    result.changes.push_back({model_change, now->value, wish.model});
    const bool named = std::any_of(there.begin(), there.end(), [](const FlagUnit& unit) {
        return unit.flag == "--served-model-name" || unit.flag == "--alias";
    });
    if (!named)
        result.risks.push_back("Clients that ask for " + now->value + " by name have to ask for " +
                               wish.model + ".");
}

}  // namespace

DeployDifference difference_of(const DeployCommand& command, const DeployWish& wish) {
    DeployDifference result;
    const std::vector<FlagUnit> wanted = flag_units(wish.flags, wish.engine, *wish.reader);
    const std::vector<FlagUnit> there = flag_units(command.texts(), wish.engine, *wish.reader);
    bool devices = false;
    const auto last_with = [](const std::vector<FlagUnit>& units, const std::string& key) {
        const auto found = std::find_if(units.rbegin(), units.rend(),
                                        [&](const FlagUnit& unit) { return unit.key == key; });
        return found == units.rend() ? nullptr : &*found;
    };
    for (const FlagUnit& unit : wanted) {
        const FlagUnit* now = last_with(there, unit.key);
        if (&unit != last_with(wanted, unit.key) ||
            (now != nullptr && !now->dotted && same_setting(unit, *now)))
            continue;
        result.changes.push_back({unit.name(), now == nullptr ? "" : now->text(), unit.text()});
        devices = devices || takes_devices(wish, unit.key);
        if (!wish.tuned.contains(unit.key))
            result.risks.push_back(
                unit.text() +
                " is an argument of the study, not a result of it: see that you want it.");
    }
    std::set<std::string> named;
    for (const FlagUnit& unit : there) {
        if (unit.key == "{launch}") continue;
        if (last_with(wanted, unit.key) != nullptr || says_default(unit) ||
            !named.insert(unit.key).second)
            continue;
        if (wish.tuned.contains(unit.key)) {
            result.changes.push_back({unit.name(), unit.text(), ""});
            devices = devices || takes_devices(wish, unit.key);
        } else if (!unit.not_about_speed)
            result.risks.push_back("The file has " + unit.text() +
                                   ", which the study did not measure.");
    }
    for (const auto& [name, value] : wish.environment) {
        const auto now = command.environment.find(name);
        if (now == command.environment.end() || now->second.text() != value)
            result.changes.push_back(
                {name, now == command.environment.end() ? "" : now->second.text(), value});
    }
    for (const std::string& name : wish.tuned)
        if (command.environment.contains(name) && !wish.environment.contains(name))
            result.by_hand.push_back("the variable " + name +
                                     ", which the recommended configuration does not set");
    for (const std::string& what : wish.left_to_them) result.by_hand.push_back(what);
    if (devices) compare_gpus(command, wish, result);
    compare_models(there, wish, result);
    if (wish.copies > 1)
        result.risks.push_back("The study ran " + std::to_string(wish.copies) +
                               " copies of this server: see that the file starts as many.");
    for (const FileWord& word : command.words)
        if (word.varies && word.text().starts_with('$') &&
            std::none_of(there.begin(), there.end(),
                         [&](const FlagUnit& unit) { return unit.value == word.text(); }))
            result.risks.push_back(
                "What " + word.text() +
                " holds is known only where it runs; it may set the same flags.");
    return result;
}

}  // namespace servetune
