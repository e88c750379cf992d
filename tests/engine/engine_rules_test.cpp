// SPDX-License-Identifier: Apache-2.0
// Combinations that an engine refuses, or changes by itself without a word: without our rules we
// would render the command, with them it is never proposed.
#include "support/fixed_entry.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/search_space.hpp"
#include "servetune/study_file.hpp"
#include "study_file/yaml.hpp"

#include <map>

using namespace servetune;
using namespace servetune::test;

namespace {

struct Case {
    const char* engine;
    const char* version;
    std::vector<std::pair<std::string, Value>> settings;
    const char* rendered;  ///< a part of the command that our flags give without rules
    const char* because;   ///< a part of the rule's reason; nullptr: this combination is fine
};

SpaceDescription described(const Case& one, bool with_rules,
                           const std::map<std::string, std::int64_t>& model_facts = {}) {
    SpaceDescription description{{shipped_catalogue.engine(std::string(one.engine))}};
    if (!with_rules) description.engines.front().constraints.clear();
    description.others_searched = false;
    description.versions = {{one.engine, one.version}};
    description.model_facts = model_facts;
    for (const auto& [name, value] : one.settings) {
        // Beside the value also the default, so that a rule is not broken before there is a choice.
        SpaceEntry entry{name};
        const EngineParameter* declared = description.engines.front().find(name);
        REQUIRE(declared != nullptr);
        const Value& usual = declared->parameter.default_value;
        entry.domain = std::holds_alternative<BoolDomain>(declared->parameter.domain)
                           ? declared->parameter.domain
                       : is_unset(usual) || usual == value ? Domain(ChoiceDomain{{value}})
                                                           : Domain(ChoiceDomain{{usual, value}});
        entry.offers_unset = is_unset(usual);
        description.entries.push_back(entry);
    }
    return description;
}

Configuration wanted(const SearchSpace& space, const Case& one) {
    Assignment values;
    for (const auto& [name, value] : one.settings) values[name] = value;
    return space.completed(values);
}

void check_rule(const Case& one, const std::map<std::string, std::int64_t>& model_facts = {}) {
    INFO(one.engine << " " << one.version << " " << one.rendered);
    const Composition free(described(one, false, model_facts));
    const Command command = free.render(wanted(SearchSpace(free.parameters()), one), {"org/model"});
    const std::string text =
        command.text() + (command.files.empty() ? "" : command.files.begin()->second);
    INFO(text);
    CHECK(has(text, one.rendered));
    const Composition ruled(described(one, true, model_facts));
    const SearchSpace space(ruled.parameters(), ruled.constraints());
    const std::vector<std::string> violations = space.violations(wanted(space, one));
    const std::string first = violations.empty() ? "" : violations.front();
    INFO(first);
    if (one.because == nullptr) CHECK(violations.empty());
    else {
        REQUIRE_FALSE(violations.empty());
        CHECK(has(first, one.because));
    }
    CHECK(space.violations(space.default_configuration()).empty());
}

Value whole_value(std::int64_t value) { return value; }

}  // namespace

TEST_CASE("engine rules: what engines refuse, or change by themselves, is never proposed") {
    const Yaml cases = Yaml::load(SERVETUNE_SOURCE "/tests/data/cases/engine_rules.yaml");
    for (const Yaml& item : cases.items()) {
        const auto text = [&](const char* key) {
            const Yaml* value = item.entry(key);
            return value == nullptr ? std::string() : value->text();
        };
        const std::string engine = text("engine"), version = text("version"), shown = text("shown"),
                          because = text("because");
        Case one{engine.c_str(),
                 version.c_str(),
                 {},
                 shown.c_str(),
                 because.empty() ? nullptr : because.c_str()};
        for (const auto& [name, value] : item.entry(std::string_view("set"))->entries())
            one.settings.emplace_back(name, value.value());
        check_rule(one);
    }
    // A flag that the back end overrides is not passed.
    const Case overridden{"sglang",
                          "0.5.9",
                          {{"attention_backend", "flashmla"}, {"page_size", whole_value(16)}},
                          "flashmla",
                          nullptr};
    const Composition composition(described(overridden, true));
    const std::string text =
        composition.render(wanted(SearchSpace(composition.parameters()), overridden), {"m"}).text();
    CHECK(has(text, "--attention-backend=flashmla"));
    CHECK_FALSE(has(text, "page-size"));
}

