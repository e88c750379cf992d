// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "servetune/base/error.hpp"
#include "servetune/io/schema.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

namespace {

using namespace autotune;

CLI::App* add_study_command(CLI::App& app, const char* name, const char* what, StudyArguments& arguments) {
    CLI::App* command = app.add_subcommand(name, what);
    command->add_option("STUDY", arguments.study, "The study's YAML file")->required();
    command->add_option("--strategy", arguments.strategy,
                        "Search with this strategy instead of the study's: staged, random, exhaustive, quasi_random, local_search");
    command->add_flag("--json", arguments.json, "Print one JSON object");
    return command;
}

void add_directory(CLI::App* command, StudyArguments& arguments) {
    command->add_option("--directory", arguments.directory, "The study's folder: journal, report (default: ./<study name>)");
}

int dispatch(int argc, char** argv) {
    CLI::App app{"autotune finds, on your own GPU, model and traffic, the launch flags that make an LLM serving engine fastest."};
    app.set_version_flag("--version", SERVETUNE_VERSION);
    app.require_subcommand(1);

    RunArguments run_arguments;
    CLI::App* run_command = add_study_command(app, "run", "Tune; goes on where an earlier run stopped", run_arguments);
    add_directory(run_command, run_arguments);
    run_command->add_option("--trials", run_arguments.trials, "Told trials of the search, in place of the study's budget")
        ->check(CLI::PositiveNumber);
    run_command->add_flag("--accept-changes", run_arguments.accept_changes,
                          "Go on although the study has changed since its journal was written");
    run_command->add_flag("--quiet", run_arguments.quiet, "No progress");

    ValidateArguments validate_arguments;
    CLI::App* validate_command = add_study_command(
        app, "validate",
        "Check a study and say what its space is; serves nothing, but asks engines that are installed here for their --help",
        validate_arguments);
    validate_command->add_flag("!--no-installed", validate_arguments.ask_installed, "Do not run the engines' --help");
    StatusArguments status_arguments;
    CLI::App* status_command = add_study_command(app, "status", "Where a study stands, also while it runs", status_arguments);
    add_directory(status_command, status_arguments);
    status_command->add_flag("--rescue", status_arguments.rescue, "Copy what can still be read of a damaged journal to study.rescued.db");
    StudyArguments report_arguments;
    add_directory(add_study_command(app, "report", "The report of a study, as far as it is", report_arguments), report_arguments);
    RenderArguments render_arguments;
    CLI::App* render_command = add_study_command(app, "render", "The command of a configuration", render_arguments);
    render_command->add_option("--set", render_arguments.settings, "name=value; the rest keeps its default")->allow_extra_args(false);

    EnginesArguments engines_arguments;
    CLI::App* engines_command = app.add_subcommand("engines", "The engines that are known, or one engine's parameters");
    engines_command->add_option("NAME", engines_arguments.name, "One engine");
    engines_command->add_flag("--json", engines_arguments.json, "Print JSON");

    std::string schema_kind;
    CLI::App* schema_command =
        app.add_subcommand("schema", "The JSON Schema of a kind of file: engine, workload, study, preset, hardware, model");
    schema_command->add_option("KIND", schema_kind, "Which kind")->required();

    ImportArguments import_arguments;
    CLI::App* import_command = app.add_subcommand("import", "Results of benchmarks into a table of measured configurations");
    import_command
        ->add_option("DOCUMENT", import_arguments.document,
                     "JSON of vLLM, SGLang, GuideLLM, GPUStack, GenAI-Perf or AIPerf; text or Markdown with result blocks")
        ->required();
    import_command->add_option("--study", import_arguments.study, "The study whose parameters and workloads the rows get");
    import_command->add_option("--output", import_arguments.output, "The CSV file (default: standard output)");
    import_command->add_option("--rest", import_arguments.rest, "With --study: CSV file for the blocks that it does not know");
    import_command->add_flag("--json", import_arguments.json, "Print one JSON object about what was found");

    AuditArguments audit_arguments;
    CLI::App* audit_command = app.add_subcommand("audit", "Whether printed results can be believed: exit code 1 when one is unsound");
    audit_command->add_option("FILE", audit_arguments.files, "Text or Markdown with result blocks, or CSV tables")->required();
    audit_command->add_option("--hardware", audit_arguments.hardware,
                              "What it ran on, such as h100-sxm (default: the study's, or what FILE mentions)");
    audit_command->add_option("--model", audit_arguments.model, "What was served, where the results do not say it");
    audit_command->add_option("--study", audit_arguments.study, "The study whose workloads, model and hardware these are");
    audit_command->add_flag("--json", audit_arguments.json, "Print all findings as one JSON array");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? done : usage_error;
    }
    if (app.got_subcommand("run")) return run(run_arguments);
    if (app.got_subcommand("validate")) return validate(validate_arguments);
    if (app.got_subcommand("status")) return status(status_arguments);
    if (app.got_subcommand("report")) return report(report_arguments);
    if (app.got_subcommand("render")) return render(render_arguments);
    if (app.got_subcommand("schema")) {
        fmt::print("{}", servetune::json_schema(schema_kind));
        return done;
    }
    if (app.got_subcommand("engines")) return engines(engines_arguments);
    if (app.got_subcommand("audit")) return audit(audit_arguments);
    return import_document(import_arguments);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return dispatch(argc, argv);
    } catch (const servetune::Error& error) {
        fmt::print(stderr, "autotune: {}\n", error.what());
        return usage_error;
    } catch (const std::exception& error) {
        fmt::print(stderr, "autotune: {}\n", error.what());
        return environment_error;
    }
}
