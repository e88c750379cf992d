// SPDX-License-Identifier: Apache-2.0
#include "command_table.hpp"

#include "commands.hpp"
#include "help_forms.hpp"
#include "output.hpp"

#include "handover/artefact.hpp"
#include "servetune/study_file.hpp"
#include "study_file/schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <string_view>
#include <type_traits>

namespace autotune {
namespace {

using OptionRows = std::vector<OptionRow>;

constexpr std::uint64_t largest_seed = std::numeric_limits<std::uint64_t>::max();
constexpr OptionBounds seed_bounds{OptionBounds::Kind::integer, 0, largest_seed};
constexpr OptionBounds positive_bounds{OptionBounds::Kind::positive};
constexpr OptionBounds positive_or_inf_bounds{OptionBounds::Kind::positive_or_inf};
constexpr OptionBounds time_bounds{OptionBounds::Kind::time};
constexpr OptionBounds port_bounds{OptionBounds::Kind::integer, 1, 65535};
constexpr const char* token_help =
    "File with the token that readers must give (or SERVETUNE_TOKEN); required unless the address "
    "is the loopback";
constexpr const char* page_address = "127.0.0.1:8420";

OptionRows joined_rows(OptionRows first, OptionRows more) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
}

OptionRow study_row(StudyArguments& a) {
    return OptionRow("STUDY", &a.study,
                     "The study's YAML file, or the folder or journal of its run")
        .must();
}

OptionRow directory_row(StudyArguments& a) {
    return OptionRow("--directory", &a.directory,
                     "The folder of the run, for journal and report (default: ./<study name>)")
        .named("FOLDER");
}

OptionRow strategy_row(StudyArguments& a) {
    return OptionRow("--strategy", &a.strategy, "Search with this strategy instead of the study's")
        .of(servetune::strategy_names());
}

OptionRow json_row(bool& target, const char* help = "Print one JSON object") {
    return {"--json", &target, help};
}

OptionRow json_lines_row(bool& target) {
    return {"--json-lines", &target, "Print one line of JSON per event on standard output"};
}

OptionRow quiet_row(bool& target) { return {"--quiet", &target, "Print no progress"}; }

OptionRows plain_study(StudyArguments& a) {
    return {study_row(a), strategy_row(a), json_row(a.json)};
}

OptionRows study_with_folder(StudyArguments& a) {
    return joined_rows(plain_study(a), {directory_row(a)});
}

OptionRows run_options(RunArguments& a) {
    return joined_rows(
        study_with_folder(a),
        {{"--trials", &a.trials, "Number of trials, instead of the study's budget", at_least(1)},
         {"--learn-from", &a.learn_from,
          "Folder or journal of an earlier study, whose results bayesian believes until "
          "measurements contradict them"},
         {"--suggest", &a.suggest,
          "YAML or JSON list of configurations: bayesian tries the most promising in at most 3 of "
          "10 trials"},
         {"--accept-changes", &a.accept_changes,
          "Resume although the study has changed since its journal was written"},
         {"--no-cache", &a.no_cache, "Neither look for this study in the cache nor add it"},
         quiet_row(a.quiet),
         json_lines_row(a.json_lines),
         {"--dry-run", &a.dry_run, "Print what would be done; start and write nothing"},
         OptionRow("--view", &a.view, "Show the run in a browser (default address: 127.0.0.1:8420)")
             .named("HOST:PORT")
             .alone(page_address),
         OptionRow("--token-file", &a.token_file, token_help).with("--view")});
}

OptionRows init_options(InitArguments& a) {
    return {
        {"--engine", &a.engine, "The engine (default: one that is installed here)"},
        {"--model", &a.model, "The model: a name on the hub, a folder or a file"},
        {"--hardware", &a.hardware, "The chip, such as h100-sxm (default: as nvidia-smi says)"},
        {"--gpus", &a.gpus, "Number of GPUs; 0: the engine serves from a CPU", at_least(0)},
        {"--traffic", &a.traffic, "A workload's name or file, or INPUTxOUTPUT tokens"},
        {"--concurrency", &a.concurrency, "Requests in flight", at_least(1)},
        {"--goal", &a.goal,
         "throughput, latency, or throughput under a limit such as 'ttft_p95 < 2s'"},
        {"--budget", &a.budget, "When to stop, such as '30 trials' or 8h"},
        {"--attach", &a.attach, "URL of a running server: only its load is tuned"},
        OptionRow("--as", &a.as,
                  "Where engines start: kubernetes (also writes what runs the study there), ray")
            .of({"kubernetes", "ray"}),
        OptionRow("--image", &a.image,
                  "With --as: image of autotune with kubectl, as the cluster pulls it")
            .with("--as"),
        {"--output", &a.output, "The file to write"},
        {"--yes", &a.yes, "Ask nothing; use what was found for missing options"},
        {"--force", &a.force, "Replace an existing file"}};
}

OptionRows load_test_options(LoadTestArguments& a) {
    return {
        OptionRow("--url", &a.url, "The server, such as http://127.0.0.1:8000, with or without /v1")
            .must(),
        {"--replica", &a.replicas, "Another server of the same kind; requests are spread over all"},
        {"--model", &a.model,
         "The model's name on the server (default: the only one that it serves)"},
        {"--workload", &a.workload,
         "A shipped workload's name, a file, or random:INPUTxOUTPUT tokens"},
        {"--requests", &a.requests, "Number of requests", at_least(1)},
        {"--burstiness", &a.burstiness,
         "Shape of arrivals at a rate: 1 is Poisson, below 1 burstier, inf evenly spaced",
         positive_or_inf_bounds},
        {"--seed", &a.seed, "Seed of prompts and arrivals", seed_bounds},
        {"--salt", &a.salt,
         "Makes this run's prompts differ from others (default: new each run, so that no prefix "
         "cache answers)",
         seed_bounds},
        {"--ignore-eos", &a.ignore_eos, "Request exactly the workload's number of output tokens"},
        {"--completions", &a.completions, "Use /v1/completions instead of /v1/chat/completions"},
        {"--token-ids", &a.token_ids,
         "Send prompts as token ids, which makes lengths exact; implies --completions"},
        {"!--no-stream", &a.stream, "Request whole answers instead of a stream"},
        {"--api-key-env", &a.api_key_environment, "Environment variable that holds the API key"},
        {"--header", &a.headers, "NAME:VALUE, a header of every request"},
        {"--extra-body", &a.extra_body,
         "JSON object merged into every request, such as {\"temperature\": 0}"},
        OptionRow("--certificates", &a.certificates,
                  "File of certificate authorities to trust for https")
            .named("FILE"),
        {"--loops", &a.loops, "Threads that send requests", at_least(1)},
        {"--request-timeout", &a.request_timeout_seconds,
         "Seconds until a request without its whole answer has failed", positive_bounds},
        {"--stall-timeout", &a.stall_timeout_seconds,
         "Seconds until a request without a new event has failed", positive_bounds},
        {"--hardware", &a.hardware,
         "The chip, such as h100-sxm: the audit checks figures against its peaks"},
        {"--facts-of", &a.facts_of,
         "The model whose facts the audit uses, if the server uses another name"},
        {"--devices", &a.devices, "Number of accelerators that share one copy of the model",
         positive_bounds},
        quiet_row(a.quiet)};
}

OptionRows bench_options(BenchArguments& a) {
    return joined_rows(
        load_test_options(a),
        {{"--rate", &a.rate, "Requests per second (open loop); inf: all at once",
          positive_or_inf_bounds},
         {"--concurrency", &a.concurrency, "Requests in flight (closed loop)", at_least(1)},
         {"--duration", &a.duration_seconds,
          "Approximate length, such as 60s, instead of a number of requests", time_bounds},
         {"--warmup", &a.warmup,
          "Least number of warm-up requests; 0: none (default: until the server is steady)",
          at_least(0)},
         {"--ttft-limit", &a.ttft_limit_seconds, "Limit of TTFT for goodput, such as 500ms",
          time_bounds},
         {"--tpot-limit", &a.tpot_limit_seconds, "Limit of TPOT for goodput, such as 50ms",
          time_bounds},
         {"--latency-limit", &a.latency_limit_seconds,
          "Limit of the whole latency for goodput, such as 2s", time_bounds},
         {"--save", &a.save,
          "Write the result: the JSON of vLLM's benchmark, with ours under \"servetune\""},
         {"--detailed", &a.detailed, "With --save: with every request"},
         {"--records", &a.records,
          "Write every request with the times of its events: gzip-compressed JSON lines"},
         json_row(a.json, "Print the JSON of --save instead of the report")});
}

OptionRows capacity_options(CapacityArguments& a) {
    return joined_rows(
        load_test_options(a),
        {{"--limit", &a.limits, "A limit, such as 'ttft_p95 <= 500ms'; all must hold"},
         {"--concurrency", &a.concurrency,
          "Search the number of requests in flight (closed loop) instead of the rate"},
         {"--from", &a.from,
          "Lowest load to try (default: a fiftieth of what the server does; one in flight)",
          positive_bounds},
         {"--to", &a.to, "Highest load, tried first (default: all requests at once)",
          positive_bounds},
         OptionRow("--sweep", &a.sweep,
                   "Measure these loads, such as 1,2,4,8, instead of searching", positive_bounds)
             .with_commas(),
         {"--save", &a.save, "Write the JSON to this file"},
         json_row(a.json)});
}

OptionRows recommend_options(RecommendArguments& a) {
    return joined_rows(
        study_with_folder(a),
        {OptionRow("--as", &a.as, "Kind of file").of(servetune::artefact_kinds()),
         OptionRow("--output", &a.output, "Write it and the files that it needs into this folder")
             .named("FOLDER"),
         {"--host", &a.host, "Address to listen on (default: 127.0.0.1, in containers 0.0.0.0)"},
         {"--port", &a.port, "Port to listen on", port_bounds},
         {"--image", &a.image, "Container image (default: the study's)"},
         {"--gpus", &a.gpus, "Number of GPUs (default: as its layout takes); 0: request none",
          at_least(0)},
         OptionRow("--into", &a.into,
                   "Write it into this deploy file; print the diff and the text of a merge request")
             .without("--as"),
         OptionRow(
             "--check", &a.check,
             "Say whether this deploy file, or the server at this URL, has what is recommended")
             .without("--into,--as"),
         OptionRow("--api-key-env", &a.api_key_environment,
                   "Variable that holds that server's API key")
             .with("--check"),
         {"--at", &a.at,
          "Which command of that file: the name of a service or container, or a line"}});
}

OptionRows compare_options(CompareArguments& a) {
    return {
        OptionRow("A", &a.study, "A study's YAML file, whose default configuration is A").must(),
        {"B", &a.other, "Another study's YAML file, whose default configuration is B"},
        {"--set", &a.settings, "NAME=VALUE: what B changes in A, instead of a second study"},
        {"--pairs", &a.pairs, "Largest number of pairs", at_least(2)},
        {"--margin",
         &a.margin,
         "Smaller differences count as none, as a share: 0.01 is 1 %",
         {OptionBounds::Kind::share}},
        OptionRow("--directory", &a.directory, "Folder of the journals (default: ./comparison)")
            .named("FOLDER"),
        {"--gate", &a.gate,
         "Ask only whether the candidate B is worse than the baseline A by the margin; writes "
         "gate.xml (JUnit) and gate.md"},
        json_row(a.json),
        quiet_row(a.quiet)};
}

OptionRows import_options(ImportArguments& a) {
    return {
        OptionRow(
            "DOCUMENT", &a.documents,
            "JSON or CSV of a benchmark tool (vLLM, SGLang, GuideLLM, llama-bench, evalscope, "
            "InferenceX, ...: docs/reference/result-formats.md); text or Markdown with printed "
            "results; a table of your own, with --objective; with --write-workload a log of "
            "requests (JSON Lines, CSV)")
            .must(),
        {"--study", &a.study, "The study whose parameters and workloads the rows use"},
        {"--command", &a.command, "Command that started the engine, for results without one"},
        {"--output", &a.output, "The CSV file to write (default: standard output)"},
        {"--write-study", &a.write_study,
         "Write a study that replays the results, and its table beside it"},
        OptionRow("--workload", &a.workload,
                  "With --write-study: the workload to tune for, if there are several")
            .with("--write-study"),
        OptionRow("--set", &a.settings,
                  "With --write-study: [FILE:]NAME=VALUE for what results lack: model, hardware, "
                  "engine, version, a parameter")
            .with("--write-study"),
        {"--objective", &a.objective,
         "For a CSV table of configurations: the column to tune for, also maximize:COLUMN or "
         "minimize:COLUMN"},
        OptionRow(
            "--parameter", &a.parameters,
            "With --objective: a column that is a parameter (default: by their names and values)")
            .with("--objective"),
        {"--write-workload", &a.write_workload,
         "Write the traffic in logs as a workload (.yaml) and a trace (.jsonl) of lengths, times "
         "and shared beginnings, without texts"},
        OptionRow("--window", &a.window_seconds,
                  "With --write-workload: the busiest time that is taken (default: 10min)",
                  time_bounds)
            .with("--write-workload"),
        {"--rest", &a.rest, "With --study: CSV file for results that the study does not know"},
        json_row(a.json)};
}

/// `simulate`, and with `--fit` the same study's cost model against a table.
struct PredictArguments {
    SimulateArguments simulate{};
    FitArguments fit{};
};

int predict(const PredictArguments& a) {
    if (a.fit.table.empty()) return simulate(a.simulate);
    FitArguments fit = a.fit;
    static_cast<StudyArguments&>(fit) = a.simulate;
    return fit_table(fit);
}

OptionRows predict_options(PredictArguments& a) {
    return joined_rows(
        plain_study(a.simulate),
        {{"--hardware", &a.simulate.hardware, "The chip, instead of the study's"},
         {"--configurations", &a.simulate.configurations,
          "Number of random configurations before the search climbs from the best", at_least(1)},
         {"--top", &a.simulate.top, "Number of configurations to print", at_least(1)},
         {"--fit", &a.fit.table,
          "Fit the cost model to this table of measured results, and print the errors"},
         {"--workload", &a.fit.workload, "With --fit: use the rows of this workload only"},
         {"--metric", &a.fit.metrics,
          "With --fit: a metric to fit (default: the study's objective)"},
         {"--factor", &a.fit.factors,
          "With --fit: a factor to fit (default: compute_efficiency, request_overhead_seconds)"},
         {"--output", &a.fit.output, "With --fit: the traits file to write"}});
}

/// A command whose arguments are made, described by `rows`, and given to `run`.
template <class Arguments>
CommandRow command_row(const char* name, const char* group, const char* what,
                       int (*run)(const Arguments&),
                       std::type_identity_t<OptionRows (*)(Arguments&)> rows) {
    const auto arguments = std::make_shared<Arguments>();
    return {name, group, what, rows(*arguments), [=] { return run(*arguments); }};
}

struct Gone {
    std::string_view command, option, instead;
};

/// What earlier versions had. An empty command: any.
constexpr std::array gone_words{
    Gone{"", "--serve", "the page of a run is --view now"},
    Gone{"", "--token-file", "the page is `autotune view` now"},
    Gone{"serve", "--hangs-after", "a unit of systemd or a compose file can check its health"},
    Gone{"watch", "--metrics", "packaging/grafana/alerts.yaml has rules for Prometheus"},
    Gone{"bench", "--no-usage", "a server that counts no tokens is noticed"},
    Gone{"bench", "--sweep", "`autotune capacity --concurrency --sweep` measures several loads"},
    Gone{"bench", "--compare-with", "`autotune audit` takes several results"},
    Gone{"report", "--beside-directory", "--beside takes the folder too"},
    Gone{"recommend", "--nodes", "an engine stays on one machine"},
};

}  // namespace

