// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "dialect.hpp"
#include "base/nearest.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

namespace simengine {
namespace {

using servetune::UsageError;

/// Where a word's value goes, which also says what it may be: nothing, an exit code, a count,
/// seconds or a rate, a text.
using FaultPlace = std::variant<bool Faults::*, std::optional<int> Faults::*,
                                std::int64_t Faults::*, double Faults::*, std::string Faults::*>;

struct FaultWord {
    std::string_view name;
    FaultPlace place;
    std::string_view value;    ///< as --help names it
    std::string_view meaning;  ///< the same
    int default_code = 0;
};

// In the order in which they act: at the start, under load, in answers, at the end.
const std::array fault_table{
    FaultWord{"exit_at_once", &Faults::exit_at_once, "[=CODE]", "ends before it does anything", 1},
    FaultWord{"exit_at_load", &Faults::exit_at_load, "[=CODE]", "ends while it loads weights", 137},
    FaultWord{"oom_then_hang", &Faults::oom_then_hang, "", "says out of memory, then nothing more"},
    FaultWord{"never_ready", &Faults::never_ready, "", "goes on starting"},
    FaultWord{"slow_start", &Faults::slow_start_seconds, "=SECONDS", "starts so much later"},
    FaultWord{"listen_late", &Faults::listen_late_seconds, "=SECONDS",
              "time between saying that it is ready and listening"},
    FaultWord{"answer_503", &Faults::answer_503_seconds, "=SECONDS", "to everything, at first"},
    FaultWord{"wrong_model", &Faults::wrong_model, "=NAME", "in its list of models and answers"},
    FaultWord{"flood_log", &Faults::flood_log_bytes_per_second, "=BYTES_PER_SECOND",
              "on standard error, 256 MiB in all"},
    FaultWord{"die_at_requests", &Faults::die_at_requests, "=N", "at the arrival of the Nth"},
    FaultWord{"die_at_tokens", &Faults::die_at_tokens, "=N", "after so many"},
    FaultWord{"restart_mid_run", &Faults::restart_mid_run, "=N",
              "drops connections and counters at the Nth request"},
    FaultWord{"stall_mid_stream", &Faults::stall_mid_stream, "=N",
              "sends nothing after so many events"},
    FaultWord{"abort_every", &Faults::abort_every, "=N",
              "each Nth answer ends after two tokens, reason abort"},
    FaultWord{"wrong_json", &Faults::wrong_json, "", "answers break off in their JSON"},
    FaultWord{"unread_text", &Faults::unread_text, "", "text in a field that no interface has"},
    FaultWord{"bad_usage", &Faults::bad_usage, "", "counts half the tokens"},
    FaultWord{"ignore_term", &Faults::ignore_term, "", "only KILL and INT end it"},
    FaultWord{"stop_slowly", &Faults::stop_slowly_seconds, "=SECONDS", "between TERM and its end"},
    FaultWord{"grandchild_keeps_port", &Faults::grandchild_keeps_port, "",
              "a child holds the socket for 60 s and ignores TERM"},
};

/// Puts one value where it belongs; says what was wanted where it cannot.
struct Put {
    Faults& into;
    const FaultWord& word;
    const std::string& value;

    [[noreturn]] void refuse(const std::string& wanted) const {
        throw UsageError("--misbehave " + std::string(word.name) + ": " + wanted +
                         " wanted, got '" + value + "'");
    }
    void operator()(bool Faults::*place) const {
        if (!value.empty()) refuse("no value");
        into.*place = true;
    }
    void operator()(std::optional<int> Faults::*place) const {
        const auto code =
            value.empty() ? word.default_code : servetune::integer_of(value).value_or(-1);
        if (code < 0 || code > 255) refuse("an exit code, 0 ... 255,");
        into.*place = static_cast<int>(code);
    }
    void operator()(std::int64_t Faults::*place) const {
        const auto count = servetune::integer_of(value);
        if (!count || *count < 1) refuse("a count of 1 or more");
        into.*place = *count;
    }
    void operator()(double Faults::*place) const {
        const auto number = servetune::real_of(value);
        if (!number || *number <= 0 || *number > 1e9) refuse("a number above 0");
        into.*place = *number;
    }
    void operator()(std::string Faults::*place) const {
        if (value.empty()) refuse("a name");
        into.*place = value;
    }
};

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
    std::vector<std::string> faults;
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
    app.add_option("--misbehave", written.faults, "WORD[=VALUE], again and again: " + fault_words())
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
    options.faults = Faults::of(written.faults);
    if (options.start_scale <= 0) options.start_scale = options.time_scale;
    options.quiet = written.log_level == "error";
    options.engine_words = app.remaining();
    if (!options.engine_words.empty() && options.engine_words.front() == "--")
        options.engine_words.erase(options.engine_words.begin());
    return std::move(written.options);
}

Faults Faults::of(const std::vector<std::string>& given) {
    Faults result;
    for (const std::string& text : given) {
        const auto equals = text.find('=');
        const std::string name = text.substr(0, equals);
        const auto word = std::find_if(fault_table.begin(), fault_table.end(),
                                       [&](const FaultWord& known) { return known.name == name; });
        if (word == fault_table.end()) {
            std::vector<std::string> names;
            for (const FaultWord& known : fault_table) names.emplace_back(known.name);
            throw UsageError("--misbehave: unknown word '" + name + "'" +
                             servetune::nearest_text(name, names));
        }
        const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
        std::visit(Put{result, *word, value}, word->place);
    }
    return result;
}

std::string fault_words() {
    std::string result;
    for (const FaultWord& word : fault_table)
        result += (result.empty() ? "" : "; ") + std::string(word.name) + std::string(word.value) +
                  " " + std::string(word.meaning);
    return result;
}

}  // namespace simengine
