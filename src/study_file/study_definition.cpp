// SPDX-License-Identifier: Apache-2.0
// A study in words: what decides it, for the journal, and what a person is told to do.
#include "readers.hpp"

#include "base/files.hpp"
#include "base/url.hpp"
#include "engine/load_level.hpp"
#include "evaluator_type.hpp"
#include "keys.hpp"
#include "knowledge.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/problem_definition.hpp"
#include "study_snapshot.hpp"

#include <sstream>

namespace servetune {
namespace {

/// Each value that a mapping has written, `path -> text`, but for keys that are resolved otherwise
/// or ignored.
void add_written(const KeyType& type, const Yaml& node, const std::string& path,
                 std::map<std::string, std::string>& result) {
    const KeyType& as = alternative(type, node);
    if (node.is_mapping()) {
        const std::size_t before = result.size();
        for (const auto& [name, value] : node.entries()) {
            const std::string below = path + "." + name;
            if (as.form == KeyType::Form::mapping) add_written(*as.element, value, below, result);
            else
                for (const Key& key : as.keys())
                    if (key.name == name && !key.has(resolved) && !key.has(ignored))
                        add_written(*key.type, value, below, result);
        }
        if (result.size() == before) result[path] = "{}";
    } else if (node.is_sequence())
        for (std::size_t i = 0; i < node.items().size(); ++i)
            add_written(*as.element, node.items()[i], path + "[" + std::to_string(i) + "]", result);
    else result[path] = node.is_scalar() ? node.text() : "";
}

/// Which words each parameter adds to the command, all its levels, one at a time on top of the
/// default.
std::string commands_with(const Parameter& parameter, const StudySetup& setup) {
    constexpr std::size_t most_levels = 64;
    const SearchSpace& space = setup.problem->space;
    const Composition& composition = *setup.file.composition;
    std::vector<Value> values;
    for (std::size_t level = 0; level < std::min(parameter.level_count(), most_levels); ++level)
        values.push_back(parameter.level(level));
    if (parameter.continuous()) values.emplace_back(parameter.at_position(0.5));
    std::string result;
    for (const Value& value : values) {
        Assignment changed = space.default_configuration().assignment();
        for (const Condition& condition : parameter.active_when)
            changed[condition.parent] = condition.values.front();
        changed[parameter.name] = value;
        const Configuration completed = space.completed(changed);
        result += setup.command(completed).text() + "\n";
        if (composition.needs_router(completed))
            for (const ServerGroup& group : composition.groups(completed))
                result += composition.render(completed, {"MODEL"}, group.role).text() + "\n";
    }
    return result;
}

/// A fingerprint of the commands of each parameter, and of what a strategy makes of it beyond its
/// domain.
void add_parameters(const StudySetup& setup, std::map<std::string, std::string>& result) {
    for (const Parameter& parameter : setup.problem->space.parameters()) {
        std::string text = parameter.ordered() ? "ordered" : "not ordered";
        if (parameter.grows_memory) text += ", grows memory";
        if (parameter.value_when_unset)
            text += ", without a flag " + text_of(*parameter.value_when_unset);
        text += ", " + parameter.concept_name + "\n";
        if (setup.file.has_commands()) text += commands_with(parameter, setup);
        result[file_paths + "flags." + parameter.name] = fingerprint_of(text).text();
    }
}

/// What stands in the files that workloads draw from.
void add_data(const StudyFile& file, std::map<std::string, std::string>& result) {
    for (const auto* list : {&file.workloads, &file.report_workloads})
        for (const Workload& workload : *list) {
            if (workload.dataset.path.empty()) continue;
            std::string text;
            try {
                text = fingerprint_of(read_file(file_of(workload.dataset))).text();
            } catch (const IoError&) {
                const auto* kept =
                    entry_in(file.kept, file_paths + "data." +
                                            workload.name);  // read elsewhere, it is as it was
                text = kept != nullptr ? *kept
                                       : "cannot be read";  // whoever sends the requests says so
            }
            result[file_paths + "data." + workload.name] = text;
        }
}

std::string advice_with_secrets(const StudySetup& setup, const Configuration& configuration) {
    const StudyFile& file = setup.file;
    const std::string load = load_level_text(configuration);
    const std::string running = evaluator_of(file).server_text(file);
    const std::string server = !running.empty()       ? running
                               : !file.has_commands() ? "# " + configuration.text()
                               : file.composition->needs_router(configuration)
                                   ? setup.command_text(configuration)
                                   : setup.launched(configuration).text();
    return server + (load.empty() ? "" : "\n# under " + load);
}

}  // namespace

Command StudySetup::launched(const Configuration& configuration, const LaunchTarget& target) const {
    const Command engine = file.composition->render(configuration, target);
    const auto* deploy = std::get_if<DeployChoice>(&file.measuring);
    if (deploy == nullptr || !deploy->options.deploy.launcher) return engine;
    const Launcher& launcher = *deploy->options.deploy.launcher;
    LaunchRequest request{engine, deploy->options.deploy.environment};
    const Value* image = configuration.find(image_parameter);
    if (!launcher.images().empty())
        request.image = image != nullptr ? text_of(*image) : launcher.images().front();
    // As in the trials: the first of `gpus` that the layout takes; all of them where the flags do
    // not say.
    const std::string& gpus = deploy->options.deploy.gpus;
    const std::int64_t count = file.composition->devices_of(configuration);
    if (!gpus.empty()) {
        const bool by_flags = !file.composition->engine_of(configuration).devices.empty();
        std::istringstream names(gpus);
        std::string name;
        for (std::int64_t i = 0; std::getline(names, name, ',') && (i < count || !by_flags); ++i)
            request.gpus += (i == 0 ? "" : ",") + name;
    } else if (!file.machine.gpus().empty())
        for (std::int64_t i = 0; i < count; ++i)
            request.gpus += (i == 0 ? "" : ",") + std::to_string(i);
    return launcher.shown(request);
}

std::map<std::string, std::string> written_settings(const Yaml& root, const StudyFile& study) {
    std::map<std::string, std::string> result;
    add_written(is::keyed<keys::study>, root, "file", result);
    const Catalogue catalogue = study.catalogue();
    for (const auto& [key, workloads] :
         {std::pair(keys::study.workloads, &study.workloads),
          std::pair(keys::study.report_workloads, &study.report_workloads)})
        for (std::size_t i = 0; i < workloads->size(); ++i) {
            const Yaml& list = root.at(key);
            const Yaml workload =
                resolved_workload(catalogue, list.is_sequence() ? list.items()[i] : list);
            add_written(is::keyed<keys::workload>, workload,
                        std::string(key.name) + "." + (*workloads)[i].name, result);
        }
    return result;
}

void add_environment(const std::string& path, const std::map<std::string, std::string>& environment,
                     const Redactor& secrets, std::map<std::string, std::string>& definition) {
    // A whole fingerprint would let somebody try passwords; four digits of it do not.
    for (const auto& [name, value] : environment)
        definition[path + name] = fingerprint_of(secrets.with_fingerprints(value)).text();
}

namespace {

const std::string hidden_secret = "${HIDDEN_SECRET}";

/// A text whose URLs name no user.
std::string without_users(std::string text) {
    for (std::size_t at = text.find("://"); at != std::string::npos;
         at = text.find("://", at + 3)) {
        const std::size_t end = std::min(text.find_first_of(" \t\r\n\"'", at), text.size());
        const std::string_view user = user_info_of(std::string_view(text).substr(at, end - at));
        if (!user.empty()) text.replace(at + 3, user.size(), hidden_secret);
    }
    return text;
}

}  // namespace

std::map<std::string, std::string> StudySetup::texts() const {
    std::map<std::string, std::string> result;
    for (const auto& [path, text] : file.source.snapshot->texts()) {
        std::string& shown = result[path];
        for (const Redactor::Piece& piece : file.secrets.pieces(text))
            shown += piece.shown.empty()             ? piece.text
                     : piece.shown.starts_with("${") ? piece.shown
                                                     : hidden_secret;
        shown = without_users(std::move(shown));
    }
    return result;
}

std::string StudySetup::advice(const Configuration& configuration) const {
    return file.secrets(advice_with_secrets(*this, configuration));
}

std::map<std::string, std::string> StudySetup::definition() const {
    std::map<std::string, std::string> result{
        {"study", file.name},
        {"model", file.model},
        {"hardware", file.machine.hardware},
        {"seed", std::to_string(file.seed)},
        {"audit", file.audit},
        {"decision", file.decision.rule == Decision::Rule::published ? "published" : "significant"},
        {"min_gain", text_of(file.decision.min_gain)},
        {"noise_cv", text_of(file.decision.noise_cv)},
        {"strategy", file.strategy.name}};
    for (const auto& [what, facts] : {std::pair{"model.facts", file.model_file},
                                      {"hardware.facts", file.machine.hardware_file}})
        if (!facts.empty()) result[what] = fingerprint_of(text_of_facts(facts, file.source)).text();
    add_definition(problem->space, file.objective, result);
    for (std::size_t i = 0; i < knowledge.size(); ++i)
        result["knowledge[" + std::to_string(i) + "]"] = knowledge[i];
    if (!suggestions->empty()) {
        std::string all;
        for (const Configuration& one : *suggestions) all += one.text() + "\n";
        result["suggestions"] =
            std::to_string(suggestions->size()) + " (" + fingerprint_of(all).text() + ")";
    }
    if (file.machine.found) {
        result[machine_found_path] = file.machine.gpus().empty() ? "no GPU" : file.machine.gpus();
        result[machine_devices_path] = json_of(*file.machine.found);
    }
    result["command"] = advice_with_secrets(*this, problem->space.default_configuration());
    evaluator_of(file).define(*this, result);
    add_parameters(*this, result);
    add_data(file, result);
    for (const auto& [path, text] : file.source.settings) result[path] = text;
    add_profile(*this, result);
    for (auto& [path, text] : result) text = file.secrets.with_fingerprints(text);
    return result;
}

}  // namespace servetune
