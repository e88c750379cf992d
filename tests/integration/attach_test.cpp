// SPDX-License-Identifier: Apache-2.0
// A server that somebody else runs: only the load is ours. The server is simengine on a fast clock.
#include "base/files.hpp"
#include "engine/load_level.hpp"
#include "servetune/attach_evaluator.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "support/process.hpp"
#include "support/simengine.hpp"
#include "support/stand_in.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::filesystem::path sources = SERVETUNE_SOURCE;

std::unique_ptr<SimEngine> served(const std::vector<std::string>& own = {}) {
    std::vector<std::string> words{"--time-scale",    "50",
                                   "--start-scale",   "1000",
                                   "--search-spaces", (sources / "search_spaces").string()};
    words.insert(words.end(), own.begin(), own.end());
    for (const char* word : {"vllm", "serve", "Qwen/Qwen3-8B", "--port", "0"})
        words.emplace_back(word);
    auto engine = std::make_unique<SimEngine>(SIMENGINE_PROGRAM, words);
    REQUIRE(engine->wait_until_ready());
    return engine;
}

Outcome measured_by(const std::string& url, const std::string& model = "Qwen/Qwen3-8B",
                    std::int64_t in_flight = 4) {
    Workload workload;
    workload.name = "small";
    workload.dataset.input_tokens = 64;
    workload.dataset.output_tokens = 32;
    workload.requests = 40;
    workload.ignore_eos = true;
    AttachEvaluator::Options options;
    options.url = url;
    options.measure.infrastructure_retries = 0;
    options.measure.warm_up_requests = 4;
    options.measure.load.stall_timeout_seconds = 2;
    AttachEvaluator evaluator(Catalogue(sources / "search_spaces").engine(std::string("vllm")),
                              model, {{workload}}, options);
    return evaluator.evaluate(Configuration({{std::string(load_concurrency), in_flight}}), {});
}

std::string study_of(const std::string& url, const std::string& more = "") {
    return "study: attached\nmodel: Qwen/Qwen3-8B\nengine: vllm\n"
           "workloads: [{workload: small, dataset: {kind: random, input_tokens: 64, output_tokens: "
           "32}, requests: 60, ignore_eos: true}]\n"
           "objective: {maximize: output_tokens_per_second, limits: [\"success_ratio >= 0.99\"]}\n"
           "space: {load.concurrency: [1, 4, 16]}\n"
           "strategy: exhaustive\nbudget: {trials: 10}\n" +
           more + "evaluator: {attach: {url: \"" + url + "\", warm_up: 4}}\n";
}

struct Run {
    int code = -1;
    std::string out{};
    std::string err{};
};
Run run_autotune(const TemporaryFolder& folder, const std::string& study,
                 const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{SERVETUNE_PROGRAM,
                                   "run",
                                   folder.write("study.yaml", study).string(),
                                   "--directory",
                                   (folder.path() / "study").string(),
                                   "--json"};
    words.insert(words.end(), more.begin(), more.end());
    ChildProcess program(words, folder.path());
    const auto code = program.wait_at_most(std::chrono::seconds(90));
    REQUIRE(code);
    return {*code, program.out(), program.err()};
}

}  // namespace

TEST_CASE(
    "attach: somebody else's server is measured at the load that is asked for, and goes on "
    "serving") {
    const auto engine = served();
    const Outcome few = measured_by(engine->url() + "/v1", "Qwen/Qwen3-8B", 1);
    const Outcome many = measured_by(engine->url(), "Qwen/Qwen3-8B", 8);
    REQUIRE(std::holds_alternative<Measurement>(few));
    REQUIRE(std::holds_alternative<Measurement>(many));
    const Metrics& slow = std::get<Measurement>(few).metrics;
    const Metrics& fast = std::get<Measurement>(many).metrics;
    CHECK(slow.at("success_ratio").value == 1);
    CHECK(fast.at("output_tokens").value == 40 * 32);
    CHECK(fast.at("output_tokens_per_second").value >
          2 * slow.at("output_tokens_per_second").value);
    CHECK(slow.count("trial_start_seconds") == 0);
    CHECK(engine->get("/health").status == 200);
}

