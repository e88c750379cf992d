// SPDX-License-Identifier: Apache-2.0
#include "mcp_tool_table.hpp"


namespace autotune {
namespace {

using ToolWord = std::string_view;

constexpr std::array<ToolWord, 2> places_of_engines{"kubernetes", "ray"};
constexpr std::array<ToolWord, 10> artefact_words{"shell", "systemd", "compose", "slurm", "kubernetes", "llm-d", "kserve", "dynamo", "rayservice", "gpustack"};

constexpr ToolArgument study_argument{"study", Takes::file, "",
                                      "The study's YAML file, or the folder of its run", true};
constexpr ToolArgument directory_argument{"directory", Takes::file, "--directory",
                                          "The folder of the run (./<name of the study>)"};

constexpr std::array<ToolWord, 2> tool_init_words{"init", "--yes"};
constexpr std::array tool_init_arguments{
    ToolArgument{"output", Takes::file, "--output", "The file to write, such as study.yaml", true},
    ToolArgument{"engine", Takes::catalogued, "--engine",
                 "vllm, sglang, tensorrt-llm or llama.cpp (one that is installed)"},
    ToolArgument{"model", Takes::text, "--model", "A name on the hub, a folder or a file"},
    ToolArgument{"hardware", Takes::catalogued, "--hardware",
                 "The chip, such as h100-sxm (as nvidia-smi says)"},
    ToolArgument{"gpus", Takes::count, "--gpus", "How many; 0: serve from the CPU"},
    ToolArgument{"traffic", Takes::catalogued, "--traffic",
                 "chat, random, shared_prefix, multi_turn, sharegpt, or INPUTxOUTPUT tokens"},
    ToolArgument{"concurrency", Takes::count, "--concurrency", "Requests in flight"},
    ToolArgument{"goal", Takes::text, "--goal",
                 "throughput, latency, or throughput under a limit such as 'ttft_p95 < 2s'"},
    ToolArgument{"budget", Takes::text, "--budget", "When to end, such as '30 trials' or 8h"},
    ToolArgument{"attach", Takes::url, "--attach",
                 "A server of this machine that runs already: only its load is tuned"},
    ToolArgument{
        "as", Takes::choice, "--as",
        "Where engines start, if not here; a person sees to `pod.yaml`, or to Ray's address", false,
        places_of_engines},
    ToolArgument{"force", Takes::flag, "--force", "Replace the file"},
};

constexpr std::array<ToolWord, 2> tool_validate_words{"validate", "--json"};
constexpr std::array tool_validate_arguments{study_argument};

constexpr std::array<ToolWord, 2> tool_suggest_words{"suggest", "--json"};
constexpr std::array tool_suggest_arguments{
    ToolArgument{"model", Takes::model, "", "A name on the hub", true},
    ToolArgument{"hardware", Takes::catalogued, "--hardware", "The chip, such as h100-sxm", true},
    ToolArgument{"engine", Takes::catalogued, "--engine", "vllm, sglang, tensorrt-llm or llama.cpp",
                 true},
};

constexpr std::array<ToolWord, 3> tool_start_words{"run", "--quiet", "--json"};
constexpr std::array tool_start_arguments{
    study_argument,
    directory_argument,
    ToolArgument{"trials", Takes::count, "--trials", "How many, in place of the study's budget"},
    ToolArgument{"accept_changes", Takes::flag, "--accept-changes",
                 "Go on although the study's file was changed since"},
};

constexpr std::array tool_status_arguments{
    ToolArgument{"study", Takes::file, "", "The study's YAML file, or the folder of its run"},
    directory_argument,
    ToolArgument{"job", Takes::text, "",
                 "What `start`, `bench` or `compare` gave, in place of a study"},
};
constexpr std::array tool_stop_arguments{
    ToolArgument{"job", Takes::text, "", "What `start`, `bench` or `compare` gave", true}};
constexpr std::array<ToolWord, 2> tool_propose_words{"render", "--json"};
constexpr std::array tool_propose_arguments{
    study_argument,
    directory_argument,
    ToolArgument{"configuration", Takes::settings, "--set",
                 "Parameter -> value; the others keep their defaults", true},
};

constexpr std::array<ToolWord, 2> tool_explain_words{"explain", "--json"};
constexpr std::array tool_explain_arguments{
    study_argument, directory_argument,
    ToolArgument{"trial", Takes::count, "--trial",
                 "Why this trial was made; left out: what each parameter does"},
    ToolArgument{"why_not", Takes::settings, "--why-not",
                 "Parameter -> value: why the recommendation does not have it"}};

constexpr std::array<ToolWord, 2> tool_report_words{"report", "--json"};
constexpr std::array tool_report_arguments{study_argument, directory_argument};

constexpr std::array<ToolWord, 2> tool_recommend_words{"recommend", "--json"};
constexpr std::array tool_recommend_arguments{
    study_argument,
    directory_argument,
    ToolArgument{"as", Takes::choice, "--as", "The kind of file (shell)", false, artefact_words},
    ToolArgument{"host", Takes::text, "--host", "Address to listen on"},
    ToolArgument{"port", Takes::count, "--port", "Port to listen on"},
    ToolArgument{"image", Takes::text, "--image", "Container image, where the study has none"}};

constexpr std::array<ToolWord, 2> tool_audit_words{"audit", "--json"};
constexpr std::array tool_audit_arguments{
    ToolArgument{"files", Takes::files, "",
                 "Results of any benchmark tool: JSON, CSV, or text with printed results", true},
    ToolArgument{"hardware", Takes::catalogued, "--hardware", "The chip, such as h100-sxm"},
    ToolArgument{"model", Takes::text, "--model", "The model, where the results do not name it"},
    ToolArgument{"study", Takes::file, "--study",
                 "The study whose workloads, model and hardware were measured"},
};

constexpr std::array<ToolWord, 3> tool_bench_words{"bench", "--quiet", "--json"};
constexpr std::array tool_bench_arguments{
    ToolArgument{"url", Takes::url, "--url",
                 "A server of this machine, such as http://127.0.0.1:8000", true},
    ToolArgument{"model", Takes::text, "--model",
                 "Its name on the server (the only one that it serves)"},
    ToolArgument{"workload", Takes::catalogued, "--workload",
                 "A shipped workload, or random:INPUTxOUTPUT tokens (random:512x128)"},
    ToolArgument{"requests", Takes::count, "--requests", "How many"},
    ToolArgument{"concurrency", Takes::count, "--concurrency", "Requests in flight"},
    ToolArgument{"rate", Takes::number, "--rate", "Requests a second, in place of `concurrency`"},
    ToolArgument{"ignore_eos", Takes::flag, "--ignore-eos",
                 "Ask for exactly the workload's number of output tokens"},
    ToolArgument{"hardware", Takes::catalogued, "--hardware",
                 "The chip: the audit checks figures against its peaks"},
};

constexpr std::array<ToolWord, 3> tool_compare_words{"compare", "--quiet", "--json"};
constexpr std::array tool_compare_arguments{
    ToolArgument{"a", Takes::file, "", "A study, whose default configuration is A", true},
    ToolArgument{"b", Takes::file, "", "Another study, whose default configuration is B"},
    ToolArgument{"settings", Takes::settings, "--set",
                 "What B changes in A, in place of a second study: parameter -> value"},
    ToolArgument{"pairs", Takes::count, "--pairs", "The most pairs (10)"},
    ToolArgument{"margin", Takes::number, "--margin",
                 "Smaller differences count as none: 0.01 is 1 %"},
    directory_argument,
};

constexpr std::array all_tools{
    ToolEntry{"init",
              "Write a study (YAML) from answers; what is left out is found on this machine. Then "
              "call `validate`.",
              tool_init_words, tool_init_arguments, false, false, true},
    ToolEntry{"validate",
              "Check a study: errors with their place, the parameters that are searched, how long "
              "it will take, what is missing here.",
              tool_validate_words, tool_validate_arguments, true},
    ToolEntry{"suggest",
              "The best known command for a model on a chip, without a trial: a published recipe "
              "or a guess, with its source.",
              tool_suggest_words, tool_suggest_arguments, true},
    ToolEntry{"start",
              "Start a study, or go on with it: deploys and load-tests configurations, minutes of "
              "a GPU each. It ends in good "
              "order when "
              "this server ends, and `start` goes on; let a person run `autotune run` for a whole "
              "night. Ask `status` for news.",
              tool_start_words, tool_start_arguments, false, true},
    ToolEntry{"status",
              "What a study has found so far, whoever runs it, or how a job is doing. "
              "`wait_seconds` waits for its end. Without arguments: "
              "the studies of the folder.",
              {},
              tool_status_arguments,
              true,
              true},
    ToolEntry{"propose",
              "Suggest a configuration for a study; the search tries the most promising ones at "
              "the next `start`, and believes nothing "
              "unmeasured.",
              tool_propose_words, tool_propose_arguments},
    ToolEntry{"stop",
              "End a job of this server in good order. What was measured is kept.",
              {},
              tool_stop_arguments,
              false,
              false,
              true},
    ToolEntry{"explain",
              "What each parameter does to the goal, with intervals; or why one trial was made.",
              tool_explain_words, tool_explain_arguments, true},
    ToolEntry{"report",
              "The verdict of a study with its reasons, figures, intervals, failures and the "
              "command to serve with.",
              tool_report_words, tool_report_arguments, true},
    ToolEntry{"recommend",
              "The recommended configuration as a file: shell, systemd, compose, Kubernetes and "
              "others. Writes nothing.",
              tool_recommend_words, tool_recommend_arguments, true},
    ToolEntry{
        "audit",
        "Whether benchmark results of any tool can be true, with the identity that is broken.",
        tool_audit_words, tool_audit_arguments, true},
    ToolEntry{"bench", "Load-test a server of this machine, and audit the result.",
              tool_bench_words, tool_bench_arguments, false, true},
    ToolEntry{"compare", "Measure A against B in turns until the better is known, within a margin.",
              tool_compare_words, tool_compare_arguments, false, true},
};

}  // namespace

std::span<const ToolEntry> tool_table() { return all_tools; }

}  // namespace autotune
