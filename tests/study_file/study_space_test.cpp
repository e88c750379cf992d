// SPDX-License-Identifier: Apache-2.0
// What a study makes of its engines' parameters: trial 0, commands that are one, chips, the number
// of devices.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/expression.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/study_checks.hpp"
#include "space/expression_rewriting.hpp"
#include "study_file/keys.hpp"

#include <algorithm>
#include <cstdlib>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A study of `engine` with further lines; nothing of it is run.
StudyFile study_of(const std::string& engine, const std::string& lines,
                   const std::string& evaluator = "{deploy: {}}") {
    const TemporaryFolder folder;
    folder.write("t.csv", "parallel,status,total_tokens_per_second\n2,ok,1\n");
    const auto file =
        folder.write("s.yaml", "study: s\nmodel: org/m\nengine: " + engine + "\n" + lines +
                                   "workloads: [{use: random}]\nobjective: {maximize: "
                                   "total_tokens_per_second}\nevaluator: " +
                                   evaluator + "\n");
    return load_study(file, shipped_catalogue);
}
std::string study_refusal(const std::string& engine, const std::string& lines,
                          const std::string& evaluator = "{deploy: {}}") {
    return message_of<Error>([&] { (void)study_of(engine, lines, evaluator); });
}
SearchSpace space_of(const StudyFile& study) {
    return SearchSpace(study.composition->parameters(), study.composition->constraints());
}
std::string command_of(const StudyFile& study, const Assignment& changes = {}) {
    const SearchSpace space = space_of(study);
    return study.composition
        ->render(space.changed(space.default_configuration(), changes), {"org/m"})
        .text();
}

}  // namespace

TEST_CASE(
    "trial 0 is the engine's own default: neither a preset nor a narrowed choice passes a flag") {
    for (const char* preset : {"quick", "full", "latency", "throughput", "long-context"})
        for (const char* engine : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
            const Yaml file =
                Yaml::load(search_spaces / "presets" / (std::string(preset) + ".yaml"));
            if (!file.entry(std::string("space"))->entries().empty() &&
                file.entry(std::string("space"))->entry(std::string(engine)) == nullptr)
                continue;
            INFO(preset << " " << engine);
            const StudyFile study = study_of(engine, "preset: " + std::string(preset) + "\n");
            CHECK(command_of(study) ==
                  study_of(engine, "others: default\n").composition->render({}, {"org/m"}).text());
        }
    const StudyFile narrowed =
        study_of("llama.cpp", "space: {threads: {choice: [1, 2]}}\nothers: default\n");
    CHECK(command_of(narrowed) == "llama-server --model org/m --metrics");
    CHECK(command_of(narrowed, {{"threads", std::int64_t{1}}}) ==
          "llama-server --model org/m --metrics --threads 1");
    CHECK(FeasibleSet(space_of(narrowed)).size() == 3);
    // A bool that is narrowed to itself was `false` by its order alone, which passed
    // --no-enable-prefix-caching.
    CHECK(command_of(
              study_of("vllm", "space: {enable_prefix_caching: {bool: {}}}\nothers: default\n")) ==
          "vllm serve org/m");
    // What the study fixes or calls the default stays.
    CHECK(command_of(study_of("llama.cpp", "space: {threads: 1}\nothers: default\n")) ==
          "llama-server --model org/m --metrics --threads 1");
    CHECK(command_of(study_of("llama.cpp", "space: {threads: {choice: [1]}}\nothers: default\n")) ==
          "llama-server --model org/m --metrics --threads 1");
    const StudyFile said =
        study_of("llama.cpp", "space: {threads: {choice: [1, 2], default: 2}}\nothers: default\n");
    CHECK(command_of(said) == "llama-server --model org/m --metrics --threads 2");
    CHECK(FeasibleSet(space_of(said)).size() == 2);
    // The engine's own value among the choices is the default as it is.
    const StudyFile own =
        study_of("vllm", "space: {stream_interval: {choice: [4, 1]}}\nothers: default\n");
    CHECK(space_of(own).at("stream_interval").default_value == Value(std::int64_t{1}));
    CHECK(FeasibleSet(space_of(own)).size() == 2);
    // Of a replayed table the rows decide what there is.
    const StudyFile replayed = study_of(
        "llama.cpp", "space: {parallel: {choice: [2, 4]}}\nothers: default\n", "{replay: t.csv}");
    CHECK(space_of(replayed).default_configuration().text() == "parallel=2");
}