TEST_CASE("engine rules: DFLASH and DSPARK with data parallel attention") {
    const auto refused = [](const char* method, bool with_head) {
        const Case one{"sglang",
                       "0.5.18",
                       {{"speculative_algorithm", method},
                        {"enable_dp_attention", true},
                        {"tp_size", whole_value(2)},
                        {"dp_size", whole_value(2)},
                        {"enable_dp_lm_head", with_head}},
                       "",
                       ""};
        SpaceDescription description = described(one, true);
        SpaceEntry draft{"speculative_draft_model_path"};
        draft.fixed = true;
        draft.default_value = "org/head";
        description.entries.push_back(draft);
        const Composition composition(description);
        const SearchSpace space(composition.parameters(), composition.constraints());
        const auto violations = space.violations(wanted(space, one));
        CHECK(has(composition.render(wanted(space, one), {"m"}).text(),
                  std::string("--speculative-algorithm=") + method));
        return violations.empty() ? "" : violations.front();
    };
    CHECK(has(refused("DFLASH", false), "speculative_hook.py"));
    CHECK(has(refused("DFLASH", true), "speculative_hook.py"));
    CHECK(has(refused("DSPARK", false), "without --enable-dp-lm-head"));
    CHECK(refused("DSPARK", true).empty());
    CHECK(refused("EAGLE3", false).empty());
}

TEST_CASE("engine rules: what depends on the model's heads is a rule where they are known") {
    const Case one{"vllm",
                   "0.28-main",
                   {{"tensor_parallel_size", whole_value(8)},
                    {"decode_context_parallel_size", whole_value(8)}},
                   "--decode-context-parallel-size=8",
                   "copies of its heads"};
    const std::map<std::string, std::int64_t> grouped{{"model.kv_heads", 4},
                                                      {"model.queries_per_kv_head", 8}};
    check_rule(one, grouped);
    Case fits = one;
    fits.settings[1].second = whole_value(2);
    fits.rendered = "--decode-context-parallel-size=2";
    fits.because = nullptr;
    check_rule(fits, grouped);
    check_rule(fits);  // nothing is known: no rule
    check_rule(fits, {{"model.kv_heads", 1}, {"model.queries_per_kv_head", 4}});
    Case odd = fits;
    odd.because = "copies of its heads";
    check_rule(odd, {{"model.kv_heads", 1}, {"model.queries_per_kv_head", 3}});
    check_rule(odd, {{"model.kv_heads", 8}, {"model.queries_per_kv_head", 8}});

    const TemporaryFolder folder;
    const auto rules = [&](const std::string& model) {
        const StudyFile study = load_study(
            folder.write(
                "study.yaml",
                "study: s\nmodel: " + model +
                    "\nengine: vllm\nworkloads: [{use: random}]\nhardware: {device: h100-sxm, "
                    "count: 8}\n"
                    "objective: {maximize: total_tokens_per_second}\nothers: default\n"
                    "space: {tensor_parallel_size: {choice: [1, 8]}, decode_context_parallel_size: "
                    "{choice: [1, 8]}}\nevaluator: {simulate: {}}\n"),
            shipped_catalogue);
        const SearchSpace space(study.composition->parameters(), study.composition->constraints());
        return space
            .violations(space.completed({{"tensor_parallel_size", whole_value(8)},
                                         {"decode_context_parallel_size", whole_value(8)}}))
            .size();
    };
    CHECK(rules("Qwen/Qwen3-14B") == 1);           // 8 heads for keys and values
    CHECK(rules("deepseek-ai/DeepSeek-R1") == 0);  // latent attention
    CHECK(rules("org/unknown") == 0);
}

