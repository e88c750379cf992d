// SPDX-License-Identifier: Apache-2.0
// Real engines without a GPU, each as scripts/get-* has put it. Asked: processes, counts, causes.
// Not asked: speed, of which two busy processors show nothing.
#include "support/real_engines.hpp"
#include "support/autotune.hpp"
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/deployment.hpp"
#include "servetune/load_test.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study_file/yaml.hpp"

#include <nlohmann/json.hpp>

#include <csignal>
#include <optional>
#include <sstream>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;
const fs::path engine_files = fs::path(SERVETUNE_SOURCE) / "search_spaces";
constexpr double a_start_seconds = 300;  // on a machine that does other things too

Engine engine_of(const RealEngine& real) { return engine_started_by(real.program, real.name); }

std::string four_trials(const RealEngine& real) {
    std::string arguments, environment;
    for (const std::string& word : real.arguments)
        arguments += (arguments.empty() ? "" : ", ") + word;
    for (const auto& [name, value] : real.environment)
        environment += (environment.empty() ? "" : ", ") + name + ": \"" + value + "\"";
    return "study: real\nmodel: " + real.model + "\nengine: " + real.name + "\narguments: [" +
           arguments +
           "]\nworkloads:\n"
           "  - {workload: small, dataset: {kind: random, input_tokens: 200, output_tokens: 32}, "
           "requests: 16, arrival: {concurrency: 4}, "
           "ignore_eos: true}\n"
           "objective: {maximize: output_tokens_per_second, limits: [\"success_ratio >= "
           "0.99\"]}\nspace:\n" +
           real.space +
           "others: default\nstrategy: {staged: {compare_with: baseline, replicates: 1, stages: [" +
           real.stages +
           "]}}\ndecision: published\nbudget: {trials: 4}\n"
           "stress: off\nevaluator: {deploy: {ready_within: 300s, stop_within: 10s, warm_up: 2, "
           "watch: off, "
           "environment: {" +
           environment + "}}}\n";
}

/// What a server counts under this name, over all labels; nothing where it has no such count.
std::optional<double> counted(std::uint16_t port, const std::string& name) {
    std::istringstream lines(http(port, "/metrics").body);
    std::optional<double> result;
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(name) && (line[name.size()] == '{' || line[name.size()] == ' '))
            result = result.value_or(0) + std::atof(line.c_str() + line.rfind(' '));
    return result;
}

/// The port in the command of an engine that the study of this mark has started; 0: none yet.
std::uint16_t port_of_started(const std::string& mark) {
    std::this_thread::sleep_for(
        100ms);  // whoever asks again and again leaves the engine its processor
    const std::string before = "--port ";
    for (const Leftover& one : leftovers(mark))
        if (const auto at = one.command.find(before); at != std::string::npos)
            return static_cast<std::uint16_t>(std::atoi(one.command.c_str() + at + before.size()));
    return 0;
}