std::string instead_of(const std::string& command, const std::string& option) {
    for (const Gone& one : gone_words)
        if (one.option == option && (one.command.empty() || one.command == command))
            return std::string(one.instead);
    return "";
}

std::vector<CommandRow> commands() {
    constexpr const char* begin = "Begin";
    constexpr const char* tune = "Tune";
    constexpr const char* use = "Use what was found";
    constexpr const char* load = "Load-test servers, check results";
    constexpr const char* know = "Know without measuring";
    constexpr const char* shell = "Shell";
    return {
        {"demo",
         begin,
         "Show a simulated study in 15 s: needs no GPU, engine or network",
         {},
         demo},
        command_row<DoctorArguments>(
            "doctor", begin,
            "Check this machine: GPUs, engines, containers, ports, disks, permissions",
            [](const DoctorArguments& a) { return doctor(a.json); },
            [](auto& a) { return OptionRows{json_row(a.json)}; }),
        command_row("init", begin,
                    "Write a study: asks five questions, or takes the answers as options", init,
                    init_options),
        command_row(
            "validate", begin,
            "Check a study and print its search space; starts no server, but runs --help of "
            "installed engines",
            validate,
            [](auto& a) {
                return joined_rows(plain_study(a),
                                   {{"!--no-installed", &a.ask_installed,
                                     "Do not look at installed engines and this machine"}});
            }),
        command_row("run", tune, "Tune a study; resumes where an earlier run stopped", run,
                    run_options),
        command_row("status", tune, "Print the state of a study, also while it runs", status,
                    [](auto& a) {
                        return joined_rows(
                            study_with_folder(a),
                            {{"--rescue", &a.rescue,
                              "Copy the readable part of a damaged journal to study.rescued.db"}});
                    }),
        command_row(
            "view", tune, "Show a study in a browser, also while it runs; Ctrl-C ends it", view,
            [](auto& a) {
                return joined_rows(
                    study_with_folder(a),
                    {OptionRow("--address", &a.address, "Where to listen (default: 127.0.0.1:8420)")
                         .named("HOST:PORT"),
                     {"--token-file", &a.token_file, token_help}});
            }),
        command_row("report", tune, "Print the report of a study, also before its end", report,
                    [](auto& a) {
                        return joined_rows(
                            study_with_folder(a),
                            {{"--html", &a.html, "Print the report as an HTML page"},
                             OptionRow("--beside", &a.beside,
                                       "Compare with this other study: its file, folder or journal")
                                 .without("--html")});
                    }),
        command_row(
            "explain", tune, "Explain what each parameter does, or why a trial was made", explain,
            [](auto& a) {
                return joined_rows(
                    study_with_folder(a),
                    {{"--why-not", &a.why_not,
                      "NAME=VALUE: why the recommendation does not have it"},
                     OptionRow("--trial", &a.trial,
                               "Explain this trial: what was expected of it when it was chosen",
                               at_least(0))
                         .without("--why-not"),
                     {"--learn-from", &a.learn_from, "The same as given to `run`"}});
            }),
        command_row(
            "ask-tell", tune,
            "Let your own program measure: it asks and tells by JSON lines "
            "(docs/reference/your-own-program.md)",
            ask_tell,
            [](auto& a) {
                return OptionRows{
                    OptionRow("SPACE", &a.study,
                              "The study's YAML file; only space, objective, strategy, budget and "
                              "knowledge are used")
                        .must(),
                    strategy_row(a),
                    OptionRow("--directory", &a.directory,
                              "Keep the trials in this folder, and resume from there (default: "
                              "not kept)")
                        .named("FOLDER"),
                    {"--accept-changes", &a.accept_changes,
                     "Resume although the study has changed since its journal was written"}};
            }),
        command_row("compare", tune,
                    "Measure A against B in pairs until the better is known: exit code 1 if B is "
                    "worse, 6 if undecided",
                    compare, compare_options),
        command_row("recommend", use, "Print a file that starts the recommended configuration",
                    recommend_as, recommend_options),
        command_row(
            "serve", use, "Start what a study recommends, again when it falls; Ctrl-C ends it",
            serve,
            [](auto& a) {
                return OptionRows{
                    study_row(a),
                    directory_row(a),
                    OptionRow("--host", &a.host,
                              "Address to listen on; 0.0.0.0 is for other machines too")
                        .of({"127.0.0.1", "0.0.0.0"}),
                    {"--port", &a.port, "Port to listen on", port_bounds},
                    {"--restarts",
                     &a.restarts,
                     "How often it is started again before it is given up (exit code 3); an hour "
                     "of service makes up for one",
                     {OptionBounds::Kind::integer, 0, 1000}}};
            }),
        command_row(
            "watch", use,
            "Read a server's metrics page: exit code 1 if its traffic or speed is not the "
            "study's any more, 6 if that is open",
            watch,
            [](auto& a) {
                return OptionRows{
                    study_row(a),
                    directory_row(a),
                    OptionRow("--url", &a.url, "The server, such as http://127.0.0.1:8000").must(),
                    {"--interval", &a.interval_seconds, "Time between two readings, such as 30s",
                     time_bounds},
                    {"--for", &a.for_seconds, "How long, such as 12h or 7d (default: 20 intervals)",
                     time_bounds},
                    OptionRow("--once", &a.once, "Print what one interval shows, with exit code 0")
                        .without("--for"),
                    json_lines_row(a.json_lines),
                    {"--api-key-env", &a.api_key_environment,
                     "Environment variable that holds the page's API key"}};
            }),
        command_row(
            "export", use,
            "Export a study: its trials as CSV table, JSON lines or Optuna storage, or all of "
            "it as a record",
            export_trials,
            [](auto& a) {
                return OptionRows{
                    study_row(a),
                    directory_row(a),
                    OptionRow("--as,--format", &a.format,
                              "Format; optuna is an SQLite storage, record a folder that others "
                              "can check")
                        .of({"csv", "jsonl", "optuna", "record"}),
                    {"--output", &a.output,
                     "The file to write (default: standard output); of a record, a new "
                     "folder"}};
            }),
        command_row(
            "render", use, "Print the command of a configuration", render,
            [](auto& a) {
                return joined_rows(
                    plain_study(a),
                    {{"--set", &a.settings, "NAME=VALUE; other parameters keep their defaults"},
                     OptionRow("--random", &a.random,
                               "Print the commands of this many random configurations, one per "
                               "line",
                               at_least(1))
                         .without("--set"),
                     OptionRow("--seed", &a.seed,
                               "Seed of the random configurations (default: the study's)",
                               seed_bounds)
                         .with("--random")});
            }),
        command_row<McpArguments>(
            "mcp", use, "Serve agents over standard input and output (Model Context Protocol)",
            [](const McpArguments& a) { return mcp(a.directory); },
            [](auto& a) {
                return OptionRows{OptionRow("--directory", &a.directory,
                                            "The only folder that agents read and write")
                                      .named("FOLDER")};
            }),
        command_row("bench", load,
                    "Load-test any OpenAI-compatible server: exit code 1 if the result is unsound",
                    bench, bench_options),
        command_row("capacity", load,
                    "Find the highest load a server can sustain within limits: exit code 1 if the "
                    "lowest load breaks them",
                    capacity, capacity_options),
        command_row(
            "audit", load,
            "Check whether benchmark results are plausible: exit code 1 if one is unsound, 5 "
            "if a file has none",
            audit,
            [](auto& a) {
                return OptionRows{
                    OptionRow("FILE", &a.files,
                              "Results of any benchmark tool: JSON, CSV, text or Markdown with "
                              "printed results; or the folder of a record")
                        .must(),
                    {"--hardware", &a.hardware,
                     "The chip, such as h100-sxm (default: the study's, or the one that FILE "
                     "mentions)"},
                    {"--model", &a.model, "The model, if the results do not name it"},
                    {"--study", &a.study,
                     "The study whose workloads, model and hardware were measured"},
                    json_row(a.json, "Print one JSON array")};
            }),
        command_row(
            "import", load,
            "Convert benchmark results into a table, or logs into a workload: exit code 5 if a "
            "document has none",
            import_document, import_options),
        command_row(
            "suggest", know, "Print the best known command for a model on a chip, without a trial",
            suggest,
            [](auto& a) {
                return OptionRows{
                    OptionRow("MODEL", &a.model, "Its name, or a file with its facts (.yaml)")
                        .must(),
                    OptionRow("--hardware", &a.hardware, "The chip, such as h100-sxm").must(),
                    OptionRow("--engine", &a.engine, "The engine, such as vllm").must(),
                    json_row(a.json)};
            }),
        command_row(
            "simulate", know,
            "Predict a study's best configurations with the cost model; nothing is measured",
            predict, predict_options),
        command_row(
            "engines", know, "List the known engines, or one engine's parameters", engines,
            [](auto& a) {
                return OptionRows{{"NAME", &a.name, "One engine"}, json_row(a.json, "Print JSON")};
            }),
        command_row<std::string>(
            "schema", know,
            "Print the JSON Schema of a kind of file: engine, workload, study, preset, hardware, "
            "model, traits, recipes",
            [](const std::string& kind) {
                put(stdout, "{}", servetune::schema_text(kind));
                return int{done};
            },
            [](auto& kind) {
                return OptionRows{OptionRow("KIND", &kind, "The kind of file").must()};
            }),
        command_row<std::string>(
            "completion", shell, "Print a completion script: source <(autotune completion bash)",
            [](const std::string& name) {
                put(stdout, "{}", completion_script(name));
                return int{done};
            },
            [](auto& name) {
                return OptionRows{
                    OptionRow("SHELL", &name, "The shell").must().of({"bash", "zsh", "fish"})};
            }),
        command_row<bool>(
            "man", shell, "Print the manual page: autotune man | man -l -",
            [](const bool& markdown) {
                put(stdout, "{}", markdown ? markdown_page(commands()) : manual_page(commands()));
                return int{done};
            },
            [](auto& markdown) {
                return OptionRows{{"--markdown", &markdown,
                                   "The options of each command, as docs/reference/commands.md has "
                                   "them"}};
            }),
    };
}