TEST_CASE("no flag counts as the engine's own value in rules and conditions") {
    const StudyFile study =
        study_of("vllm",
                 "hardware: {count: 8}\nspace:\n  tensor_parallel_size: {choice: [2, 4]}\n"
                 "  decode_context_parallel_size: {choice: [1, 2]}\nothers: default\n");
    const SearchSpace space = space_of(study);
    CHECK(command_of(study) == "vllm serve org/m");
    CHECK_FALSE(space.feasible(space.completed(
        {{"decode_context_parallel_size", std::int64_t{2}}})));  // one device, two parts
    CHECK(space.feasible(space.completed({{"tensor_parallel_size", std::int64_t{2}},
                                          {"decode_context_parallel_size", std::int64_t{2}}})));
    // How many tokens are guessed is always written, so there is no "not set" to add.
    const StudyFile guesses =
        study_of("vllm",
                 "space:\n  speculative_method: {choice: [none, ngram]}\n  num_speculative_tokens: "
                 "{choice: [2, 4]}\nothers: default\n");
    CHECK(has(command_of(guesses, {{"speculative_method", "ngram"}}),
              "\"num_speculative_tokens\":2"));
}

TEST_CASE(
    "a parameter of the study's own passes every value that is chosen, its default is that of "
    "trial 0") {
    const StudyFile study =
        study_of("llama.cpp",
                 "space: {tp: {flag: -tp, choice: [engine, 4, 8], default: 8}}\nothers: default\n");
    CHECK(command_of(study) == "llama-server --model org/m --metrics -tp 8");
    CHECK(command_of(study, {{"tp", std::int64_t{4}}}) ==
          "llama-server --model org/m --metrics -tp 4");
    CHECK(command_of(study, {{"tp", Unset{}}}) == "llama-server --model org/m --metrics");
    CHECK(study.composition->notes().empty());
    const StudyFile variable =
        study_of("llama.cpp", "space: {x: {env: X, choice: [a, b]}}\nothers: default\n");
    CHECK(command_of(variable) == "llama-server --model org/m --metrics");
    CHECK(command_of(variable, {{"x", "a"}}) == "X=a llama-server --model org/m --metrics");
}

TEST_CASE("values with the same command are one configuration, and the study is told") {
    const StudyFile study = study_of(
        "llama.cpp", "space: {fast: {flag: --fast, bool: {}, default: engine}}\nothers: default\n");
    CHECK(FeasibleSet(space_of(study)).size() == 2);
    REQUIRE(study.composition->notes().size() == 1);
    CHECK(study.composition->notes()[0] ==
          "'fast': false and engine give the same command, so they are one configuration: engine");
    const StudyFile checkpoints =
        study_of("vllm",
                 "space: {quantization: {choice: [none, fp8, int8], checkpoints: {fp8: org/small, "
                 "int8: org/small}}}\nothers: default\n");
    CHECK(FeasibleSet(space_of(checkpoints)).size() == 2);
    // No parameter of the shipped engines has such values.
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
        INFO(engine);
        CHECK(study_of(engine, "preset: full\n").composition->notes().empty());
    }
}

TEST_CASE("an entry takes the place of the preset's, whichever name of the parameter it has") {
    for (const char* name : {"max_num_seqs", "vllm.max_num_seqs", "max_concurrent_sequences",
                             "vllm.max_concurrent_sequences"}) {
        INFO(name);
        const StudyFile study = study_of("vllm", "preset: quick\nspace: {" + std::string(name) +
                                                     ": {choice: [64, 128], default: 64}}\n");
        CHECK(space_of(study).at("max_num_seqs").level_count() == 2);
    }
}

