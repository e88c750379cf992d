// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "help_forms.hpp"
#include "launch_client.hpp"
#include "option_checks.hpp"
#include "output.hpp"
#include "serve_options.hpp"
#include "standard_streams.hpp"
#include "watch_options.hpp"

#include "interop/artefact.hpp"
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

constexpr const char* token_help =
    "File with the token that readers must give (or SERVETUNE_TOKEN); required unless the address "
    "is the loopback";

void add_strategy(CLI::App* command, StudyArguments& arguments) {
    command->add_option("--strategy", arguments.strategy,
                        fmt::format("Search with this strategy instead of the study's: {}",
                                    fmt::join(servetune::strategy_names(), ", ")));
}

CLI::App* add_study_command(CLI::App& app, const char* name, const char* what,
                            StudyArguments& arguments) {
    CLI::App* command = app.add_subcommand(name, what);
    command
        ->add_option("STUDY", arguments.study,
                     "The study's YAML file, or the folder or journal of its run")
        ->required();
    add_strategy(command, arguments);
    command->add_flag("--json", arguments.json, "Print one JSON object");
    return command;
}

void add_directory(CLI::App* command, StudyArguments& arguments) {
    command->add_option("--directory", arguments.directory,
                        "The folder of the run, for journal and report (default: ./<study name>)");
}

void add_load_test(CLI::App* command, LoadTestArguments& arguments) {
    command
        ->add_option("--url", arguments.url,
                     "The server, such as http://127.0.0.1:8000, with or without /v1")
        ->required();
    command
        ->add_option("--replica", arguments.replicas,
                     "Another server of the same kind; requests are spread over all")
        ->allow_extra_args(false);
    command->add_option("--model", arguments.model,
                        "The model's name on the server (default: the only one that it serves)");
    command
        ->add_option("--workload", arguments.workload,
                     "A shipped workload's name, a file, or random:INPUTxOUTPUT tokens")
        ->capture_default_str();
    command->add_option("--requests", arguments.requests, "Number of requests")
        ->check(whole_number(1));
    command
        ->add_option(
            "--burstiness", arguments.burstiness,
            "Shape of arrivals at a rate: 1 is Poisson, below 1 burstier, inf evenly spaced")
        ->check(positive_number(true));
    command->add_option("--seed", arguments.seed, "Seed of prompts and arrivals")
        ->check(whole_number(0));
    command
        ->add_option("--salt", arguments.salt,
                     "Makes this run's prompts differ from others (default: new each run, so that "
                     "no prefix cache answers)")
        ->check(whole_number(0));
    command->add_flag("--ignore-eos", arguments.ignore_eos,
                      "Request exactly the workload's number of output tokens");
    command->add_flag("--completions", arguments.completions,
                      "Use /v1/completions instead of /v1/chat/completions");
    command->add_flag(
        "--token-ids", arguments.token_ids,
        "Send prompts as token ids, which makes lengths exact; implies --completions");
    command->add_flag("!--no-stream", arguments.stream,
                      "Request whole answers instead of a stream");
    command->add_flag("!--no-usage", arguments.usage,
                      "Do not request token counts; estimate them from the stream");
    command->add_option("--api-key-env", arguments.api_key_environment,
                        "Environment variable that holds the API key");
    command->add_option("--header", arguments.headers, "NAME:VALUE, a header of every request")
        ->allow_extra_args(false);
    command->add_option("--extra-body", arguments.extra_body,
                        "JSON object merged into every request, such as {\"temperature\": 0}");
    command->add_option("--certificates", arguments.certificates,
                        "File of certificate authorities to trust for https");
    command->add_option("--loops", arguments.loops, "Threads that send requests")
        ->check(whole_number(1));
    command
        ->add_option("--request-timeout", arguments.request_timeout_seconds,
                     "Seconds until a request without its whole answer has failed")
        ->check(positive_number());
    command
        ->add_option("--stall-timeout", arguments.stall_timeout_seconds,
                     "Seconds until a request without a new event has failed")
        ->check(positive_number());
    command->add_option("--hardware", arguments.hardware,
                        "The chip, such as h100-sxm: the audit checks figures against its peaks");
    command->add_option("--facts-of", arguments.facts_of,
                        "The model whose facts the audit uses, if the server uses another name");
    command
        ->add_option("--devices", arguments.devices,
                     "Number of accelerators that share one copy of the model")
        ->check(positive_number());
    command->add_flag("--quiet", arguments.quiet, "Print no progress");
}

