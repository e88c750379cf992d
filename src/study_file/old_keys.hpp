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
    OldKey{"dataset", "max_prompt_tokens", "leave it out, sharegpt keeps prompts of at most 1024 tokens"},
    OldKey{"dataset", "max_total_tokens", "leave it out, sharegpt keeps pairs of at most 2048 tokens"},
    OldKey{"weight_cache", "within", "write `ready_within`"},
    OldKey{"command", "within", "write `trial_within`"},
    OldKey{"replay", "noise_cv", "write `noise`"},
    OldKey{"study", "machine", "write `hardware: {device: NAME, count: N}`"},
    OldKey{"study", "engines", "write `engine: [vllm, sglang]`"},
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
    OldKey{"stage", "product", "write the stage as a list of parameters"},
    OldKey{"stage", "carried", "leave it out, or write `compare_with: incumbent`"},
    OldKey{"budget", "stop", "write `serves`, for how long the result will serve: 30d"},
    OldKey{"largest_rate", "within", "leave it out, the load is found to 2 %"},
    OldKey{"simulate", "drift_period", "leave it out, the wave takes 10 minutes"},
    OldKey{"container", "volumes", "write `options: [--volume=SOURCE:TARGET]`"},
    OldKey{"container", "shm_bytes", "write `options: [--shm-size=BYTES]`"},
    OldKey{"container", "memory_bytes", "write `options: [--memory=BYTES]`"},
    OldKey{"ssh", "unheard_within", "leave it out, it is 30 s"},
    OldKey{"deploy", "launcher", "leave it out, `container`, `ssh` or `slurm` says it (docker: `container: {program: [docker], ...}`)"},
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