TEST_CASE("a key that changes nothing of an engine's parameter is an error that says what to do") {
    const auto refusal = [](const std::string& name, const std::string& keys) {
        return study_refusal(
            "vllm", "space:\n  " + name + ": {choice: [engine, throughput]" + keys + "}\n");
    };
    CHECK(refusal("performance_mode", "").empty());
    CHECK(refusal("performance_mode",
                  ", default: throughput, ordered: true, grows_memory: true, doc: d, source: s")
              .empty());
    for (const Key& key : rows_of(keys::parameter)) {
        INFO(key.name);
        for (const std::string name : {"performance_mode", "vllm.performance_mode"}) {
            const std::string said = refusal(name, ", " + std::string(key.name) + ": x");
            CHECK(has(said, "'space." + name + "." + std::string(key.name) +
                                "': the file of vllm says this of its parameter "
                                "'performance_mode'; leave it out") == key.has(of_engine));
        }
    }
    CHECK(
        has(study_refusal("[vllm, sglang]",
                          "space: {max_concurrent_sequences: {choice: [64, 128], flag: --seqs}}\n"),
            "'space.max_concurrent_sequences.flag': the file of vllm says this of its parameter "
            "'max_num_seqs'"));
    // Each of several is said; a parameter of the study's own has them all.
    const std::string two = refusal("performance_mode", ", flag: --perf, since: \"99\"");
    CHECK(std::count(two.begin(), two.end(), '\n') == 1);
    CHECK(refusal("mine", ", flag: --mine, since: \"0.11\", same_as: {fast: throughput}").empty());
    // A level of load is passed to no engine.
    CHECK(has(study_refusal("vllm", "space: {load.concurrency: {choice: [1, 4], flag: --x}}\n"),
              "'space.load.concurrency.flag': no engine gets this parameter; leave this out"));
}

TEST_CASE("a model of a value that is not tried is an error") {
    const auto refusal = [](const std::string& space) {
        return study_refusal("vllm", "space: {" + space + "}\n");
    };
    CHECK(refusal("quantization: {choice: [none, fp8], checkpoints: {fp8: org/m8}}").empty());
    CHECK(has(refusal("quantization: {choice: [none, fp8], checkpoints: {fp4: org/m4}}"),
              "s.yaml:4:23: 'space.quantization': 'checkpoints' has a model for fp4, which is not "
              "among the values (one of none, fp8"));
    CHECK(has(refusal("quantization: {checkpoints: {fp3: org/m3}}"),
              "'checkpoints' has a model for fp3"));
}

TEST_CASE("values that a chip refuses are not searched, a study that names one is told") {
    const auto backends = [](const std::string& hardware) {
        const StudyFile study = study_of("sglang", "hardware: " + hardware + "\npreset: quick\n");
        return space_of(study).at("attention_backend").domain_text();
    };
    CHECK(backends("h100-sxm") == "one of fa3, flashinfer, triton, or engine");
    CHECK(backends("b200-sxm") == "one of flashinfer, triton, or engine");
    CHECK(backends("mi300x") == "triton, or engine");
    CHECK(backends("one NVIDIA B200") == "one of flashinfer, triton, or engine");
    const StudyFile whole = study_of("sglang", "hardware: h100-sxm\npreset: full\n");
    CHECK_FALSE(space_of(whole).at("attention_backend").contains("trtllm_mha"));
    CHECK_FALSE(space_of(whole).at("attention_backend").contains("aiter"));
    CHECK(has(study_refusal("sglang",
                            "hardware: b200-sxm\nspace: {attention_backend: {choice: [engine, "
                            "fa3]}}\nothers: default\n"),
              "'space.attention_backend': fa3 of sglang does not run on blackwell; it runs on "
              "ampere, ada, hopper"));
    CHECK(has(study_refusal("tensorrt-llm", "hardware: mi300x\n"),
              "tensorrt-llm does not run on cdna3"));
    for (const HardwareSpec& chip : shipped_catalogue.all_hardware())
        CHECK_FALSE(chip.architecture.empty());
}

