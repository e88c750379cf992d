// SPDX-License-Identifier: Apache-2.0
// `evaluator: {deploy: ...}`: the engine is started here for each trial, and load-tested.
#include "../keys.hpp"
#include "../parameter_reader.hpp"
#include "../study_definition.hpp"
#include "kind.hpp"
#include "load_test.hpp"

#include <algorithm>

namespace servetune {
namespace {

/// The largest number of a core: a set of cores has CPU_SETSIZE places.
constexpr std::int64_t most_core = 1023;

MeasuringChoice read_deploy(const Yaml& node) {
    DeployChoice result;
    EngineEvaluator::Options& options = result.options;
    node.check_keys(keys::deploy);
    read_measure(node, options.measure);
    if (const Yaml* launcher = node.find("launcher"); launcher != nullptr && launcher->text() != "local") launcher->fail_wanted("local");
    if (const Yaml* environment = node.find("environment")) options.deploy.environment = read_texts(*environment);
    if (const Yaml* name = node.find("api_key_env")) result.api_key_environment = name->text();
    if (const Yaml* gpus = node.find("gpus")) options.deploy.gpus = gpus->text();
    if (const Yaml* cores = node.find("cores"))
        for (const Yaml& core : cores->items()) {
            options.deploy.cores.push_back(static_cast<int>(read_integer(core, 0, most_core)));
        }
    if (const Yaml* within = node.find("ready_within")) options.deploy.ready_within_seconds = within->positive_seconds();
    if (const Yaml* within = node.find("stop_within")) options.deploy.stop_within_seconds = within->seconds();
    if (const Yaml* bytes = node.find("log_bytes")) options.deploy.log_bytes = read_count(*bytes);
    if (const Yaml* bytes = node.find("all_logs_bytes")) options.all_logs_bytes = read_count(*bytes);
    const Yaml* watch = node.find("watch");
    if (watch == nullptr || choice_of_two(*watch, "on", "off")) options.measure.watch.emplace();
    return result;
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
    add_facts(file, options.measure);
    setup.evaluator =
        std::make_unique<EngineEvaluator>(*file.composition, file.model, StudyWorkloads{file.workloads, file.report_workloads}, options);
}

void define_deployment(const StudySetup& setup, std::map<std::string, std::string>& definition) {
    const auto& options = std::get<DeployChoice>(setup.file.measuring).options;
    definition["evaluator.deploy"] = "warm_up=" + std::to_string(options.measure.warm_up_requests) + " gpus=" + options.deploy.gpus;
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

constexpr std::array<std::string_view, 3> defined_of_deploy{"warm_up", "gpus", "environment"};
constexpr std::array<std::string_view, 4> harmless_of_deploy{"api_key_env", "stop_within", "log_bytes", "all_logs_bytes"};

}  // namespace

constinit const MeasuringKind deploy_kind{
    .name = "deploy",
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
