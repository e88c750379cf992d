// SPDX-License-Identifier: Apache-2.0
// `evaluator: {command: ...}`: a program of the user's measures.
#include "base/kept_texts.hpp"
#include "kind.hpp"
#include "servetune/error.hpp"
#include "study_file/key_reader.hpp"
#include "study_file/keys.hpp"
#include "study_file/parameter_reader.hpp"
#include "study_file/study_readers.hpp"

namespace servetune {
namespace {

MeasuringChoice read_command(const Yaml& node) {
    CommandChoice result;
    CommandEvaluator::Options& options = result.options;
    read_table(node, keys::command, result);
    const Yaml& words = node.at(keys::command.run);
    if (!words.is_sequence() || words.items().empty())
        words.fail_wanted("a list of words such as [./measure, \"{config}\"], no shell line");
    for (const Yaml& word : words.items()) {
        options.argv.push_back(word.text());
        try {
            CommandEvaluator::check_word(options.argv.back());
        } catch (const UsageError& error) {
            word.fail(error.what());
        }
    }
    result.words = options.argv;
    options.working_folder = std::filesystem::absolute(on_disk(words.file())).parent_path();
    std::string& program = options.argv.front();
    program = text_with_home(words.items().front());
    if (program.empty()) words.items().front().fail_wanted("a program");
    if (program.find('/') != std::string::npos)
        program = (options.working_folder / program).lexically_normal().string();
    return result;
}

void build_command(StudySetup& setup, StudyFile& file, const std::filesystem::path& folder,
                   const RunHooks& hooks) {
    setup.problem = problem_of(file);
    CommandEvaluator::Options& options = std::get<CommandChoice>(file.measuring).options;
    options.folder = folder.empty() ? std::filesystem::path(file.name) : folder;
    options.mark = std::filesystem::absolute(options.folder).string();
    options.watchdog = hooks.watchdog;
    options.model = file.model;
    for (const Workload& workload : file.workloads) options.workloads.push_back(workload.name);
    options.render = [&composition = *file.composition,
                      model = file.model](const Configuration& configuration) {
        return composition.render(configuration, {model, {}, 0});
    };
    setup.evaluator = std::make_unique<CommandEvaluator>(options);
}

void define_command(const StudySetup& setup, std::map<std::string, std::string>& definition) {
    const auto& choice = std::get<CommandChoice>(setup.file.measuring);
    definition["evaluator.command"] = Command{choice.words}.text();
    add_environment("evaluator.command.environment.", choice.options.environment,
                    setup.file.secrets, definition);
}

std::string note_of_command(const StudyFile& file) {
    return "Every trial was measured by " +
           std::get<CommandChoice>(file.measuring).options.argv.front() +
           "; its log is trials/ID/command.log.";
}

TrialProcesses commanded_processes(const StudyFile& file) {
    const CommandEvaluator::Options& options = std::get<CommandChoice>(file.measuring).options;
    return {options.mark, options.stop_within_seconds};
}

EnvironmentOptions environment_of_command(const StudyFile& file) {
    EnvironmentOptions options = environment_of_machine(file);
    options.set = std::get<CommandChoice>(file.measuring).options.environment;
    return options;
}

}  // namespace

constinit const MeasuringKind command_kind{
    .name = keys::evaluator.command.name,
    .measures = true,
    .read = read_command,
    .build = build_command,
    .define = define_command,
    .note = note_of_command,
    .processes = commanded_processes,
    .environment = environment_of_command,
};

}  // namespace servetune
