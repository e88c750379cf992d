// SPDX-License-Identifier: Apache-2.0
#include "dialect.hpp"

#include "engine/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace simengine {
namespace {

constexpr std::array dialects{
    Dialect{.kind = EngineKind::vllm,
            .engine = "vllm",
            .program = "vllm",
            .usage = "usage: vllm serve [model_tag] [options]",
            .positional = "model_tag",
            .model_flag = "",
            .model_default = "Qwen/Qwen3-0.6B",
            .port = 8000,
            .refusal_code = 2,
            .underscores = true,
            .answers_while_loading = false,
            .binds_early = true,
            .finish_apart = false,
            .usage_in_finish = false,
            .flat_errors = false,
            .checks_model = true,
            .reasoning = "reasoning",
            .cached_needs = "--enable-prompt-tokens-details",
            .metrics_needs = ""},
    Dialect{.kind = EngineKind::sglang,
            .engine = "sglang",
            .program = "launch_server.py",
            .usage = "usage: launch_server.py [-h] --model-path MODEL_PATH [options]",
            .positional = "",
            .model_flag = "--model-path",
            .model_default = "",
            .port = 30000,
            .refusal_code = 2,
            .underscores = false,
            .answers_while_loading = false,
            .binds_early = false,
            .finish_apart = true,
            .usage_in_finish = false,
            .flat_errors = true,
            .checks_model = false,
            .reasoning = "reasoning_content",
            .cached_needs = "--enable-cache-report",
            .metrics_needs = "--enable-metrics"},
    Dialect{.kind = EngineKind::tensorrt_llm,
            .engine = "tensorrt-llm",
            .program = "trtllm-serve",
            .usage = "Usage: trtllm-serve serve [OPTIONS] MODEL\nTry 'trtllm-serve serve --help' "
                     "for help.\n",
            .positional = "MODEL",
            .model_flag = "",
            .model_default = "",
            .port = 8000,
            .refusal_code = 2,
            .underscores = false,
            .answers_while_loading = false,
            .binds_early = true,
            .finish_apart = false,
            .usage_in_finish = false,
            .flat_errors = true,
            .checks_model = false,
            .reasoning = "reasoning_content",
            .cached_needs = "",
            .metrics_needs = ""},
    Dialect{.kind = EngineKind::llama_cpp,
            .engine = "llama.cpp",
            .program = "llama-server",
            .usage = "",
            .positional = "",
            .model_flag = "--model",
            .model_default = "",
            .port = 8080,
            .refusal_code = 1,
            .underscores = false,
            .answers_while_loading = true,
            .binds_early = true,
            .finish_apart = true,
            .usage_in_finish = true,
            .flat_errors = false,
            .checks_model = false,
            .reasoning = "reasoning_content",
            .cached_needs = "",
            .metrics_needs = "--metrics"},
};

bool is_python(std::string_view name) { return name.starts_with("python"); }

/// One sentence in the engine's way of complaining about its command line.
std::string refusal_text(const Dialect& dialect, std::string_view program,
                         const std::string& sentence) {
    switch (dialect.kind) {
        case EngineKind::tensorrt_llm:
            return fmt::format("{}\nError: {}\n", dialect.usage, sentence);
        case EngineKind::llama_cpp: return sentence + "\n";
        case EngineKind::vllm:
        case EngineKind::sglang: break;
    }
    return fmt::format("{}\n{}: error: {}\n", dialect.usage, program, sentence);
}

/// vLLM's options belong to the subcommand, which complains by its own name; what nobody knows the
/// program itself complains about.
std::string_view option_program(const Dialect& dialect) {
    return dialect.kind == EngineKind::vllm ? "vllm serve" : dialect.program;
}

/// Values as an argument parser prints them: 'a', 'b', 'c'.
std::string quoted(const std::vector<std::string>& values) {
    std::string result;
    for (const std::string& value : values) result += (result.empty() ? "'" : ", '") + value + "'";
    return result;
}

}  // namespace

