// SPDX-License-Identifier: Apache-2.0
// Recipes of published deployments: those that ship, how the nearest is found, and what a version
// of its engine takes of it.
#include "study_file/recipes.hpp"
#include "engine/flag_facts.hpp"
#include "engine/version.hpp"
#include "servetune/error.hpp"
#include "servetune/search_space.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <map>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<std::string> engines_with_recipes{"vllm", "sglang", "tensorrt-llm"};

/// A catalogue whose only file has these recipes of vllm.
std::vector<Recipe> recipes_in(const std::string& text) {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.path() / "recipes");
    folder.write("recipes/vllm.yaml", text);
    return recipes_of(Catalogue(folder.path()), "vllm");
}

std::vector<Recipe> three_recipes() {
    return recipes_in(
        "engine: vllm\nrecipes:\n"
        "  - {models: [org/Big-70B], alike: [org/Older-70B], hardware: [h100-sxm], flags: "
        "--max-num-seqs 8, source: one, licence: MIT}\n"
        "  - {models: [org/Big-70B], hardware: [h200-sxm], flags: --max-num-seqs 16, source: two, "
        "licence: MIT}\n"
        "  - {models: [org/Big-70B], quantization: fp8, hardware: [h200-sxm], flags: "
        "--max-num-seqs 32, since: \"0.30\", source: three, "
        "licence: MIT}\n");
}

std::string nearest(const std::string& model, const std::string& chip,
                    const std::string& version = "") {
    const auto found = matching(three_recipes(), {model, shipped_catalogue.hardware(chip), version},
                                shipped_catalogue.all_hardware());
    return found.empty() ? "" : found.front().recipe.source;
}

Recipe recipe_with(const std::string& flags) {
    Recipe recipe{{"org/model"}};
    recipe.command.argv = shell_words(flags);
    return recipe;
}

/// Read once: a file of an engine is long.
const Engine& engine_file(const std::string& name) {
    static std::map<std::string, Engine> files;
    const auto* found = entry_in(files, name);
    return found != nullptr ? *found
                            : files.emplace(name, shipped_catalogue.engine(name)).first->second;
}

AppliedRecipe applied_to(const Recipe& recipe, const std::string& engine,
                         const std::string& version, const std::string& chip = "h100-sxm") {
    return applied(recipe, engine_file(engine), version, shipped_catalogue.hardware(chip),
                   search_spaces);
}

/// What the stored version says of the command of a recipe on a chip, and what it drops.
std::vector<std::string> complaints_about(const Recipe& recipe, const std::string& engine,
                                          const std::string& chip, const FlagFacts& facts) {
    const AppliedRecipe taken = applied_to(recipe, engine, facts.version, chip);
    std::vector<std::string> result;
    for (const std::string& dropped : taken.dropped)
        if (!has(dropped, "changes nothing"))
            result.push_back(dropped);  // the flag does nothing there
    const Engine& file = engine_file(engine);
    const Composition composition =
        composed(taken, file, facts.version, shipped_catalogue.hardware(chip));
    const SearchSpace space(composition.parameters(), composition.constraints());
    for (const std::string& rule : space.violations(space.default_configuration()))
        result.push_back(rule);
    for (const std::string& problem : facts.problems(
             composition.render(space.default_configuration(), {recipe.models.front(), {}, 0}),
             file))
        result.push_back(problem);
    return result;
}

}  // namespace

TEST_CASE("recipes: each that ships names its source, a licence and chips that ship") {
    std::set<std::string> models;
    for (const std::string& engine : engines_with_recipes)
        for (const Recipe& recipe : recipes_of(shipped_catalogue, engine)) {
            INFO(engine << ": " << recipe.source);
            CHECK(recipe.source.starts_with("https://"));
            CHECK_FALSE(recipe.licence.empty());
            CHECK_FALSE(recipe.hardware.empty());
            for (const std::string& chip : recipe.hardware)
                CHECK(shipped_catalogue.hardware(chip).name == chip);
            models.insert(recipe.models.begin(), recipe.models.end());
        }
    CHECK(models.size() >= 25);
    CHECK(recipes_of(shipped_catalogue, "llama.cpp").empty());
}

TEST_CASE("recipes: the flags of each that ships are those of a version that is stored") {
    for (const std::string& engine : engines_with_recipes) {
        const std::vector<FlagFacts> versions = known_versions(search_spaces, engine);
        for (const Recipe& recipe : recipes_of(shipped_catalogue, engine))
            for (const std::string& chip : recipe.hardware) {
                std::string all;
                bool fits = false;
                for (auto facts = versions.rbegin(); facts != versions.rend() && !fits; ++facts) {
                    if (!version_within(facts->version, recipe.since, recipe.until)) continue;
                    const std::vector<std::string> wrong =
                        complaints_about(recipe, engine, chip, *facts);
                    fits = wrong.empty();
                    for (const std::string& one : wrong) all += "\n" + facts->version + ": " + one;
                }
                INFO(engine << " on " << chip << ": " << recipe.source << all);
                CHECK(fits);
            }
    }
}

