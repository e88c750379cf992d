// SPDX-License-Identifier: Apache-2.0
// What can be said before an engine is started: chips that are others, models that are not there,
// power that nothing measures, versions that nobody has checked, and settings that are said twice:
// an engine takes one of two values, and then every trial is the same server.
#include "readers.hpp"

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "engine/command_reader.hpp"
#include "engine/flag_facts.hpp"
#include "evaluator_type.hpp"
#include "keys.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/study_checks.hpp"

#include <unistd.h>

#include <cmath>
#include <set>

namespace servetune {
namespace {

std::string in_gib(double bytes) {
    return std::to_string(std::llround(bytes / (1UL << 30U))) + " GiB";
}

std::string none_of(const std::string& name, const std::vector<HardwareSpec>& known) {
    return "none of the chips known here; nearest: " +
           listed(nearest_first(name, names_in(known)), 3);
}

}  // namespace

std::string why_unknown(const std::string& name, const std::vector<HardwareSpec>& known) {
    return hardware_in(name, known) ? "" : "'hardware': '" + name + "' is " + none_of(name, known);
}

std::string why_ambiguous(const std::string& name, const HardwareSpec& chip,
                          const std::vector<HardwareSpec>& known) {
    const auto figures = [](const HardwareSpec& one) {
        return one.name + " (" + in_gib(one.memory_bytes) + ", " +
               fixed_text(one.memory_bandwidth_bytes_per_second / 1e12, 2) + " TB/s)";
    };
    const auto goes_on = [&](const std::string& other) {
        return lower_case(other).starts_with(lower_case(name)) && other.size() > name.size() &&
               (other[name.size()] == '-' || other[name.size()] == ' ');
    };
    std::string others;
    for (const HardwareSpec& one : known)
        if (one.name != chip.name && lower_case(name) != chip.name &&
            (goes_on(one.name) || any_of(one.also, goes_on)))
            others += (others.empty() ? "" : " or ") + figures(one);
    return others.empty() ? ""
                          : "'" + name + "' is taken for " + figures(chip) + "; if yours is " +
                                others + ", write that";
}

FoundHardware hardware_of(const FoundDevices& found, const std::vector<HardwareSpec>& known) {
    FoundHardware result;
    for (const Device& device : found.visible) {
        const auto spec = hardware_in(device.name, known);
        if (!spec)
            return {"", "nvidia-smi finds '" + device.name + "', which is " +
                            none_of(device.name, known)};
        const auto memory = double(device.memory_bytes);
        constexpr double tolerance = 0.15;  // drivers keep up to 7 % for themselves (a10, l4)
        if (memory > 0 && std::abs(memory / spec->memory_bytes - 1) > tolerance)
            return {"", "nvidia-smi finds '" + device.name + "' with " + in_gib(memory) + ", and " +
                            spec->name + " has " + in_gib(spec->memory_bytes)};
        if (!result.name.empty() && result.name != spec->name)
            return {"", "nvidia-smi finds different chips: " + result.name + " and " + spec->name};
        result.name = spec->name;
    }
    return result;
}

std::string why_other_chip(const StudyFile& study) {
    const StudyMachine& machine = study.machine;
    if (machine.hardware.empty() || !machine.hardware_file.empty() || !machine.found ||
        machine.found->visible.empty())
        return "";
    const std::vector<HardwareSpec> known = study.catalogue().all_hardware();
    const auto named = hardware_in(machine.hardware, known);
    const std::string found = hardware_of(*machine.found, known).name;
    if (!named || found.empty() || named->name == found) return "";
    return "the study is for " + named->name + ", and nvidia-smi finds " + found +
           " here: what is predicted, which flags are ruled " +
           "out by the chip, and what physics allows are those of " + named->name +
           "; write `hardware: " + found + "`";
}
namespace {

namespace fs = std::filesystem;

/// A name on a hub (`org/model`) is none: only what a person can mean as a file or folder.
bool looks_like_path(const std::string& model) {
    return model.starts_with('/') || model.starts_with("./") || model.starts_with("../") ||
           model.ends_with(".gguf");
}

}  // namespace

std::vector<std::string> missing_models(const StudyFile& file) {
    std::vector<std::string> result;
    if (!evaluator_of(file).traits.runs_engine) return result;
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy != nullptr && deploy->elsewhere()) return result;  // the model is on another machine
    std::vector<std::string> models = file.composition->further_models();
    models.insert(models.begin(), file.model);
    for (const std::string& model : models) {
        std::error_code unknown;
        const fs::path path =
            fs::absolute(file.source.file.parent_path() / model).lexically_normal();
        const bool there = fs::exists(path, unknown);
        if (!looks_like_path(model) || (there && model.starts_with('/'))) continue;
        result.push_back(
            file.source.at() + "the model '" + model + "' " +
            (there ? "is a relative path, and engines run in their trial's folder: write "
                   : "does not exist: looked for ") +
            path.string());
    }
    return result;
}

