// SPDX-License-Identifier: Apache-2.0
// A real engine tuned end to end: `autotune run` starts llama-server, loads it, reads why it fails,
// ends it. Which configuration wins on a machine that does other things meanwhile is not asked.
#include "support/autotune.hpp"
#include "support/http.hpp"
#include "support/process.hpp"
#include "support/real_engines.hpp"
#include "support/test.hpp"
#include "support/tiny_model.hpp"

#include "base/files.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/sqlite_journal.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <memory>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;
const fs::path shipped_spaces = fs::path(SERVETUNE_SOURCE) / "search_spaces";

/// The engine file without its rule against a quantized V cache that has no flash attention: what
/// forbids it here is the engine itself.
std::string without_the_rule(std::string yaml) {
    const auto at = yaml.find("  - forbid: {flash_attention: \"off\", cache_type_v:");
    REQUIRE(at != std::string::npos);
    const auto because = yaml.find('\n', at);
    yaml.erase(at, yaml.find('\n', because + 1) + 1 - at);
    return yaml;
}

/// Every stage is compared with the default. Three of the eight trials are kept for the
/// confirmation, which only what looks better than the default, here by noise, needs.
constexpr const char* study = R"(study: llama-tiny
model: ${GGUF}
engine: engine.yaml
workloads:
  - {workload: small, dataset: {kind: random, input_tokens: 64, output_tokens: 16}, requests: 12, arrival: {concurrency: 4}, ignore_eos: true}
objective: {maximize: output_tokens_per_second, limits: ["success_ratio >= 0.99"]}
space:
  threads: 1
  ctx_size: 32768
  parallel: {choice: [engine, 8], ordered: true}
  batch_size: {choice: [engine, 64], ordered: true}
  ubatch_size: {choice: [engine, 32], ordered: true}
  cache_type_k: {choice: [engine, q8_0]}
  cache_type_v: {choice: [engine, q8_0]}
  flash_attention: {choice: [engine, "on", "off"]}
others: default
strategy:
  staged:
    compare_with: baseline
    replicates: 1
    stages:
      - {what the engine refuses: [{flash_attention: "off", cache_type_v: q8_0}]}
      - parallel
      - batch_size
      - ubatch_size
      - cache_type_k
      - cache_type_v
      - {without flash attention: [{flash_attention: "off"}]}
budget: {trials: 8}
stress: off
evaluator: {deploy: {ready_within: 60s, stop_within: 20s, warm_up: 2}}
)";

/// The ports that the servers of the study said they listened on.
std::vector<std::uint16_t> ports_in(const fs::path& trials) {
    std::vector<std::uint16_t> result;
    for (const auto& trial : fs::directory_iterator(trials)) {
        const std::string log = read_file(trial.path() / "engine.log");
        const std::string before = "listening on http://127.0.0.1:";
        if (const auto at = log.find(before); at != std::string::npos)
            result.push_back(
                static_cast<std::uint16_t>(std::atoi(log.c_str() + at + before.size())));
    }
    return result;
}

}  // namespace

TEST_CASE(
    "llama-server tuned: at most eight trials, the one that it refuses read rightly, every token "
    "counted twice, nothing left") {
    const std::string program = llama_server();
    if (program.empty()) return;
    const TemporaryFolder folder;
    const std::string model =
        folder.write("tiny.gguf", TinyModel{.context_tokens = 32768}.gguf()).string();
    (void)folder.write("engine.yaml",
                       without_the_rule(read_file(shipped_spaces / "engines/llama.cpp.yaml")));
    const std::string file = folder.write("study.yaml", study).string();
    const fs::path results = folder.path() / "results";
    const std::string path = fs::path(program).parent_path().string() + ":" + std::getenv("PATH");
    ChildProcess run({"/usr/bin/env", "PATH=" + path, "GGUF=" + model,
                      "SERVETUNE_SEARCH_SPACES=" + shipped_spaces.string(), SERVETUNE_PROGRAM,
                      "run", file, "--directory", results.string(), "--json", "--quiet"},
                     folder.path());
    const auto code = run.wait_at_most(900s);
    INFO(run.err());
    REQUIRE(code == 0);

    const Json report = Json::parse(run.out());
    INFO(report.dump(1));
    const auto told = report.at("trials").at("told").get<std::size_t>();
    CHECK(told >= 5);
    CHECK(told <= 8);
    REQUIRE(report.at("trials").at("failed") == 1);
    const Json& failure = report.at("failures").at(0);
    CHECK(failure.at("kind") == "unsupported");
    CHECK(has(failure.at("message").get<std::string>(),
              "quantized V cache requires flash_attn to be enabled"));
    CHECK(failure.at("configuration").at("flash_attention") == "off");
    CHECK(failure.at("configuration").at("cache_type_v") == "q8_0");
    CHECK(fs::exists(failure.at("log").get<std::string>()));
    for (const Json& audited : report.at("audit"))
        for (const Json& finding : audited.at("findings")) {
            INFO(finding.dump());
            CHECK(finding.at("id") != "complete");
            // "server" also tells of prompt tokens from the cache, and here it may: a slot that has
            // served before keeps the words that the chat template puts before every prompt. That
            // its count of generated tokens is another than ours it must not say.
            CHECK(!has(finding.at("left").get<std::string>(), "server generated"));
        }

    const std::vector<Trial> trials = SqliteJournal::read(results).trials();
    CHECK(trials.size() == told);
    for (const Trial& trial : trials) {
        const Measurement* measurement = trial.measurement();
        if (measurement == nullptr) continue;
        INFO(trial.configuration.text());
        CHECK(measurement->metrics.at("success_ratio").value == 1);
        CHECK(measurement->metrics.at("output_tokens").value == 12 * 16);
        CHECK(measurement->metrics.at("server_output_tokens").value == 12 * 16);
        CHECK(measurement->metrics.at("server_input_tokens").value +
                  measurement->metrics.at("server_prefix_hit_tokens").value ==
              measurement->metrics.at("input_tokens").value);
    }

    CHECK(leftovers(results.string()).empty());
    const std::vector<std::uint16_t> ports = ports_in(results / "trials");
    CHECK(ports.size() == told - 1);
    for (const std::uint16_t port : ports) CHECK(http(port, "/health").status == 0);
}