TEST_CASE(
    "attach: a server that is not there is nobody's failed trial, one that serves something else "
    "is") {
    const std::string refused =
        message_of<IoError>([] { (void)measured_by("http://127.0.0.1:9"); });
    CHECK(has(refused, "does not serve"));
    CHECK(has(refused, "Connection refused"));
    CHECK(has(message_of<UsageError>([] { (void)measured_by("127.0.0.1:8000"); }),
              "http://127.0.0.1:8000"));
    const auto engine = served();
    const Outcome other = measured_by(engine->url(), "org/other");
    REQUIRE(std::holds_alternative<Failure>(other));
    CHECK(std::get<Failure>(other).kind == FailureKind::wrong_model);
}

TEST_CASE("attach: a server that is started anew meanwhile, or that dies, gives no number") {
    const auto restarts = served({"--fault", "restart_mid_run=30"});
    const Outcome outcome = measured_by(restarts->url());
    REQUIRE(std::holds_alternative<Failure>(outcome));
    CHECK(name_in(failure_kinds, std::get<Failure>(outcome).kind) == "crashed_under_load");
    const auto dies = served({"--fault", "die_at_requests=30"});
    CHECK_FALSE(message_of<IoError>([&] { (void)measured_by(dies->url()); }).empty());
}

TEST_CASE("attach: autotune finds the load that a running server bears, and says so") {
    const auto engine = served();
    const TemporaryFolder folder;
    const Run run = run_autotune(folder, study_of(engine->url()));
    INFO(run.err);
    REQUIRE(run.code == 0);
    const auto report = nlohmann::json::parse(run.out);
    CHECK(report.at("recommended").at("configuration").at("load.concurrency") == 16);
    CHECK(report.at("trials").at("failed") == 0);
    const std::string page = read_file(folder.path() / "study/report.md");
    CHECK(has(page, "the server at " + engine->url() + " as it is\n# under load.concurrency=16"));
    CHECK_FALSE(has(page, "vllm serve"));
    const std::string log = read_file(folder.path() / "study/run.log");
    CHECK(has(log, " trial 0: small measured in "));
    CHECK(has(log, " trial 0: told "));
    CHECK(engine->get("/health").status == 200);
}

TEST_CASE("attach: what cannot be is said before anything runs, a key stays secret") {
    const auto engine = served();
    const TemporaryFolder folder;
    const Run flags = run_autotune(folder, replaced(study_of(engine->url()), "space: {load",
                                                    "space: {max_num_seqs: [64, 128], load"));
    CHECK(flags.code == 2);
    CHECK(has(flags.err, "a server that runs keeps its flags"));
    const Run keyless = run_autotune(
        folder, study_of(engine->url() + "\", api_key_env: \"SERVETUNE_TEST_NO_SUCH_KEY"));
    CHECK(keyless.code == 2);
    CHECK(has(keyless.err, "SERVETUNE_TEST_NO_SUCH_KEY"));

    setenv("SERVETUNE_TEST_KEY", "sk-secret-4711", 1);
    const Run run =
        run_autotune(folder, study_of(engine->url() + "\", api_key_env: \"SERVETUNE_TEST_KEY"));
    unsetenv("SERVETUNE_TEST_KEY");
    REQUIRE(run.code == 0);
    std::string all = run.out + run.err;
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder.path() / "study"))
        if (file.is_regular_file()) all += read_file(file.path());
    CHECK_FALSE(has(all, "sk-secret-4711"));
}

