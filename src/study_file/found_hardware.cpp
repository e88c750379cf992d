// SPDX-License-Identifier: Apache-2.0
// What can be said before an engine is started: chips that are others, models that are not there,
// power that nothing measures, versions that nobody has checked.
#include "found_hardware.hpp"

#include "base/text.hpp"
#include "engine/flag_facts.hpp"
#include "base/nearest.hpp"
#include "servetune/study_file.hpp"
#include "study_file/measuring/kind.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

namespace servetune {
namespace {

std::string in_gib(double bytes) {
    return std::to_string(std::llround(bytes / (1UL << 30U))) + " GiB";
}

std::string none_of(const std::string& name, const std::vector<HardwareSpec>& known) {
    std::vector<std::string> names;
    for (const HardwareSpec& spec : known) names.push_back(spec.name);
    return "none of the chips known here; nearest: " + listed(nearest_first(name, names), 3);
}

}  // namespace

std::string why_unknown(const std::string& name, const std::vector<HardwareSpec>& known) {
    const auto is_called = [&](const HardwareSpec& spec) {
        return spec.name == name ||
               std::any_of(spec.also.begin(), spec.also.end(), [&](const std::string& also) {
                   return lower_case(also) == lower_case(name);
               });
    };
    return std::any_of(known.begin(), known.end(), is_called)
               ? ""
               : "'hardware': '" + name + "' is " + none_of(name, known);
}

FoundHardware hardware_of(const FoundDevices& found, const std::vector<HardwareSpec>& known) {
    FoundHardware result;
    for (const Device& device : found.visible) {
        const auto spec = hardware_in(device.name, known);
        if (!spec)
            return {"", "nvidia-smi finds '" + device.name + "', which is " +
                            none_of(device.name, known)};
        const auto memory = static_cast<double>(device.memory_bytes);
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
        machine.found->devices.visible.empty())
        return "";
    const std::vector<HardwareSpec> known = study.catalogue().all_hardware();
    const auto named = hardware_in(machine.hardware, known);
    const std::string found = hardware_of(machine.found->devices, known).name;
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
    if (!kind_of(file).runs_engine) return result;
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy != nullptr && deploy->elsewhere()) return result;  // the model is on another machine
    std::vector<std::string> models = file.composition->further_models();
    models.insert(models.begin(), file.model);
    for (const std::string& model : models) {
        std::error_code unknown;
        const bool relative = !model.starts_with('/');
        if (!looks_like_path(model) || (fs::exists(model, unknown) && !relative)) continue;
        if (relative && fs::exists(model, unknown)) {
            result.push_back(
                file.source.file.string() + ": the model '" + model +
                "' is a relative path, and engines run in their trial's folder: write " +
                fs::absolute(model).lexically_normal().string());
            continue;
        }
        result.push_back(file.source.file.string() + ": the model '" + model +
                         "' does not exist: looked for " + fs::absolute(model).string() +
                         (unknown ? " (" + unknown.message() + ")" : ""));
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
            result.push_back(setup.file.source.file.string() + ": " + why);
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
    return {file.source.file.string() + ": the objective names " + named +
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

}  // namespace servetune
