// SPDX-License-Identifier: Apache-2.0
// Recipes of vllm-project/recipes: which words a file has for a chip, and what is refused. The
// files are ours; the format is that of 8959cf6.
#include "results/project_recipes.hpp"
#include "servetune/error.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string project_recipe = R"(meta:
  hardware: {h100: verified, mi300x: verified, b200: unsupported, trillium: verified}
model:
  model_id: org/Big-70B
  min_vllm_version: "0.12.0"
  base_args: ["--trust-remote-code", "--max-num-seqs", "512"]
  base_env: {ANY: "1"}
features:
  reasoning: {args: ["--reasoning-parser", mine], hardware_overrides: {amd: {args: ["--reasoning-parser", other]}}}
  drafts: {args: ["--speculative-config", '{"method":"ngram"}']}
opt_in_features: [drafts]
variants:
  default: {vram_minimum_gb: 150}
  fp8:
    model_id: org/Big-70B-FP8
    min_vllm_version: nightly
    vram_minimum_gb: 75
    extra_args: ["--kv-cache-dtype", fp8]
    hardware_overrides: {h100: {extra_args: ["--block-size=64"]}}
compatible_strategies: [multi_node_tp, single_node_tp]
hardware_overrides:
  hopper: {extra_args: ["--async-scheduling"], extra_env: {HOP: "1"}}
  amd: {extra_args: ["--gpu-memory-utilization", "0.95"]}
strategy_overrides: {multi_node_tp: {tp: 3}}
guide: |
  export TOKEN=${OF_NOBODY}
)";

std::vector<Recipe> project_recipes(const TemporaryFolder& folder, const std::string& chip,
                                    std::vector<std::string>* unread = nullptr,
                                    const std::string& model = "org/Big-70B") {
    std::vector<std::string> why;
    auto result = recipes_of_project(folder.path(), {model, shipped_catalogue.hardware(chip)},
                                     shipped_catalogue.all_hardware(), why);
    if (unread != nullptr) *unread = why;
    return result;
}

std::string words_of(const Recipe& recipe) { return recipe.command.text(); }

}  // namespace

TEST_CASE("project recipes: base, variant, devices, chip and features that are on, in this order") {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.path() / "models/org");
    folder.write("models/org/big.yaml", project_recipe);
    folder.write("taxonomy.yaml", "hardware_profiles: {}\n");
    std::vector<std::string> unread;
    const auto on_hopper = project_recipes(folder, "h100-sxm", &unread);
    CHECK(unread.empty());
    REQUIRE(on_hopper.size() == 1);  // the variant is another model
    CHECK(words_of(on_hopper[0]) ==
          "ANY=1 HOP=1 --trust-remote-code --max-num-seqs 512 --tensor-parallel-size 8 "
          "--async-scheduling --reasoning-parser mine");
    CHECK(on_hopper[0].models == std::vector<std::string>{"org/Big-70B"});
    CHECK(on_hopper[0].hardware == std::vector<std::string>{"h100-sxm", "mi300x"});
    CHECK(on_hopper[0].since == "0.12.0");
    CHECK(on_hopper[0].source == "vllm-project/recipes org/big.yaml");
    const auto on_cdna = project_recipes(folder, "mi300x");
    CHECK(words_of(on_cdna.at(0)) ==
          "ANY=1 --trust-remote-code --max-num-seqs 512 --gpu-memory-utilization 0.95 "
          "--reasoning-parser other");  // 150 GB fit one
}

TEST_CASE("project recipes: a variant has its own checkpoint, words, and words for one chip") {
    const TemporaryFolder folder;
    folder.write("big.yaml", project_recipe);
    const auto found = project_recipes(folder, "h100-sxm", nullptr, "org/Big-70B-FP8");
    REQUIRE(found.size() == 2);  // its own, and that of the checkpoint it was made from
    CHECK(found[1].models == std::vector<std::string>{"org/Big-70B-FP8"});
    CHECK(found[1].since.empty());  // no number
    CHECK(words_of(found[1]) ==
          "ANY=1 HOP=1 --trust-remote-code --max-num-seqs 512 --kv-cache-dtype fp8 "
          "--block-size=64 --async-scheduling --reasoning-parser mine");
    CHECK(project_recipes(folder, "h100-sxm", nullptr, "org/Other-7B").empty());
    // A file that names no chip is for all.
    folder.write("big.yaml",
                 "meta: {hardware: {}}\n" + project_recipe.substr(project_recipe.find("model:")));
    CHECK(project_recipes(folder, "l4").at(0).hardware == std::vector<std::string>{"l4"});
}

TEST_CASE(
    "project recipes: devices that a file names, for all chips or by chip, stand for its memory") {
    for (const auto& [said, devices] : std::vector<std::pair<std::string, std::string>>{
             {"2", "2"}, {"{h100: 4, default: 2}", "4"}, {"{mi300x: 4, default: 2}", "2"}}) {
        const TemporaryFolder folder;
        std::string text = project_recipe;
        text.replace(text.find("multi_node_tp: {tp: 3}"), 22, "single_node_tp: {tp: " + said + "}");
        folder.write("big.yaml", text);
        CHECK(has(words_of(project_recipes(folder, "h100-sxm").at(0)),
                  "--tensor-parallel-size " + devices + " "));
    }
}

TEST_CASE("project recipes: what is no recipe, or of another server, is said") {
    const TemporaryFolder folder;
    folder.write("a.yaml", "model: {model_id: [");
    CHECK_THROWS_AS(project_recipes(folder, "h100-sxm"), ParseError);
    std::string omni = project_recipe;
    folder.write("b.yaml", omni + "omni: {}\n");
    std::vector<std::string> unread;
    CHECK(project_recipes(folder, "h100-sxm", &unread).empty());
    REQUIRE(unread.size() == 2);
    CHECK(has(unread[0], "a.yaml:1"));
    CHECK(has(unread[1], "b.yaml: its server is vllm-omni"));
    const TemporaryFolder other;
    other.write("a.yaml", "services: {}\n");
    CHECK_THROWS_WITH(project_recipes(other, "h100-sxm"),
                      Catch::Matchers::Contains("this has none"));
}
