// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "help_forms.hpp"
#include "option_checks.hpp"
#include "output.hpp"
#include "standard_streams.hpp"

#include "servetune/error.hpp"
#include "servetune/study_file.hpp"
#include "study_file/schema.hpp"
#include "study_file/secrets.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <span>
#include <sstream>

namespace {

using namespace autotune;

constexpr const char* token_help = "Who looks has to know what this file holds (or SERVETUNE_TOKEN); needed where others reach the address";

void add_strategy(CLI::App* command, StudyArguments& arguments) {
    command->add_option("--strategy", arguments.strategy,
                        fmt::format("Search with this strategy instead of the study's: {}", fmt::join(servetune::strategy_names(), ", ")));
}

CLI::App* add_study_command(CLI::App& app, const char* name, const char* what, StudyArguments& arguments) {
    CLI::App* command = app.add_subcommand(name, what);
    command->add_option("STUDY", arguments.study, "The study's YAML file")->required();
    add_strategy(command, arguments);
    command->add_flag("--json", arguments.json, "Print one JSON object");
    return command;
}

void add_directory(CLI::App* command, StudyArguments& arguments) {
    command->add_option("--directory", arguments.directory, "The study's folder: journal, report (default: ./<study name>)");
}

void add_load_test(CLI::App* command, LoadTestArguments& arguments) {
    command->add_option("--url", arguments.url, "The server, such as http://127.0.0.1:8000, with or without /v1")->required();
    command->add_option("--replica", arguments.replicas, "Another server of the same kind; requests are spread over all")
        ->allow_extra_args(false);
    command->add_option("--model", arguments.model, "As the server calls it (default: the only one it serves)");
    command->add_option("--workload", arguments.workload, "A name, a file, or random:INPUTxOUTPUT")->capture_default_str();
    command->add_option("--requests", arguments.requests, "How many")->check(whole_number(1));
    command->add_option("--burstiness", arguments.burstiness, "Of arrivals at a rate: 1 is Poisson, less is burstier, inf an even pace")
        ->check(positive_number(true));
    command->add_option("--seed", arguments.seed, "Of prompts and arrivals")->check(whole_number(0));
    command->add_option("--salt", arguments.salt, "Of this run's prompts (default: a new one, so that no prefix cache answers)")
        ->check(whole_number(0));
    command->add_flag("--ignore-eos", arguments.ignore_eos, "Ask for exactly as many tokens as the workload says");
    command->add_flag("--completions", arguments.completions, "/v1/completions instead of /v1/chat/completions");
    command->add_flag("--token-ids", arguments.token_ids, "Prompts as token ids: exact lengths without asking (completions)");
    command->add_flag("!--no-stream", arguments.stream, "Whole answers");
    command->add_flag("!--no-usage", arguments.usage, "Do not ask for token counts; they are estimated from what is streamed");
    command->add_option("--api-key-env", arguments.api_key_environment, "Environment variable that holds the API key");
    command->add_option("--header", arguments.headers, "NAME:VALUE, added to every request")->allow_extra_args(false);
    command->add_option("--extra-body", arguments.extra_body, "JSON object added to every request, such as {\"temperature\": 0}");
    command->add_option("--certificates", arguments.certificates, "Certificate authorities to trust for https");
    command->add_option("--loops", arguments.loops, "Event loops, each a thread")->check(whole_number(1));
    command->add_option("--request-timeout", arguments.request_timeout_seconds, "Seconds for one answer")->check(positive_number());
    command->add_option("--stall-timeout", arguments.stall_timeout_seconds, "Seconds without an event of the answer")
        ->check(positive_number());
    command->add_option("--hardware", arguments.hardware, "What it runs on, such as h100-sxm: checked against physics");
    command->add_option("--facts-of", arguments.facts_of, "The model, where it is served under another name");
    command->add_option("--devices", arguments.devices, "Accelerators that share the work of one step")->check(positive_number());
    command->add_flag("--quiet", arguments.quiet, "No progress on standard error");
}

CLI::App* add_init_command(CLI::App& app, InitArguments& arguments) {
    CLI::App* command = app.add_subcommand("init", "Write a study: asks five questions, or takes the answers as options");
    command->add_option("--engine", arguments.engine, "A known engine (default: one that is installed here)");
    command->add_option("--model", arguments.model, "What is served: a name on the hub, a folder or a file");
    command->add_option("--hardware", arguments.hardware, "Such as h100-sxm (default: what nvidia-smi says)");
    command->add_option("--gpus", arguments.gpus, "How many of them")->check(whole_number(0));
    command->add_option("--traffic", arguments.traffic, "A workload, or INPUTxOUTPUT tokens");
    command->add_option("--concurrency", arguments.concurrency, "Requests in flight")->check(whole_number(1));
    command->add_option("--goal", arguments.goal, "throughput, latency, or a limit such as 'ttft_p95 < 2s'");
    command->add_option("--budget", arguments.budget, "Such as '30 trials' or 8h");
    command->add_option("--attach", arguments.attach, "The address of a server that runs: only its load is tuned");
    command->add_option("--output", arguments.output, "The file (default: study.yaml)");
    command->add_flag("--yes", arguments.yes, "Ask nothing; take what was found for what is not said");
    command->add_flag("--force", arguments.force, "Replace a file that is there");
    return command;
}

CLI::App* add_bench_command(CLI::App& app, BenchArguments& arguments) {
    CLI::App* command =
        app.add_subcommand("bench", "One load test of any OpenAI-compatible server: exit code 1 when its result is unsound");
    add_load_test(command, arguments);
    command->add_option("--rate", arguments.rate, "Requests a second (open loop); inf: all at once")->check(positive_number(true));
    command->add_option("--concurrency", arguments.concurrency, "Requests in flight (closed loop)")->check(whole_number(1));
    command->add_option("--duration", arguments.duration_seconds, "About so long, such as 60s, in place of a number of requests")
        ->transform(seconds_or_unit());
    command
        ->add_option("--warmup", arguments.warmup,
                     "At least so many requests before, which are not counted; 0: none (as many as make the server steady)")
        ->check(whole_number(0));
    command->add_option("--sweep", arguments.sweep, "Requests in flight, such as 1,2,4,8: a load test of each")
        ->delimiter(',')
        ->check(positive_number());
    command->add_option("--ttft-limit", arguments.ttft_limit_seconds, "Such as 500ms, or seconds; for goodput")
        ->transform(seconds_or_unit());
    command->add_option("--tpot-limit", arguments.tpot_limit_seconds, "Such as 500ms, or seconds; for goodput")
        ->transform(seconds_or_unit());
    command->add_option("--latency-limit", arguments.latency_limit_seconds, "Such as 500ms, or seconds; for goodput")
        ->transform(seconds_or_unit());
    command->add_option("--save", arguments.save, "vLLM's JSON, ours under \"servetune\"");
    command->add_flag("--detailed", arguments.detailed, "With --save: every request");
    command->add_option("--records", arguments.records, "Every request with all its gaps: gzip compressed JSON lines");
    command->add_option("--compare-with", arguments.compare_with, "A result of any tool to set beside this one");
    command->add_flag("--json", arguments.json, "Print the JSON of --save instead of the report");
    return command;
}

CLI::App* add_capacity_command(CLI::App& app, CapacityArguments& arguments) {
    CLI::App* command = app.add_subcommand(
        "capacity",
        "The largest load that a server bears within limits, and its figures from load to load: exit code 1 when the lowest breaks them");
    add_load_test(command, arguments);
    command->add_option("--limit", arguments.limits, "What must hold, such as 'ttft_p95 <= 500ms'; all of them")->allow_extra_args(false);
    command->add_flag("--concurrency", arguments.concurrency, "Look for requests in flight (closed loop), not for requests a second");
    command->add_option("--from", arguments.from, "The lowest load that is tried")->check(positive_number());
    command->add_option("--to", arguments.to, "The highest, which is tried first (default: all requests at once)")
        ->check(positive_number());
    command->add_option("--sweep", arguments.sweep, "These loads, such as 1,2,4,8, and no search")
        ->delimiter(',')
        ->check(positive_number());
    command->add_option("--save", arguments.save, "The JSON into a file");
    command->add_flag("--json", arguments.json, "Print one JSON object");
    return command;
}

int dispatch(int argc, char** argv) {
    CLI::App app{"autotune finds, on your own GPU, model and traffic, the launch flags that make an LLM serving engine fastest."};
    app.set_version_flag("--version", version_text());
    app.formatter(plain_help());
    app.footer(exit_codes_text());
    app.require_subcommand(1);

    RunArguments run_arguments;
    CLI::App* run_command = add_study_command(app, "run", "Tune; goes on where an earlier run stopped", run_arguments);
    add_directory(run_command, run_arguments);
    run_command->add_option("--trials", run_arguments.trials, "End after so many trials, in place of the study's budget")
        ->check(CLI::PositiveNumber);
    run_command
        ->add_option("--learn-from", run_arguments.learn_from,
                     "An earlier study's folder, or a journal's file: what it measured, bayesian believes until it sees otherwise")
        ->allow_extra_args(false);
    run_command
        ->add_option("--suggest", run_arguments.suggest,
                     "A YAML or JSON list of configurations: bayesian tries the best of them by its models, in at most 3 of 10 trials")
        ->allow_extra_args(false);
    run_command->add_flag("--accept-changes", run_arguments.accept_changes,
                          "Go on although the study has changed since its journal was written");
    run_command->add_flag("--quiet", run_arguments.quiet, "No progress");
    run_command->add_flag("--json-lines", run_arguments.json_lines, "A JSON object a line for everything that happens, on standard output");
    run_command->add_flag("--dry-run", run_arguments.dry_run, "Say what would be done, then end; nothing is started or written");

    CLI::Option* run_serve =
        run_command->add_option("--serve", run_arguments.serve, "Show the run in a browser, at HOST:PORT (default: 127.0.0.1:8420)")
            ->expected(0, 1);
    run_command->add_option("--token-file", run_arguments.token_file, token_help)->needs(run_serve);
    ServeArguments serve_arguments;
    CLI::App* serve_command =
        add_study_command(app, "serve", "Show a study in a browser, also while it runs; until Ctrl-C", serve_arguments);
    add_directory(serve_command, serve_arguments);
    serve_command->add_option("--address", serve_arguments.address, "Where, as HOST:PORT (default: 127.0.0.1:8420)");
    serve_command->add_option("--token-file", serve_arguments.token_file, token_help);

    AskTellArguments ask_tell_arguments;
    CLI::App* ask_tell_command = app.add_subcommand(
        "ask-tell",
        "Let another program measure: it asks and tells by JSON lines on standard input and output (docs/reference/ask-tell.md)");
    ask_tell_command
        ->add_option("SPACE", ask_tell_arguments.study, "A study's YAML file; its space, objective, strategy, budget and knowledge count")
        ->required();
    add_strategy(ask_tell_command, ask_tell_arguments);
    ask_tell_command->add_option("--directory", ask_tell_arguments.directory,
                                 "Keep the trials in this folder's journal, and go on where an earlier run stopped (default: not kept)");
    ask_tell_command->add_flag("--accept-changes", ask_tell_arguments.accept_changes,
                               "Go on although the study has changed since its journal was written");

    ValidateArguments validate_arguments;
    CLI::App* validate_command = add_study_command(
        app, "validate",
        "Check a study and say what its space is; serves nothing, but asks engines that are installed here for their --help",
        validate_arguments);
    validate_command->add_flag("!--no-installed", validate_arguments.ask_installed, "Do not run the engines' --help");
    InitArguments init_arguments;
    add_init_command(app, init_arguments);
    StatusArguments status_arguments;
    CLI::App* status_command = add_study_command(app, "status", "Where a study stands, also while it runs", status_arguments);
    add_directory(status_command, status_arguments);
    status_command->add_flag("--rescue", status_arguments.rescue, "Copy what can still be read of a damaged journal to study.rescued.db");
    ReportArguments report_arguments;
    CLI::App* report_command = add_study_command(app, "report", "The report of a study, as far as it is", report_arguments);
    add_directory(report_command, report_arguments);
    CLI::Option* as_page = report_command->add_flag("--html", report_arguments.html, "Print the page for a browser");
    CLI::Option* beside =
        report_command->add_option("--beside", report_arguments.beside, "Show this other study beside it")->excludes(as_page);
    report_command
        ->add_option("--beside-directory", report_arguments.beside_directory, "The other study's folder (default: ./<study name>)")
        ->needs(beside);
    ExportArguments export_arguments;
    CLI::App* export_command =
        app.add_subcommand("export", "The trials of a study as a table of measured configurations, as JSON lines, or for Optuna");
    export_command->add_option("STUDY", export_arguments.study, "The study's YAML file")->required();
    add_directory(export_command, export_arguments);
    export_command->add_option("--format", export_arguments.format, "The format; optuna is an SQLite storage")
        ->check(CLI::IsMember({"csv", "jsonl", "optuna"}))
        ->capture_default_str();
    export_command->add_option("--output", export_arguments.output, "The file (default: standard output)");
    RecommendArguments recommend_arguments;
    CLI::App* recommend_command =
        add_study_command(app, "recommend", "What a study recommends, as a file that starts it", recommend_arguments);
    add_directory(recommend_command, recommend_arguments);
    recommend_command->add_option("--as", recommend_arguments.as, "What the file is for")
        ->check(CLI::IsMember({"shell", "systemd", "compose", "kubernetes", "slurm"}))
        ->capture_default_str();
    recommend_command->add_option("--output", recommend_arguments.output, "Write it, and files that belong to it, into this folder");
    recommend_command->add_option("--host", recommend_arguments.host,
                                  "Where it listens (default: 127.0.0.1, in compose and kubernetes 0.0.0.0)");
    recommend_command->add_option("--port", recommend_arguments.port, "Its port")->check(CLI::Range(1, 65535))->capture_default_str();
    recommend_command->add_option("--image", recommend_arguments.image, "The image, of compose and kubernetes (default: the study's)");
    recommend_command->add_option("--gpus", recommend_arguments.gpus, "GPUs in place of those that its layout takes; 0: none are asked for")
        ->check(CLI::NonNegativeNumber);
    ExplainArguments explain_arguments;
    CLI::App* explain_command = add_study_command(
        app, "explain", "What a study's models say: what each parameter does and with which others, or why a trial was made",
        explain_arguments);
    add_directory(explain_command, explain_arguments);
    explain_command->add_option("--trial", explain_arguments.trial, "What was expected of this one, by what was told before it");
    explain_command->add_option("--learn-from", explain_arguments.learn_from, "As `run` had it")->allow_extra_args(false);
    RenderArguments render_arguments;
    CLI::App* render_command = add_study_command(app, "render", "The command of a configuration", render_arguments);
    CLI::Option* render_set =
        render_command->add_option("--set", render_arguments.settings, "name=value; the rest keeps its default")->allow_extra_args(false);
    CLI::Option* render_random =
        render_command->add_option("--random", render_arguments.random, "The commands of so many random configurations, one a line")
            ->check(whole_number(1))
            ->excludes(render_set);
    render_command->add_option("--seed", render_arguments.seed, "Of the random configurations (default: the study's)")
        ->needs(render_random);

    CompareArguments compare_arguments;
    CLI::App* compare_command = app.add_subcommand(
        "compare", "Measure A against B in pairs until it is decided: exit code 1 when B is worse, 6 when it stays undecided");
    compare_command->add_option("A", compare_arguments.study, "A study's YAML file: its default configuration is A")->required();
    compare_command->add_option("B", compare_arguments.other, "Another one, whose default is B");
    compare_command->add_option("--set", compare_arguments.settings, "name=value: what B changes of A, without another study")
        ->allow_extra_args(false);
    compare_command->add_option("--pairs", compare_arguments.pairs, "At most so many pairs of measurements")
        ->check(whole_number(2))
        ->capture_default_str();
    compare_command->add_option("--margin", compare_arguments.margin, "A smaller difference is none, as a share: 0.01 is 1 %")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    compare_command->add_option("--directory", compare_arguments.directory, "Where the journals are kept (default: ./comparison)");
    compare_command->add_flag("--json", compare_arguments.json, "Print one JSON object");
    compare_command->add_flag("--quiet", compare_arguments.quiet, "No progress");

    EnginesArguments engines_arguments;
    CLI::App* engines_command = app.add_subcommand("engines", "The engines that are known, or one engine's parameters");
    engines_command->add_option("NAME", engines_arguments.name, "One engine");
    engines_command->add_flag("--json", engines_arguments.json, "Print JSON");

    SimulateArguments simulate_arguments;
    CLI::App* simulate_command = add_study_command(
        app, "simulate", "Predict a study's best configurations with the cost model; nothing is measured", simulate_arguments);
    simulate_command->add_option("--hardware", simulate_arguments.hardware, "In place of the study's: what would an h200-sxm give?");
    simulate_command->add_option("--configurations", simulate_arguments.configurations, "Drawn evenly, before climbing from the best")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    simulate_command->add_option("--top", simulate_arguments.top, "How many to print")->check(CLI::PositiveNumber)->capture_default_str();
    simulate_command->add_option("--seed", simulate_arguments.seed, "Of the draw")->capture_default_str();

    FitArguments fit_arguments;
    simulate_command->add_option("--fit", fit_arguments.table,
                                 "Fit the engine's factors to this table of measured results instead, and say how well");
    simulate_command->add_option("--workload", fit_arguments.workload, "With --fit: this workload's rows only");
    simulate_command->add_option("--metric", fit_arguments.metrics, "With --fit: what is to come out (default: the study's objective)");
    simulate_command->add_option("--factor", fit_arguments.factors,
                                 "With --fit: what is fitted (default: compute_efficiency request_overhead_seconds)");
    simulate_command->add_option("--output", fit_arguments.output, "With --fit: write the traits file");

    std::string schema_kind;
    CLI::App* schema_command =
        app.add_subcommand("schema", "The JSON Schema of a kind of file: engine, workload, study, preset, hardware, model, traits");
    schema_command->add_option("KIND", schema_kind, "Which kind")->required();

    ImportArguments import_arguments;
    CLI::App* import_command =
        app.add_subcommand("import", "Results of benchmarks into a table of measured configurations: exit code 5 when a document has none");
    import_command
        ->add_option("DOCUMENT", import_arguments.documents,
                     "JSON of vLLM, SGLang, GuideLLM, GPUStack, GenAI-Perf or AIPerf; text or Markdown with what a benchmark printed")
        ->required();
    import_command->add_option("--study", import_arguments.study, "The study whose parameters and workloads the rows get");
    import_command->add_option("--command", import_arguments.command, "The command that started the engine, of results without one");
    import_command->add_option("--output", import_arguments.output, "The CSV file (default: standard output)");
    CLI::Option* write_study = import_command->add_option("--write-study", import_arguments.write_study,
                                                          "Write a study of the results that replays them, and its table beside it");
    import_command->add_option("--workload", import_arguments.workload, "With --write-study: which of several workloads is searched")
        ->needs(write_study);
    import_command
        ->add_option("--set", import_arguments.settings,
                     "With --write-study: [FILE:]NAME=VALUE that results do not say: model, hardware, engine, version, a parameter")
        ->allow_extra_args(false)
        ->needs(write_study);
    CLI::Option* objective = import_command->add_option(
        "--objective", import_arguments.objective,
        "A CSV table of configurations and figures: the column to tune for, also maximize:COLUMN or minimize:COLUMN");
    import_command
        ->add_option("--parameter", import_arguments.parameters,
                     "With --objective: the columns that are parameters (default: as they tell)")
        ->needs(objective);
    import_command->add_option("--rest", import_arguments.rest, "With a study: CSV file for the blocks that it does not know");
    import_command->add_flag("--json", import_arguments.json, "Print one JSON object about what was found");

    AuditArguments audit_arguments;
    CLI::App* audit_command =
        app.add_subcommand("audit", "Whether printed results can be believed: exit code 1 when one is unsound, 5 when a file has none");
    audit_command
        ->add_option("FILE", audit_arguments.files, "Results of any tool: JSON, text or Markdown with what a benchmark printed, CSV tables")
        ->required();
    audit_command->add_option("--hardware", audit_arguments.hardware,
                              "What it ran on, such as h100-sxm (default: the study's, or what FILE mentions)");
    audit_command->add_option("--model", audit_arguments.model, "What was served, where the results do not say it");
    audit_command->add_option("--study", audit_arguments.study, "The study whose workloads, model and hardware these are");
    audit_command->add_flag("--json", audit_arguments.json, "Print all findings as one JSON array");

    BenchArguments bench_arguments;
    add_bench_command(app, bench_arguments);
    CapacityArguments capacity_arguments;
    add_capacity_command(app, capacity_arguments);

    std::string shell;
    app.add_subcommand("completion", "What makes a shell complete commands and options: source <(autotune completion bash)")
        ->add_option("SHELL", shell, "Which shell")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    app.add_subcommand("man", "The manual page, as roff: autotune man | man -l -");

    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) {
            put_text(stderr, complaint_of(app, error, std::span<const char* const>(argv, static_cast<std::size_t>(argc))));
            return usage_error;
        }
        std::ostringstream out;
        app.exit(error, out, out);
        put_text(stdout, out.str());
        return done;
    }
    if (app.got_subcommand("run")) {
        if (run_serve->count() > 0 && (!run_arguments.serve || run_serve->results().empty() || run_serve->results().front() == "true"))
            run_arguments.serve = "";
        return run(run_arguments);
    }
    if (app.got_subcommand("serve")) return serve(serve_arguments);
    if (app.got_subcommand("ask-tell")) return ask_tell(ask_tell_arguments);
    if (app.got_subcommand("validate")) return validate(validate_arguments);
    if (app.got_subcommand("init")) return init(init_arguments);
    if (app.got_subcommand("status")) return status(status_arguments);
    if (app.got_subcommand("report")) return report(report_arguments);
    if (app.got_subcommand("recommend")) return recommend_as(recommend_arguments);
    if (app.got_subcommand("export")) return export_trials(export_arguments);
    if (app.got_subcommand("explain")) return explain(explain_arguments);
    if (app.got_subcommand("render")) return render(render_arguments);
    if (app.got_subcommand("compare")) return compare(compare_arguments);
    if (app.got_subcommand("completion") || app.got_subcommand("man")) {
        put(stdout, "{}", app.got_subcommand("man") ? manual_page(app) : completion_script(app, shell));
        return done;
    }
    if (app.got_subcommand("schema")) {
        put(stdout, "{}", servetune::json_schema(schema_kind));
        return done;
    }
    if (app.got_subcommand("engines")) return engines(engines_arguments);
    if (app.got_subcommand("bench")) return bench(bench_arguments);
    if (app.got_subcommand("capacity")) return capacity(capacity_arguments);
    if (app.got_subcommand("simulate")) {
        if (fit_arguments.table.empty()) return simulate(simulate_arguments);
        static_cast<StudyArguments&>(fit_arguments) = simulate_arguments;
        return fit_table(fit_arguments);
    }
    if (app.got_subcommand("audit")) return audit(audit_arguments);
    return import_document(import_arguments);
}

}  // namespace

int main(int argc, char** argv) {
    occupy_standard_streams();
    int code = environment_error;
    secrets().add(servetune::secrets_of_environment());
    const servetune::CollectSecrets collecting(secrets());  // of all files that are read
    try {
        code = dispatch(argc, argv);
    } catch (const servetune::Error& error) {
        complain("{}", complaint_of(error));
        code = usage_error;
    } catch (const std::exception& error) {
        // A failed print throws too: what is wrong with standard output is said below.
        if (std::ferror(stdout) == 0) complain("autotune: {}", error.what());
    }
    return with_output_written(code);
}
