// SPDX-License-Identifier: Apache-2.0
// `evaluator: {deploy: ...}`: the engine is started here for each trial, and load-tested.
#include "../keys.hpp"
#include "../study_definition.hpp"
#include "kind.hpp"
#include "load_test.hpp"
#include "servetune/base/fingerprint.hpp"
#include "servetune/io/sqlite_journal.hpp"

#include <algorithm>
#include <array>

namespace servetune {
namespace {

MeasuringChoice read_deploy(const Yaml& node) {
    DeployChoice result;
    EngineEvaluator::Options& options = result.options;
    const auto& table = keys::deploy;
    node.check_keys(table);
    read_measure(node, table, options.measure);
    std::string launcher;
    read(node, table.launcher, launcher);  // there is one
    read(node, table.environment, options.deploy.environment);
    read(node, table.api_key_env, result.api_key_environment);
    read(node, table.gpus, options.deploy.gpus);
    read(node, table.cores, options.deploy.cores);
    read(node, table.ready_within, options.deploy.ready_within_seconds);
    read(node, table.stop_within, options.deploy.stop_within_seconds);
    read(node, table.log_bytes, options.deploy.log_bytes);
    read(node, table.all_logs_bytes, options.all_logs_bytes);
    bool watch = true;
    read_word<keys::on_off>(node, table.watch, watch);
    if (watch) options.measure.watch.emplace();
    return result;
}

bool touches_answers(const Parameter& parameter) {
    constexpr std::array<std::string_view, 6> concepts{"quantization",      "weight_dtype",      "kv_cache_dtype",
                                                       "value_cache_dtype", "state_cache_dtype", "draft_model"};
    return std::find(concepts.begin(), concepts.end(), parameter.concept_name) != concepts.end() ||
           parameter.concept_name.starts_with("speculative_");
}

QualityOptions quality_options(const StudyFile& file, const Problem& problem, const std::filesystem::path& folder) {
    QualityOptions options = file.quality->options;
    const std::vector<std::string>& named = file.quality->parameters;
    for (const Parameter& parameter : problem.space.parameters())
        if (named.empty() ? touches_answers(parameter) : std::find(named.begin(), named.end(), parameter.name) != named.end())
            options.defaults[parameter.name] = parameter.default_value;
    options.limits = file.objective.limits;
    options.file = folder / "quality.json";
    return options;
}

void build_deployment(StudySetup& setup, StudyFile& file, const std::filesystem::path& folder, const RunHooks& hooks) {
    check_objective_of_load_test(file);
    setup.problem = problem_of(file);
    auto& choice = std::get<DeployChoice>(file.measuring);
    EngineEvaluator::Options& options = choice.options;
    options.folder = folder.empty() ? std::filesystem::path(file.name) : folder;
    options.deploy.mark = std::filesystem::absolute(options.folder).string();
    options.deploy.api_key = key_from(choice.api_key_environment, file);
    options.deploy.watchdog = hooks.watchdog;
    options.measure.say = hooks.say;
    options.measure.phase = hooks.phase;
    add_facts(file, options.measure);
    options.usd_per_device_hour = file.usd_per_device_hour;
    if (file.quality) options.quality = quality_options(file, *setup.problem, options.folder);
    setup.evaluator =
        std::make_unique<EngineEvaluator>(*file.composition, file.model, StudyWorkloads{file.workloads, file.report_workloads}, options);
}

void define_deployment(const StudySetup& setup, std::map<std::string, std::string>& definition) {
    const auto& options = std::get<DeployChoice>(setup.file.measuring).options;
    definition["evaluator.deploy"] = "warm_up=" + std::to_string(options.measure.warm_up_requests) + " gpus=" + options.deploy.gpus;
    if (setup.file.quality) {
        const QualityOptions& quality = setup.file.quality->options;
        std::string asked;
        for (const auto* list : {&quality.prompts, &quality.command})
            for (const std::string& text : *list) asked += text + "\n";
        definition[of_later_versions + "quality.asked"] = fingerprint_of(asked).text();
    }
    add_environment("evaluator.deploy.environment.", options.deploy.environment, setup.file.secrets, definition);
}

std::string note_of_deployment(const StudyFile& /*file*/) {
    return "Every trial started the engine on this machine and ended it; its log is trials/ID/engine.log.";
}

TrialProcesses deployed_processes(const StudyFile& file) {
    const DeployOptions& deploy = std::get<DeployChoice>(file.measuring).options.deploy;
    return {deploy.mark, deploy.stop_within_seconds};
}

/// The engine sees those of `gpus` and no others.
std::optional<std::int64_t> deployed_devices(const StudyFile& file) {
    const std::string& gpus = std::get<DeployChoice>(file.measuring).options.deploy.gpus;
    if (gpus.empty()) return std::nullopt;
    return 1 + std::count(gpus.begin(), gpus.end(), ',');
}

constexpr std::array<std::string_view, 3> defined_of_deploy{keys::deploy.warm_up.name, keys::deploy.gpus.name,
                                                            keys::deploy.environment.name};
constexpr std::array<std::string_view, 4> harmless_of_deploy{keys::deploy.api_key_env.name, keys::deploy.stop_within.name,
                                                             keys::deploy.log_bytes.name, keys::deploy.all_logs_bytes.name};

}  // namespace

constinit const MeasuringKind deploy_kind{
    .name = keys::evaluator.deploy.name,
    .measures = true,
    .runs_engine = true,
    .defined = defined_of_deploy,
    .harmless = harmless_of_deploy,
    .read = read_deploy,
    .build = build_deployment,
    .define = define_deployment,
    .note = note_of_deployment,
    .processes = deployed_processes,
    .visible_devices = deployed_devices,
};

}  // namespace servetune
