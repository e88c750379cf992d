// SPDX-License-Identifier: Apache-2.0
// Values as engines read them: 8k and 8K, words for a value, values beside those that are searched.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "engine/command_reader.hpp"
#include "engine/engine_value.hpp"
#include "servetune/error.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/study_file.hpp"

#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

StudyFile value_study(const std::string& engine, const std::string& lines) {
    const TemporaryFolder folder;
    return load_study(
        folder.write(
            "s.yaml",
            "study: s\nmodel: org/m\nengine: " + engine + "\nothers: default\n" + lines +
                "workloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\n"
                "evaluator: {deploy: {}}\n"),
        shipped_catalogue);
}
std::string value_refusal(const std::string& engine, const std::string& lines) {
    return message_of<Error>([&] { (void)value_study(engine, lines); });
}
SearchSpace searched_in(const StudyFile& study) {
    return SearchSpace(study.composition->parameters(), study.composition->constraints());
}
std::string command_in(const StudyFile& study, const Assignment& changes = {}) {
    const SearchSpace space = searched_in(study);
    return study.composition
        ->render(space.changed(space.default_configuration(), changes), {"org/m"})
        .text();
}
Value as_whole_value(std::int64_t number) { return number; }

}  // namespace

TEST_CASE("values: suffixes count in thousands or in 1024s, and only thousands take decimals") {
    CHECK(suffixed_number("8k") == 8000);
    CHECK(suffixed_number("8K") == 8192);
    CHECK(suffixed_number("25.6k") == 25'600);
    CHECK(suffixed_number("1m") == 1'000'000);
    CHECK(suffixed_number("1M") == 1'048'576);
    CHECK(suffixed_number("2g") == 2'000'000'000);
    CHECK(suffixed_number("2G") == 2'147'483'648);
    CHECK(suffixed_number("1T") == std::int64_t{1} << 40U);
    for (const char* none : {"", "k", "8", "8.5K", "8.k", ".5k", "-8k", "8kk", "8 k", "1e3k", "8x",
                             "inf", "0x8k", "99999999T", "k8"}) {
        INFO(none);
        CHECK_FALSE(suffixed_number(none));
    }
}

TEST_CASE("values: a study writes numbers as the engine reads them, and equal ones are one") {
    const StudyFile study =
        value_study("vllm", "space: {max_num_batched_tokens: [engine, 8K, 8192, 16k, 32768]}\n");
    CHECK(searched_in(study).at("max_num_batched_tokens").domain_text() ==
          "one of 8192, 16000, 32768, or engine");
    CHECK(searched_in(study).at("max_num_batched_tokens").ordered());
    REQUIRE(study.composition->notes().size() == 1);
    CHECK(has(study.composition->notes()[0],
              "'max_num_batched_tokens': 8192 is another word for a value of the list"));
    CHECK(command_in(study, {{"max_num_batched_tokens", as_whole_value(16'000)}}) ==
          "vllm serve org/m --max-num-batched-tokens=16000");
    CHECK(command_in(value_study("vllm", "space: {max_model_len: 25.6k}\n")) ==
          "vllm serve org/m --max-model-len=25600");
    CHECK(command_in(
              value_study("vllm", "space: {max_model_len: {choice: [8k, 16k], default: 16k}}\n")) ==
          "vllm serve org/m --max-model-len=16000");
    CHECK(command_in(value_study("vllm", "space: {kv_cache_memory_bytes: 8G}\n")) ==
          "vllm serve org/m --kv-cache-memory-bytes=8589934592");
    CHECK(command_in(value_study("sglang", "space: {context_length: 32K}\n")) ==
          "python3 -m sglang.launch_server --model-path org/m --context-length=32768");
    // In a rule of the study, too.
    const StudyFile rule =
        value_study("vllm",
                    "space: {max_model_len: [8K, 16K], max_num_seqs: [8, 16]}\n"
                    "constraints: [{forbid: {max_model_len: 8K, max_num_seqs: 16}}]\n");
    const SearchSpace space = searched_in(rule);
    CHECK_FALSE(space.feasible(space.completed(
        {{"max_model_len", as_whole_value(8192)}, {"max_num_seqs", as_whole_value(16)}})));
    CHECK(space.feasible(space.completed(
        {{"max_model_len", as_whole_value(16'384)}, {"max_num_seqs", as_whole_value(8)}})));
    CHECK(has(value_refusal("vllm",
                            "space: {max_model_len: [8K, 16K], max_num_seqs: [8, "
                            "16]}\nconstraints: [{forbid: {max_model_len: 16k}}]\n"),
              "names max_model_len=16000, but 'max_model_len' is one of 8192, 16384, or engine"));
    CHECK(command_in(value_study("vllm", "space: {max_num_seqs: 8K}\n")) ==
          "vllm serve org/m --max-num-seqs=8192");
    // Where a suffix takes no decimals.
    CHECK(has(value_refusal("vllm", "space: {max_model_len: 8.5K}\n"),
              "vllm does not take 8.5K for 'max_model_len'"));
    CHECK(has(value_refusal("vllm", "space: {max_model_len: 8.5K}\n"), "8k is 8000, 8K is 8192"));
}

TEST_CASE("values: numbers as people and programs write them are numbers") {
    const StudyFile study = value_study(
        "vllm",
        "space: {max_num_seqs: [64.0, 128.0], max_num_batched_tokens: [2e3, 8e3], block_size: "
        "[\"16\", \"32\"], gpu_memory_utilization: \"0.9\", enforce_eager: [\"true\", false]}\n");
    const SearchSpace space = searched_in(study);
    CHECK(space.at("max_num_seqs").domain_text() == "one of 64, 128, or engine");
    CHECK(space.at("max_num_seqs").ordered());
    CHECK(space.at("max_num_batched_tokens").domain_text() == "one of 2000, 8000, or engine");
    CHECK(has(space.at("block_size").domain_text(), "one of 16, 32"));
    CHECK(space.at("gpu_memory_utilization").default_value == Value(0.9));
    CHECK(space.at("enforce_eager").contains(true));
    CHECK(searched_in(value_study("vllm",
                                  "space: {max_num_seqs: {int: {low: 16.0, high: 1e3, step: "
                                  "\"8\"}, default: 6.4e1}}\n"))
              .at("max_num_seqs")
              .domain_text() == "integer 16..1000 by 8");
    // What is no whole number is said to be none.
    CHECK(has(value_refusal("vllm", "space: {max_num_seqs: [64.5]}\n"),
              "vllm does not take 64.5 for 'max_num_seqs' (integer"));
    CHECK(has(value_refusal("vllm", "space: {max_num_seqs: [\"many\"]}\n"),
              "vllm does not take many for 'max_num_seqs'"));
    // In a rule and in an own condition, too.
    const StudyFile ruled = value_study(
        "vllm",
        "space: {max_num_seqs: [64, 128], block_size: [16, 32], own: {flag: --own, int: {low: 1, "
        "high: 2}, when: {vllm.max_num_seqs: [\"64\", 1.28e2]}}}\nconstraints: [{forbid: "
        "{max_num_seqs: 64.0, block_size: \"16\"}}]\n");
    const SearchSpace with_rule = searched_in(ruled);
    CHECK_FALSE(with_rule.feasible(with_rule.completed(
        {{"max_num_seqs", as_whole_value(64)}, {"block_size", as_whole_value(16)}})));
    CHECK(with_rule.completed({{"max_num_seqs", as_whole_value(64)}}).find("own") != nullptr);
    CHECK(with_rule.completed({{"max_num_seqs", as_whole_value(128)}}).find("own") != nullptr);
}

TEST_CASE("values: a range may begin where its end is another word for no flag") {
    const SearchSpace space = searched_in(
        value_study("llama.cpp", "space: {n_cpu_moe: {int: {low: 0, high: 40, step: 2}}}\n"));
    CHECK(space.at("n_cpu_moe").domain_text() == "integer 2..40 by 2, or engine");
    CHECK(is_unset(space.at("n_cpu_moe").default_value));
    CHECK(searched_in(value_study("llama.cpp",
                                  "space: {n_cpu_moe: {int: {low: 0, high: 40}, default: 8}}\n"))
              .at("n_cpu_moe")
              .default_value == as_whole_value(8));
    // A word that is no end of the range: of 0 alone nothing is left.
    CHECK(has(value_refusal("llama.cpp", "space: {n_cpu_moe: {int: {low: 0, high: 0}}}\n"),
              "0 is outside the range"));
    CHECK(has(value_refusal("llama.cpp", "space: {n_cpu_moe: {int: {low: -4, high: 8}}}\n"),
              "-4 is outside the range"));
}

TEST_CASE("values: what engines take beside what is searched can be said") {
    const StudyFile study = value_study(
        "vllm", "space: {max_model_len: [auto, 8192], long_prefill_token_threshold: [0, 2048]}\n");
    CHECK(command_in(study, {{"max_model_len", as_whole_value(-1)}}) ==
          "vllm serve org/m --max-model-len=-1");
    // -1 is no length: a rule about lengths says nothing of it.
    CHECK(FeasibleSet(searched_in(study)).size() == 3 * 2);
    CHECK(command_in(value_study("vllm", "space: {max_model_len: -1}\n")) ==
          "vllm serve org/m --max-model-len=-1");
    CHECK(has(
        value_refusal("vllm", "engine_versions: {vllm: \"0.11\"}\nspace: {max_model_len: auto}\n"),
        "-1 is outside the range in the file of vllm"));
    CHECK(has(value_refusal("vllm", "space: {gpu_memory_utilization: [0.3]}\n"),
              "0.3 is outside the range in the file of vllm for 'gpu_memory_utilization' (real "
              "0.5..0.98, or engine)"));
    const std::string blocks = "space: {block_size: [16, 32, 48, 96]}\n";
    CHECK(command_in(value_study("vllm", "engine_versions: {vllm: \"0.29\"}\n" + blocks),
                     {{"block_size", as_whole_value(48)}}) == "vllm serve org/m --block-size=48");
    CHECK(has(value_refusal("vllm", "engine_versions: {vllm: \"0.17\"}\n" + blocks),
              "vllm does not take 48 for 'block_size'"));
    CHECK(has(value_refusal("vllm", "space: {block_size: 0}\n"),
              "vllm does not take 0 for 'block_size'"));
    const Composition everything({{shipped_catalogue.engine("vllm")}});
    CHECK(SearchSpace(everything.parameters()).at("block_size").level_count() ==
          8);  // a search of all looks past them
    CHECK(command_in(value_study("llama.cpp", "space: {n_cpu_moe: 0}\n")) ==
          "llama-server --model org/m --metrics");
    CHECK(command_in(value_study("llama.cpp", "space: {gpu_layers: auto}\n")) ==
          "llama-server --model org/m --metrics");
    CHECK(command_in(value_study("llama.cpp", "space: {gpu_layers: all}\n")) ==
          "llama-server --model org/m --metrics --n-gpu-layers 1024");
    CHECK(searched_in(value_study("llama.cpp", "space: {n_cpu_moe: [0, 8, 16]}\n"))
              .at("n_cpu_moe")
              .domain_text() == "one of 8, 16, or engine");
    CHECK(command_in(value_study("llama.cpp", "space: {cache_ram: -1}\n")) ==
          "llama-server --model org/m --metrics --cache-ram -1");
    CHECK(has(value_refusal("llama.cpp", "space: {n_cpu_moe: -1}\n"),
              "-1 is outside the range in the file of llama.cpp for 'n_cpu_moe'"));
    CHECK(command_in(value_study("sglang", "space: {chunked_prefill_size: -1}\n")) ==
          "python3 -m sglang.launch_server --model-path org/m --chunked-prefill-size=-1");
}

TEST_CASE("values: commands are read as the engine reads them") {
    const StudyFile study =
        value_study("vllm",
                    "space: {max_model_len: [auto, 8192], max_num_batched_tokens: [8000, 8192], "
                    "block_size: [16, 48]}\n");
    const auto parsed =
        study.composition->parse({"vllm", "serve", "org/m", "--max-model-len", "auto",
                                  "--max-num-batched-tokens=8K", "--block-size", "48"},
                                 "org/m");
    CHECK(parsed.unknown.empty());
    CHECK(parsed.values.at("max_model_len") == as_whole_value(-1));
    CHECK(parsed.values.at("max_num_batched_tokens") == as_whole_value(8192));
    CHECK(parsed.values.at("block_size") == as_whole_value(48));
    CHECK(study.composition
              ->parse({"vllm", "serve", "org/m", "--max-num-batched-tokens", "8k"}, "org/m")
              .values.at("max_num_batched_tokens") == as_whole_value(8000));
    CHECK(study.composition->parse({"vllm", "serve", "org/m", "--max-model-len", "-1"}, "org/m")
              .values.at("max_model_len") == as_whole_value(-1));
    const StudyFile offload = value_study("llama.cpp", "space: {n_cpu_moe: [engine, 4]}\n");
    CHECK(is_unset(offload.composition->parse({"llama-server", "--n-cpu-moe", "0"}, "org/m")
                       .values.at("n_cpu_moe")));
    // A rule sees what the study's own words in every command come to.
    const StudyFile held = value_study(
        "vllm",
        "space: {max_num_seqs: [4096, 16384]}\narguments: [--max-num-batched-tokens, 8K]\n");
    CHECK(FeasibleSet(searched_in(held)).size() ==
          2);  // 16384 sequences do not fit a step of 8192 tokens
}

TEST_CASE("values: the way off of a newer version is read as ours") {
    const CommandReader reader(shipped_catalogue.engines(), search_spaces);
    const auto values = [&](const std::string& flag) {
        return reader.read({{"vllm", "serve", "org/m", flag}}).values();
    };
    CHECK(values("--disable-prefix-caching").at("enable_prefix_caching") == Value(false));
    CHECK(values("--enable-cascade-attn").at("disable_cascade_attn") == Value(false));
    CHECK(values("--enable-prefix-caching").at("enable_prefix_caching") == Value(true));
    const StudyFile study =
        value_study("vllm", "space: {enable_prefix_caching: [engine, true, false]}\n");
    const CommandSettings off =
        reader.read({{"vllm", "serve", "org/m", "--disable-prefix-caching"}});
    CHECK(study.composition->parse(off, "org/m").values.at("enable_prefix_caching") ==
          Value(false));
}