/// `autotune run` of four trials is killed and ended while the engine starts and while it answers,
/// goes on each time, and comes to its end.
void tunes_and_leaves_nothing(const RealEngine& real) {
    if (real.program.empty()) return;
    const TemporaryFolder folder;
    const std::string file = folder.write("study.yaml", four_trials(real)).string();
    const fs::path results = folder.path() / "results";
    const std::string mark = fs::absolute(results).string();
    const std::vector<std::string> words{
        "/usr/bin/env",
        "PATH=" + fs::path(real.program).parent_path().string() + ":" + std::getenv("PATH"),
        "SERVETUNE_SEARCH_SPACES=" + engine_files.string(),
        "/bin/sh",
        "-c",
        real.limits + " && exec \"$0\" \"$@\"",
        SERVETUNE_PROGRAM,
        "run",
        file,
        "--directory",
        results.string(),
        "--json",
        "--quiet"};
    const std::string generated = engine_of(real).counters.at("generated_tokens");
    std::string said;
    for (const bool answering : {false, true})
        for (const int number : {SIGKILL, SIGTERM}) {
            INFO((number == SIGKILL ? "kill -9" : "TERM")
                 << (answering ? " under load" : " while it starts"));
            ChildProcess run(words, folder.path());
            REQUIRE(comes_true([&] { return port_of_started(mark) != 0; }, a_start_seconds));
            if (answering) {  // a start that failed by the machine is tried again, on another port
                const auto answers = [&] {
                    return counted(port_of_started(mark), generated).value_or(0) > 0;
                };
                REQUIRE(comes_true(answers, 2 * a_start_seconds));
            } else {
                // vLLM told to end while its second process imports may wait for that for ever.
                if (real.many_processes)
                    REQUIRE(comes_true(
                        [&] { return port_of_started(mark) != 0 && leftovers(mark).size() > 1; },
                        a_start_seconds));
                std::this_thread::sleep_for(2s);
            }
            const auto begin = std::chrono::steady_clock::now();
            run.signal(number);
            const auto code = run.wait_at_most(60s);
            INFO(run.err());
            CHECK(code == (number == SIGKILL ? 128 + SIGKILL : 128 + SIGINT));
            CHECK(comes_true([&] { return leftovers(mark).empty(); }, number == SIGKILL ? 40 : 0));
            said += "; " + std::to_string(seconds_since(begin)) + " s to end after signal " +
                    std::to_string(number);
        }

    const auto begin = std::chrono::steady_clock::now();
    ChildProcess run(words, folder.path());
    const auto code = run.wait_at_most(1500s);
    INFO(run.err());
    REQUIRE(code == 0);
    WARN(real.name << ": four trials in " << seconds_since(begin) << " s" << said);
    CHECK(leftovers(mark).empty());
    const std::vector<Trial> trials = SqliteJournal::read(results).trials();
    CHECK(trials.size() == 4);
    for (const Trial& trial : trials) {
        INFO(trial.configuration.text());
        INFO((trial.failure() != nullptr ? trial.failure()->message : ""));
        const Measurement* measurement = trial.measurement();
        REQUIRE(measurement != nullptr);
        const auto figure = [&](const std::string& name) {
            const auto* at = entry_in(measurement->metrics, name);
            return at == nullptr ? -1 : at->value;
        };
        CHECK(figure("success_ratio") == 1);
        CHECK(figure("output_tokens") == 16 * 32);
        CHECK(figure("server_output_tokens") == 16 * 32);
        if (const Value* method = trial.configuration.find("speculative_method"))
            CHECK(measurement->metrics.contains("server_drafted_tokens") ==
                  (*method != Value("none")));
        CHECK(figure("server_input_tokens") +
                  (real.counts_cached ? 0 : figure("server_prefix_hit_tokens")) ==
              figure("input_tokens"));
    }
}

/// A start that must fail, and how it is read.
struct FailingStart {
    const char* what;
    FailureKind kind;
    std::string words;  ///< of the log, that the message must hold
    std::vector<std::string> more{};
    std::map<std::string, std::string> environment{};
    std::string model{};
    std::string limits{};
};

DeployOptions options_of(const RealEngine& real, const fs::path& folder) {
    DeployOptions options;
    options.folder = folder / "trial";
    options.environment = real.environment;
    options.ready_within_seconds = a_start_seconds;
    return options;
}

Command command_of(const RealEngine& real, const std::string& model, const std::string& limits,
                   int port, const std::vector<std::string>& more) {
    Command command;
    command.argv = {"/bin/sh", "-c", limits + " && exec \"$0\" \"$@\""};
    const std::map<std::string, std::string> places{
        {"{model}", model}, {"{host}", "127.0.0.1"}, {"{port}", std::to_string(port)}};
    for (const std::string& word : engine_of(real).launch)
        command.argv.push_back(places.contains(word) ? places.at(word) : word);
    command.argv.insert(command.argv.end(), real.arguments.begin(), real.arguments.end());
    command.argv.insert(command.argv.end(), more.begin(), more.end());
    return command;
}

void reads_failing_starts(const RealEngine& real, const std::vector<FailingStart>& starts) {
    if (real.program.empty()) return;
    const TemporaryFolder folder;
    const Engine engine = engine_of(real);
    for (const FailingStart& one : starts) {
        const ReservedPort port;
        DeployOptions options = options_of(real, folder.path());
        for (const auto& [name, value] : one.environment) options.environment[name] = value;
        const std::string model = one.model.empty() ? real.model : one.model;
        const Deployment deployment(
            engine,
            command_of(real, model, one.limits.empty() ? real.limits : one.limits, port.number(),
                       one.more),
            model, port, options);
        INFO(one.what);
        REQUIRE(deployment.started().failure);
        INFO(deployment.started().failure->message);
        WARN(real.name << ": " << one.what << ": " << deployment.started().seconds << " s");
        CHECK(name_in(failure_kinds, deployment.started().failure->kind) ==
              name_in(failure_kinds, one.kind));
        CHECK(has(deployment.started().failure->message, one.words));
    }
}