std::vector<std::string> OptionRow::spellings() const {
    std::vector<std::string> result;
    if (by_place()) return result;
    const std::string_view all = std::string_view(names).substr(names.front() == '!' ? 1 : 0);
    for (std::size_t begin = 0; begin <= all.size();) {
        const std::size_t end = std::min(all.find(',', begin), all.size());
        result.emplace_back(all.substr(begin, end - begin));
        begin = end + 1;
    }
    return result;
}

bool OptionRow::takes_several() const {
    return std::visit(
        [](auto* to) {
            using Value = std::remove_pointer_t<decltype(to)>;
            return std::is_same_v<Value, std::vector<std::string>> ||
                   std::is_same_v<Value, std::vector<double>> ||
                   std::is_same_v<Value, std::vector<std::filesystem::path>>;
        },
        target);
}

std::string OptionRow::value_text() const {
    if (!takes_value()) return "";
    std::string text = value;
    if (text.empty() && !words.empty()) text = fmt::format("{}", fmt::join(words, "|"));
    const bool is_file = std::holds_alternative<std::filesystem::path*>(target) ||
                         std::holds_alternative<std::optional<std::filesystem::path>*>(target) ||
                         std::holds_alternative<std::vector<std::filesystem::path>*>(target);
    if (text.empty())
        text = bounds.kind == OptionBounds::Kind::time      ? "TIME"
               : bounds.kind == OptionBounds::Kind::integer ? "N"
               : bounds.kind != OptionBounds::Kind::any     ? "NUMBER"
               : is_file                                    ? "FILE"
                                                            : "VALUE";
    if (list) text += ",...";
    return if_alone ? "[" + text + "]" : text;
}