std::vector<std::string> missing_images(const StudySetup& setup) {
    std::vector<std::string> result;
    const auto launcher = setup.file.processes().launcher;
    if (!launcher) return result;
    std::vector<std::string> images = launcher->images();
    if (images.empty()) images.emplace_back();  // it may have other trouble
    for (const std::string& image : images)
        if (std::string why = launcher->trouble(image); !why.empty())
            result.push_back(setup.file.source.at() + why);
    return result;
}

std::vector<std::string> missing_power(const StudyFile& file) {
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    std::string named;
    for (const Goal& goal : file.objective.goals)
        if (is_power_metric(goal.metric)) named = goal.metric;
    for (const Limit& limit : file.objective.limits)
        if (is_power_metric(limit.metric)) named = limit.metric;
    if (deploy == nullptr || !deploy->options.measure.watch || named.empty()) return {};
    MachineWatchOptions options = *deploy->options.measure.watch;
    options.gpus = deploy->options.deploy.gpus;
    const bool elsewhere = deploy->elsewhere();
    const std::string why = elsewhere ? "the engine runs on another machine, which is not watched"
                                      : why_no_power(options);
    if (why.empty()) return {};
    return {file.source.at() + "the objective names " + named +
            ", and nothing here measures power: " + why};
}

std::vector<std::string> unchecked_versions(const Composition& composition,
                                            const Catalogue& catalogue) {
    std::vector<std::string> result;
    for (const Engine& engine : composition.engines()) {
        const std::string version = composition.version_of(engine);
        if (version.empty()) continue;
        for (std::string& doubt : version_doubts(catalogue.root(), engine, version))
            result.push_back(std::move(doubt));
    }
    return result;
}

std::string guesses_on_random_words(const StudyFile& study) {
    if (!study.measures()) return "";
    const std::vector<Parameter> parameters = study.composition->parameters();
    const auto guesses = find_if(parameters, [](const Parameter& one) {
        const Value off = one.value_when_unset.value_or(Value("none"));
        const auto on = [&](const Value& value) {
            return !std::holds_alternative<Unset>(value) && value != off && value != Value("none");
        };
        if (one.concept_name != "speculative_method") return false;
        for (std::size_t i = 0; i < one.level_count(); ++i)
            if (on(one.level(i))) return true;
        return on(one.default_value);
    });
    if (guesses == parameters.end()) return "";
    std::string random;
    for (const Workload& workload : study.workloads)
        if (const auto kind = workload.dataset.kind;
            kind == Dataset::Kind::random || kind == Dataset::Kind::trace ||
            kind == Dataset::Kind::shared_prefix || kind == Dataset::Kind::multi_turn)
            random += (random.empty() ? "" : ", ") + workload.name;
    if (random.empty()) return "";
    return "the study searches " + guesses->name + ", and " + random +
           " sends random words: how many guessed tokens are accepted there says nothing of real "
           "traffic; take `dataset: {kind: prompts, path: FILE}` with prompts of yours, or "
           "`sharegpt` with a public set";
}

namespace {

/// Whether one of two flags is the other, or a part of the JSON that it takes.
bool overlap(const std::string& a, const std::string& b) {
    const auto [shorter, longer] =
        std::minmax(a, b, [](const auto& x, const auto& y) { return x.size() < y.size(); });
    return !shorter.empty() && longer.starts_with(shorter) &&
           (longer.size() == shorter.size() || longer[shorter.size()] == '.');
}

/// The space's parameters that something else sets, and why that cannot be.
std::string why_twice(const std::set<std::string>& parameters) {
    std::string names;
    for (const std::string& name : parameters) names += (names.empty() ? "" : ", ") + name;
    return "this study sets " + names +
           ", and the engine would take one of the two values: say it under 'space' alone";
}

/// The words of one engine, against what its commands pass.
class ArgumentsCheck {
public:
    ArgumentsCheck(const Engine& engine, const StudyFile& study)
        : engine_(engine), study_(study), passed_(study.composition->passed(engine)) {
        const auto* deploy = std::get_if<DeployChoice>(&study.measuring);
        if (deploy != nullptr && deploy->options.weight_cache && engine.weight_cache)
            for (const std::string& word : engine.weight_cache->engine)
                if (word.starts_with("--")) of_weight_cache_.push_back(word);
    }