/// A server that somebody else's engine would have to share its port with.
class TakenPort {
public:
    TakenPort() {
        sockaddr_in address = loopback(static_cast<std::uint16_t>(port_.number()));
        REQUIRE(bind(socket_.id(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
        REQUIRE(listen(socket_.id(), 1) == 0);
    }
    [[nodiscard]] std::string number() const { return std::to_string(port_.number()); }

private:
    ReservedPort port_;
    Socket socket_;
};

/// One server: every count that the engine file names, what a prefix cache forgets, guesses, and
/// the tokens of a load test by both counts.
void answers_and_counts(const RealEngine& real, const std::vector<std::string>& more) {
    if (real.program.empty()) return;
    const TemporaryFolder folder;
    const Engine engine = engine_of(real);
    const ReservedPort reserved;
    DeployOptions options = options_of(real, folder.path());
    for (const auto& [path, environment] : engine.between_runs)
        options.environment.insert(environment.begin(), environment.end());
    Deployment deployment(engine,
                          command_of(real, real.model, real.limits, reserved.number(), more),
                          real.model, reserved, options);
    INFO((deployment.started().failure ? deployment.started().failure->message : ""));
    REQUIRE_FALSE(deployment.started().failure);
    WARN(real.name << ": ready after " << deployment.started().seconds << " s");
    const auto port = static_cast<std::uint16_t>(reserved.number());
    const auto count = [&](const std::string& what) {
        return counted(port, engine.counters.at(what));
    };

    std::string prompt;
    for (int i = 0; i < 100; ++i) prompt += "one two three four ";
    const auto ask = [&] {
        const HttpAnswer answer = http(port, "/v1/completions",
                                       Json{{"model", deployment.endpoint().model},
                                            {"prompt", prompt},
                                            {"max_tokens", 64},
                                            {"temperature", 0},
                                            {"ignore_eos", true}}
                                           .dump());
        INFO(answer.body);
        REQUIRE(answer.status == 200);
        CHECK(Json::parse(answer.body)["usage"]["completion_tokens"] == 64);
    };
    if (!engine.between_runs.empty()) {
        ask();
        const double before = count("prefix_hit_tokens").value_or(0);
        ask();
        const double repeated = count("prefix_hit_tokens").value_or(0);
        CHECK(repeated > before);
        CHECK(deployment.reset_cache());
        ask();
        CHECK(count("prefix_hit_tokens") == repeated);
    } else {
        ask();
    }
    for (const auto& [what, name] : engine.counters) {
        INFO(what << ": " << name);
        if (what == "url" || (what == "preemptions" && engine.name == "sglang")) continue;
        // A histogram has no sample of its own name; of a sum the first stands for all.
        const std::string first = name.substr(0, name.find(' '));
        CHECK((counted(port, first) || counted(port, first + "_count")));
    }
    if (engine.counters.contains("drafted_tokens")) {
        CHECK(count("drafted_tokens").value_or(0) > 0);
        CHECK(count("accepted_tokens").value_or(0) > 0);
        CHECK(count("accepted_tokens").value_or(0) <= count("drafted_tokens").value_or(0));
    }
    LoadTest test;
    test.endpoint = deployment.endpoint();
    test.workload.name = "random";
    test.workload.dataset = {
        .kind = Dataset::Kind::random, .input_tokens = 200, .output_tokens = 48};
    test.workload.requests = 16;
    test.workload.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 4};
    test.workload.ignore_eos = true;
    test.salt = 1;
    const BenchmarkResult figures = run_load_test(test).statistics.result;
    CHECK(figures.successful_requests == 16);
    CHECK(figures.output_tokens == 16 * 48);
    CHECK(figures.server.output_tokens == figures.output_tokens);
    const Ended ended = deployment.stop();
    INFO(ended.report);
    CHECK(ended.remaining.empty());
}

}  // namespace

TEST_CASE(
    "real engines: llama-server is tuned, killed and ended at its start and under load, and "
    "nothing is left") {
    const TemporaryFolder folder;
    tunes_and_leaves_nothing(real_llama(folder));
}

TEST_CASE(
    "real engines: vLLM is tuned, killed and ended at its start and under load, and nothing is "
    "left",
    "[.long][engines]") {
    tunes_and_leaves_nothing(real_vllm());
}

TEST_CASE(
    "real engines: SGLang is tuned, killed and ended at its start and under load, and nothing is "
    "left",
    "[.long][engines]") {
    tunes_and_leaves_nothing(real_sglang());
}

TEST_CASE("real engines: vLLM's counts, prefix cache and guesses are as the engine file says",
          "[vllm]") {
    answers_and_counts(
        real_vllm(),
        {"--enforce-eager", "--speculative-config",
         R"({"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 3})"});
}

TEST_CASE("real engines: SGLang's counts and prefix cache are as the engine file says",
          "[.long][engines]") {
    answers_and_counts(real_sglang(), {"--attention-backend", "torch_native", "--sampling-backend",
                                       "pytorch", "--mem-fraction-static", "0.3",
                                       "--max-running-requests", "8", "--enable-metrics"});
}

TEST_CASE("real engines: failing starts of llama-server are read as what they are") {
    const TakenPort taken;
    const TemporaryFolder folder;
    const std::string whole = TinyModel{}.gguf();
    const auto file = [&](const char* name, const std::string& bytes) {
        return folder.write(name, bytes).string();
    };
    std::string other = whole;
    for (auto at = other.find("llama"); at != std::string::npos; at = other.find("llama", at))
        other.replace(at, 5, "lxama");
    const std::string little_memory = "ulimit -v 2000000";
    reads_failing_starts(
        real_llama(folder),
        {{"a model that is not there",
          FailureKind::wrong_model,
          "failed to open GGUF file",
          {},
          {},
          "absent.gguf"},
         {"a folder", FailureKind::wrong_model, "", {}, {}, folder.path().string()},
         {"no GGUF file",
          FailureKind::wrong_model,
          "invalid magic characters",
          {},
          {},
          file("text.gguf", "hello, this is no model")},
         {"a broken header",
          FailureKind::wrong_model,
          "failed to read key-value pairs",
          {},
          {},
          file("head.gguf", whole.substr(0, 1000))},
         {"a download that broke off",
          FailureKind::wrong_model,
          "data is not within the file bounds",
          {},
          {},
          file("cut.gguf", whole.substr(0, whole.size() / 2))},
         {"an architecture that it does not know",
          FailureKind::wrong_model,
          "unknown model architecture",
          {},
          {},
          file("other.gguf", other)},
         {"a flag that it does not know",
          FailureKind::rejected_flags,
          "invalid argument: --no-such-flag",
          {"--no-such-flag"}},
         {"a value that it does not take",
          FailureKind::rejected_flags,
          "Unsupported cache type: q9",
          {"--cache-type-k", "q9"}},
         {"a device that it does not have",
          FailureKind::rejected_flags,
          "invalid device: CUDA0",
          {"--device", "CUDA0"}},
         {"a quantized V cache without flash attention",
          FailureKind::unsupported,
          "quantized V cache requires flash_attn to be enabled",
          {"--flash-attn", "off", "--cache-type-v", "q8_0"}},
         {"a cache larger than the memory",
          FailureKind::out_of_memory,
          "insufficient memory (attempted to allocate",
          {"--ctx-size", "4000000", "--parallel", "1", "--fit", "off"},
          {},
          {},
          little_memory},
         {"a cache whose list of cells is larger than the memory",
          FailureKind::out_of_memory,
          "std::bad_alloc",
          {"--ctx-size", "1000000000", "--parallel", "1", "--fit", "off"},
          {},
          {},
          little_memory},
         {"a port that somebody has",
          FailureKind::infrastructure,
          "couldn't bind",
          {"--port", taken.number()}}});
}

TEST_CASE("real engines: failing starts of vLLM are read as what they are", "[vllm]") {
    const TakenPort taken;
    const TemporaryFolder folder;
    fs::create_directories(folder.path() / "empty");
    reads_failing_starts(real_vllm(),
                         {{"a flag that it does not know",
                           FailureKind::rejected_flags,
                           "unrecognized arguments: --no-such-flag",
                           {"--no-such-flag"}},
                          {"a value that it does not take",
                           FailureKind::rejected_flags,
                           "invalid choice: 'fp9'",
                           {"--kv-cache-dtype", "fp9"}},
                          {"fewer tokens in a step than sequences",
                           FailureKind::rejected_flags,
                           "must be greater than or equal to max_num_seqs",
                           {"--max-num-seqs", "64", "--max-num-batched-tokens", "32"}},
                          {"a context longer than the model's",
                           FailureKind::rejected_flags,
                           "is greater than the derived max_model_len",
                           {"--max-model-len", "8192"}},
                          {"asynchronous scheduling with guesses from the prompt",
                           FailureKind::rejected_flags,
                           "Currently, async scheduling is only supported with",
                           {"--async-scheduling", "--speculative-config",
                            R"({"method": "ngram", "num_speculative_tokens": 3})"}},
                          {"a cache larger than the memory",
                           FailureKind::out_of_memory,
                           "on kv cache allocation is less than requested memory for kv",
                           {"--enforce-eager", "--kv-cache-memory-bytes", "100000000000000"}},
                          {"a cache that holds no request",
                           FailureKind::out_of_memory,
                           "To serve at least one request with the model",
                           {"--enforce-eager", "--kv-cache-memory-bytes", "100000"}},
                          {"a model of the hub, offline",
                           FailureKind::wrong_model,
                           "Cannot find an appropriate cached snapshot folder",
                           {},
                           {{"HF_HUB_CACHE", (folder.path() / "empty").string()}},
                           "Qwen/Qwen3-0.6B"},
                          {"a folder that is no model",
                           FailureKind::wrong_model,
                           "Invalid repository ID or local directory specified",
                           {},
                           {},
                           (folder.path() / "empty").string()},
                          {"a port that somebody has",
                           FailureKind::infrastructure,
                           "Address already in use",
                           {"--port", taken.number()}}});
}

TEST_CASE("real engines: failing starts of SGLang are read as what they are", "[.long][engines]") {
    const TakenPort taken;
    const TemporaryFolder folder;
    fs::create_directories(folder.path() / "empty");
    const std::vector<std::string> on_a_processor{"--attention-backend", "torch_native",
                                                  "--sampling-backend", "pytorch"};
    const auto and_more = [&](std::vector<std::string> more) {
        more.insert(more.begin(), on_a_processor.begin(), on_a_processor.end());
        return more;
    };
    reads_failing_starts(
        real_sglang(),
        {{"a flag that it does not know",
          FailureKind::rejected_flags,
          "unrecognized arguments: --no-such-flag",
          {"--no-such-flag"}},
         {"a value that it does not take",
          FailureKind::rejected_flags,
          "invalid choice: 'fp9'",
          {"--kv-cache-dtype", "fp9"}},
         {"a context longer than the model's", FailureKind::rejected_flags,
          "is greater than the derived context_length", and_more({"--context-length", "8192"})},
         {"a cache larger than the memory",
          FailureKind::out_of_memory,
          "can't allocate memory",
          and_more({"--max-total-tokens", "80000000", "--mem-fraction-static", "0.9"}),
          {},
          {},
          "ulimit -v 16000000"},
         {"a model of the hub, offline",
          FailureKind::wrong_model,
          "Cannot find the requested files in the disk cache",
          and_more({}),
          {{"HF_HUB_CACHE", (folder.path() / "empty").string()}},
          "Qwen/Qwen3-0.6B"},
         {"a folder that is no model",
          FailureKind::wrong_model,
          "Should have a `model_type` key in its config.json",
          and_more({}),
          {},
          (folder.path() / "empty").string()},
         {"a port that somebody has", FailureKind::infrastructure, "address already in use",
          and_more({"--port", taken.number()})}});
}

TEST_CASE("real engines: validate asks each engine's own help", "[vllm]") {
    const TemporaryFolder folder;
    for (const RealEngine& real : {real_llama(folder), real_vllm(), real_sglang()}) {
        if (real.program.empty()) continue;
        INFO(real.name);
        const Ran validated = ran(
            {"/usr/bin/env",
             "PATH=" + fs::path(real.program).parent_path().string() + ":" + std::getenv("PATH"),
             "SERVETUNE_SEARCH_SPACES=" + engine_files.string(), SERVETUNE_PROGRAM, "validate",
             folder.write("study.yaml", four_trials(real)).string()},
            folder.path());
        INFO(validated.out << validated.err);
        CHECK(validated.code == 0);
        CHECK(has(validated.out + validated.err, " --help"));
        CHECK(has(validated.out + validated.err, " lists "));
        CHECK_FALSE(has(validated.out + validated.err, "not consulted"));
    }
}
