// SPDX-License-Identifier: Apache-2.0
// `autotune suggest`, from outside.
#include "support/autotune.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;

Ran suggested(const std::string& model, const std::string& hardware, const std::string& engine,
              bool json = true) {
    const TemporaryFolder folder;
    std::vector<std::string> words{"suggest", model, "--hardware", hardware, "--engine", engine};
    if (json) words.push_back("--json");
    return autotune(words, folder.path());
}

}  // namespace

TEST_CASE(
    "suggest: well-known models on three chips: a recipe with its source, a guess with its "
    "error, or a reason") {
    std::size_t recipes = 0, guesses = 0;
    for (const char* model :
         {"meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B",
          "deepseek-ai/DeepSeek-R1", "openai/gpt-oss-120b"})
        for (const char* chip : {"h100-sxm", "b200-sxm", "mi300x"})
            for (const char* engine : {"vllm", "sglang"}) {
                const Ran ran = suggested(model, chip, engine);
                INFO(model << " on " << chip << ", " << engine << ": " << ran.out << ran.err);
                REQUIRE(ran.err.empty());
                const Json said = Json::parse(ran.out);
                const std::string kind = said.at("kind");
                if (kind == "recipe") {
                    ++recipes;
                    CHECK(ran.code == 0);
                    CHECK(said.at("source").get<std::string>().starts_with("https://"));
                    CHECK_FALSE(said.at("licence").get<std::string>().empty());
                    CHECK(has(said.at("command"), model));
                } else if (kind == "guess") {
                    ++guesses;
                    CHECK(ran.code == 0);
                    CHECK((has(said.at("error"), "half of them were off by at most ") ||
                           has(said.at("error"), "not known: ")));
                    CHECK(has(said.at("command"), model));
                    CHECK_FALSE(said.contains("source"));
                    if (said.at("within_error").get<bool>())
                        CHECK(said.at("quality_not_measured").empty());
                } else {
                    CHECK((ran.code == 1 || ran.code == 4));
                    CHECK_FALSE(said.at("reason").get<std::string>().empty());
                    CHECK_FALSE(said.contains("command"));
                }
            }
    CHECK(recipes >= 6);
    CHECK(guesses >= 3);
}

TEST_CASE("suggest: the text names source, chip and version, and says that nothing was measured") {
    const Ran ran = suggested("Qwen/Qwen3.5-9B", "h100-sxm", "vllm", false);
    INFO(ran.out << ran.err);
    CHECK(ran.code == 0);
    CHECK(ran.out.starts_with("vllm serve Qwen/Qwen3.5-9B --"));
    for (const char* part :
         {"--performance-mode=throughput", "--max-num-seqs=512", "on: 1 x h100-sxm, vllm 0.",
          "source: https://", "(Apache-2.0)", "its source measured, for what it ran: +2.09 %",
          "memory by the cost model:", "Nothing was measured here."})
        CHECK(has(ran.out, part));
}

TEST_CASE(
    "suggest: a recipe that does not fit the chip is passed over, and a guess says that it is "
    "one") {
    const Ran ran =
        suggested("meta-llama/Llama-3.3-70B-Instruct", "h100-pcie", "tensorrt-llm", false);
    INFO(ran.out << ran.err);
    CHECK(ran.code == 0);
    CHECK(has(ran.out, "passed over: https://"));
    CHECK(has(ran.out, "GUESS of the cost model"));
    CHECK(has(ran.out, "error of such predictions: "));
}