std::string OptionRow::described() const {
    std::string text = help;
    constexpr std::uint64_t worth_saying = 1'000'000;
    if (bounds.kind == OptionBounds::Kind::integer && bounds.most < worth_saying)
        text += fmt::format(", {} to {}", bounds.least, bounds.most);
    if (bounds.kind == OptionBounds::Kind::share) text += ", 0 to 1";
    const std::string usual = std::visit(
        [](auto* to) -> std::string {
            using Value = std::remove_pointer_t<decltype(to)>;
            if constexpr (std::is_same_v<Value, std::string>) return *to;
            else if constexpr (std::is_same_v<Value, std::filesystem::path>) return to->string();
            else if constexpr (std::is_same_v<Value, bool> || !std::is_arithmetic_v<Value>)
                return "";
            else return *to == Value{} ? "" : fmt::format("{}", *to);
        },
        target);
    if (!usual.empty())
        text += " (default: " + usual + (bounds.kind == OptionBounds::Kind::time ? "s)" : ")");
    if (!by_place() && takes_several() && !list) text += " (can be repeated)";
    if (required && !by_place()) text += " (required)";
    return text;
}

namespace {

/// A number and nothing else; nothing: it is none.
std::optional<double> whole_text_as_number(std::string_view text) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// The seconds of `500ms`, `2 s`, `2`; nothing: none. Writes whether it has a unit.
std::optional<double> seconds_of(std::string_view text, bool& has_unit) {
    constexpr std::array<std::pair<std::string_view, double>, 5> units{
        {{"ms", 1e-3}, {"min", 60.0}, {"s", 1.0}, {"h", 3600.0}, {"d", 86400.0}}};
    for (const auto& [unit, seconds] : units) {
        if (text.size() <= unit.size() || !text.ends_with(unit)) continue;
        has_unit = true;
        text.remove_suffix(unit.size());
        while (text.ends_with(' ')) text.remove_suffix(1);
        const auto value = whole_text_as_number(text);
        return value ? std::optional(*value * seconds) : value;
    }
    return whole_text_as_number(text);
}

}  // namespace

