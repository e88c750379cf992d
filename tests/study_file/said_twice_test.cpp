// SPDX-License-Identifier: Apache-2.0
// Fixed beats searched: what `arguments` or `environment` sets of what a study searches or its
// launch passes.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/study_file.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

struct FixedStudy {
    std::string engine = "vllm";
    std::string space = "{max_num_seqs: {choice: [4, 8, 64], default: 4}}";
    std::string arguments = "[]";
    std::string deploy = "watch: off";
    std::string more{};

    [[nodiscard]] StudyFile loaded(const MachineSource& machine = {}) const {
        const TemporaryFolder folder;
        return load_study(
            folder.write(
                "s.yaml",
                "study: s\nmodel: org/m\nengine: " + engine + "\nspace: " + space +
                    "\narguments: " + arguments + "\n" + more +
                    "workloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\n"
                    "evaluator: {deploy: {" +
                    deploy + "}}\n"),
            shipped_catalogue, "", MeasuredBy::evaluator, machine);
    }
    [[nodiscard]] std::string refusal() const {
        return message_of<Error>([&] { (void)loaded(); });
    }
};

std::string fixed_refusal(const std::string& engine, const std::string& space,
                          const std::string& arguments, const std::string& more = "") {
    return FixedStudy{.engine = engine, .space = space, .arguments = arguments, .more = more}
        .refusal();
}

}  // namespace

TEST_CASE(
    "fixed beats searched: an argument that sets a searched parameter is refused in every "
    "spelling") {
    const std::string wrong = FixedStudy{.arguments = "[--max-num-seqs, \"16\"]"}.refusal();
    INFO(wrong);
    CHECK(
        has(wrong,
            "s.yaml:5:13: 'arguments[0]': '--max-num-seqs 16': this study searches max_num_seqs"));
    for (const char* words :
         {"[--max-num-seqs=16]", "[--max_num_seqs=16]", "[--max_num-seqs, \"16\"]",
          "[--trust-remote-code, --max-num-seqs, \"16\"]", "[--max-num-se, \"16\"]"}) {
        INFO(words);
        CHECK(has(FixedStudy{.arguments = words}.refusal(), "this study searches max_num_seqs"));
    }
    const std::string two = "hardware: {count: 2}\n";
    const std::string layouts = "{tensor_parallel_size: [1, 2]}";
    for (const char* words : {"[-tp, \"2\"]", "[-tp=2]", "[--tensor_parallel_size=2]",
                              "[--tensor-parallel-size, \"2\"]", "[--tensor-par=2]"}) {
        INFO(words);
        CHECK(has(fixed_refusal("vllm", layouts, words, two),
                  "this study searches tensor_parallel_size"));
    }
    for (const char* words :
         {"[--tp, \"2\"]", "[--tp-size=2]", "[--tensor-parallel-size, \"2\"]"}) {
        INFO(words);
        CHECK(has(fixed_refusal("sglang", "{tp_size: [1, 2]}", words, two),
                  "this study searches tp_size"));
    }
    const std::string llama = "{parallel: [1, 4], batch_size: [512, 2048]}";
    CHECK(has(fixed_refusal("llama.cpp", llama, "[-np, \"2\"]"), "searches parallel"));
    CHECK(has(fixed_refusal("llama.cpp", llama, "[-b, \"1024\"]"), "searches batch_size"));
    CHECK(has(
        fixed_refusal("tensorrt-llm", "{max_batch_size: [64, 256]}", "[--max_batch_size, \"128\"]"),
        "searches max_batch_size"));
    CHECK(
        has(fixed_refusal("tensorrt-llm", "{max_batch_size: [64, 256]}", "[--max-batch-size=128]"),
            "searches max_batch_size"));
    // All of them in one go.
    const std::string both = fixed_refusal("llama.cpp", llama, "[-np, \"2\", -b, \"1024\"]");
    CHECK((has(both, "searches parallel") && has(both, "searches batch_size")));
    // With several engines each has its own words.
    const TemporaryFolder folder;
    const std::string several = message_of<Error>([&] {
        (void)load_study(
            folder.write(
                "t.yaml",
                "study: s\nmodel: org/m\nengine: [vllm, sglang]\nspace: {vllm.max_num_seqs: [4, "
                "8]}\n"
                "arguments:\n  sglang: [--max-running-requests, \"8\"]\n  vllm: [--max-num-seqs, "
                "\"16\"]\n"
                "workloads: [{use: random}]\nobjective: {maximize: total_tokens_per_second}\n"
                "evaluator: {deploy: {}}\n"),
            shipped_catalogue);
    });
    CHECK(has(several, "t.yaml:7:10: 'arguments.vllm[0]': '--max-num-seqs 16'"));
    CHECK_FALSE(has(several, "sglang"));
}