const Dialect& dialect_of(EngineKind kind) { return dialects[static_cast<std::size_t>(kind)]; }

std::string base_name(std::string_view name) {
    return std::string(name.substr(name.find_last_of('/') + 1));
}

bool is_engine_program(std::string_view name) {
    const std::string base = base_name(name);
    return base == "vllm" || base == "vllm-router" || base == "trtllm-serve" ||
           base == "llama-server" || is_python(base);
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

std::string unknown_flag_text(const Dialect& dialect, const std::vector<std::string>& words) {
    if (dialect.kind == EngineKind::tensorrt_llm)
        return refusal_text(dialect, "", "No such option: " + words.front());
    if (dialect.kind == EngineKind::llama_cpp)
        return refusal_text(dialect, "", "error: invalid argument: " + words.front());
    return refusal_text(dialect, dialect.program,
                        fmt::format("unrecognized arguments: {}", fmt::join(words, " ")));
}

std::string bad_value_text(const Dialect& dialect, std::string_view flag, std::string_view value,
                           std::string_view type, const std::vector<std::string>& values) {
    const std::string_view number = type == "float" ? "a valid float" : "a valid integer";
    switch (dialect.kind) {
        case EngineKind::tensorrt_llm:
            return refusal_text(
                dialect, "",
                values.empty()
                    ? fmt::format("Invalid value for '{}': '{}' is not {}.", flag, value, number)
                    : fmt::format("Invalid value for '{}': '{}' is not one of {}.", flag, value,
                                  quoted(values)));
        case EngineKind::llama_cpp:
            return fmt::format(
                "error while handling argument \"{}\": {}\n\nto show complete usage, run with -h\n",
                flag,
                values.empty() ? std::string("stoi") : fmt::format("unknown value '{}'", value));
        case EngineKind::vllm:
        case EngineKind::sglang: break;
    }
    return refusal_text(dialect, option_program(dialect),
                        values.empty()
                            ? fmt::format("argument {}: invalid {} value: '{}'", flag, type, value)
                            : fmt::format("argument {}: invalid choice: '{}' (choose from {})",
                                          flag, value, quoted(values)));
}

std::string no_value_text(const Dialect& dialect, std::string_view flag) {
    if (dialect.kind == EngineKind::tensorrt_llm)
        return refusal_text(dialect, "", fmt::format("Option '{}' requires an argument.", flag));
    if (dialect.kind == EngineKind::llama_cpp)
        return fmt::format(
            "error while handling argument \"{}\": expected value for argument\n\nto show complete "
            "usage, run with -h\n",
            flag);
    return refusal_text(dialect, option_program(dialect),
                        fmt::format("argument {}: expected one argument", flag));
}

std::string no_model_text(const Dialect& dialect) {
    if (dialect.kind == EngineKind::tensorrt_llm)
        return refusal_text(dialect, "", "Missing argument 'MODEL'.");
    if (dialect.kind == EngineKind::llama_cpp)
        return refusal_text(dialect, "", "error: --model is required");
    return refusal_text(dialect, option_program(dialect),
                        "the following arguments are required: --model-path/--model");
}

std::vector<std::string> port_in_use_lines(const Dialect& dialect, std::string_view host,
                                           std::uint16_t port) {
    switch (dialect.kind) {
        case EngineKind::vllm: return {"OSError: [Errno 98] Address already in use"};
        case EngineKind::sglang:
            return {
                fmt::format("ERROR:    [Errno 98] error while attempting to bind on address ('{}', "
                            "{}): address already in use",
                            host, port)};
        case EngineKind::tensorrt_llm:
            return {fmt::format(
                "RuntimeError: Failed to bind socket to {}:{}: [Errno 98] Address already in use",
                host, port)};
        case EngineKind::llama_cpp: break;
    }
    return {fmt::format(
        "srv          main: couldn't bind HTTP server socket, hostname: {}, port: {}", host, port)};
}

}  // namespace simengine
