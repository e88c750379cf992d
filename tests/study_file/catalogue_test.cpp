// SPDX-License-Identifier: Apache-2.0
// The engine files that we ship, against the flags of every version that is stored.
#include "support/fixed_entry.hpp"
#include "support/test.hpp"

#include "engine/flag_facts.hpp"
#include "engine/version.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/study_file.hpp"
#include "study_file/keys.hpp"
#include "study_file/readers.hpp"
#include "support/shipped.hpp"

#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

Engine shipped_engine(const std::string& name) {
    return engine_named(Catalogue(search_spaces), Yaml::parse(name, "test"));
}

std::vector<FlagFacts> oldest_and_newest(const std::string& name) {
    const std::vector<FlagFacts> all = known_versions(search_spaces, name);
    return all.size() == 1 ? all : std::vector<FlagFacts>{all.front(), all.back()};
}

/// What the checks before a GPU is spent say to some settings of an engine in a version.
std::string setting_refusal(const std::string& name, const std::string& version,
                            const std::vector<std::pair<std::string, Value>>& settings) {
    try {
        SpaceDescription description{{shipped_engine(name)}};
        description.others_searched = false;
        description.versions = {{name, version}};
        for (const auto& [parameter, value] : settings)
            description.entries.push_back(fixed(parameter, value));
        const Composition composition(description);
        const SearchSpace space(composition.parameters(), composition.constraints());
        const auto violations = space.violations(space.default_configuration());
        if (!violations.empty()) return violations.front();
        const auto facts = facts_for(search_spaces, name, version);
        const auto problems =
            facts->problems(composition.render(space.default_configuration(), {"org/model"}),
                            composition.engines().front());
        return problems.empty() ? "" : problems.front();
    } catch (const SpaceError& error) {
        return error.what();
    }
}

}  // namespace

TEST_CASE("yaml: a text that was read before names the file that it stands in now") {
    for (const std::string path : {"a", "b"})
        CHECK(message_of<ParseError>([&] { Yaml::parse("{}", path).fail(""); }) == path + ":1:1: ");
}

TEST_CASE("versions compare as far as a bound is precise") {
    CHECK(version_numbers("0.5.5.post1") == std::vector<std::uint64_t>{0, 5, 5});
    CHECK(version_numbers("b11669") == std::vector<std::uint64_t>{11669});
    CHECK(version_numbers("1.2.0rc1") == std::vector<std::uint64_t>{1, 2, 0});
    CHECK(version_numbers("latest").empty());
    CHECK(version_within("0.12.3", "", "0.12"));
    CHECK_FALSE(version_within("0.13.0", "", "0.12"));
    CHECK(version_within("1.2.0rc1", "1.2", ""));
    CHECK_FALSE(version_within("0.9", "0.10", ""));
    CHECK(version_within("", "0.17", ""));
    CHECK_FALSE(version_within("", "", "0.17"));
}

