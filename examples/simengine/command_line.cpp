// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include "base/nearest.hpp"
#include "dialect.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <sstream>
#include <string_view>
#include <type_traits>
#include <variant>

namespace simengine {
namespace {

using servetune::UsageError;

/// Where a fault's value goes, which also says what it may be: nothing, an exit code or status, a
/// count (with a default, or without), seconds or a rate, a text, several texts.
using FaultPlace =
    std::variant<bool Faults::*, std::optional<int> Faults::*, std::int64_t Faults::*,
                 std::optional<std::int64_t> Faults::*, double Faults::*, std::string Faults::*,
                 std::vector<std::string> Faults::*>;

struct Fault {
    std::string_view at;  ///< where it acts
    std::string_view name;
    FaultPlace place;
    std::string_view value;    ///< as --help names it
    std::string_view meaning;  ///< the same
    int default_value = 0;     ///< 0: one must be given
};

// In the order in which they act.
const std::array fault_table{
    Fault{"start", "exit_at_once", &Faults::exit_at_once, "[=CODE]", "ends before it does anything",
          1},
    Fault{"start", "exit_at_load", &Faults::exit_at_load, "[=CODE]", "ends while it loads weights",
          137},
    Fault{"start", "oom_then_hang", &Faults::oom_then_hang, "",
          "says out of memory, then nothing more"},
    Fault{"start", "never_ready", &Faults::never_ready, "", "goes on starting"},
    Fault{"start", "slow_start", &Faults::slow_start_seconds, "=SECONDS", "starts so much later"},
    Fault{"start", "slow_profiling", &Faults::slow_profiling_seconds, "=SECONDS",
          "starts so much later, unless it is told the size of its cache"},
    Fault{"start", "told_size_fails", &Faults::told_size_fails, "",
          "runs out of memory where it is told the size of its cache"},
    Fault{"start", "listen_late", &Faults::listen_late_seconds, "=SECONDS",
          "time between saying that it is ready and listening"},
    Fault{"start", "answer_503", &Faults::answer_503_seconds, "=SECONDS",
          "to everything, at first"},
    Fault{"start", "wrong_model", &Faults::wrong_model, "=NAME",
          "in its list of models and answers"},
    Fault{"start", "flood_log", &Faults::flood_log_bytes_per_second, "=BYTES_PER_SECOND",
          "on standard error, 256 MiB in all"},
    Fault{"load", "die_at_requests", &Faults::die_at_requests, "=N", "at the arrival of the Nth"},
    Fault{"load", "die_at_tokens", &Faults::die_at_tokens, "=N", "after so many"},
    Fault{"load", "die_in_flight", &Faults::die_in_flight, "=N", "with so many requests at once"},
    Fault{"load", "restart_mid_run", &Faults::restart_mid_run, "=N",
          "drops connections and counters at the Nth request"},
    Fault{"load", "stall_mid_stream", &Faults::stall_mid_stream, "=N",
          "sends nothing after so many events"},
    Fault{"answer", "every", &Faults::every, "=N", "the faults below are of each Nth answer only"},
    Fault{"answer", "only_first", &Faults::only_first, "=N",
          "they are of the first N answers only"},
    Fault{"answer", "http_status", &Faults::http_status, "[=STATUS]", "an error", 500},
    Fault{"answer", "abort", &Faults::abort_after, "[=N]", "ends after N tokens, reason abort", 2},
    Fault{"answer", "answer_tokens", &Faults::answer_tokens, "=N",
          "ends after N tokens, whatever was asked for, reason stop"},
    Fault{"answer", "hidden_tokens", &Faults::hidden_tokens, "=N",
          "the first N tokens are counted as reasoning and not sent"},
    Fault{"answer", "unread_text", &Faults::unread_tokens, "[=N]",
          "text (of the first N tokens) in a field that no interface has", 1 << 30},
    Fault{"answer", "no_usage", &Faults::no_usage, "", "counts no tokens"},
    Fault{"answer", "bad_usage", &Faults::bad_usage, "", "counts half the tokens"},
    Fault{"answer", "usage_unasked", &Faults::usage_unasked, "", "counts tokens unasked"},
    Fault{"answer", "refuse_field", &Faults::refused_fields, "=FIELD",
          "refuses requests with this field; again for more"},
    Fault{"answer", "vague_refusals", &Faults::vague_refusals, "", "which do not name the field"},
    Fault{"answer", "wrong_json", &Faults::wrong_json, "", "breaks off in its JSON"},
    Fault{"answer", "slower", &Faults::slower, "=FACTOR",
          "comes so many times slower (with --pace)"},
    Fault{"end", "ignore_term", &Faults::ignore_term, "", "only KILL and INT end it"},
    Fault{"end", "stop_slowly", &Faults::stop_slowly_seconds, "=SECONDS",
          "between TERM and its end"},
    Fault{"end", "grandchild_keeps_port", &Faults::grandchild_keeps_port, "",
          "a child holds the socket for 60 s and ignores TERM"},
};

/// Puts one value where it belongs; says what was wanted where it cannot.
struct Put {
    Faults& into;
    const Fault& fault;
    const std::string& value;