TEST_CASE(
    "attach: each workload is warmed up by itself, and an unsteady run is measured once more") {
    const auto measured = [](const StandIn& server, std::size_t warm_up,
                             std::vector<Workload> workloads, std::vector<std::string>& said) {
        AttachEvaluator::Options options;
        options.url = server.url();
        options.measure.warm_up_requests = warm_up;
        options.measure.say = [&said](const std::string& line) { said.push_back(line); };
        AttachEvaluator evaluator(Catalogue(sources / "search_spaces").engine(std::string("vllm")),
                                  "m", {std::move(workloads)}, options);
        const Outcome outcome = evaluator.evaluate(Configuration{}, {});
        REQUIRE(std::holds_alternative<Measurement>(outcome));
        return std::get<Measurement>(outcome);
    };
    const auto workload = [](const char* name, std::int64_t requests, std::int64_t in_flight) {
        Workload result;
        result.name = name;
        result.dataset.input_tokens = 30;
        result.dataset.output_tokens = 32;
        result.requests = requests;
        result.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = in_flight};
        result.ignore_eos = true;
        return result;
    };
    const auto lines_with = [](const std::vector<std::string>& said, const std::string& text) {
        return count_if(said, [&](const std::string& line) { return has(line, text); });
    };
    std::vector<std::string> said;
    const StandIn cold({.first = 0.02, .gap = 0.006, .faults = {"slower=1.6", "only_first=56"}});
    const Measurement again = measured(cold, 0, {workload("one", 96, 8)}, said);
    CHECK(lines_with(said, "measured once more, not steady: the first ") == 1);
    CHECK(lines_with(said, "warm-up") == 0);
    CHECK(again.metrics.at("time_per_output_token_mean_seconds").value <
          0.0075);  // 6 ms; 9.6 ms while it is cold
    for (const Finding& finding : again.validity.findings) CHECK(finding.id != "steady");

    said.clear();
    const StandIn two({.first = 0.004, .gap = 0.001});
    (void)measured(two, 4, {workload("few", 12, 2), workload("many", 40, 8)}, said);
    CHECK(lines_with(said, "few, warm-up: ") == 1);
    CHECK(lines_with(said, "many, warm-up: ") == 1);
    CHECK(two.totals().most_in_flight == 8);
}

TEST_CASE(
    "attach: of several workloads the last one ends early once all of them together cannot be good "
    "enough any more") {
    // Time that the engine waits, not the processor's: a busy machine changes little of it.
    const StandIn engine({.first = 0.05, .gap = 0.005});
    const auto workload = [](const char* name, double weight) {
        Workload result;
        result.name = name;
        result.weight = weight;
        result.dataset.input_tokens = 64;
        result.dataset.output_tokens = 8;
        result.requests = 150;
        result.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 8};
        result.ignore_eos = true;
        return result;
    };
    AttachEvaluator::Options options;
    options.url = engine.url();
    options.measure.warm_up_requests = 4;
    AttachEvaluator evaluator(Catalogue(sources / "search_spaces").engine(std::string("vllm")), "m",
                              {{workload("first", 1), workload("last", 3)}}, options);
    const std::string rate = "output_tokens_per_second";
    EvaluationContext context;
    const auto measured = [&](std::optional<double> best) {
        context.to_beat.reset();
        if (best) context.to_beat = Incumbent{{rate, Direction::maximize}, *best};
        const Outcome outcome = evaluator.evaluate(Configuration{}, context);
        REQUIRE(std::holds_alternative<Measurement>(outcome));
        return std::get<Measurement>(outcome);
    };
    const Measurement whole = measured({});
    CHECK_FALSE(whole.validity.ended_early());
    const double usual = whole.metrics.at(rate).value;

    const Measurement lost = measured(usual * 4);
    REQUIRE(lost.validity.ended_early());
    CHECK(
        lost.metrics.contains("latency_mean_seconds@first"));  // the first one is measured in full
    CHECK_FALSE(lost.metrics.contains("latency_mean_seconds@last"));
    CHECK(lost.metrics.at("trial_saved_seconds").value > 0);
    CHECK(lost.metrics.at(rate).value < usual * 2);
    CHECK(lost.metrics.at(rate + "@last").value * 2 > whole.metrics.at(rate + "@last").value / 2);

    CHECK_FALSE(measured(usual * 0.4).validity.ended_early());

    // With the best's figures of each workload the first one is enough.
    context.to_beat = Incumbent{{rate, Direction::maximize},
                                usual * 6,
                                {{"first", {usual * 6, 1}}, {"last", {usual * 6, 50}}}};
    const Outcome outcome = evaluator.evaluate(Configuration{}, context);
    REQUIRE(std::holds_alternative<Measurement>(outcome));
    const auto& hopeless = std::get<Measurement>(outcome);
    REQUIRE(hopeless.validity.ended_early());
    CHECK(hopeless.metrics.contains(rate + "@first"));
    CHECK_FALSE(hopeless.metrics.contains(rate + "@last"));
    CHECK(hopeless.metrics.at("trial_saved_seconds").value >= 50);
    CHECK(hopeless.metrics.at("trial_had_to_reach").value == Approx(usual * 6 / 1.1));
    CHECK(hopeless.metrics.at(rate).value < usual * 2);
    CHECK(hopeless.metrics.at(rate).standard_error.value() > 0.1 * hopeless.metrics.at(rate).value);
}