TEST_CASE(
    "suggest: an unknown model is said to be unknown, with what to do, and a file of its facts is "
    "taken") {
    const Ran unknown = suggested("org/Nobody-Knows-3B", "h100-sxm", "vllm", false);
    INFO(unknown.out << unknown.err);
    CHECK(unknown.code == 1);
    CHECK(has(unknown.out, "nothing is known of org/Nobody-Knows-3B on h100-sxm with vllm"));
    CHECK(has(unknown.out, "autotune init --model org/Nobody-Knows-3B"));
    CHECK_FALSE(has(unknown.out, "vllm serve"));

    std::string facts =
        read_file(std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces/models/qwen3-4b.yaml");
    facts = replaced(facts, "model: Qwen/Qwen3-4B", "model: org/Nobody-Knows-3B");
    facts = replaced(facts,
                     facts.substr(facts.find("also:"),
                                  facts.find('\n', facts.find("also:")) - facts.find("also:")),
                     "also: []");
    const TemporaryFolder folder;
    const std::string file = folder.write("own.yaml", facts).string();
    const Ran own = suggested(file, "l40s", "vllm", false);
    INFO(own.out << own.err);
    CHECK(own.code == 0);
    CHECK(has(own.out, "vllm serve org/Nobody-Knows-3B"));
    CHECK(has(own.out, "GUESS of the cost model"));
}

TEST_CASE(
    "suggest: a gain within the error of predictions is none, and the end of an id names the "
    "model") {
    const Ran ran = suggested("meta-llama/Llama-3.3-70B-Instruct", "h100-sxm", "vllm", false);
    INFO(ran.out << ran.err);
    CHECK(has(ran.out, "this is the default: the largest predicted gain, "));
    CHECK_FALSE(has(ran.out, "kv-cache-dtype"));
    CHECK(has(ran.out,
              "error of such predictions: on h100-sxm half of them were off by at most 11 %, nine "
              "of ten by at most 19 %: "
              "checked with 1 measured configuration of vllm 0.24 with Qwen3-8B\n"));
    CHECK(has(ran.out,
              "autotune init --model meta-llama/Llama-3.3-70B-Instruct --engine vllm --hardware "
              "h100-sxm --gpus 4"));
    CHECK(has(suggested("gpt-oss-120b", "h100-sxm", "vllm", false).out,
              "vllm serve openai/gpt-oss-120b --"));
}

TEST_CASE("suggest: a recipe for something else is none where nobody can tell whether it fits") {
    const Ran ran = suggested("Qwen/Qwen3-235B-A22B", "h100-sxm", "vllm", false);
    INFO(ran.out << ran.err);
    CHECK(ran.code == 1);
    CHECK(has(ran.out, "nobody can tell whether it fits"));
    CHECK_FALSE(has(ran.out, "vllm serve"));
}

TEST_CASE("suggest: an engine that takes files is not given a hub's id") {
    const Ran ran = suggested("Qwen/Qwen3-8B", "h100-sxm", "llama.cpp", false);
    INFO(ran.out << ran.err);
    CHECK(ran.code == 0);
    CHECK(ran.out.starts_with("llama-server --model Qwen3-8B.gguf --"));
    CHECK(has(ran.out,
              "take care: llama.cpp takes a model as a .gguf file, and Qwen/Qwen3-8B is none: put "
              "the path of yours in place of "
              "Qwen3-8B.gguf"));
    CHECK(Json::parse(suggested("Qwen/Qwen3-8B", "h100-sxm", "llama.cpp").out)
              .at("missing")
              .get<std::string>()
              .starts_with("llama.cpp"));
    CHECK(Json::parse(suggested("Qwen/Qwen3-8B", "h100-sxm", "vllm").out).at("missing") == "");
}

TEST_CASE("validate: a study whose engine takes files and whose model is a hub's id is told so") {
    const TemporaryFolder folder;
    const auto validated = [&](const std::string& model) {
        folder.write("s.yaml",
                     "study: s\nmodel: " + model +
                         "\nengine: llama.cpp\nothers: default\nspace: {threads: [2, "
                         "4]}\nworkloads: [{workload: w, dataset: "
                         "{kind: random, input_tokens: 8, output_tokens: 8}, requests: 10}]\n"
                         "objective: {maximize: output_tokens_per_second}\nevaluator: deploy\n");
        const Ran ran = autotune({"validate", "s.yaml"}, folder.path());
        return ran.out + ran.err;
    };
    CHECK(has(validated("Qwen/Qwen3-8B"),
              "llama.cpp takes a model as a .gguf file, and Qwen/Qwen3-8B is none: name the file "
              "under `model`"));
    CHECK_FALSE(has(validated("models/Qwen3-8B-Q8_0.GGUF"), "takes a model as"));
}