CLI::App* add_init_command(CLI::App& app, InitArguments& arguments) {
    CLI::App* command = app.add_subcommand(
        "init", "Write a study: asks five questions, or takes the answers as options");
    command->add_option("--engine", arguments.engine,
                        "The engine (default: one that is installed here)");
    command->add_option("--model", arguments.model,
                        "The model: a name on the hub, a folder or a file");
    command->add_option("--hardware", arguments.hardware,
                        "The chip, such as h100-sxm (default: as nvidia-smi says)");
    command->add_option("--gpus", arguments.gpus, "Number of GPUs; 0: the engine serves from a CPU")
        ->check(whole_number(0));
    command->add_option("--traffic", arguments.traffic,
                        "A workload's name or file, or INPUTxOUTPUT tokens");
    command->add_option("--concurrency", arguments.concurrency, "Requests in flight")
        ->check(whole_number(1));
    command->add_option("--goal", arguments.goal,
                        "throughput, latency, or throughput under a limit such as 'ttft_p95 < 2s'");
    command->add_option("--budget", arguments.budget, "When to stop, such as '30 trials' or 8h");
    command->add_option("--attach", arguments.attach,
                        "URL of a running server: only its load is tuned");
    command
        ->add_option("--as", arguments.as,
                     "Where engines start: kubernetes (also writes what runs the study there), ray")
        ->check(CLI::IsMember({"kubernetes", "ray"}));
    command
        ->add_option("--image", arguments.image,
                     "With --as: image of autotune with kubectl, as the cluster pulls it")
        ->needs("--as");
    command->add_option("--output", arguments.output, "The file to write (default: study.yaml)");
    command->add_flag("--yes", arguments.yes,
                      "Ask nothing; use what was found for missing options");
    command->add_flag("--force", arguments.force, "Replace an existing file");
    return command;
}

CLI::App* add_bench_command(CLI::App& app, BenchArguments& arguments) {
    CLI::App* command = app.add_subcommand(
        "bench", "Load-test any OpenAI-compatible server: exit code 1 if the result is unsound");
    add_load_test(command, arguments);
    command
        ->add_option("--rate", arguments.rate, "Requests per second (open loop); inf: all at once")
        ->check(positive_number(true));
    command->add_option("--concurrency", arguments.concurrency, "Requests in flight (closed loop)")
        ->check(whole_number(1));
    command
        ->add_option("--duration", arguments.duration_seconds,
                     "Approximate length, such as 60s, instead of a number of requests")
        ->transform(seconds_or_unit());
    command
        ->add_option(
            "--warmup", arguments.warmup,
            "Least number of warm-up requests; 0: none (default: until the server is steady)")
        ->check(whole_number(0));
    command
        ->add_option("--sweep", arguments.sweep,
                     "Load-test each of these numbers in flight, such as 1,2,4,8")
        ->delimiter(',')
        ->check(positive_number());
    command
        ->add_option("--ttft-limit", arguments.ttft_limit_seconds,
                     "Limit of TTFT for goodput, such as 500ms")
        ->transform(seconds_or_unit());
    command
        ->add_option("--tpot-limit", arguments.tpot_limit_seconds,
                     "Limit of TPOT for goodput, such as 50ms")
        ->transform(seconds_or_unit());
    command
        ->add_option("--latency-limit", arguments.latency_limit_seconds,
                     "Limit of the whole latency for goodput, such as 2s")
        ->transform(seconds_or_unit());
    command->add_option(
        "--save", arguments.save,
        "Write the result: the JSON of vLLM's benchmark, with ours under \"servetune\"");
    command->add_flag("--detailed", arguments.detailed, "With --save: with every request");
    command->add_option(
        "--records", arguments.records,
        "Write every request with the times of its events: gzip-compressed JSON lines");
    command->add_option("--compare-with", arguments.compare_with,
                        "A result of any benchmark tool to print beside this one");
    command->add_flag("--json", arguments.json, "Print the JSON of --save instead of the report");
    return command;
}

