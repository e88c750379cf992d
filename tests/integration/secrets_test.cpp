// SPDX-License-Identifier: Apache-2.0
// Keys and passwords are used and never shown: not on the screen, not in any file of the study.
#include "support/deployed_study.hpp"
#include "support/script.hpp"
#include "support/simengine.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/detail/base/redactor.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string password = "sk-4711-not-to-be-seen";

struct KeyInEnvironment {
    explicit KeyInEnvironment(const std::string& key = password) {
        setenv("SERVETUNE_TEST_SECRET", key.c_str(), 1);
    }
    ~KeyInEnvironment() { unsetenv("SERVETUNE_TEST_SECRET"); }
};

/// All that a study's folder holds, but the engine's own words.
std::string files_of(const fs::path& folder) {
    std::string all;
    for (const auto& file : fs::recursive_directory_iterator(folder))
        if (file.is_regular_file() && file.path().filename() != "engine.log")
            all += read_file(file.path());
    return all;
}

std::unique_ptr<SimEngine> engine_with(const std::vector<std::string>& more) {
    std::vector<std::string> words{"--time-scale",
                                   "50",
                                   "--start-scale",
                                   "1000",
                                   "--search-spaces",
                                   SERVETUNE_SOURCE "/search_spaces",
                                   "vllm",
                                   "serve",
                                   "Qwen/Qwen3-8B",
                                   "--port",
                                   "0"};
    words.insert(words.end(), more.begin(), more.end());
    auto engine = std::make_unique<SimEngine>(SIMENGINE_PROGRAM, words);
    REQUIRE(engine->wait_until_ready());
    return engine;
}

std::string attached(const std::string& attach) {
    return "study: attached\nmodel: Qwen/Qwen3-8B\nengine: vllm\n"
           "workloads: [{workload: small, dataset: {kind: random, input_tokens: 64, output_tokens: "
           "32}, requests: 20, ignore_eos: true}]\n"
           "objective: {maximize: output_tokens_per_second}\nspace: {load.concurrency: [1, "
           "4]}\nstrategy: exhaustive\n"
           "evaluator: {attach: {" +
           attach + ", warm_up: 2}}\n";
}

Ran run_in(const TemporaryFolder& folder, const std::string& study,
           const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{SERVETUNE_PROGRAM, "run",
                                   folder.write("study.yaml", study).string(), "--directory",
                                   (folder.path() / "study").string()};
    words.insert(words.end(), more.begin(), more.end());
    return ran(words, folder.path());
}

}  // namespace

TEST_CASE(
    "secrets: a key that an engine gets as an argument and our requests as api_key_env is shown "
    "nowhere") {
    const KeyInEnvironment key;
    DeployedStudy::Text text;
    text.space = "{max_num_seqs: {choice: [4, 32], default: 4}}";
    text.deploy += ", api_key_env: SERVETUNE_TEST_SECRET";
    text.more = "budget: {trials: 2}\narguments: [--api-key, \"${SERVETUNE_TEST_SECRET}\"]\n";
    const DeployedStudy study(text);
    const Ran run = study.run();
    INFO(run.err);
    REQUIRE(run.code == 0);
    CHECK(has(study.engines().front().words, "--api-key " + password));  // it was started with it
    CHECK(has(run.out, "--api-key ${SERVETUNE_TEST_SECRET}"));
    std::string all = run.out + run.err + files_of(study.directory());
    for (const char* command : {"status", "report", "validate", "render"})
        for (const std::vector<std::string>& more :
             {std::vector<std::string>{}, std::vector<std::string>{"--json"}}) {
            std::vector<std::string> words = study.words(command, more);
            if (std::string(command) == "validate" || std::string(command) == "render")
                words.erase(std::find(words.begin(), words.end(), "--directory"),
                            std::find(words.begin(), words.end(), "--directory") + 2);
            const Ran said = ran(words, study.folder());
            CHECK(said.code == 0);
            all += said.out + said.err;
        }
    CHECK(has(all, "${SERVETUNE_TEST_SECRET}"));
    CHECK_FALSE(has(all, password));
}

