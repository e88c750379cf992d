// SPDX-License-Identifier: Apache-2.0
#pragma once

// Keys that files of version 0.1 had, and what to write now. A file that still has one is
// refused with these words.

#include <array>
#include <string_view>

namespace servetune {

struct OldKey {
    std::string_view table;
    std::string_view name;
    std::string_view now;
};

inline constexpr std::array old_keys{
    OldKey{"dataset", "min_tokens", "leave it out, sharegpt keeps turns of at least 4 tokens"},
    OldKey{"dataset", "max_prompt_tokens",
           "leave it out, sharegpt keeps prompts of at most 1024 tokens"},
    OldKey{"dataset", "max_total_tokens",
           "leave it out, sharegpt keeps pairs of at most 2048 tokens"},
    OldKey{"weight_cache", "within", "write `ready_within`"},
    OldKey{"command", "within", "write `trial_within`"},
    OldKey{"replay", "noise_cv", "write `noise`"},
    OldKey{"study", "machine", "write `hardware: NAME`, or `hardware: {device: NAME, count: N}`"},
    OldKey{"study", "engines", "write `engine: [NAME, NAME]`"},
    OldKey{"study", "load", "write `space: {load.concurrency: [1, 2, 4]}`"},
    OldKey{"preset", "leaves_out", "write it under `doc`"},
    OldKey{"hardware", "title", "leave it out"},
    OldKey{"hardware", "link", "leave it out"},
    OldKey{"model", "parameters_total", "leave it out"},
    OldKey{"model", "parameters_embedding",
           "leave it out, it is computed from vocabulary and hidden_size"},
    OldKey{"model", "native_type", "leave it out, the first of `weights` is the published one"},
    OldKey{"weights", "computes_in", "leave it out, the quantization says it"},
    OldKey{"attention", "needs", "write `architectures`"},
    OldKey{"traits", "default_attention", "leave it out, the first of `attention` is the default"},
    OldKey{"traits", "chunked_prefill",
           "write `engine_default` of the parameter in the engine file"},
    OldKey{"traits", "mixed_steps", "write `engine_default` of the parameter in the engine file"},
    OldKey{"traits", "overlap", "write the value of the parameter under `defaults`"},
    OldKey{"traits", "graphs", "leave it out, without graph_bytes there are no graphs"},
    OldKey{"traits", "graph_max_tokens", "write the value of the parameter under `defaults`"},
    OldKey{"traits", "compiled", "leave it out, a parameter of the concept compile_mode says it"},
    OldKey{"traits", "uncompiled_factor",
           "leave it out, it is 1.05 where the engine compiles by itself"},
    OldKey{"traits", "all_reduce_seconds", "leave it out, it is 1e-5"},
    OldKey{"traits", "link_efficiency", "leave it out, it is 0.7"},
    OldKey{"traits", "acceptance", "leave it out, all engines have the same"},
    OldKey{"parameter", "suffixes", "leave it out, integers take 8k and 8K"},
    OldKey{"ready", "http_get", "write `ready: /health`"},
    OldKey{"ready", "within", "write `ready_within: 20min` beside `ready`"},
    OldKey{"api", "style", "leave it out, all engines answer as OpenAI does"},
    OldKey{"api", "chat", "leave it out, it is /v1/chat/completions"},
    OldKey{"api", "completions", "leave it out, or write `api: completions`"},
    OldKey{"api", "models", "leave it out, it is /v1/models"},
    OldKey{"api", "server_info", "write `server_info` beside `api`"},
    OldKey{"between_runs", "http_post", "write `between_runs: {PATH: {}}`"},
    OldKey{"between_runs", "needs_env", "write `between_runs: {PATH: {VARIABLE: VALUE}}`"},
    OldKey{"devices", "parameter", "write `devices: {NAME: {}, NAME: {OTHER: VALUE}}`"},
    OldKey{"devices", "unless", "write `devices: {NAME: {}, NAME: {OTHER: VALUE}}`"},
    OldKey{"study", "guard", "write `never_worse_than: 2%`"},
    OldKey{"quality", "answer_tokens", "leave it out, answers have 64 tokens"},
    OldKey{"strategy", "random", "write `strategy: random`"},
    OldKey{"strategy", "exhaustive", "write `strategy: exhaustive`"},
    OldKey{"strategy", "quasi_random", "write `strategy: quasi_random`"},
    OldKey{"strategy", "local_search", "write `strategy: local_search`"},
    OldKey{"bayesian", "failures", "leave it out, or set BayesianOptions in C++"},
    OldKey{"bayesian", "additive", "leave it out, or set BayesianOptions in C++"},
    OldKey{"bayesian", "patience", "leave it out, or set BayesianOptions in C++"},
    OldKey{"bayesian", "explore_every", "leave it out, or set BayesianOptions in C++"},
    OldKey{"stage", "stage",
           "write `NAME: [{PARAMETER: VALUE}]`, or a list of parameters for all combinations"},
    OldKey{"stage", "candidates", "write `NAME: [{PARAMETER: VALUE}]`"},
    OldKey{"stage", "product", "write the stage as a list of parameters"},
    OldKey{"budget", "stop", "write `serves`, for how long the result will serve: 30d"},
    OldKey{"arrival", "trace", "write `rate: timestamps`"},
    OldKey{"published", "document", "write it under `notes`"},
    OldKey{"published", "printed", "write `published: {STAGE: GAIN}`"},
    OldKey{"knowledge", "cost_model", "write `knowledge: [cost_model]`"},
    OldKey{"quality", "parameters",
           "leave it out, it is those of quantization, types and speculation"},
    OldKey{"simulate", "drift", "leave it out"},
    OldKey{"largest_rate", "points", "leave it out, at most 6 loads are tried"},
    OldKey{"largest_rate", "within", "leave it out, the load is found to 2 %"},
    OldKey{"simulate", "drift_period", "leave it out, the wave takes 10 minutes"},
    OldKey{"container", "volumes", "write `options: [--volume=SOURCE:TARGET]`"},
    OldKey{"container", "shm_bytes", "write `options: [--shm-size=BYTES]`"},
    OldKey{"container", "memory_bytes", "write `options: [--memory=BYTES]`"},
    OldKey{"deploy", "log_bytes", "leave it out, a log has at most 16 MiB"},
    OldKey{"deploy", "all_logs_bytes", "leave it out, all logs together have at most 1 GiB"},
    OldKey{"command", "log_bytes", "leave it out, a log has at most 16 MiB"},
};

/// What to write in place of a key that this table had; empty: it had none of that name.
constexpr std::string_view now_written(std::string_view table, std::string_view name) {
    for (const OldKey& key : old_keys)
        if (key.table == table && key.name == name) return key.now;
    return "";
}

}  // namespace servetune