TEST_CASE(
    "recipes: the newest version takes each that ships, in its own spelling and without what it "
    "lacks") {
    for (const std::string& engine : engines_with_recipes) {
        const FlagFacts newest = known_versions(search_spaces, engine).back();
        for (const Recipe& recipe : recipes_of(shipped_catalogue, engine)) {
            INFO(recipe.source);
            const std::vector<std::string> dropped =
                applied_to(recipe, engine, newest.version, recipe.hardware.front()).dropped;
            for (const std::string& complaint :
                 complaints_about(recipe, engine, recipe.hardware.front(), newest))
                CHECK(contains(dropped, complaint));
        }
    }
}

TEST_CASE("recipes: model before chip, the same before the alike, and versions that it covers") {
    CHECK(nearest("org/Big-70B-Instruct", "h200-sxm") == "two");
    CHECK(nearest("org/Big-70B", "h100-sxm") == "one");
    CHECK(nearest("org/Big-70B-FP8", "h100-sxm") ==
          "three");  // the weights' type weighs more than the chip
    CHECK(nearest("org/Big-70B-FP8", "h200-sxm", "0.24.0") == "two");
    CHECK(nearest("org/Older-70B", "h200-sxm") == "one");
    CHECK(nearest("org/Big-7B", "h100-sxm") == "");
    CHECK(nearest("org/Big-70B", "mi300x") == "");
    const auto found =
        matching(three_recipes(), {"org/Older-70B", shipped_catalogue.hardware("h200-sxm"), ""},
                 shipped_catalogue.all_hardware());
    REQUIRE(found.size() == 1);
    CHECK_FALSE(found.front().same_model);
    CHECK(found.front().same_quantization);
    CHECK_FALSE(found.front().same_chip);
    CHECK(has(found.front().difference(), "same family and size class"));
}

TEST_CASE("recipes: flags are translated to the version, or left out with the reason") {
    const AppliedRecipe renamed = applied_to(
        recipe_with("--tp 4 --cuda-graph-max-bs 128 --disable-radix-cache"), "sglang", "0.5.23");
    CHECK(renamed.dropped.empty());
    CHECK(renamed.values == Assignment{{"tp_size", std::int64_t{4}},
                                       {"cuda_graph_max_bs", std::int64_t{128}},
                                       {"disable_radix_cache", true}});

    const AppliedRecipe older =
        applied_to(recipe_with("-tp 4 --swap-space 16 --trust-remote-code --moe-backend triton"),
                   "vllm", "0.33.0");
    CHECK(older.values == Assignment{{"tensor_parallel_size", std::int64_t{4}},
                                     {"moe_backend", std::string("triton")}});
    CHECK(older.arguments == std::vector<std::string>{"--trust-remote-code"});
    REQUIRE(older.dropped.size() == 1);
    CHECK(has(older.dropped.front(), "'--swap-space 16': vllm 0.33.0 has no flag --swap-space"));

    const AppliedRecipe newer =
        applied_to(recipe_with("-tp 4 --moe-backend triton"), "vllm", "0.14.0");
    CHECK(newer.values == Assignment{{"tensor_parallel_size", std::int64_t{4}}});
    REQUIRE(newer.dropped.size() == 1);
    CHECK(has(newer.dropped.front(), "from 0.17"));

    const AppliedRecipe elsewhere =
        applied_to(recipe_with("--attention-backend ROCM_AITER_FA --block-size 16"), "vllm",
                   "0.33.0", "h100-sxm");
    CHECK(elsewhere.values == Assignment{{"block_size", std::int64_t{16}}});
    REQUIRE(elsewhere.dropped.size() == 1);
    CHECK(has(elsewhere.dropped.front(), "does not run on hopper"));
}

TEST_CASE(
    "recipes: environment and options files are read as flags are, and foreign variables are "
    "kept") {
    Recipe recipe = recipe_with("--enforce-eager");
    recipe.command.environment = {{"VLLM_ATTENTION_BACKEND", "FLASHINFER"},
                                  {"VLLM_OF_NO_FILE", "1"}};
    const AppliedRecipe taken = applied_to(recipe, "vllm", "0.33.0");
    CHECK(taken.values ==
          Assignment{{"attention_backend", std::string("FLASHINFER")}, {"enforce_eager", true}});
    CHECK(taken.environment == std::map<std::string, std::string>{{"VLLM_OF_NO_FILE", "1"}});
}

TEST_CASE(
    "recipes: a file is refused without a source, with a whole command, or under another engine's "
    "name") {
    const std::string head =
        "engine: vllm\nrecipes:\n  - {models: [org/m], hardware: [h100-sxm], licence: MIT";
    CHECK(has(message_of<ParseError>([&] { (void)recipes_in(head + "}\n"); }),
              "'source' is missing"));
    CHECK(has(message_of<ParseError>(
                  [&] { (void)recipes_in(head + ", source: s, flags: vllm serve m}\n"); }),
              "flags, without launcher and model wanted"));
    CHECK(has(message_of<ParseError>([&] { (void)recipes_in("engine: sglang\nrecipes: []\n"); }),
              "'vllm' wanted, the file's name"));
    CHECK(
        has(message_of<ParseError>([&] { (void)recipes_in(head + ", source: s, goal: fame}\n"); }),
            "throughput"));
}