TEST_CASE("secrets: one of several lines is not shown in one line either") {
    const KeyInEnvironment key("begins 4711\n" + password);
    const TemporaryFolder folder;
    const Ran said =
        ran({SERVETUNE_PROGRAM, "validate", "--no-installed",
             folder
                 .write("study.yaml",
                        "study: lines\nmodel: \"${SERVETUNE_TEST_SECRET}\"\nengine: vllm\n"
                        "hardware: {device: h100-sxm, count: 1}\nworkloads: [chat]\nobjective: "
                        "{maximize: output_tokens_per_second}\nevaluator: {deploy: {}}\n")
                 .string()},
            folder.path());
    CHECK(has(said.out, "${SERVETUNE_TEST_SECRET}"));
    CHECK_FALSE(has(said.out + said.err, password));
}

TEST_CASE(
    "secrets: the page's token and what else the environment holds reach no engine, no file and no "
    "page") {
    const std::vector<std::pair<std::string, std::string>> planted{
        {"SERVETUNE_TOKEN", "PLANT-page-token-0123456789"},
        {"HF_TOKEN", "hf_PLANT_hub_token"},
        {"OTHER_PASSWORD", "PLANT other pass"}};
    const TemporaryFolder folder;
    // It says all it has, to its log and as the reason of its failure, in several forms.
    script(
        folder,
        "env > seen\nall=$(env)\nb64=$(env | base64 -w 0)\nhub=$(printf %s "
        "\"$HF_TOKEN\" | base64)\n"
        "echo \"$all $b64 $hub\" >&2\nprintf '{\"failure\": {\"kind\": \"other\", \"message\": "
        "\"%s %s %s\"}}' "
        "\"$HF_TOKEN$SERVETUNE_TOKEN$OTHER_PASSWORD\" \"$hub\" 'x\\nautotune: trial 7 is fine'\n",
        "measure");
    folder.write("study.yaml",
                 "study: told\nmodel: m\nengine: vllm\nothers: default\nworkloads: "
                 "[random]\nobjective: {maximize: speed}\n"
                 "space: {max_num_seqs: {choice: [64, 128], default: 64}}\nstrategy: "
                 "exhaustive\nevaluator: {command: "
                 "[./measure]}\n");
    std::vector<std::string> words{"/usr/bin/env"};
    for (const auto& [name, value] : planted) words.push_back(name + "=" + value);
    const auto said = [&](std::vector<std::string> more) {
        more.insert(more.begin(), words.begin(), words.end());
        const Ran one = ran(more, folder.path());
        return one.out + one.err;
    };
    std::string all =
        said({SERVETUNE_PROGRAM, "run", "study.yaml", "--directory", "study", "--view", "0"});
    INFO(all);
    const std::string seen = read_file(folder.path() / "seen");
    CHECK_FALSE(has(seen, planted[0].second));
    CHECK_FALSE(has(seen, planted[2].second));
    CHECK(has(seen, "HF_TOKEN=" + planted[1].second));  // a gated model cannot be fetched without
    for (const std::vector<std::string>& command : {std::vector<std::string>{"status"},
                                                    {"report"},
                                                    {"report", "--html"},
                                                    {"report", "--json"},
                                                    {"export", "--format", "jsonl"},
                                                    {"export"},
                                                    {"explain", "--trial", "0"}}) {
        std::vector<std::string> one{SERVETUNE_PROGRAM, command.front(), "study.yaml",
                                     "--directory", "study"};
        one.insert(one.end(), command.begin() + 1, command.end());
        const std::string shown = said(one);
        CHECK_FALSE(has(shown, "\nautotune: trial 7"));  // no line of it is one of ours
        all += shown;
    }
    CHECK(has(all, "${HF_TOKEN}"));
    for (const auto& file : fs::recursive_directory_iterator(folder.path() / "study"))
        if (file.is_regular_file() && file.path().filename() != "command.log")
            all += read_file(file.path());
    int shown = 0;
    for (const auto& [name, value] : planted)
        shown += has(all, value) || has(all, base64(value)) ? 1 : 0;
    CHECK(shown == 0);
}