TEST_CASE("fixed beats searched: switches, their negations and parts of JSON flags") {
    const std::string caching = "{enable_prefix_caching: [true, false]}";
    for (const char* words : {"[--no-enable-prefix-caching]", "[--enable-prefix-caching]",
                              "[--enable_prefix_caching]", "[--no_enable_prefix_caching]"}) {
        INFO(words);
        CHECK(has(fixed_refusal("vllm", caching, words), "searches enable_prefix_caching"));
    }
    CHECK(has(fixed_refusal("vllm", "{enforce_eager: [true, false]}", "[--no-enforce-eager]"),
              "searches enforce_eager"));
    const std::string graphs = "{cudagraph_mode: [NONE, PIECEWISE]}";
    for (const char* words :
         {"[--compilation-config, '{\"mode\": 3}']", "[--compilation-config.cudagraph_mode=FULL]",
          "[-cc.cudagraph_mode=FULL]", "['-cc={\"cudagraph_mode\": \"FULL\"}']",
          "[--compilation_config.cudagraph_mode, FULL]"}) {
        INFO(words);
        CHECK(has(fixed_refusal("vllm", graphs, words), "searches cudagraph_mode"));
    }
    CHECK(fixed_refusal("vllm", graphs, "[--compilation-config.debug_dump_path=/tmp]")
              .empty());  // the parser joins parts
    const std::string guesses =
        "{speculative_method: [none, ngram], num_speculative_tokens: [2, 4]}";
    for (const char* words : {"[--speculative-config, '{\"method\": \"ngram\"}']", "[-sc, '{}']",
                              "[--speculative-config.method=ngram]"}) {
        INFO(words);
        CHECK(has(fixed_refusal("vllm", guesses, words), "this study searches"));
    }
}

TEST_CASE("fixed beats searched: what the launch itself passes, and files that may set anything") {
    CHECK(has(FixedStudy{.arguments = "[--port, \"8123\"]"}.refusal(), "pass --port themselves"));
    CHECK(has(FixedStudy{.arguments = "[--port=8123]"}.refusal(), "pass --port themselves"));
    CHECK(has(FixedStudy{.arguments = "[--host, 0.0.0.0]"}.refusal(), "pass --host themselves"));
    for (const char* words :
         {"[--model, other/m]", "[--model=other/m]", "[other/m]", "[--enforce-eager, other/m]"}) {
        INFO(words);
        CHECK(has(FixedStudy{.arguments = words}.refusal(), "model"));
    }
    CHECK(has(fixed_refusal("sglang", "{max_running_requests: [4, 8]}", "[--model, other/m]"),
              "which model is served"));
    for (const char* words : {"[-m, other.gguf]", "[--hf-repo, a/b]", "[-hf, a/b]"}) {
        INFO(words);
        CHECK(
            has(fixed_refusal("llama.cpp", "{parallel: [1, 4]}", words), "which model is served"));
    }
    CHECK(has(FixedStudy{.arguments = "[--config, prod.yml]"}.refusal(),
              "a file may set what this study searches (such as max_num_seqs)"));
    CHECK(has(fixed_refusal("sglang", "{max_running_requests: [4, 8]}", "[--config=prod.yml]"),
              "a file may set"));
    for (const char* words : {"[--extra_llm_api_options, prod.yml]", "[--config, prod.yml]"}) {
        INFO(words);
        CHECK(has(fixed_refusal("tensorrt-llm", "{kv_cache_dtype: [engine, fp8]}", words),
                  "a file may set"));
    }
    CHECK(has(
        FixedStudy{.arguments = "[--load-format, dummy]", .deploy = "weight_cache: on"}.refusal(),
        "pass --load-format themselves"));
}