    void check(const Yaml& list, AllErrors& errors) const {
        std::vector<std::string> words;
        for (const Yaml& item : list.items()) words.push_back(item.text());
        const CommandReader reader({engine_}, study_.source.search_spaces);
        const CommandSettings read = reader.flags(words, engine_);
        const Setting* flag = nullptr;  // the last one
        for (const Setting& setting : read.settings) {
            const bool is_flag = !setting.name.empty();
            // A part of the one before, or one more value of it.
            if (!setting.key.empty() || (!is_flag && flag != nullptr && !flag->alone)) continue;
            const Yaml& at = list.items()[setting.at];
            errors.in([&] { check(setting, at, !is_flag && flag != nullptr ? flag->name : ""); });
            errors.in([&] { check_file(setting, at); });
            if (is_flag) flag = &setting;
        }
    }

private:
    /// `behind`: the flag that stands before it.
    void check(const Setting& setting, const Yaml& at, const std::string& behind) const {
        const std::string said = "'" + study_.secrets(setting.text()) + "': ";
        if (setting.name.empty() || setting.kind == Setting::Kind::model)
            at.fail(said + (behind.empty() ? "" : behind + " takes no value, and ") +
                    "the study's 'model' says which model is served");
        bool by_launch = contains(of_weight_cache_, setting.name);
        std::set<std::string> twice;
        for (const PassedSetting& one : passed_) {
            if (!overlap(one.flag, setting.name)) continue;
            if (one.place.empty()) twice.insert(one.parameter);
            else by_launch = true;
        }
        if (by_launch)
            at.fail(said + "the commands of this study pass " + setting.name + " themselves");
        if (!twice.empty())
            at.fail(said +
                    (setting.beginning ? "this is the beginning of " + setting.name + "; " : "") +
                    why_twice(twice));
    }
    /// A file that may set whatever the engine has.
    void check_file(const Setting& setting, const Yaml& at) const {
        const auto& files = engine_.file_flags;
        if (setting.name.empty()) return;
        if (setting.name != engine_.options_flag && !contains(files, setting.name)) return;
        at.fail("'" + study_.secrets(setting.text()) +
                "': a file may set what this study sets: write its settings under 'space' or as "
                "flags under 'arguments'");
    }

    const Engine& engine_;
    const StudyFile& study_;
    std::vector<PassedSetting> passed_;
    std::vector<std::string> of_weight_cache_{};
};

/// What an engine's commands set by a variable of that name; empty: nothing.
std::string why_variable(const std::string& name, const StudyFile& study) {
    for (const Engine& engine : study.composition->engines()) {
        std::set<std::string> twice;
        for (const PassedSetting& one : study.composition->passed(engine))
            if (!one.environment.empty() && one.environment == name) twice.insert(one.parameter);
        if (!twice.empty()) return why_twice(twice);
        for (const std::string& prefix : engine.flag_variables)
            if (name.starts_with(prefix))
                return "variables " + prefix + "... set flags of " + engine.name +
                       ": write it under 'space', or as a flag under 'arguments'";
    }
    return "";
}

void check_environment_of(const Yaml& deploy, const StudyFile& study, AllErrors& errors) {
    const auto* choice = std::get_if<DeployChoice>(&study.measuring);
    if (const Yaml* environment = deploy.find(keys::deploy.environment))
        for (const auto& [name, node] : environment->entries())
            errors.in([&, &name = name, &node = node] {
                if (const std::string why = why_variable(name, study); !why.empty()) node.fail(why);
                if (name == "CUDA_VISIBLE_DEVICES" && choice != nullptr &&
                    !choice->options.deploy.gpus.empty())
                    node.fail("`gpus` says which devices the engine sees: say it once");
            });
}

}  // namespace

void check_conflicting_settings(const Yaml& root, const StudyFile& study) {
    AllErrors errors;
    if (!study.composition || !study.has_commands()) return;
    if (const Yaml* arguments = root.find(keys::study.arguments))
        for (const Engine& engine : study.composition->engines()) {
            const Yaml* words = arguments->is_mapping() ? arguments->entry(engine.name) : arguments;
            if (words == nullptr) continue;
            ArgumentsCheck(engine, study).check(*words, errors);
        }
    if (const Yaml* evaluator = root.find(keys::study.evaluator);
        evaluator != nullptr && evaluator->is_mapping())
        if (const Yaml* deploy = evaluator->find(keys::evaluator.deploy);
            deploy != nullptr && deploy->is_mapping())
            check_environment_of(*deploy, study, errors);
    errors.throw_any();
}

std::vector<std::string> set_by_own_environment(const StudyFile& file) {
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy == nullptr || deploy->container || deploy->elsewhere())
        return {};  // it does not get there
    std::vector<std::string> result;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string setting = *entry;
        const std::string name = setting.substr(0, setting.find('='));
        if (deploy->options.deploy.environment.contains(name))
            continue;                      // the study's own, which is checked
        if (names_secret(name)) continue;  // engines do not inherit it
        if (const std::string why = why_variable(name, file); !why.empty())
            result.push_back(file.source.at() + "the environment of this program has " + name +
                             ", which engines inherit: " + why + "; or `unset " + name + "`");
    }
    return result;
}

}  // namespace servetune