TEST_CASE("every engine file says where each parameter was checked") {
    for (const char* name : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"})
        for (const EngineParameter& parameter : shipped_engine(name).parameters) {
            INFO(name << " " << parameter.parameter.name);
            CHECK_FALSE(parameter.parameter.doc.empty());
            CHECK_FALSE(parameter.source.empty());
        }
}

TEST_CASE("a list of flags that are not about speed names flags that a stored version has") {
    for (const Engine& engine : shipped_catalogue.engines()) {
        std::set<std::string> known;
        for (const FlagFacts& facts : known_versions(search_spaces, engine.name))
            for (const auto& [flag, fact] : facts.flags) known.insert(flag);
        CHECK(engine.not_about_speed.size() > 10);
        for (const std::string& flag : engine.not_about_speed) {
            INFO(engine.name << " " << flag);
            CHECK(known.contains(flag));
        }
    }
}

TEST_CASE(
    "random configurations of every engine and version render to commands that the version takes, "
    "and read back") {
    for (const char* name : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
        const auto versions = known_versions(search_spaces, name);
        REQUIRE_FALSE(versions.empty());
        const Engine engine = shipped_engine(name);
        for (const FlagFacts& facts : versions) {
            INFO(name << " " << facts.version);
            SpaceDescription description{{engine}};
            description.versions = {{name, facts.version}};
            const Composition composition(description);
            const SearchSpace space(composition.parameters(), composition.constraints());
            const FeasibleSet feasible(space);
            CHECK(feasible.size() > 1e6);
            Rng rng(1);
            std::set<std::string> problems;
            std::set<std::string> misread;
            // Rules between three values show themselves in hundreds; older versions share them.
            const int drawn = facts.version == versions.back().version ? 1000 : 100;
            for (int i = 0; i < drawn; ++i) {
                const Configuration configuration = feasible.sample(rng);
                const Command command =
                    composition.render(configuration, {"org/model", "127.0.0.1", 8000});
                for (const std::string& problem :
                     facts.problems(command, composition.engines().front()))
                    problems.insert(problem);
                const auto parsed = composition.parse(command, "org/model");
                const Configuration read = space.completed(parsed.values);
                for (const std::string& word : parsed.unknown) misread.insert("not read: " + word);
                if (read != configuration)
                    misread.insert(difference_text(configuration, read) + " reads back as " +
                                   difference_text(read, configuration));
            }
            for (const std::string& problem : problems) UNSCOPED_INFO(problem);
            CHECK(problems.empty());
            if (!misread.empty()) UNSCOPED_INFO(*misread.begin());
            CHECK(misread.empty());
        }
    }
}

TEST_CASE("the most common mistakes are refused before a GPU is spent, with a helpful message") {
    const std::int64_t few = 256, many = 1024, tokens = 4;
    CHECK(
        setting_refusal("vllm", "0.17.0", {{"max_num_seqs", many}, {"max_num_batched_tokens", few}})
            .starts_with("it breaks the rule: require max_num_batched_tokens >= max_num_seqs ("));
    CHECK(has(setting_refusal("vllm", "0.17.0",
                              {{"kv_cache_dtype", "fp8_e5m2"}, {"quantization", "fp8"}}),
              "fp8_e5m2"));
    CHECK(setting_refusal("vllm", "0.11.0", {{"performance_mode", "throughput"}}) ==
          "'performance_mode': vllm has it from 0.17, and the study is for 0.11.0");
    CHECK(setting_refusal("vllm", "0.17.0", {{"attention_backend", "fa3"}})
              .starts_with("'attention_backend': vllm does not take fa3 for 'attention_backend'"));
    CHECK(has(setting_refusal("vllm", "0.17.0",
                              {{"speculative_method", "none"}, {"num_speculative_tokens", tokens}}),
              "can never be active"));
    CHECK(
        has(setting_refusal("vllm", "0.17.0",
                            {{"speculative_method", "eagle3"}, {"num_speculative_tokens", tokens}}),
            "draft_model"));
    CHECK(setting_refusal("vllm", "0.17.0", {{"max_running_requests", many}})
              .starts_with("'max_running_requests': no parameter or concept of the study's "
                           "engines; known: "));
    CHECK(setting_refusal("vllm", "0.17.0", {{"max_num_seqs", "many"}})
              .starts_with("'max_num_seqs': vllm does not take many for 'max_num_seqs'"));
    CHECK(has(setting_refusal("sglang", "0.5.9",
                              {{"enable_hierarchical_cache", true}, {"disable_radix_cache", true}}),
              "disable_radix_cache"));
    CHECK_FALSE(setting_refusal("llama.cpp", "b11669",
                                {{"flash_attention", "off"}, {"cache_type_v", "q8_0"}})
                    .empty());
    CHECK(setting_refusal("vllm", "0.17.0",
                          {{"max_num_seqs", many}, {"performance_mode", "throughput"}})
              .empty());
}

// scripts/test chips has every stored version.
TEST_CASE("every preset fits every engine that it names, in the oldest and newest stored version") {
    for (const char* preset :
         {"quick", "full", "latency", "throughput", "long-context", "moe", "cpu"})
        for (const char* name : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"})
            for (const FlagFacts& facts : oldest_and_newest(name)) {
                const Yaml file =
                    Yaml::load(search_spaces / "presets" / (std::string(preset) + ".yaml"));
                const Yaml& spaces = file.at(keys::preset.space);
                if (!spaces.entries().empty() && spaces.entry(name) == nullptr) continue;
                INFO(preset << " " << name << " " << facts.version);
                const TemporaryFolder folder;
                folder.write("t.csv", "x,status,total_tokens_per_second\n1,ok,1\n");
                const auto study = folder.write(
                    "s.yaml", "study: s\nmodel: m\nengine: " + std::string(name) + "\npreset: " +
                                  preset + "\nengine_versions: {" + name + ": " + facts.version +
                                  "}\nworkloads: [{use: random}]\nobjective: {maximize: "
                                  "total_tokens_per_second}\nevaluator: {replay: t.csv}\n");
                const StudyFile read = load_study(study, Catalogue(search_spaces));
                const SearchSpace space(read.composition->parameters(),
                                        read.composition->constraints());
                const FeasibleSet feasible(space);
                CHECK(feasible.size() > 10);
                CHECK(space.feasible(space.default_configuration()));
                if (std::string(preset) != "full") CHECK(space.parameters().size() <= 8);
                Rng rng(1);
                for (int i = 0; i < 20; ++i)
                    CHECK(facts
                              .problems(read.composition->render(feasible.sample(rng), {"m"}),
                                        read.composition->engines().front())
                              .empty());
            }
}

TEST_CASE("a flag is passed as its version wants it") {
    const auto command = [](const std::string& version) {
        SpaceDescription description{{shipped_engine("vllm")}};
        description.others_searched = false;
        description.versions = {{"vllm", version}};
        description.entries = {fixed("attention_backend", "FLASHINFER")};
        const Composition composition(description);
        return composition
            .render(SearchSpace(composition.parameters()).default_configuration(), {"m"})
            .text();
    };
    CHECK(command("0.11.0") == "VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve m");
    CHECK(command("0.17.0") == "vllm serve m --attention-backend=FLASHINFER");

    SpaceDescription description{{shipped_engine("tensorrt-llm")}};
    description.others_searched = false;
    const std::int64_t sequences = 64;
    description.entries = {fixed("kv_cache_dtype", "fp8"), fixed("max_batch_size", sequences)};
    const Composition composition(description);
    const Command options =
        composition.render(SearchSpace(composition.parameters()).default_configuration(), {"m"});
    CHECK(options.text() ==
          "trtllm-serve m --max_batch_size=64 --extra_llm_api_options=options.yaml");
    CHECK(options.files.at("options.yaml") ==
          "{\n  \"kv_cache_config\": {\n    \"dtype\": \"fp8\"\n  }\n}\n");
}

TEST_CASE("a draft model is passed with the methods of speculation that use one") {
    for (const auto& [name, method, with_draft] :
         {std::tuple{"vllm", "speculative_method", "eagle3"},
          {"sglang", "speculative_algorithm", "EAGLE3"},
          {"tensorrt-llm", "decoding_type", "Eagle"},
          {"llama.cpp", "spec_type", "draft-eagle3"}}) {
        INFO(name);
        const auto space_with = [&, engine = name, parameter = method,
                                 value = with_draft](bool has_draft) {
            SpaceDescription description{{shipped_engine(engine)}};
            description.others_searched = false;
            SpaceEntry entry{parameter};
            entry.domain = ChoiceDomain{{"none", value}};
            description.entries = {entry};
            if (has_draft) description.entries.push_back(fixed("draft_model", "org/head"));
            const std::int64_t guesses = 4;  // TensorRT-LLM wants to be told how many
            if (engine == std::string("tensorrt-llm"))
                description.entries.push_back(fixed("max_draft_len", guesses));
            return Composition(description);
        };
        const Composition composition = space_with(true);
        const SearchSpace space(composition.parameters(), composition.constraints());
        const Configuration drafted = space.completed({{method, with_draft}});
        CHECK(space.feasible(drafted));
        const Command command = composition.render(drafted, {"m"});
        CHECK(has((command.text() + (command.files.empty() ? "" : command.files.begin()->second)),
                  "org/head"));
        CHECK(composition.further_models() == std::vector<std::string>{"org/head"});
        const auto read = composition.parse(command, "m");
        CHECK(read.unknown.empty());
        CHECK(space.completed(read.values) == drafted);
        const Composition alone = space_with(false);
        const SearchSpace without(alone.parameters(), alone.constraints());
        CHECK_FALSE(without.feasible(
            without.completed({{method, with_draft}})));  // needs a draft model, and has none
    }
}

TEST_CASE("commands that a version does not take are told with the nearest flag") {
    const auto facts = facts_for(search_spaces, "vllm", "0.17.0");
    REQUIRE(facts.has_value());
    const Engine vllm = shipped_engine("vllm");
    const auto problems =
        facts->problems({{"vllm", "serve", "m", "--max-num-seq=4", "--kv-cache-dtype=fp9",
                          "--no-enable-prefix-caching", "--host", "x"}},
                        vllm);
    REQUIRE(problems.size() == 2);
    CHECK(
        problems[0].starts_with("vllm 0.17.0 has no flag --max-num-seq; nearest: --max-num-seqs"));
    CHECK(problems[1].starts_with(
        "vllm 0.17.0 does not take 'fp9' for --kv-cache-dtype; it takes: fp8"));
    CHECK(facts_for(search_spaces, "vllm", "0.18.1")->version == "0.17.0");
    CHECK_FALSE(facts_for(search_spaces, "vllm", "0.9").has_value());
}