CLI::App* add_capacity_command(CLI::App& app, CapacityArguments& arguments) {
    CLI::App* command = app.add_subcommand("capacity",
                                           "Find the highest load a server can sustain within "
                                           "limits: exit code 1 if the lowest load breaks them");
    add_load_test(command, arguments);
    command
        ->add_option("--limit", arguments.limits,
                     "A limit, such as 'ttft_p95 <= 500ms'; all must hold")
        ->allow_extra_args(false);
    command->add_flag("--concurrency", arguments.concurrency,
                      "Search the number of requests in flight (closed loop) instead of the rate");
    command
        ->add_option(
            "--from", arguments.from,
            "Lowest load to try (default: a fiftieth of what the server does; one in flight)")
        ->check(positive_number());
    command
        ->add_option("--to", arguments.to,
                     "Highest load, tried first (default: all requests at once)")
        ->check(positive_number());
    command
        ->add_option("--sweep", arguments.sweep,
                     "Measure these loads, such as 1,2,4,8, instead of searching")
        ->delimiter(',')
        ->check(positive_number());
    command->add_option("--save", arguments.save, "Write the JSON to this file");
    command->add_flag("--json", arguments.json, "Print one JSON object");
    return command;
}

int dispatch(int argc, char** argv) {
    CLI::App app{
        "autotune finds, on your own GPU, model and traffic, the launch flags that make an LLM "
        "serving engine fastest."};
    app.set_version_flag("--version", version_text());
    app.formatter(plain_help());
    app.footer(exit_codes_text());
    app.require_subcommand(1);

    app.add_subcommand("demo", "Show a simulated study in 15 s: needs no GPU, engine or network");
    bool doctor_json = false;
    app.add_subcommand("doctor",
                       "Check this machine: GPUs, engines, containers, ports, disks, permissions")
        ->add_flag("--json", doctor_json, "Print one JSON object");
    RunArguments run_arguments;
    CLI::App* run_command = add_study_command(
        app, "run", "Tune a study; resumes where an earlier run stopped", run_arguments);
    add_directory(run_command, run_arguments);
    run_command
        ->add_option("--trials", run_arguments.trials,
                     "Number of trials, instead of the study's budget")
        ->check(whole_number<std::int64_t>(1));
    run_command
        ->add_option("--learn-from", run_arguments.learn_from,
                     "Folder or journal of an earlier study, whose results bayesian believes until "
                     "measurements contradict them")
        ->allow_extra_args(false);
    run_command
        ->add_option("--suggest", run_arguments.suggest,
                     "YAML or JSON list of configurations: bayesian tries the most promising in at "
                     "most 3 of 10 trials")
        ->allow_extra_args(false);
    run_command->add_flag("--accept-changes", run_arguments.accept_changes,
                          "Resume although the study has changed since its journal was written");
    run_command->add_flag("--no-cache", run_arguments.no_cache,
                          "Neither look for this study in the cache nor add it");
    run_command->add_flag("--quiet", run_arguments.quiet, "Print no progress");
    run_command->add_flag("--json-lines", run_arguments.json_lines,
                          "Print one line of JSON per event on standard output");
    run_command->add_flag("--dry-run", run_arguments.dry_run,
                          "Print what would be done; start and write nothing");

    CLI::Option* run_view =
        run_command
            ->add_option("--view", run_arguments.view,
                         "Show the run in a browser at HOST:PORT (default: 127.0.0.1:8420)")
            ->expected(0, 1);
    run_command->add_option("--token-file", run_arguments.token_file, token_help)->needs(run_view);
    ServeArguments serve_arguments;
    add_serve_command(app, serve_arguments);
    ViewArguments view_arguments;
    CLI::App* view_command = add_study_command(
        app, "view", "Show a study in a browser, also while it runs; Ctrl-C ends it",
        view_arguments);
    add_directory(view_command, view_arguments);
    view_command->add_option("--address", view_arguments.address,
                             "HOST:PORT to listen on (default: 127.0.0.1:8420)");
    view_command->add_option("--token-file", view_arguments.token_file, token_help);

    WatchArguments watch_arguments;
    const CLI::App* watch_command = add_watch_command(app, watch_arguments);

    AskTellArguments ask_tell_arguments;
    CLI::App* ask_tell_command =
        app.add_subcommand("ask-tell",
                           "Let your own program measure: it asks and tells by JSON lines "
                           "(docs/reference/ask-tell.md)");
    ask_tell_command
        ->add_option(
            "SPACE", ask_tell_arguments.study,
            "The study's YAML file; only space, objective, strategy, budget and knowledge are used")
        ->required();
    add_strategy(ask_tell_command, ask_tell_arguments);
    ask_tell_command->add_option(
        "--directory", ask_tell_arguments.directory,
        "Keep the trials in this folder, and resume from there (default: not kept)");
    ask_tell_command->add_flag(
        "--accept-changes", ask_tell_arguments.accept_changes,
        "Resume although the study has changed since its journal was written");

    ValidateArguments validate_arguments;
    CLI::App* validate_command =
        add_study_command(app, "validate",
                          "Check a study and print its search space; starts no server, but runs "
                          "--help of installed engines",
                          validate_arguments);
    validate_command->add_flag("!--no-installed", validate_arguments.ask_installed,
                               "Do not look at installed engines and this machine");
    InitArguments init_arguments;
    add_init_command(app, init_arguments);
    StatusArguments status_arguments;
    CLI::App* status_command = add_study_command(
        app, "status", "Print the state of a study, also while it runs", status_arguments);
    add_directory(status_command, status_arguments);
    status_command->add_flag("--rescue", status_arguments.rescue,
                             "Copy the readable part of a damaged journal to study.rescued.db");
    ReportArguments report_arguments;
    CLI::App* report_command = add_study_command(
        app, "report", "Print the report of a study, also before its end", report_arguments);
    add_directory(report_command, report_arguments);
    CLI::Option* as_page = report_command->add_flag("--html", report_arguments.html,
                                                    "Print the report as an HTML page");
    CLI::Option* beside =
        report_command
            ->add_option("--beside", report_arguments.beside, "Compare with this other study")
            ->excludes(as_page);
    report_command
        ->add_option("--beside-directory", report_arguments.beside_directory,
                     "Folder of the other study (default: ./<study name>)")
        ->needs(beside);
    ExportArguments export_arguments;
    CLI::App* export_command =
        app.add_subcommand("export",
                           "Export a study: its trials as CSV table, JSON lines or Optuna storage, "
                           "or all of it as a record");
    export_command
        ->add_option("STUDY", export_arguments.study,
                     "The study's YAML file, or the folder or journal of its run")
        ->required();
    add_directory(export_command, export_arguments);
    export_command
        ->add_option("--as,--format", export_arguments.format,
                     "Format; optuna is an SQLite storage, record a folder that others can check")
        ->check(CLI::IsMember({"csv", "jsonl", "optuna", "record"}))
        ->capture_default_str();
    export_command->add_option(
        "--output", export_arguments.output,
        "The file to write (default: standard output); of a record, a new folder");
    RecommendArguments recommend_arguments;
    CLI::App* recommend_command = add_study_command(
        app, "recommend", "Print a file that starts the recommended configuration",
        recommend_arguments);
    add_directory(recommend_command, recommend_arguments);
    std::vector<std::string> kinds_of_files;
    for (const auto& [kind, name] : servetune::artefact_kinds) kinds_of_files.emplace_back(name);
    CLI::Option* recommend_kind =
        recommend_command->add_option("--as", recommend_arguments.as, "Kind of file")
            ->check(CLI::IsMember(kinds_of_files))
            ->capture_default_str();
    recommend_command->add_option("--output", recommend_arguments.output,
                                  "Write it and the files that it needs into this folder");
    recommend_command->add_option(
        "--host", recommend_arguments.host,
        "Address to listen on (default: 127.0.0.1, in containers 0.0.0.0)");
    recommend_command->add_option("--port", recommend_arguments.port, "Port to listen on")
        ->check(whole_number(1, 65535))
        ->capture_default_str();
    recommend_command->add_option("--image", recommend_arguments.image,
                                  "Container image (default: the study's)");
    recommend_command
        ->add_option("--gpus", recommend_arguments.gpus,
                     "Number of GPUs (default: as its layout takes); 0: request none")
        ->check(whole_number<std::int64_t>(0));
    CLI::Option* recommend_file = recommend_command->add_option(
        "--into", recommend_arguments.into,
        "Write it into this deploy file; print the diff and the text of a merge request");
    recommend_file->excludes(recommend_kind);
    CLI::Option* recommend_check = recommend_command->add_option(
        "--check", recommend_arguments.check,
        "Say whether this deploy file, or the server at this URL, has what is recommended");
    recommend_check->excludes(recommend_file)->excludes(recommend_kind);
    recommend_command
        ->add_option("--api-key-env", recommend_arguments.api_key_environment,
                     "Variable that holds that server's API key")
        ->needs(recommend_check);
    recommend_command->add_option(
        "--at", recommend_arguments.at,
        "Which command of that file: the name of a service or container, or a line");
    ExplainArguments explain_arguments;
    CLI::App* explain_command = add_study_command(
        app, "explain", "Explain what each parameter does, or why a trial was made",
        explain_arguments);
    add_directory(explain_command, explain_arguments);
    CLI::Option* explain_why_not =
        explain_command
            ->add_option("--why-not", explain_arguments.why_not,
                         "NAME=VALUE: why the recommendation does not have it")
            ->allow_extra_args(false);
    explain_command
        ->add_option("--trial", explain_arguments.trial,
                     "Explain this trial: what was expected of it when it was chosen")
        ->check(whole_number(0))
        ->excludes(explain_why_not);
    explain_command
        ->add_option("--learn-from", explain_arguments.learn_from, "The same as given to `run`")
        ->allow_extra_args(false);
    RenderArguments render_arguments;
    CLI::App* render_command =
        add_study_command(app, "render", "Print the command of a configuration", render_arguments);
    CLI::Option* render_set = render_command
                                  ->add_option("--set", render_arguments.settings,
                                               "NAME=VALUE; other parameters keep their defaults")
                                  ->allow_extra_args(false);
    CLI::Option* render_random =
        render_command
            ->add_option("--random", render_arguments.random,
                         "Print the commands of this many random configurations, one per line")
            ->check(whole_number(1))
            ->excludes(render_set);
    render_command
        ->add_option("--seed", render_arguments.seed,
                     "Seed of the random configurations (default: the study's)")
        ->check(whole_number(0))
        ->needs(render_random);

    CompareArguments compare_arguments;
    CLI::App* compare_command =
        app.add_subcommand("compare",
                           "Measure A against B in pairs until the better is known: exit code 1 if "
                           "B is worse, 6 if undecided");
    compare_command
        ->add_option("A", compare_arguments.study,
                     "A study's YAML file, whose default configuration is A")
        ->required();
    compare_command->add_option("B", compare_arguments.other,
                                "Another study's YAML file, whose default configuration is B");
    compare_command
        ->add_option("--set", compare_arguments.settings,
                     "NAME=VALUE: what B changes in A, instead of a second study")
        ->allow_extra_args(false);
    compare_command->add_option("--pairs", compare_arguments.pairs, "Largest number of pairs")
        ->check(whole_number(2))
        ->capture_default_str();
    compare_command
        ->add_option("--margin", compare_arguments.margin,
                     "Smaller differences count as none, as a share: 0.01 is 1 %")
        ->check(share())
        ->capture_default_str();
    compare_command->add_option("--directory", compare_arguments.directory,
                                "Folder of the journals (default: ./comparison)");
    compare_command->add_flag("--gate", compare_arguments.gate,
                              "Ask only whether the candidate B is worse than the baseline A by "
                              "the margin; writes gate.xml (JUnit) and gate.md");
    compare_command->add_flag("--json", compare_arguments.json, "Print one JSON object");
    compare_command->add_flag("--quiet", compare_arguments.quiet, "Print no progress");

    EnginesArguments engines_arguments;
    CLI::App* engines_command =
        app.add_subcommand("engines", "List the known engines, or one engine's parameters");
    engines_command->add_option("NAME", engines_arguments.name, "One engine");
    engines_command->add_flag("--json", engines_arguments.json, "Print JSON");

    SuggestArguments suggest_arguments;
    CLI::App* suggest_command = app.add_subcommand(
        "suggest", "Print the best known command for a model on a chip, without a trial");
    suggest_command
        ->add_option("MODEL", suggest_arguments.model, "Its name, or a file with its facts (.yaml)")
        ->required();
    suggest_command
        ->add_option("--hardware", suggest_arguments.hardware, "The chip, such as h100-sxm")
        ->required();
    suggest_command->add_option("--engine", suggest_arguments.engine, "The engine, such as vllm")
        ->required();
    suggest_command->add_flag("--json", suggest_arguments.json, "Print one JSON object");

    SimulateArguments simulate_arguments;
    CLI::App* simulate_command = add_study_command(
        app, "simulate",
        "Predict a study's best configurations with the cost model; nothing is measured",
        simulate_arguments);
    simulate_command->add_option("--hardware", simulate_arguments.hardware,
                                 "The chip, instead of the study's");
    simulate_command
        ->add_option("--configurations", simulate_arguments.configurations,
                     "Number of random configurations before the search climbs from the best")
        ->check(whole_number(1))
        ->capture_default_str();
    simulate_command
        ->add_option("--top", simulate_arguments.top, "Number of configurations to print")
        ->check(whole_number(1))
        ->capture_default_str();
    simulate_command
        ->add_option("--seed", simulate_arguments.seed, "Seed of the random configurations")
        ->check(whole_number(0))
        ->capture_default_str();

    FitArguments fit_arguments;
    simulate_command->add_option(
        "--fit", fit_arguments.table,
        "Fit the cost model to this table of measured results, and print the errors");
    simulate_command->add_option("--workload", fit_arguments.workload,
                                 "With --fit: use the rows of this workload only");
    simulate_command->add_option("--metric", fit_arguments.metrics,
                                 "With --fit: metrics to fit (default: the study's objective)");
    simulate_command->add_option(
        "--factor", fit_arguments.factors,
        "With --fit: factors to fit (default: compute_efficiency request_overhead_seconds)");
    simulate_command->add_option("--output", fit_arguments.output,
                                 "With --fit: the traits file to write");

    std::filesystem::path mcp_folder = ".";
    CLI::App* mcp_command = app.add_subcommand(
        "mcp", "Serve agents over standard input and output (Model Context Protocol)");
    mcp_command->add_option(
        "--directory", mcp_folder,
        "The only folder that agents read and write (default: the current one)");

    std::string schema_kind;
    CLI::App* schema_command =
        app.add_subcommand("schema",
                           "Print the JSON Schema of a kind of file: engine, workload, study, "
                           "preset, hardware, model, traits, recipes");
    schema_command->add_option("KIND", schema_kind, "The kind of file")->required();

    ImportArguments import_arguments;
    CLI::App* import_command =
        app.add_subcommand("import",
                           "Convert benchmark results into a table, or logs into a workload: exit "
                           "code 5 if a document has none");
    import_command
        ->add_option("DOCUMENT", import_arguments.documents,
                     "JSON or CSV of a benchmark tool (vLLM, SGLang, GuideLLM, llama-bench, "
                     "evalscope, InferenceX, ...: "
                     "docs/reference/result-formats.md); text or Markdown with printed results; a "
                     "table of your own, with --objective; "
                     "with --write-workload a log of requests (JSON Lines, CSV)")
        ->required();
    import_command->add_option("--study", import_arguments.study,
                               "The study whose parameters and workloads the rows use");
    import_command->add_option("--command", import_arguments.command,
                               "Command that started the engine, for results without one");
    import_command->add_option("--output", import_arguments.output,
                               "The CSV file to write (default: standard output)");
    CLI::Option* write_study = import_command->add_option(
        "--write-study", import_arguments.write_study,
        "Write a study that replays the results, and its table beside it");
    import_command
        ->add_option("--workload", import_arguments.workload,
                     "With --write-study: the workload to tune for, if there are several")
        ->needs(write_study);
    import_command
        ->add_option("--set", import_arguments.settings,
                     "With --write-study: [FILE:]NAME=VALUE for what results lack: model, "
                     "hardware, engine, version, a parameter")
        ->allow_extra_args(false)
        ->needs(write_study);
    CLI::Option* objective =
        import_command->add_option("--objective", import_arguments.objective,
                                   "For a CSV table of configurations: the column to tune for, "
                                   "also maximize:COLUMN or minimize:COLUMN");
    import_command
        ->add_option("--parameter", import_arguments.parameters,
                     "With --objective: the columns that are parameters (default: by their names "
                     "and values)")
        ->needs(objective);
    CLI::Option* write_workload = import_command->add_option(
        "--write-workload", import_arguments.write_workload,
        "Write the traffic in logs as a workload (.yaml) and a trace (.jsonl) of lengths, times "
        "and shared beginnings, without texts");
    import_command
        ->add_option("--window", import_arguments.window_seconds,
                     "With --write-workload: the busiest time that is taken (default: 10min)")
        ->transform(seconds_or_unit())
        ->needs(write_workload);
    import_command->add_option("--rest", import_arguments.rest,
                               "With --study: CSV file for results that the study does not know");
    import_command->add_flag("--json", import_arguments.json, "Print one JSON object");

    AuditArguments audit_arguments;
    CLI::App* audit_command =
        app.add_subcommand("audit",
                           "Check whether benchmark results are plausible: exit code 1 if one is "
                           "unsound, 5 if a file has none");
    audit_command
        ->add_option("FILE", audit_arguments.files,
                     "Results of any benchmark tool: JSON, CSV, text or Markdown with printed "
                     "results; or the folder of a record")
        ->required();
    audit_command->add_option(
        "--hardware", audit_arguments.hardware,
        "The chip, such as h100-sxm (default: the study's, or the one that FILE mentions)");
    audit_command->add_option("--model", audit_arguments.model,
                              "The model, if the results do not name it");
    audit_command->add_option("--study", audit_arguments.study,
                              "The study whose workloads, model and hardware were measured");
    audit_command->add_flag("--json", audit_arguments.json, "Print one JSON array");

    BenchArguments bench_arguments;
    add_bench_command(app, bench_arguments);
    CapacityArguments capacity_arguments;
    add_capacity_command(app, capacity_arguments);

    std::string shell;
    app.add_subcommand("completion",
                       "Print a completion script: source <(autotune completion bash)")
        ->add_option("SHELL", shell, "The shell")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    app.add_subcommand("man", "Print the manual page: autotune man | man -l -");

    for (CLI::App* command : app.get_subcommands({}))
        command->footer("Exit codes: autotune --help\n");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() != 0) {
            put_text(stderr, complaint_of(app, error,
                                          std::span<const char* const>(
                                              argv, static_cast<std::size_t>(argc))));
            return usage_error;
        }
        std::ostringstream out;
        app.exit(error, out, out);
        put_text(stdout, out.str());
        return done;
    }
    if (app.got_subcommand("run")) {
        if (run_view->count() > 0 && (!run_arguments.view || run_view->results().empty() ||
                                      run_view->results().front() == "true"))
            run_arguments.view = "";
        return run(run_arguments);
    }
    if (app.got_subcommand("demo")) return demo();
    if (app.got_subcommand("doctor")) return doctor(doctor_json);
    if (app.got_subcommand("serve")) return serve(serve_arguments);
    if (app.got_subcommand("view")) return view(view_arguments);
    if (watch_command->parsed()) return watch(watch_arguments);
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
        put(stdout, "{}",
            app.got_subcommand("man") ? manual_page(app) : completion_script(app, shell));
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
    if (app.got_subcommand("suggest")) return suggest(suggest_arguments);
    if (app.got_subcommand("audit")) return audit(audit_arguments);
    if (mcp_command->parsed()) return mcp(mcp_folder);
    return import_document(import_arguments);
}

}  // namespace

int main(int argc, char** argv) {
    occupy_standard_streams();
    int code = environment_error;
    secrets().add(servetune::secrets_of_environment());
    const servetune::CollectSecrets collecting(secrets());  // of all files that are read
    try {
        const auto of_client =
            launch_client(std::span<const char* const>(argv, static_cast<std::size_t>(argc)));
        code = of_client ? *of_client : dispatch(argc, argv);
    } catch (const servetune::Error& error) {
        complain("{}", complaint_of(error));
        code = usage_error;
    } catch (const std::exception& error) {
        // A failed print throws too: what is wrong with standard output is said below.
        if (std::ferror(stdout) == 0) complain("{}", complaint_of(error));
    }
    return with_output_written(code);
}