std::string OptionBounds::why_wrong(std::string& text) const {
    const auto wanted = [&](const std::string& what) {
        return what + " wanted, got '" + text + "'";
    };
    if (kind == Kind::any) return "";
    if (kind == Kind::integer) {
        std::uint64_t value = 0;
        const char* const last = text.data() + text.size();
        const auto [end, error] = std::from_chars(text.data(), last, value);
        const bool whole = end == last && !text.empty();
        if (error == std::errc() && whole && value >= least && value <= most) return "";
        const bool bounded = most < static_cast<std::uint64_t>(std::numeric_limits<int>::max());
        const bool too_large =
            whole && !bounded &&
            (error == std::errc::result_out_of_range || (error == std::errc() && value > most));
        return wanted(bounded ? fmt::format("an integer from {} to {}", least, most)
                              : fmt::format("an integer of at least {}", least)) +
               (too_large ? ", which is too large" : "");
    }
    if (kind == Kind::time) {
        constexpr double needs_unit_from = 60;
        bool has_unit = false;
        const auto seconds = seconds_of(text, has_unit);
        if (!seconds || !(*seconds > 0) || !std::isfinite(*seconds))
            return wanted("seconds, or a time such as 500ms,");
        if (!has_unit && *seconds >= needs_unit_from)
            return "say the unit: " + text + "ms or " + text + "s";
        text = fmt::format("{}", *seconds);
        return "";
    }
    const auto value = whole_text_as_number(text);
    if (kind == Kind::share)
        return value && *value >= 0 && *value <= 1 ? "" : wanted("a share from 0 to 1");
    const bool or_inf = kind == Kind::positive_or_inf;
    const bool fine = value && *value > 0 && (std::isfinite(*value) || (or_inf && text == "inf"));
    return fine ? "" : wanted(or_inf ? "a number above 0, or inf," : "a number above 0");
}

}  // namespace autotune