TEST_CASE("engine rules: the model's context is the longest request where no flag sets it") {
    const Case short_of{
        "vllm",
        "0.17.0",
        {{"enable_chunked_prefill", false}, {"max_num_batched_tokens", whole_value(32'768)}},
        "--no-enable-chunked-prefill",
        "the longest prompt must fit in one step"};
    check_rule(short_of, {{"model.context_tokens", 40'960}});
    Case fits = short_of;
    fits.because = nullptr;
    check_rule(fits, {{"model.context_tokens", 32'768}});
    check_rule(fits);  // the model is not known
    Case shortened = fits;
    shortened.settings.emplace_back("max_model_len", whole_value(8192));
    check_rule(shortened, {{"model.context_tokens", 40'960}});
}

TEST_CASE("engine rules: chips leave out the back ends that they do not have") {
    const auto values = [](const char* engine, const char* parameter, const char* chip) {
        SpaceDescription description{{shipped_catalogue.engine(std::string(engine))}};
        description.architecture = chip;
        const Composition composition(description);
        std::vector<std::string> result;
        for (const Parameter& each : composition.parameters())
            if (each.name == parameter)
                for (const Value& value : std::get<ChoiceDomain>(each.domain).values)
                    result.push_back(text_of(value));
        return result;
    };
    const auto offers = [&](const char* engine, const char* parameter, const char* chip,
                            const char* value) {
        const auto all = values(engine, parameter, chip);
        return contains(all, value);
    };
    CHECK(offers("sglang", "attention_backend", "hopper", "fa3"));
    CHECK(offers("sglang", "attention_backend", "ampere",
                 "fa3"));  // of models without latent attention
    for (const char* chip : {"blackwell", "blackwell-rtx", "cdna3", "cdna4", "thor"})
        CHECK_FALSE(offers("sglang", "attention_backend", chip, "fa3"));
    CHECK(offers("sglang", "attention_backend", "cdna4", "aiter"));
    CHECK_FALSE(offers("sglang", "attention_backend", "hopper", "aiter"));
    CHECK(offers("sglang", "attention_backend", "blackwell", "trtllm_mha"));
    CHECK_FALSE(offers("sglang", "attention_backend", "hopper", "trtllm_mha"));
    for (const char* nvidias :
         {"FLASHINFER", "FLASHMLA", "CUTLASS_MLA", "FLASHINFER_MLA", "HPC_ATTN"})
        CHECK_FALSE(offers("vllm", "attention_backend", "cdna3", nvidias));
    for (const char* amds :
         {"ROCM_ATTN", "ROCM_AITER_FA", "ROCM_AITER_UNIFIED_ATTN", "ROCM_AITER_MLA"}) {
        CHECK(offers("vllm", "attention_backend", "cdna3", amds));
        CHECK_FALSE(offers("vllm", "attention_backend", "hopper", amds));
    }
    CHECK(offers("vllm", "attention_backend", "cdna3", "TRITON_ATTN"));
    CHECK_FALSE(offers("vllm", "attention_backend", "turing", "FLASH_ATTN"));
    CHECK_FALSE(offers("vllm", "attention_backend", "ampere", "FLASHMLA"));
    for (const char* parameter : {"moe_backend", "linear_backend"}) {
        CHECK(offers("vllm", parameter, "cdna3", "aiter"));
        CHECK_FALSE(offers("vllm", parameter, "blackwell", "aiter"));
        CHECK_FALSE(offers("vllm", parameter, "cdna3", "flashinfer_cutlass"));
        CHECK_FALSE(offers("vllm", parameter, "blackwell", "b12x"));
    }
    CHECK_FALSE(offers("vllm", "quantization", "cdna3", "moe_wna16"));
    CHECK_FALSE(offers("vllm", "kv_cache_dtype", "cdna3", "nvfp4"));
    CHECK(offers("sglang", "moe_runner_backend", "cdna3", "aiter"));
    CHECK_FALSE(offers("sglang", "moe_runner_backend", "cdna3", "deep_gemm"));
    CHECK_FALSE(offers("sglang", "sampling_backend", "cdna3", "flashinfer"));
    CHECK_FALSE(offers("sglang", "attention_backend", "hopper", "wave"));
}

TEST_CASE(
    "engine rules: a version newer than the newest known warns and says what was checked last") {
    const TemporaryFolder folder;
    const auto warnings = [&](const std::string& version) {
        const StudyFile study = load_study(
            folder.write(
                "study.yaml",
                "study: s\nmodel: org/m\nengine: vllm\nengine_versions: {vllm: \"" + version +
                    "\"}\nworkloads: [{use: random}]\nhardware: h100-sxm\nothers: default\nspace: "
                    "{}\n"
                    "objective: {maximize: total_tokens_per_second}\nevaluator: {simulate: {}}\n"),
            shipped_catalogue);
        std::string all;
        for (const std::string& warning : study.warnings) all += warning + "\n";
        return all;
    };
    CHECK(warnings("0.24.0").empty());
    CHECK(has(warnings("0.99.0"), "0.99.0"));
    CHECK(has(warnings("0.99.0"), "0.33"));
    CHECK(warnings("0.31.0").empty());
}

TEST_CASE("engine rules: vLLM's drafts are parallel since 0.16") {
    const auto composed = [](const char* version) {
        return Composition(
            described({"vllm",
                       version,
                       {{"speculative_method", "eagle3"}, {"parallel_drafting", true}},
                       "",
                       nullptr},
                      true));
    };
    CHECK_NOTHROW(composed("0.17.0"));
    CHECK_THROWS_AS(composed("0.14.0"), SpaceError);
}
