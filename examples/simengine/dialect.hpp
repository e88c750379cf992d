// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace simengine {

enum class EngineKind { vllm, sglang, tensorrt_llm, llama_cpp };

/// What tells one engine from the others, from outside: how its command begins, how it refuses, how
/// its answers are shaped. Each was read in the engine's own source or seen from it
/// (search_spaces/engines/*.yaml name the versions), unless said.
struct Dialect {
    EngineKind kind;
    std::string_view engine;           ///< name of its file in search_spaces/engines
    std::string_view usage{};          ///< the line that stands before a refusal
    std::string_view program{};        ///< as Python's argument parser calls it
    std::string_view positional{};     ///< the model's name stands alone: what messages call it
    std::string_view model_flag{};     ///< else the flag that it stands behind
    std::string_view model_default{};  ///< served when none is named; empty: one must be
    std::uint16_t port;                ///< by default
    int refusal_code = 2;              ///< of a command line it does not take
    bool underscores = false;          ///< --max_num_seqs is --max-num-seqs
    bool answers_while_loading =
        false;                     ///< 503; the others refuse connections until they are ready
    bool binds_early = true;       ///< so that a port in use is noticed before weights are loaded
    bool finish_apart = false;     ///< the reason to finish comes in an event of its own
    bool usage_in_finish = false;  ///< completions: usage comes in that event
    bool flat_errors = false;      ///< {"object":"error",...} instead of {"error":{...}}
    bool checks_model = false;     ///< 404 for another model's name; the others answer to any
    std::string_view reasoning = "reasoning_content";  ///< the field of a message that holds it
    // Flags; empty: it does without.
    std::string_view cached_needs{};   ///< to say how many tokens came from its cache
    std::string_view metrics_needs{};  ///< to have /metrics
    // Whole messages: of a command that it does not take as they come on standard error, of a port
    // that somebody else has in the log, of a request that is too long in the answer.
    std::string_view unknown_flag, bad_number, bad_choice, no_value, no_model, port_in_use;
    std::string_view long_prompt{}, long_request{};  ///< empty: it has none
};

const Dialect& dialect_of(EngineKind kind);

/// What a word at the front of a command means: the engine, and how many words name the program.
struct Recognized {
    const Dialect* dialect = nullptr;  ///< null: no engine's command
    const servetune::Engine* engine = nullptr;
    std::size_t words = 0;
    bool holds_weights =
        false;  ///< vllm preload: no engine, but a daemon that keeps weights for engines
};
Recognized recognized(const std::vector<servetune::Engine>& engines,
                      const std::vector<std::string>& words);

/// True when a program of this name (argv[0], with or without a folder) stands for an engine's.
bool is_engine_program(std::string_view name);

/// `std::filesystem::path(name).filename()`.
std::string base_name(std::string_view name);

/// One of the dialect's messages with {name} filled in; {usage} and {program} are its own.
std::string said(const Dialect& dialect, std::string_view message,
                 std::vector<std::pair<std::string, std::string>> values);
/// Of a flag's value that is none of `values`, or no `type`.
std::string bad_value_text(const Dialect& dialect, std::string_view flag, std::string_view value,
                           std::string_view type, const std::vector<std::string>& values);

}  // namespace simengine