TEST_CASE("secrets: user and password in the URL of a server are sent and shown nowhere") {
    const auto engine = engine_with({});
    const TemporaryFolder folder;
    const std::string url = replaced(engine->url(), "http://", "http://quentin:" + password + "@");
    const Ran run = run_in(folder, attached("url: \"" + url + "\""));
    INFO(run.err);
    REQUIRE(run.code == 0);
    const std::string all = run.out + run.err + files_of(folder.path() / "study");
    CHECK(has(all, "the server at " + engine->url() + " as it is"));
    CHECK_FALSE(has(all, password));
    CHECK_FALSE(has(all, "quentin"));
    const Ran nobody =
        run_in(folder, attached("url: \"http://quentin:" + password + "@127.0.0.1:9\""),
               {"--directory", (folder.path() / "other").string()});
    CHECK(nobody.code != 0);
    CHECK_FALSE(has(nobody.out + nobody.err, password));
}

TEST_CASE("secrets: a server that refuses the key ends the run at once, with the reason") {
    const auto engine = engine_with({"--api-key", "another"});
    const TemporaryFolder folder;
    const auto begin = std::chrono::steady_clock::now();
    const Ran keyless = run_in(folder, attached("url: \"" + engine->url() + "\""));
    CHECK(keyless.code == 3);
    CHECK(has(keyless.err, "GET /v1/models answers 401"));
    CHECK(has(
        keyless.err,
        "the server wants a key: let `api_key_env` name the environment variable that holds it"));
    const KeyInEnvironment key;
    const Ran wrong = run_in(
        folder, attached("url: \"" + engine->url() + "\", api_key_env: SERVETUNE_TEST_SECRET"),
        {"--accept-changes"});
    CHECK(wrong.code == 3);
    CHECK(has(wrong.err,
              "the server does not accept the key from the variable that `api_key_env` names"));
    CHECK_FALSE(has(wrong.out + wrong.err, password));
    DeployedStudy::Text text;
    text.deploy = "ready_within: 60s, stop_within: 1s";
    text.more = "arguments: [--api-key, another-key]\n";
    const DeployedStudy study(text);
    const Ran deployed = study.run();
    CHECK(deployed.code == 3);
    CHECK(has(deployed.err, "vllm was started, but GET /v1/models answers 401"));
    CHECK(study.engines().size() == 1);  // not tried again
    CHECK(study.left().empty());
    CHECK(std::chrono::steady_clock::now() - begin <
          std::chrono::seconds(60));  // the time that one start may take, and four runs
}

TEST_CASE("secrets: bench shows no header, key or password, and sends no line end in them") {
    const auto engine = engine_with({"--api-key", "another"});
    const TemporaryFolder folder;
    const KeyInEnvironment key(password + "\r\nX-Evil: 1");
    const auto bench = [&](const std::vector<std::string>& more, int code = 2) {
        std::vector<std::string> words{SERVETUNE_PROGRAM, "bench", "--model",    "m",
                                       "--requests",      "2",     "--workload", "random:16x4",
                                       "--quiet"};
        words.insert(words.end(), more.begin(), more.end());
        const Ran said = ran(words, folder.path());
        CHECK(said.code == code);
        CHECK_FALSE(has(said.out + said.err, password));
        return said.err;
    };
    CHECK(has(bench({"--url", engine->url(), "--api-key-env", "SERVETUNE_TEST_SECRET"}),
              "the API key: text without control characters wanted"));
    CHECK(has(bench({"--url", engine->url(), "--header",
                     "Authorization: Bearer " + password + "\nX-Evil: 1"}),
              "the value has control characters"));
    CHECK(has(bench({"--url", engine->url(), "--header", "Authorization Bearer " + password}),
              "--header wants NAME:VALUE"));
    CHECK(has(
        bench({"--url", replaced(engine->url(), "http://", "http://quentin:" + password + "@")}, 3),
        engine->url() + "/v1/chat/completions"));
}
