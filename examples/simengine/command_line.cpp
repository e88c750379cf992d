// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "dialect.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace simengine {
namespace {

using servetune::UsageError;

servetune::StepNoise noise_of(const std::string& text) {
    const auto comma = text.find(',');
    const auto run = servetune::real_of(text.substr(0, comma));
    const auto step = comma == std::string::npos ? std::optional<double>(0)
                                                 : servetune::real_of(text.substr(comma + 1));
    if (!run || !step || *run < 0 || *step < 0)
        throw UsageError("--noise RUN[,STEP] wanted, coefficients of variation, got '" + text +
                         "'");
    return {.run_cv = *run, .step_cv = *step};
}

/// Values as they are written; they become Options when all is read.
struct Written {
    Options options;
    std::string noise;
    std::string log_level = "info";
    std::vector<std::string> vices;
};

void declare(CLI::App& app, Written& written) {
    Options& options = written.options;
    app.prefix_command();
    const auto last = CLI::MultiOptionPolicy::TakeLast;
    app.add_option("--hardware", options.hardware,
                   "The chip it pretends to run on: a name of search_spaces/hardware")
        ->capture_default_str()
        ->multi_option_policy(last);
    app.add_option("--model", options.model,
                   "Whose figures, where the command's name for the model is not known")
        ->multi_option_policy(last);
    app.add_option("--time-scale", options.time_scale, "Starts and computes so many times faster")
        ->check(CLI::PositiveNumber)
        ->capture_default_str()
        ->multi_option_policy(last);
    app.add_option("--start-scale", options.start_scale,
                   "Starts so many times faster (default: as --time-scale)")
        ->check(CLI::PositiveNumber)
        ->multi_option_policy(last);
    app.add_option("--seed", options.seed, "Of noise and answers")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str()
        ->multi_option_policy(last);
    app.add_option("--noise", written.noise,
                   "RUN[,STEP]: coefficients of variation, of a whole run and of each step")
        ->multi_option_policy(last);
    app.add_option("--misbehave", written.vices,
                   "WORD[=VALUE], again and again: " + misbehaviour_words())
        ->allow_extra_args(false);
    app.add_option("--search-spaces", options.search_spaces,
                   "The folder with engines, models, hardware (default: where they are installed)")
        ->multi_option_policy(last);
    app.add_option("--devices", options.devices,
                   "A folder that stands for the machine's devices: the command's are taken in it")
        ->check(CLI::ExistingDirectory)
        ->multi_option_policy(last);
    app.add_option("--log-level", written.log_level, "info, or error")
        ->check(CLI::IsMember({"info", "error"}))
        ->multi_option_policy(last);
    app.footer(
        "Behind its options comes an engine's command: simengine vllm serve Qwen/Qwen3-8B "
        "--max-num-seqs=256\n"
        "(also python3 -m sglang.launch_server, trtllm-serve, llama-server). $SIMENGINE_OPTIONS "
        "holds options too.");
}

}  // namespace

std::optional<Options> read_command_line(int argc, char** argv, const char* environment_options,
                                         int& exit_code) {
    CLI::App app{
        "simengine behaves like an LLM serving engine over HTTP, with a cost model in place of a "
        "GPU.",
        "simengine"};
    Written written;
    declare(app, written);
    std::vector<std::string> words =
        servetune::shell_words(environment_options != nullptr ? environment_options : "");
    const bool as_engine = argc > 0 && is_engine_program(argv[0]);
    if (as_engine) words.push_back(base_name(argv[0]));
    words.insert(words.end(), argv + std::min(argc, 1), argv + argc);
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        exit_code = app.exit(error) == 0 ? 0 : 2;
        return std::nullopt;
    }
    Options& options = written.options;
    if (!written.noise.empty()) options.noise = noise_of(written.noise);
    options.vices = Misbehaviour::of(written.vices);
    if (options.start_scale <= 0) options.start_scale = options.time_scale;
    options.quiet = written.log_level == "error";
    options.engine_words = app.remaining();
    if (!options.engine_words.empty() && options.engine_words.front() == "--")
        options.engine_words.erase(options.engine_words.begin());
    return std::move(written.options);
}

}  // namespace simengine
