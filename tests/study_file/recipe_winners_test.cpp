// SPDX-License-Identifier: Apache-2.0
// Recipes as the first trials of a study.
#include "servetune/error.hpp"
#include "servetune/strategy.hpp"
#include "study_file/knowledge.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

StudySetup set_up_with(const std::string& model, const std::string& hardware,
                       const std::string& rest) {
    const TemporaryFolder folder;
    const auto file =
        folder.write("s.yaml", "study: s\nmodel: " + model + "\nhardware: " + hardware +
                                   "\nworkloads: [{use: chat, requests: 50}]\nobjective: "
                                   "{maximize: total_tokens_per_second}\n"
                                   "evaluator: {command: [\"true\"]}\n" +
                                   rest);
    return set_up(load_study(file, shipped_catalogue));
}

const std::string recipe_space =
    "engine: vllm\nspace: {max_num_seqs: [64, 256, 480], performance_mode: [engine, throughput]}\n";

/// The second trial, after a default that gave some number.
std::string second_trial(const StudySetup& setup) {
    Trial usual{0, setup.problem->space.default_configuration(), "the default", 1, ""};
    usual.outcome = Measurement{{{"total_tokens_per_second", {100}}}};
    Rng rng(1);
    const Answer answer = setup.strategy->ask(*setup.problem, std::vector<Trial>{usual}, rng);
    return std::get<Proposal>(answer).configuration.text() + ": " + std::get<Proposal>(answer).why;
}

}  // namespace

TEST_CASE("recipe winners: the nearest recipe is the second trial, in the study's own values") {
    const StudySetup setup = set_up_with("Qwen/Qwen3.5-9B", "h100-sxm", recipe_space);
    const std::vector<Winner> winners = setup.beliefs.winners(setup.problem->space);
    REQUIRE(winners.size() == 1);
    CHECK(winners.front().configuration.text("performance_mode") == "throughput");
    CHECK(winners.front().configuration.integer("max_num_seqs") == 480);  // 512 there
    CHECK(has(winners.front().why, "the published recipe https://"));
    CHECK(has(winners.front().why, "but for max_model_len = 32768"));
    CHECK(has(second_trial(setup), "performance_mode=throughput"));
    CHECK(has(second_trial(setup), "the published recipe https://"));
}

TEST_CASE("recipe winners: none where the study does not want them, or none is published") {
    CHECK(set_up_with("Qwen/Qwen3.5-9B", "h100-sxm", recipe_space + "knowledge: []\n")
              .beliefs
              .winners(set_up_with("Qwen/Qwen3.5-9B", "h100-sxm", recipe_space).problem->space)
              .empty());
    const StudySetup nowhere =
        set_up_with("Qwen/Qwen3.5-9B", "mi300x", recipe_space + "knowledge: [recipes]\n");
    CHECK(nowhere.beliefs == Beliefs());
    REQUIRE(nowhere.knowledge.size() == 1);
    CHECK(nowhere.knowledge.front() ==
          "recipes: none is published for this model, chip and engine");
    CHECK(set_up_with("Qwen/Qwen3.5-9B", "mi300x", recipe_space).knowledge.size() ==
          1);  // the cost model alone, and nothing is said
}

TEST_CASE("recipe winners: a layout that the study does not give is left out, with the reason") {
    const StudySetup setup = set_up_with(
        "openai/gpt-oss-120b", "{device: h100-sxm, count: 1}",
        "engine: sglang\nspace: {max_running_requests: [64, 256]}\nknowledge: [recipes]\n");
    CHECK(setup.beliefs == Beliefs());
    REQUIRE(setup.knowledge.size() == 1);
    CHECK(has(setup.knowledge.front(),
              "is not tried: it takes 8 devices, which this study does not give"));
}

TEST_CASE("recipe winners: each engine of a study has its own") {
    const StudySetup setup = set_up_with("openai/gpt-oss-120b", "{device: h100-sxm, count: 8}",
                                         "engine: [vllm, sglang]\nspace: {tensor_parallel_size: "
                                         "[1, 2, 4, 8]}\nknowledge: [recipes]\n");
    const std::vector<Winner> winners = setup.beliefs.winners(setup.problem->space);
    REQUIRE(winners.size() == 2);
    CHECK(winners[0].configuration.text("engine") == "vllm");
    CHECK(winners[1].configuration.text("engine") == "sglang");
    CHECK(setup.beliefs.fitted_to({}, {}).winners(setup.problem->space) == winners);
    CHECK(setup.beliefs.size() == 0);  // no figure is known of a recipe, so nothing is believed
}