TEST_CASE(
    "fixed beats searched: variables over `env` parameters, flags by variables, devices twice") {
    const std::string foo = "{foo: {env: FOO, choice: [a, b]}}";
    CHECK(has(FixedStudy{.space = foo, .deploy = "watch: off, environment: {FOO: z}"}.refusal(),
              "'evaluator.deploy.environment.FOO': this study searches foo"));
    CHECK(
        FixedStudy{.space = foo, .deploy = "watch: off, environment: {FOOT: z}"}.refusal().empty());
    CHECK(has(FixedStudy{.engine = "llama.cpp",
                         .space = "{batch_size: [512, 2048]}",
                         .deploy = "environment: {LLAMA_ARG_BATCH: \"256\"}"}
                  .refusal(),
              "variables LLAMA_ARG_... set flags of llama.cpp"));
    CHECK(has(FixedStudy{.deploy = "gpus: \"0\", environment: {CUDA_VISIBLE_DEVICES: \"1\"}",
                         .more = "hardware: {count: 1}\n"}
                  .refusal(),
              "`gpus` says which devices"));
    const std::string podman = "container: {image: i, options: ";
    for (const char* options :
         {"[-e, FOO=z]", "[-eFOO=z]", "[--env=BAR=z]", "[--env, FOO]", "[--env-file, prod.env]"}) {
        INFO(options);
        CHECK(has(FixedStudy{.space = foo, .deploy = podman + options + "}"}.refusal(),
                  "'evaluator.deploy.container.options': "));
    }
    // What this program's own shell exports is inherited by engines that it starts here.
    setenv("FOO", "z", 1);
    const auto inherited = set_by_own_environment(FixedStudy{.space = foo}.loaded());
    const auto in_container =
        set_by_own_environment(FixedStudy{.space = foo, .deploy = podman + "[]}"}.loaded());
    unsetenv("FOO");
    REQUIRE(inherited.size() == 1);
    CHECK(has(
        inherited.front(),
        "the environment of this program has FOO, which engines inherit: this study searches foo"));
    CHECK(in_container.empty());
    CHECK(set_by_own_environment(FixedStudy{.space = foo}.loaded()).empty());
}

TEST_CASE(
    "fixed beats searched: arguments that fix what is not searched stay, and so does what says the "
    "same") {
    for (const char* words :
         {"[--load-format, dummy, --served-model-name, a, b]", "[--max-model-len, \"4096\"]",
          "[--no-enable-prefix-caching]", "[--trust-remote-code]", "[--an-unknown-flag, x, y]",
          "[--kv-transfer-config, '{\"a\": 1}']"}) {
        INFO(words);
        CHECK(FixedStudy{.arguments = words}.refusal().empty());
    }
    const std::string fixed = "{max_num_seqs: 16, max_num_batched_tokens: [2048, 4096]}";
    CHECK(FixedStudy{.space = fixed, .arguments = "[--max-num-seqs, \"16\"]"}.refusal().empty());
    CHECK(FixedStudy{.space = fixed, .arguments = "[--max_num_seqs=16]"}.refusal().empty());
    CHECK(has(FixedStudy{.space = fixed, .arguments = "[--max-num-seqs, \"8\"]"}.refusal(),
              "'space' fixes max_num_seqs to 16: say it once"));
    // A preset searches too.
    CHECK(
        has(fixed_refusal("vllm", "{}", "[--max-num-batched-tokens, \"4096\"]", "preset: quick\n"),
            "this study searches max_num_batched_tokens"));
    // They count in rules, however they are spelled: two devices here, so data parallelism of two
    // does not fit.
    for (const char* words :
         {"[-tp, \"2\"]", "[--tensor_parallel_size=2]", "[--tensor-parallel-size, \"2\"]"}) {
        INFO(words);
        const StudyFile study = FixedStudy{.space = "{data_parallel_size: [1, 2]}",
                                           .arguments = words,
                                           .more = "hardware: {count: 2}\n"}
                                    .loaded();
        const SearchSpace space(study.composition->parameters(), study.composition->constraints());
        CHECK_FALSE(space.feasible(space.completed({{"data_parallel_size", std::int64_t{2}}})));
        CHECK(study.composition->devices_of(space.default_configuration()) == 2);
    }
}

TEST_CASE("fixed beats searched: a study that ran so can still be read, and says it") {
    const MachineSource kept{find_machine, [](const StudyFile&) {
                                 return std::map<std::string, std::string>{{"study", "s"}};
                             }};
    const StudyFile study = FixedStudy{.arguments = "[--max-num-seqs, \"16\"]"}.loaded(kept);
    REQUIRE(study.said_twice.size() == 1);
    CHECK(has(study.said_twice.front(), "this study searches max_num_seqs"));
    CHECK(std::any_of(study.notes.begin(), study.notes.end(), [](const std::string& note) {
        return has(note, "its results may be of one server");
    }));
}
