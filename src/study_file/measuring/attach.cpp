// SPDX-License-Identifier: Apache-2.0
// `evaluator: {attach: ...}`: a load test of a server that somebody else runs.
#include "base/url.hpp"
#include "kind.hpp"
#include "study_file/key_reader.hpp"
#include "study_file/keys.hpp"
#include "study_file/secrets.hpp"

namespace servetune {
namespace {

void hide_user_info(const std::string& url) {
    Redactor password;
    add_user_info(password, url);
    CollectSecrets::found(password);
}

/// The key itself stays in the environment until the study is set up: nothing that prints a study
/// can print it.
MeasuringChoice read_attach(const Yaml& node) {
    AttachChoice result;
    read_table(node, keys::attach, result);
    hide_user_info(result.options.url);
    return result;
}

void build_attached(StudySetup& setup, StudyFile& file, const std::filesystem::path& /*folder*/,
                    const RunHooks& hooks) {
    check_objective_of_load_test(file);
    setup.problem = problem_of(file);
    const auto& attach = std::get<AttachChoice>(file.measuring);
    AttachEvaluator::Options options = attach.options;
    options.devices = static_cast<double>(file.machine.devices.value_or(1));
    options.measure.say = hooks.say;
    options.measure.phase = hooks.phase;
    options.measure.keep = hooks.keep;
    add_facts(file, options.measure);
    options.api_key = key_from(attach.api_key_environment, file);
    setup.evaluator = std::make_unique<AttachEvaluator>(
        file.composition->engines().front(), file.model,
        StudyWorkloads{file.workloads, file.report_workloads}, std::move(options));
}

std::string shown_url(const StudyFile& file) {
    return without_user_info(std::get<AttachChoice>(file.measuring).options.url);
}

void define_attached(const StudySetup& setup, std::map<std::string, std::string>& definition) {
    definition["evaluator.attach"] = shown_url(setup.file);
}

std::string note_of_attached(const StudyFile& file) {
    return shown_url(file) +
           " was measured as it was found; whoever runs it says with which flags.";
}

std::string attached_server(const StudyFile& file) {
    return "# the server at " + shown_url(file) + " as it is";
}

/// The server's variables are its owner's. The load comes from here.
EnvironmentOptions environment_of_attached(const StudyFile& file) {
    EnvironmentOptions options = environment_of_machine(file);
    options.inherits = false;
    return options;
}

std::string machine_of_attached(const StudyFile& file) {
    return "the server at " + shown_url(file) + " " + file.machine.hardware;
}

/// It may be another one tomorrow, with other flags.
std::string version_of_attached(const StudyFile& /*file*/, const Engine& /*engine*/,
                                const std::map<std::string, std::string>& /*definition*/) {
    return "";
}

}  // namespace

constinit const MeasuringKind attach_kind{
    .name = keys::evaluator.attach.name,
    .measures = true,
    .served_by = ServedBy::a_running_server,
    .read = read_attach,
    .build = build_attached,
    .define = define_attached,
    .note = note_of_attached,
    .environment = environment_of_attached,
    .machine = machine_of_attached,
    .version = version_of_attached,
    .server_text = attached_server,
};

}  // namespace servetune