TEST_CASE("layouts of several devices need a count, and fit it") {
    const std::string wanted =
        "the study does not say how many there are: write `hardware: {count: N}`";
    CHECK(has(study_refusal("vllm", "preset: moe\n"), wanted));
    CHECK(
        has(study_refusal("vllm", "space: {tensor_parallel_size: 2}\nothers: default\n"), wanted));
    CHECK(has(study_refusal("sglang", "space: {dp_size: {choice: [1, 2]}}\nothers: default\n"),
              wanted));
    CHECK(has(study_refusal("vllm",
                            "space: {tensor_parallel_size: {int: {low: 1, high: 8, scale: "
                            "log2}}}\nothers: default\n"),
              wanted));
    CHECK(
        has(study_refusal("vllm", "arguments: [--tensor-parallel-size, \"4\"]\nothers: default\n"),
            wanted));
    CHECK(has(study_refusal("vllm", "hardware: {count: 0}\n"),
              "'hardware.count': an integer of at least 1 wanted, got '0'"));
    CHECK(has(study_refusal("vllm", "hardware: h100-sxm\nmachine: {count: 4}\n"),
              "'machine': unknown key"));

    const auto most_devices = [](const StudyFile& study, const std::vector<std::string>& factors) {
        const SearchSpace space = space_of(study);
        const FeasibleSet feasible(space);
        Rng rng(7);
        std::int64_t most = 0;
        for (int i = 0; i < 400; ++i) {
            const Configuration drawn = feasible.sample(rng);
            std::int64_t count = 1;
            for (const std::string& name : factors)
                if (const Value* value = drawn.find(name)) count *= std::get<std::int64_t>(*value);
            most = std::max(most, count);
        }
        return most;
    };
    const std::vector<std::string> of_vllm{"tensor_parallel_size", "pipeline_parallel_size",
                                           "data_parallel_size"};
    CHECK(most_devices(study_of("vllm", "preset: moe\nhardware: {device: h100-sxm, count: 1}\n"),
                       of_vllm) == 1);
    CHECK(most_devices(study_of("vllm", "preset: moe\nhardware: {count: 8}\n"), of_vllm) == 8);
    CHECK(most_devices(study_of("vllm", "preset: moe\nhardware: {device: h100-sxm, count: 8}\n",
                                "{deploy: {gpus: \"0,1\"}}"),
                       of_vllm) == 2);
    CHECK(most_devices(study_of("vllm", "preset: full\n"), of_vllm) ==
          1);  // nobody asked for a layout
    // Data parallel attention shares the devices of tensor parallelism, data parallelism without it
    // does not.
    const SearchSpace sglang =
        space_of(study_of("sglang",
                          "hardware: {count: 4}\nspace: {tp_size: 4, dp_size: {choice: [1, 4]}, "
                          "enable_dp_attention: {choice: [false, true]}}\n"
                          "others: default\n"));
    const std::int64_t four = 4;
    CHECK_FALSE(sglang.feasible(sglang.completed({{"dp_size", four}})));
    CHECK(sglang.feasible(sglang.completed({{"dp_size", four}, {"enable_dp_attention", true}})));
    CHECK(has(sglang.violations(sglang.completed({{"dp_size", four}})).front(),
              "the machine has 4 devices"));
    // A flag in every command counts too.
    CHECK(most_devices(study_of("vllm",
                                "hardware: {count: 4}\narguments: [--tensor-parallel-size=4]\n"
                                "space: {data_parallel_size: {choice: [1, 2]}}\nothers: default\n"),
                       of_vllm) == 1);
    // Rows of a table were measured: no device is taken.
    CHECK(study_refusal("vllm",
                        "space: {tensor_parallel_size: {choice: [1, 4]}}\nothers: default\n",
                        "{replay: t.csv}")
              .empty());
}

TEST_CASE("rules say nothing of what is unknown for good") {
    const auto simplified = [](const char* text, const char* unknown) {
        return parse_expression(text).with_constant(unknown, Unset{}).simplified_rule().text();
    };
    CHECK(simplified("a or b >= c", "c") == "true");
    CHECK(simplified("a and b >= c", "c") == "a");
    CHECK(simplified("not (a or b >= c)", "c") == "not a");
    CHECK(simplified("not (a and b >= c)", "c") == "true");
    CHECK(simplified("a or (b + c) * 2 > 4 or b > 1", "c") == "true");
    CHECK(simplified("b in [1, 2] and a", "c") == "(b in [1, 2]) and a");
    CHECK(simplified("c in [1, b] and a", "c") == "a");
    const Expression chunked = parse_expression("chunked or tokens >= context");
    CHECK(chunked.with_constant("chunked", true).simplified_rule().constant() == true);
    CHECK(chunked.with_constant("chunked", false).simplified_rule().text() == "tokens >= context");
    CHECK(chunked.with_constant("chunked", false).simplified_rule().names() ==
          std::vector<std::string>{"tokens", "context"});
    // A rule passes unless it is false: with and without what is left out it passes the same.
    const Expression rule =
        parse_expression("(a or u > 1) and (b or not (c and u > 2)) and not (d and u < 0)")
            .with_constant("u", Unset{});
    const Expression shorter = rule.simplified_rule();
    for (unsigned bits = 0; bits < 16; ++bits) {
        const auto lookup = [&](const Expression& of) {
            return [&of, bits](std::size_t i) {
                static const Value values[] = {false, true};
                return &values[bits >> (of.names()[i][0] - 'a') & 1U];
            };
        };
        CHECK((rule.evaluate(lookup(rule)) == false) ==
              (shorter.evaluate(lookup(shorter)) == false));
    }
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"})
        for (const char* preset : {"quick", "full", "throughput"}) {
            if (std::string(engine) == "llama.cpp" && std::string(preset) == "throughput") continue;
            const StudyFile study = study_of(engine, "preset: " + std::string(preset) + "\n");
            for (const Constraint& constraint : study.composition->constraints()) {
                INFO(text_of(constraint));
                CHECK_FALSE(has(text_of(constraint), "unknown"));
                CHECK_FALSE(has(text_of(constraint), "true or"));
            }
        }
}

