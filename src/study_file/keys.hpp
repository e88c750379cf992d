// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every key of the kinds of file: what the readers accept, and what search_spaces/FORMAT.md documents (a test
// compares the two). A key of a mapping with free names (parameters, counters) is not listed.

#include "servetune/io/yaml.hpp"

#include <array>

namespace servetune::keys {

inline constexpr std::array engine{
    Key{"engine", "text", "the engine's name", true},
    Key{"versions", "text", "the versions this file was checked for"},
    Key{"launch", "list of words", "the command, with {model}, {host} and {port}", true},
    Key{"started_as", "list of lists of words",
        "other words that its commands begin with, for the audit of commands that people wrote (those of `launch`)"},
    Key{"aliases", "mapping of text",
        "other spelling of a flag -> the parameter it sets, or {model}; for the audit, beside the spellings in the versions files"},
    Key{"help", "list of lists of words",
        "behind the program, what makes it list its flags: tried in turn until all are there ([[--help]])"},
    Key{"flag_style", "equals | separate", "how a flag takes its value: --flag=value or --flag value"},
    Key{"options_flag", "text", "the flag that takes the engine's options file"},
    Key{"ready", "mapping", "how the engine says that it serves"},
    Key{"api", "mapping", "style and paths of its HTTP interface (OpenAI's)"},
    Key{"reported_as", "mapping of text",
        "flag -> its name in the answer of `server_info` (the flag without its dashes in front, `_` for `-`)"},
    Key{"between_runs", "list", "what to POST so that one run does not serve the next from its cache"},
    Key{"counters", "mapping of text", "where its own counters are and what they are called"},
    Key{"failures", "list", "how the log of a dead engine is read"},
    Key{"parameters", "mapping", "name -> parameter", true},
    Key{"render", "list", "parameters that make one flag together"},
    Key{"constraints", "list", "rules that every configuration keeps"},
    Key{"architectures", "list of text", "chips that it runs on (any)"},
    Key{"devices", "list", "parameters whose product is the number of devices that a configuration takes"},
};
inline constexpr std::array device_factor{
    Key{"parameter", "text", "a parameter that multiplies the number of devices", true},
    Key{"unless", "mapping", "parameter -> value or values; where all hold, it shares devices that are counted already"},
};
inline constexpr std::array ready{
    Key{"http_get", "path", "answers 200 once the engine serves", true},
    Key{"within", "duration", "after that the trial has failed: not_ready_in_time", true},
};
inline constexpr std::array api{
    Key{"style", "openai", "form of requests and answers (openai)"},
    Key{"chat", "path", "where answers of a chat are asked for (/v1/chat/completions)"},
    Key{"completions", "path", "where completions are, asked for where `chat` is not given (/v1/completions)"},
    Key{"models", "path", "answers {\"data\": [{\"id\": NAME}, ...]}; 404, 405 or 501: there is no such list (/v1/models)"},
    Key{"server_info", "path", "answers a JSON object with the values of the flags that are in force (not asked)"},
};
inline constexpr std::array between_runs{
    Key{"http_post", "path", "what to POST", true},
    Key{"needs_env", "mapping of text", "environment the engine must be started with for it"},
};
inline constexpr std::array failure{
    Key{"kind", "failure kind", "what such a trial is called", true},
    Key{"match", "list of text", "the first line of the log that contains one of these decides", true},
};
inline constexpr std::array parameter{
    Key{"bool", "{}", "true or false"},
    Key{"int", "{low, high, step, scale}", "an integer range"},
    Key{"real", "{low, high, scale}", "a real interval"},
    Key{"choice", "list of values", "one of these; `engine` among them: passing no flag is a level too"},
    Key{"text", "{}", "any text, such as a path: fixed by a study, never searched"},
    Key{"ordered", "bool", "of a choice: the list goes from less to more"},
    Key{"default", "value", "`engine`: pass no flag; a value: what the engine does by itself"},
    Key{"engine_default", "value", "what the engine uses when no flag is passed, where known"},
    Key{"when", "mapping", "parent -> value or values; all must hold, or the parameter is inactive"},
    Key{"flag", "text", "the flag; of a bool: passed when true"},
    Key{"off_flag", "text", "of a bool: passed when false"},
    Key{"env", "text", "an environment variable instead of a flag"},
    Key{"option", "dotted path", "a place in the engine's options file instead of a flag"},
    Key{"earlier", "mapping", "how it is passed in earlier versions"},
    Key{"concept", "text", "the idea it shares with parameters of other engines"},
    Key{"grows_memory", "bool", "more of it never takes less of the device's memory, all else equal"},
    Key{"doc", "text", "one sentence: what it trades"},
    Key{"source", "text", "where flag, values and default were checked"},
    Key{"since", "version", "first version that has it"},
    Key{"until", "version", "last version that has it"},
    Key{"values_since", "version -> list", "values of a choice that came with a version"},
    Key{"values_until", "version -> list", "values of a choice last seen in a version"},
    Key{"architectures", "value -> list", "of a choice: the chips that take a value (all)"},
    Key{"checkpoints", "mapping of text", "in a study: value -> model to serve instead of passing the flag"},
    Key{"drafts", "mapping of text", "in a study, of the method of speculation: value -> the draft model it works with"},
};
inline constexpr std::array earlier{
    Key{"until", "version", "last version in which it is so", true},
    Key{"flag", "text", "the flag then"},
    Key{"off_flag", "text", "of a bool, then"},
    Key{"env", "text", "the environment variable then"},
    Key{"option", "dotted path", "the place in the options file then"},
};
inline constexpr std::array range{
    Key{"low", "number", "smallest, included", true},
    Key{"high", "number", "largest, included when a step lands on it", true},
    Key{"step", "integer", "of an int: distance of its values (1)"},
    Key{"scale", "linear | log | log2", "log: ratios count; log2: only low, 2 low, 4 low, ..."},
};
inline constexpr std::array render{
    Key{"flag", "text", "the flag", true},
    Key{"json", "mapping", "JSON key -> {parameter}", true},
    Key{"when", "mapping", "as of a parameter; else the flag is not passed"},
};
inline constexpr std::array constraint{
    Key{"require", "expression", "must be true (or unknown)"},
    Key{"forbid", "mapping", "parameter -> value or values that must not come together"},
    Key{"because", "text", "why; shown when it is broken"},
};
inline constexpr std::array dataset{
    Key{"kind", "random | sharegpt | trace | prompts | shared_prefix | multi_turn", "where the prompts come from", true},
    Key{"path", "file", "of sharegpt, trace, prompts; beside the file it stands in, else in the current folder"},
    Key{"input_tokens", "integer", "per prompt; shared_prefix: behind the prefix; multi_turn: per turn"},
    Key{"output_tokens", "integer", "per answer; sharegpt, trace, prompts: instead of what the file says"},
    Key{"range_ratio", "number in [0, 1]", "random: lengths vary uniformly by this share"},
    Key{"min_tokens", "integer", "sharegpt: shorter prompts and answers are left out"},
    Key{"max_prompt_tokens", "integer", "sharegpt: longer prompts are left out"},
    Key{"max_total_tokens", "integer", "sharegpt: longer pairs are left out"},
    Key{"prefix_tokens", "integer", "shared_prefix: length of what a group shares"},
    Key{"prefix_groups", "integer", "shared_prefix: number of groups"},
    Key{"turns", "integer", "multi_turn: requests of one conversation"},
};
inline constexpr std::array arrival{
    Key{"rate", "number | inf", "requests per second; inf: all at once"},
    Key{"burstiness", "number | inf", "of a rate or ramp: 1 is Poisson, less is burstier, inf an even pace"},
    Key{"concurrency", "integer", "that many requests in flight, a new one for each that ends"},
    Key{"trace", "timestamps", "as the data set's time stamps say"},
    Key{"ramp", "{from, to}", "requests per second, changing evenly in time"},
};
inline constexpr std::array ramp{Key{"from", "number", "requests per second at the start", true}, Key{"to", "number", "at the end", true}};
inline constexpr std::array workload{
    Key{"workload", "text", "its name"},
    Key{"use", "name or file", "start from this workload; the keys here replace its own"},
    Key{"dataset", "mapping", "where the prompts come from"},
    Key{"requests", "integer", "how many"},
    Key{"arrival", "mapping", "when they are sent (all at once)"},
    Key{"seed", "integer", "of everything random in it (42)"},
    Key{"ignore_eos", "bool", "every answer has exactly the tokens asked for"},
    Key{"weight", "number", "in the combined metrics of several workloads (1)"},
    Key{"printed_as", "text or list of text", "what a published document calls it, for `autotune import`"},
    Key{"input_tokens", "integer", "with use: the data set's"},
    Key{"output_tokens", "integer", "with use: the data set's"},
};
inline constexpr std::array study{
    Key{"study", "text", "its name, and its folder's", true},
    Key{"use", "file", "start from this study; the keys here replace its own, those under `space` one by one"},
    Key{"model", "text", "what is served", true},
    Key{"hardware", "text or mapping", "what it runs on, such as h100-sxm, or {device, count}"},
    Key{"machine", "mapping", "the same, and how many there are; layouts of more devices are refused"},
    Key{"engine", "name or file", "the engine"},
    Key{"engines", "list", "several: the engine becomes a parameter, the first is the default"},
    Key{"engine_versions", "mapping of text", "engine -> version; its flags are those of that version (the newest known)"},
    Key{"workloads", "list", "names, files or mappings", true},
    Key{"report_workloads", "list", "measured for the default and the recommendation only"},
    Key{"objective", "mapping", "what for", true},
    Key{"space", "mapping", "parameter -> fixed value, or what it is narrowed to"},
    Key{"load", "mapping", "levels of load to search: how much the server bears within the limits"},
    Key{"preset", "name or file", "what is searched, from presets/; the keys under `space` replace its own, and `others` becomes default"},
    Key{"others", "search | default", "parameters that `space` does not name (search)"},
    Key{"constraints", "list", "rules of this study, beside the engines' own"},
    Key{"arguments", "list of words, or engine -> list", "added to every command as they are"},
    Key{"strategy", "name or mapping", "how to search (bayesian)"},
    Key{"knowledge", "list", "what `bayesian` believes before anything is measured (nothing)"},
    Key{"decision", "significant | published", "when a gain counts"},
    Key{"min_gain", "share", "below it a flag is not worth having (1%)"},
    Key{"noise_cv", "share", "run-to-run spread, assumed until measured (1%)"},
    Key{"audit", "enforce | report | off", "whether unsound results may win"},
    Key{"budget", "mapping", "when to stop"},
    Key{"evaluator", "mapping", "who measures", true},
    Key{"seed", "integer", "of the study: what is drawn, and which of equals is asked first (0)"},
    Key{"notes", "list of text", "printed at the end of the report"},
    Key{"published", "mapping", "what a published document printed, shown beside ours"},
};
inline constexpr std::array machine{
    Key{"device", "text", "the accelerator, such as h100-sxm"},
    Key{"count", "integer", "how many of them a trial may take; without it layouts of one device only"},
};
inline constexpr std::array preset{
    Key{"preset", "text", "its name", true},
    Key{"doc", "text", "what it is for", true},
    Key{"leaves_out", "text", "what it does not search, and why", true},
    Key{"others", "search | default", "what the study's `others` becomes (default)"},
    Key{"space", "mapping", "engine -> entries as under a study's `space`", true},
};
inline constexpr std::array objective{
    Key{"maximize", "metric or metrics", "the more the better; the first metric written leads"},
    Key{"minimize", "metric or metrics", "the less the better"},
    Key{"limits", "list of text", "`metric >= number` or `metric <= number`"},
};
inline constexpr std::array strategy{
    Key{"staged", "mapping", "one stage after the other"},
    Key{"random", "{}", "uniform over the feasible configurations"},
    Key{"exhaustive", "{}", "all of them"},
    Key{"quasi_random", "{}", "spread evenly by a Sobol sequence"},
    Key{"local_search", "{}", "uphill from the default, with random restarts"},
    Key{"bayesian", "mapping", "models of what was measured decide; for 10 to 60 trials of spaces too large to list"},
};
inline constexpr std::array bayesian{
    Key{"failures", "hybrid | classifier | penalty",
        "what a failed trial teaches: that alike ones fail, a bad value, or both (classifier)"},
    Key{"additive", "bool", "parameters act one by one rather than together (false)"},
    Key{"explore_every", "integer", "one trial in so many goes where least is known; 0: none (12)"},
    Key{"per", "trial | second", "of what the most is to be gained (second where the budget has a `wall_clock` or `until`)"},
};
inline constexpr std::array knowledge{
    Key{"cost_model", "{}", "what the cost model expects of each configuration; nothing where `hardware` or `model` are not known"},
    Key{"study", "folder or file", "what an earlier study of the same metric has measured: its folder, or the journal in it"},
    Key{"table", "file", "what others have measured of the same metric: CSV as for `replay`"},
};
inline constexpr std::array staged{
    Key{"compare_with", "incumbent | baseline", "what a stage's candidates are set on and compared with (incumbent)"},
    Key{"replicates", "integer", "most measurements of one configuration to settle a comparison (3)"},
    Key{"stages", "list", "a parameter, a list of them (all combinations), or a mapping", true},
};
inline constexpr std::array stage{
    Key{"stage", "text", "its name in the report", true},
    Key{"product", "list of names", "all combinations of these parameters"},
    Key{"candidates", "list of mappings", "partial configurations"},
    Key{"carried", "bool", "with compare_with: baseline: the winner becomes the baseline"},
};
inline constexpr std::array budget{
    Key{"trials", "integer", "told trials of the search (30)"},
    Key{"wall_clock", "duration", "of one run; no trial starts after it, of report workloads neither"},
    Key{"until", "HH:MM",
        "local time, the next that comes: no trial starts that would not be over by then, as far as earlier ones tell, of report workloads "
        "neither"},
};
inline constexpr std::array evaluator{
    Key{"replay", "file or mapping", "answer from a table of measured configurations"},
    Key{"simulate", "mapping", "answer from the cost model and the simulator: predictions, nothing is measured"},
    Key{"attach", "url or mapping", "load-test a server that somebody else runs: only `load` can be searched"},
    Key{"deploy", "mapping", "start the engine here, load-test it over HTTP, end it: one start a trial"},
    Key{"command", "list of words or mapping", "a program of yours measures: it gets the configuration and prints metrics, as JSON"},
};
inline constexpr std::array command{
    Key{"run", "list of words", "the program and its words, with {config}, {config_file}, {workload}, {seed}, {trial} and {folder}", true},
    Key{"within", "duration", "start to end; a longer trial has failed: hung (2h)"},
    Key{"stop_within", "duration", "for it and what it started to end once they were told (20s)"},
    Key{"environment", "mapping of text", "of the program, beside this program's own"},
    Key{"log_bytes", "integer", "of each trial's log at most (16777216)"},
};
inline constexpr std::array load{
    Key{"concurrency", "parameter", "`load.concurrency`: requests in flight, in place of the workloads' own arrival"},
    Key{"request_rate", "parameter", "`load.request_rate`: requests a second, the same"},
};
inline constexpr std::array attach{
    Key{"url", "text",
        "of the server, such as http://127.0.0.1:8000, with or without /v1; a user and a password in it are sent, never shown", true},
    Key{"served_model", "text", "the name that clients ask for (the study's model)"},
    Key{"api_key_env", "text", "the environment's variable that holds the bearer token"},
    Key{"trial_within", "duration", "a longer trial has failed: hung (2h)"},
    Key{"stall_timeout", "duration", "a request without any byte for so long has failed (300s)"},
    Key{"warm_up", "integer", "requests before the first workload (16)"},
};
inline constexpr std::array deploy{
    Key{"launcher", "local", "processes on this machine (local)"},
    Key{"environment", "mapping of text", "of the engine, beside this program's own"},
    Key{"api_key_env", "text", "the environment's variable that holds the bearer token of our requests, where the engine wants one"},
    Key{"gpus", "text", "CUDA_VISIBLE_DEVICES (as it is)"},
    Key{"cores", "list of integers", "the engine runs on these cores only (any)"},
    Key{"ready_within", "duration", "in place of the engine file's"},
    Key{"trial_within", "duration", "start to stop; a longer trial has failed: hung (2h)"},
    Key{"stop_within", "duration", "for the engine to end by itself once it was told (20s)"},
    Key{"stall_timeout", "duration", "a request without any byte for so long has failed (300s)"},
    Key{"warm_up", "integer", "requests before the first workload (16)"},
    Key{"log_bytes", "integer", "of each trial's log at most (16777216)"},
    Key{"all_logs_bytes", "integer", "of all trials' logs together; over it the oldest go (1073741824)"},
    Key{"watch", "on | off", "measure again what a throttled or shared machine disturbed, flag what stays disturbed (on)"},
};
inline constexpr std::array simulate{
    Key{"noise", "share", "how much server starts differ, as a coefficient of variation (0)"},
    Key{"step_noise", "share", "how much steps differ within a run (0)"},
    Key{"drift", "share", "a slow wave over the steps: clocks, temperature (0)"},
    Key{"drift_period", "duration", "of that wave (10min)"},
    Key{"traits", "mapping of file", "engine -> its traits, such as `autotune simulate --fit` writes (those that ship)"},
};
inline constexpr std::array replay{
    Key{"table", "file", "CSV: parameters, `status`, metrics", true},
    Key{"unmeasured", "fail | exclude", "a configuration without a row is a failed trial, or not part of the space (fail)"},
    Key{"noise_cv", "share", "seeded noise on top of the table (0)"},
    Key{"delay", "duration", "how long an answer takes, to watch a run (0s)"},
};
inline constexpr std::array published{
    Key{"document", "text", "what it is"},
    Key{"printed", "mapping of text", "stage -> the gain as printed"},
};

inline constexpr std::array hardware{
    Key{"hardware", "text", "its name, and its file's", true},
    Key{"title", "text", "what it is, for people", true},
    Key{"also", "list of text", "other names: of data sheets, as nvidia-smi prints it", true},
    Key{"architecture", "turing | ampere | ada | hopper | blackwell | blackwell-rtx | thor | cdna3", "what decides which kernels it runs",
        true},
    Key{"memory_bytes", "number", "as its driver reports them", true},
    Key{"memory_bandwidth_bytes_per_second", "number", "the vendor's peak", true},
    Key{"flops_per_second", "mapping", "number type (fp16 bf16 fp8 int8 fp4) -> dense matrix operations, the vendor's peak", true},
    Key{"shared_memory", "bool", "the CPU uses the same memory (false)"},
    Key{"link_bytes_per_second", "number", "to its neighbours, both directions together"},
    Key{"link", "text", "which link that is"},
    Key{"source", "text", "where each figure was seen", true},
};
inline constexpr std::array model{
    Key{"model", "text", "its name on a hub", true},
    Key{"also", "list of text", "stems of the names of checkpoints that have this shape", true},
    Key{"parameters_total", "number", "all of them, as stored", true},
    Key{"parameters_active", "number", "that work for one token, both embeddings included", true},
    Key{"parameters_embedding", "number", "input embedding and output head; tied: counted once", true},
    Key{"tied_embeddings", "bool", "the output head is the input embedding (false)"},
    Key{"layers", "integer", "of the language model", true},
    Key{"attention_layers", "integer", "those whose cache grows with the context", true},
    Key{"hidden_size", "integer", "width", true},
    Key{"attention_heads", "integer", "of the queries", true},
    Key{"kv_heads", "integer", "of keys and values", true},
    Key{"head_dim", "integer", "width of one head", true},
    Key{"vocabulary", "integer", "tokens", true},
    Key{"context_tokens", "integer", "the longest prompt and answer it was made for", true},
    Key{"experts", "integer", "per layer; 0: dense (0)"},
    Key{"experts_per_token", "integer", "routed; 0: dense (0)"},
    Key{"kv_bytes_per_token_16bit", "number", "cache of one token in all layers, at 16 bits", true},
    Key{"sliding_window", "integer", "tokens that sliding layers look back; 0: none (0)"},
    Key{"sliding_layers", "integer", "of the attention layers, those with the window (0)"},
    Key{"native_type", "text", "which of `weights` the model is published in", true},
    Key{"weights", "mapping", "quantization -> checkpoint", true},
    Key{"source", "text", "where shape and bytes were seen, and what was computed", true},
};
inline constexpr std::array weights{
    Key{"bytes", "number", "the checkpoint", true},
    Key{"per_token", "number", "what one decoded token of one stream reads of it", true},
    Key{"computes_in", "bf16 | fp8 | int8 | fp4", "number type of its matrix products; weight-only quantizations: bf16", true},
};

inline constexpr std::array traits{
    Key{"engine", "text", "the engine whose speed and memory this describes", true},
    Key{"fraction_of", "device | weights_cache | free | none", "what its memory fraction is a share of", true},
    Key{"compute_efficiency", "mapping", "number type (bf16 fp8 ... other) -> share of the peak FLOP/s in products with weights", true},
    Key{"bandwidth_efficiency", "number", "share of the memory bandwidth while weights are read", true},
    Key{"step_overhead_seconds", "number", "the host's work for a step", true},
    Key{"sequence_overhead_seconds", "number", "and for each sequence in it", true},
    Key{"eager_layer_seconds", "number", "launching one layer without a graph", true},
    Key{"uncompiled_factor", "number", "longer device time without torch.compile (1)"},
    Key{"request_overhead_seconds", "number", "front end, per request: parsing, template, tokenizer", true},
    Key{"chunk_overhead_seconds", "number", "front end, per streamed event", true},
    Key{"all_reduce_seconds", "number", "latency of one exchange between devices", true},
    Key{"link_efficiency", "number", "share of the link's bandwidth in large exchanges", true},
    Key{"default_attention", "text", "the back end that is used when none is named", true},
    Key{"attention", "mapping", "back end -> what it reaches and takes", true},
    Key{"acceptance", "mapping", "method of speculation -> chance that a guess is right"},
    Key{"context_bytes", "number", "CUDA context, libraries, workspaces", true},
    Key{"activation_bytes_per_token_and_width", "number", "times tokens of a step, times hidden size", true},
    Key{"logits_bytes_per_entry", "number", "times sequences of a step, times vocabulary", true},
    Key{"graph_bytes", "number", "recording graphs at all (0)"},
    Key{"graph_bytes_per_size", "number", "and for each size (0)"},
    Key{"checks_context", "bool", "refuses to start when one request of the longest context does not fit the cache (false)"},
    Key{"start_seconds", "number", "imports and processes", true},
    Key{"load_bytes_per_second", "number", "weights from disk to device", true},
    Key{"compile_seconds", "number", "once (0)"},
    Key{"graph_seconds_per_size", "number", "recording (0)"},
    Key{"chunked_prefill", "bool", "by itself (true)"},
    Key{"whole_prompts_raise_budget", "bool", "without chunked prefill a step holds the longest context (false)"},
    Key{"mixed_steps", "bool", "prompts and decoding in one step, by itself (true)"},
    Key{"overlap", "bool", "the host prepares the next step meanwhile, by itself (true)"},
    Key{"reserved_share", "number", "of the tokens still to come, kept free at admission, by itself (0)"},
    Key{"graphs", "bool", "records graphs by itself (true)"},
    Key{"graph_max_tokens", "integer", "the largest; 0: twice the sequences of a step, at most 512 (0)"},
    Key{"compiled", "bool", "torch.compile by itself (false)"},
    Key{"defaults", "mapping", "parameter -> rules: what it comes to by device; the first that fits counts"},
    Key{"log", "mapping", "event -> lines as the engine prints them, with {figures}"},
    Key{"defects", "list", "what goes wrong with certain flags though every rule allows them"},
    Key{"sources", "mapping of text", "key -> where its figure is from; every figure has one", true},
};
inline constexpr std::array attention{
    Key{"prefill_efficiency", "number", "share of the peak FLOP/s of bf16", true},
    Key{"decode_efficiency", "number", "share of the memory bandwidth, reading the cache", true},
    Key{"cache_types", "list of text", "of keys and values that it has kernels for; without: all"},
    Key{"needs", "list of text", "number types that the chip must compute in"},
    Key{"architectures", "list of text", "the chips that these figures are of; the simulator refuses it on others (all)"},
};
inline constexpr std::array default_rule{
    Key{"value", "value", "what the engine uses", true},
    Key{"from_memory_bytes", "number", "on devices with at least so much (0)"},
    Key{"hardware", "list of text", "on these only"},
};
inline constexpr std::array defect{
    Key{"kind", "slow_start | hang | exit | crash_under_load | hang_under_load", "what happens", true},
    Key{"when", "text", "an expression over the engine's own parameters", true},
    Key{"seconds", "number", "slow_start: longer; else: into the start or the load", true},
    Key{"lines", "list of text", "of the log"},
    Key{"because", "text", "why, and where it was seen", true},
};

}  // namespace servetune::keys
