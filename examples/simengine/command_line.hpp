// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine_loop.hpp"

#include "servetune/detail/perf/engine_core.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace simengine {

/// How an answer is to go wrong: the table of command_line.cpp says what each means.
struct AnswerFaults {
    std::optional<int> http_status{};
    std::optional<std::int64_t> abort_after{};
    std::int64_t answer_tokens = 0, hidden_tokens = 0, unread_tokens = 0;
    bool no_usage = false, bad_usage = false, usage_unasked = false, wrong_json = false,
         vague_refusals = false;
    std::vector<std::string> refused_fields{};
    double slower = 1;
};

/// How this engine is to go wrong, for the tests of whoever starts or measures engines. Real
/// seconds, whatever the time scale; 0: never.
struct Faults : AnswerFaults {
    std::optional<int> exit_at_once{}, exit_at_load{};
    bool oom_then_hang = false, never_ready = false, told_size_fails = false;
    double slow_start_seconds = 0, slow_profiling_seconds = 0, listen_late_seconds = 0,
           answer_503_seconds = 0;
    std::string wrong_model{};
    double flood_log_bytes_per_second = 0;
    std::int64_t die_at_requests = 0, die_at_tokens = 0, die_in_flight = 0, restart_mid_run = 0,
                 stall_mid_stream = 0;
    std::int64_t every = 1, only_first = 0;  ///< which answers go wrong
    bool ignore_term = false;
    double stop_slowly_seconds = 0;
    bool grandchild_keeps_port = false;

    /// From `NAME` or `NAME=VALUE` each. Throws UsageError for unknown names (nearest first),
    /// missing and senseless values.
    static Faults of(const std::vector<std::string>& words);
    /// Those of the answer to the request of this number; the first is 1.
    [[nodiscard]] AnswerFaults of_answer(std::int64_t request) const;
};

/// All faults with their values: for --help.
std::string fault_names();

/// simengine's own options; they come before the engine's words, or from $SIMENGINE_OPTIONS.
struct Options {
    std::string hardware = "h100-sxm";
    std::string model{};     ///< whose figures, where the command's name for it is not known
    double time_scale = 1;   ///< starts and steps so many times faster
    double start_scale = 0;  ///< starts so many times faster; 0: as time_scale
    std::uint64_t seed = 0;  ///< of noise and answers
    servetune::StepNoise noise{};
    std::optional<Pace> pace{};
    Faults faults{};
    std::string search_spaces{};  ///< empty: Catalogue::standard()
    std::string
        devices{};       ///< a folder that stands for the machine's devices; empty: none are taken
    bool quiet = false;  ///< no log but for what goes wrong
    std::vector<std::string> engine_words{};
};

/// Reads the command line and the environment's options before it. Called as `vllm`, `python3`,
/// `trtllm-serve` or `llama-server` (through a link), all words are the engine's.
/// Nothing: it has printed its help or complained, and `exit_code` says how to end.
std::optional<Options> read_command_line(int argc, char** argv, const char* environment_options,
                                         int& exit_code);

}  // namespace simengine
