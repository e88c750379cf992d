// SPDX-License-Identifier: Apache-2.0
#include "dialect.hpp"

#include "engine/launcher.hpp"
#include "servetune/detail/perf/start_failure.hpp"

#include <array>

namespace simengine {
namespace {

// As Python's argument parser refuses.
constexpr std::string_view argparse_number =
    "{usage}\n{program}: error: argument {flag}: invalid {type} value: '{value}'\n";
constexpr std::string_view argparse_choice =
    "{usage}\n{program}: error: argument {flag}: invalid choice: '{value}' (choose from "
    "{values})\n";
constexpr std::string_view argparse_no_value =
    "{usage}\n{program}: error: argument {flag}: expected one argument\n";
constexpr std::string_view argparse_no_model =
    "{usage}\n{program}: error: the following arguments are required: --model-path/--model\n";

constexpr std::array dialects{
    Dialect{.kind = EngineKind::vllm,
            .engine = "vllm",
            .usage = "usage: vllm serve [model_tag] [options]",
            .program = "vllm serve",
            .positional = "model_tag",
            .model_default = "Qwen/Qwen3-0.6B",
            .port = 8000,
            .underscores = true,
            .checks_model = true,
            .reasoning = "reasoning",
            .cached_needs = "--enable-prompt-tokens-details",
            .unknown_flag = "{usage}\nvllm: error: unrecognized arguments: {words}\n",
            .bad_number = argparse_number,
            .bad_choice = argparse_choice,
            .no_value = argparse_no_value,
            .no_model = argparse_no_model,
            .port_in_use = "OSError: [Errno 98] Address already in use",
            .long_request = "This model's maximum context length is {context} tokens. However, you "
                            "requested {output} output tokens and your prompt contains {input} "
                            "input tokens, for a total of {total} tokens."},
    Dialect{.kind = EngineKind::sglang,
            .engine = "sglang",
            .usage = "usage: launch_server.py [-h] --model-path MODEL_PATH [options]",
            .program = "launch_server.py",
            .model_flag = "--model-path",
            .port = 30000,
            .binds_early = false,
            .finish_apart = true,
            .flat_errors = true,
            .cached_needs = "--enable-cache-report",
            .metrics_needs = "--enable-metrics",
            .unknown_flag = "{usage}\n{program}: error: unrecognized arguments: {words}\n",
            .bad_number = argparse_number,
            .bad_choice = argparse_choice,
            .no_value = argparse_no_value,
            .no_model = argparse_no_model,
            .port_in_use =
                "ERROR:    [Errno 98] error while attempting to bind on address ('{host}', "
                "{port}): address already in use",
            .long_prompt = "The input ({input} tokens) is longer than the model's context length "
                           "({context} tokens).",
            .long_request = "Requested token count exceeds the model's maximum context length of "
                            "{context} tokens. You requested a total of {total} tokens: {input} "
                            "tokens from the input messages and {output} tokens for the "
                            "completion."},
    Dialect{.kind = EngineKind::tensorrt_llm,
            .engine = "tensorrt-llm",
            .usage = "Usage: trtllm-serve serve [OPTIONS] MODEL\nTry 'trtllm-serve serve --help' "
                     "for help.\n",
            .positional = "MODEL",
            .port = 8000,
            .flat_errors = true,
            .unknown_flag = "{usage}\nError: No such option: {word}\n",
            .bad_number =
                "{usage}\nError: Invalid value for '{flag}': '{value}' is not a valid {type}.\n",
            .bad_choice = "{usage}\nError: Invalid value for '{flag}': '{value}' is not one of "
                          "{values}.\n",
            .no_value = "{usage}\nError: Option '{flag}' requires an argument.\n",
            .no_model = "{usage}\nError: Missing argument 'MODEL'.\n",
            .port_in_use =
                "RuntimeError: Failed to bind socket to {host}:{port}: [Errno 98] Address "
                "already in use",
            .long_request = "The sum of prompt length ({input}), max_tokens ({output}) should not "
                            "exceed max_seq_len ({context})"},
    Dialect{.kind = EngineKind::llama_cpp,
            .engine = "llama.cpp",
            .model_flag = "--model",
            .port = 8080,
            .refusal_code = 1,
            .answers_while_loading = true,
            .finish_apart = true,
            .usage_in_finish = true,
            .metrics_needs = "--metrics",
            .unknown_flag = "error: invalid argument: {word}\n",
            .bad_number =
                "error while handling argument \"{flag}\": stoi\n\nto show complete usage, run "
                "with -h\n",
            .bad_choice =
                "error while handling argument \"{flag}\": unknown value '{value}'\n\nto show "
                "complete usage, run with -h\n",
            .no_value =
                "error while handling argument \"{flag}\": expected value for argument\n\nto "
                "show complete usage, run with -h\n",
            .no_model = "error: --model is required\n",
            .port_in_use =
                "srv          main: couldn't bind HTTP server socket, hostname: {host}, port: "
                "{port}",
            .long_prompt = "request ({input} tokens) exceeds the available context size ({context} "
                           "tokens), try increasing it"},
};

bool is_python(std::string_view name) { return name.starts_with("python"); }

/// Values as an argument parser prints them: 'a', 'b', 'c'.
std::string quoted(const std::vector<std::string>& values) {
    std::string result;
    for (const std::string& value : values) result += (result.empty() ? "'" : ", '") + value + "'";
    return result;
}

}  // namespace

const Dialect& dialect_of(EngineKind kind) { return dialects[std::size_t(kind)]; }

std::string base_name(std::string_view name) {
    return std::string(name.substr(name.find_last_of('/') + 1));
}

bool is_engine_program(std::string_view name) {
    const std::string base = base_name(name);
    return base == "vllm" || base == "trtllm-serve" || base == "llama-server" || is_python(base);
}

Recognized recognized(const std::vector<servetune::Engine>& engines,
                      const std::vector<std::string>& words) {
    servetune::Launched launched =
        words.empty() ? servetune::Launched() : servetune::launched_at(engines, words, 0);
    const bool preloads =
        words.size() > 1 && base_name(words[0]) == "vllm" && words[1] == "preload";
    for (const servetune::Engine& engine : engines)
        if (preloads && engine.name == "vllm") launched = {&engine, 2};
    for (const Dialect& dialect : dialects)
        if (launched.engine != nullptr && launched.engine->name == dialect.engine)
            return {&dialect, launched.engine, launched.words, preloads};
    return {};
}

std::string said(const Dialect& dialect, std::string_view message,
                 std::vector<std::pair<std::string, std::string>> values) {
    values.emplace_back("usage", dialect.usage);
    values.emplace_back("program", dialect.program);
    return servetune::filled(std::string(message), values);
}

std::string bad_value_text(const Dialect& dialect, std::string_view flag, std::string_view value,
                           std::string_view type, const std::vector<std::string>& values) {
    const bool click = dialect.kind == EngineKind::tensorrt_llm;
    return said(dialect, values.empty() ? dialect.bad_number : dialect.bad_choice,
                {{"flag", std::string(flag)},
                 {"type", click && type == "int" ? "integer" : std::string(type)},
                 {"values", quoted(values)},
                 {"value", std::string(value)}});
}

}  // namespace simengine