    [[noreturn]] void refuse(const std::string& wanted) const {
        throw UsageError("--fault " + std::string(fault.name) + ": " + wanted + " wanted, got '" +
                         value + "'");
    }
    [[nodiscard]] std::int64_t number(std::int64_t least, std::int64_t most,
                                      const std::string& wanted) const {
        const auto given = value.empty() && fault.default_value > 0
                               ? std::optional<std::int64_t>(fault.default_value)
                               : servetune::integer_of(value);
        if (!given || *given < least || *given > most) refuse(wanted);
        return *given;
    }
    void operator()(bool Faults::*place) const {
        if (!value.empty()) refuse("no value");
        into.*place = true;
    }
    void operator()(std::optional<int> Faults::*place) const {
        const bool code = fault.default_value < 256;
        into.*place = static_cast<int>(code ? number(0, 255, "an exit code, 0 ... 255,")
                                            : number(400, 599, "a status, 400 ... 599,"));
    }
    template <class Count>
    requires std::is_same_v<Count, std::int64_t> ||
        std::is_same_v<Count, std::optional<std::int64_t>>
    void operator()(Count Faults::*place) const {
        into.*place = number(1, std::numeric_limits<std::int64_t>::max(), "a count of 1 or more");
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
    void operator()(std::vector<std::string> Faults::*place) const {
        if (value.empty()) refuse("a name");
        (into.*place).push_back(value);
    }
};

Pace pace_of(const std::string& text) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    const auto first = servetune::real_of(parts.empty() ? "" : parts[0]);
    const auto gap = servetune::real_of(parts.size() < 2 ? "" : parts[1]);
    const std::string kind = parts.size() < 3 ? "" : parts[2];
    if (parts.size() > 3 || !first || !gap || *first < 0 || *gap < 0 ||
        !(kind.empty() || kind == "staggered" || kind == "lockstep"))
        throw UsageError("--pace FIRST,GAP[,staggered|lockstep] wanted, in seconds, got '" + text +
                         "'");
    return {*first, *gap,
            kind == "staggered"  ? Pace::Kind::staggered
            : kind == "lockstep" ? Pace::Kind::lockstep
                                 : Pace::Kind::exact};
}

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
    std::string noise, pace;
    std::string log_level = "info";
    std::vector<std::string> faults;
};

void declare(CLI::App& app, Written& written) {
    Options& options = written.options;
    app.prefix_command();
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    app.add_option("--hardware", options.hardware,
                   "The chip it pretends to run on: a name of search_spaces/hardware")
        ->capture_default_str();
    app.add_option("--model", options.model,
                   "Whose figures, where the command's name for the model is not known");
    app.add_option("--time-scale", options.time_scale, "Starts and computes so many times faster")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--start-scale", options.start_scale,
                   "Starts so many times faster (default: as --time-scale)")
        ->check(CLI::PositiveNumber);
    app.add_option("--seed", options.seed, "Of noise and answers")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--noise", written.noise,
                   "RUN[,STEP]: coefficients of variation, of a whole run and of each step");
    app.add_option("--pace", written.pace,
                   "FIRST,GAP[,staggered|lockstep]: seconds to the first token and between tokens, "
                   "in place of the cost model; /simengine/requests says what was sent when");
    app.add_option("--fault", written.faults, "NAME[=VALUE], again and again: " + fault_names())
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->allow_extra_args(false);
    app.add_option("--search-spaces", options.search_spaces,
                   "The folder with engines, models, hardware (default: where they are installed)");
    app.add_option("--devices", options.devices,
                   "A folder that stands for the machine's devices: the command's are taken in it")
        ->check(CLI::ExistingDirectory);
    app.add_option("--log-level", written.log_level, "info, or error")
        ->check(CLI::IsMember({"info", "error"}));
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
    if (!written.pace.empty()) options.pace = pace_of(written.pace);
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
        const auto fault = std::find_if(fault_table.begin(), fault_table.end(),
                                        [&](const Fault& known) { return known.name == name; });
        if (fault == fault_table.end()) {
            std::vector<std::string> names;
            for (const Fault& known : fault_table) names.emplace_back(known.name);
            throw UsageError("--fault: unknown name '" + name + "'" +
                             servetune::nearest_text(name, names));
        }
        const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
        std::visit(Put{result, *fault, value}, fault->place);
    }
    return result;
}

AnswerFaults Faults::of_answer(std::int64_t request) const {
    const bool chosen = request % every == 0 && (only_first == 0 || request <= only_first);
    return chosen ? AnswerFaults(*this) : AnswerFaults();
}

std::string fault_names() {
    std::string result;
    std::string_view at;
    for (const Fault& fault : fault_table) {
        if (fault.at != at) result += "\n(" + std::string(at = fault.at) + ") ";
        result += std::string(fault.name) + std::string(fault.value) + " " +
                  std::string(fault.meaning) + "; ";
    }
    return result;
}

}  // namespace simengine