TEST_CASE("a model that is a path must be there before an engine is started") {
    const TemporaryFolder folder;
    const auto model = folder.write("m.gguf", "x");
    const auto missing = [&](const std::string& path, const std::string& evaluator = "{deploy: {}}",
                             const std::string& lines = "") {
        const auto file = folder.write(
            "s.yaml",
            "study: s\nmodel: " + path + "\nengine: llama.cpp\n" + lines +
                "others: default\nworkloads: [{use: random}]\n" +
                "objective: {maximize: output_tokens_per_second}\nevaluator: " + evaluator + "\n");
        return missing_models(load_study(file, shipped_catalogue));
    };
    CHECK(missing(model.string()).empty());
    CHECK(missing("org/name").empty());
    const std::string nowhere = folder.path() / "nowhere.gguf";
    REQUIRE(missing(nowhere).size() == 1);
    CHECK(has(missing(nowhere).front(),
              "the model '" + nowhere + "' does not exist: looked for " + nowhere));
    CHECK(missing("nowhere.gguf").size() == 1);
    CHECK(missing("./nowhere").size() == 1);
    REQUIRE(missing("./m.gguf").size() == 1);  // engines would look for it in their trial's folder
    CHECK(has(missing("./m.gguf").front(),
              "engines run in their trial's folder: write " + model.string()));
    CHECK(missing(nowhere, "{attach: http://127.0.0.1:1}")
              .empty());  // it is on another machine, perhaps
    CHECK(missing(model.string(), "{deploy: {}}",
                  "space: {cache_type_k: {choice: [f16, q8_0], checkpoints: {q8_0: " + nowhere +
                      "}}}\n")
              .size() == 1);
}

TEST_CASE("paths: ~ and ~user are homes wherever a path is read") {
    const TemporaryFolder home;
    const char* before = std::getenv("HOME");
    const std::string kept = before != nullptr ? before : "";
    ::setenv("HOME", home.path().c_str(), 1);
    CHECK(with_home("~/m.gguf") == home.path().string() + "/m.gguf");
    CHECK(with_home("~") == home.path().string());
    CHECK(with_home("~root/x") == "/root/x");
    CHECK(with_home("a~b") == "a~b");
    CHECK(message_of<IoError>([] { (void)with_home("~nobody-of-this-name/x"); }) ==
          "'~nobody-of-this-name/x': there is no user 'nobody-of-this-name' on this machine");
    home.write("t.csv", "threads,status,total_tokens_per_second\n2,ok,1\n");
    const auto file = home.write("s.yaml",
                                 "study: s\nmodel: ~/m.gguf\nengine: llama.cpp\nspace: {threads: "
                                 "{choice: [2], checkpoints: {2: ~/b.gguf}}}\n"
                                 "others: default\nworkloads: [{use: random}]\nobjective: "
                                 "{maximize: total_tokens_per_second}\n"
                                 "evaluator: {replay: ~/t.csv}\n");
    const StudyFile study = load_study(file, shipped_catalogue);
    CHECK(study.model == home.path().string() + "/m.gguf");
    CHECK(std::filesystem::exists(std::get<ReplayChoice>(study.measuring).table));
    CHECK(study.composition->further_models() ==
          std::vector<std::string>{home.path().string() + "/b.gguf"});
    ::setenv("HOME", kept.c_str(), 1);
}

TEST_CASE("a version newer than all that are known is told, with what was checked last") {
    const auto warnings = [](const std::string& version) {
        return study_of("vllm", "engine_versions: {vllm: \"" + version + "\"}\nothers: default\n")
            .warnings;
    };
    CHECK(warnings("0.31").empty());
    CHECK(warnings("0.17.0").empty());
    CHECK(warnings("0.33").empty());
    REQUIRE(warnings("0.34").size() == 1);
    CHECK(has(warnings("0.34").front(), "vllm 0.34 is newer than 0.33"));
    CHECK(
        has(warnings("0.34").front(),
            "Last checked: argument parser, built from the package without a GPU, of vllm 0.33.0"));
}