TEST_CASE("llama-server: the laptop's study is one that it takes") {
    const std::string program = llama_server();
    if (program.empty()) return;
    const TemporaryFolder folder;
    const std::string model =
        folder.write("tiny.gguf", TinyModel{.context_tokens = 16384}.gguf()).string();
    const auto autotune = [&](std::vector<std::string> words) {
        words.insert(
            words.begin(),
            {"/usr/bin/env",
             "PATH=" + fs::path(program).parent_path().string() + ":" + std::getenv("PATH"),
             "GGUF=" + model, "SERVETUNE_SEARCH_SPACES=" + shipped_spaces.string(),
             SERVETUNE_PROGRAM});
        ChildProcess process(words, folder.path());
        const auto code = process.wait_at_most(
            900s);  // a busy machine takes minutes, and disturbed trials are measured again
        return std::pair(code.value_or(-1), process.out() + process.err());
    };
    const std::string file = (shipped_spaces / "studies/llama-cpp-laptop.yaml").string();
    const auto [valid, said] = autotune({"validate", file});
    INFO(said);
    CHECK(valid == 0);
    CHECK(has(said, "'llama-server --help' lists"));
    const auto [ran, told] = autotune(
        {"run", file, "--trials", "1", "--directory", (folder.path() / "results").string()});
    INFO(told);
    CHECK(ran == 0);
    const bool kept = has(told, "Keep the default.");
    CHECK((kept || has(told, "Inconclusive. ")));  // as the machine is quiet or not
    CHECK(leftovers((folder.path() / "results").string()).empty());
}

TEST_CASE(
    "llama-server tuned beside a second load that comes or goes halfway: nothing is better, and "
    "nothing is recommended",
    "[.long]") {
    const std::string program = llama_server();
    if (program.empty()) return;
    for (const bool comes : {true, false}) {
        INFO((comes ? "the load comes" : "the load goes"));
        const TemporaryFolder folder;
        const std::string model = folder
                                      .write("tiny.gguf", TinyModel{.embedding = 512,
                                                                    .layers = 6,
                                                                    .heads = 8,
                                                                    .kv_heads = 4,
                                                                    .feed_forward = 1536}
                                                              .gguf())
                                      .string();
        const std::string file =
            folder
                .write("study.yaml",
                       "study: disturbed\nmodel: ${GGUF}\nengine: llama.cpp\nworkloads:\n"
                       "  - {workload: small, dataset: {kind: random, input_tokens: 64, "
                       "output_tokens: 32}, requests: 24, arrival: "
                       "{concurrency: 4}, ignore_eos: true}\n"
                       "objective: {maximize: output_tokens_per_second, limits: [\"success_ratio "
                       ">= 0.99\"]}\n"
                       "space:\n  threads_http: {choice: [engine, 4, 8]}\n  "
                       "slot_prompt_similarity: {choice: [engine, 0.3, 0.6]}\n"
                       "  ctx_checkpoints: {choice: [32, 16, 8]}\n"
                       "others: default\nstrategy: random\nnoise_cv: 3%\ndefault_again: 5\nbudget: "
                       "{trials: 18}\n"
                       "stress: off\nevaluator: {deploy: {ready_within: 60s, stop_within: 20s, "
                       "warm_up: 4}}\n")
                .string();
        const fs::path results = folder.path() / "results";
        const std::string path =
            fs::path(program).parent_path().string() + ":" + std::getenv("PATH");
        const TemporaryFolder of_load;
        std::vector<std::unique_ptr<ChildProcess>> load;
        const auto begin_load = [&] {
            for (int i = 0; i < 2; ++i)
                load.push_back(std::make_unique<ChildProcess>(
                    std::vector<std::string>{"/bin/sh", "-c", "while :; do :; done"},
                    of_load.path()));
        };
        if (!comes) begin_load();
        ChildProcess run({"/usr/bin/env", "PATH=" + path, "GGUF=" + model,
                          "SERVETUNE_SEARCH_SPACES=" + shipped_spaces.string(), SERVETUNE_PROGRAM,
                          "run", file, "--directory", results.string(), "--json", "--quiet"},
                         folder.path());
        for (int tries = 0; tries < 6000 && !comes_to_trial(results, 10); ++tries)
            std::this_thread::sleep_for(50ms);
        if (comes) begin_load();
        else load.clear();
        const auto code = run.wait_at_most(900s);
        INFO(run.err());
        REQUIRE(code == 0);
        const Json report = Json::parse(run.out());
        WARN((comes ? "load comes: " : "load goes: ")
             << report.at("verdict") << ", " << report.value("reason", ""));
        CHECK(report.at("verdict") != "recommended");
    }
}
