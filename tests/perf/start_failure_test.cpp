// SPDX-License-Identifier: Apache-2.0
// Engines that die on paper: each way with the lines that the engine would print, and these read
// back by the engine file's patterns.
#include "support/test.hpp"

#include "engine/failure_reader.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/perf/start_failure.hpp"
#include "servetune/expression.hpp"
#include "support/shipped.hpp"
#include "support/small_target.hpp"

#include <map>
#include <regex>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<std::string> engines{"vllm", "sglang", "tensorrt-llm", "llama.cpp"};

/// The small model on a chip of 80 GB, with an engine's log lines and what its fraction means.
/// Weights 1 GB, a token of cache 0.1 MB.
ServingTarget target_of(const std::string& engine) {
    const EngineTraits shipped = shipped_catalogue.traits(engine);
    ServingTarget target = small_target();
    target.hardware.name = "a-made-up-chip";
    target.hardware.memory_bytes = 80e9;
    target.model.context_tokens = 10'000;
    EngineTraits& traits = target.traits;
    traits.engine = engine;
    traits.fraction_of = shipped.fraction_of;
    traits.checks_context = shipped.checks_context;
    traits.log = shipped.log;
    traits.context_bytes = 1e9;
    traits.activation_bytes_per_token_and_width = 100;
    traits.graph_bytes = engine == "llama.cpp" ? 0 : 1e9;
    traits.start_seconds = 20;
    traits.load_bytes_per_second = 1e8;
    return target;
}

ServingSettings settings_of() {
    ServingSettings settings;
    settings.quantization = "bf16";
    return settings;
}

StartResult started(const ServingTarget& target, const ServingSettings& settings) {
    return start(CostModel(target, settings));
}

bool has_places_left(const std::string& line) {
    return std::regex_search(line, std::regex("\\{[a-z_]+\\}"));
}

/// Exits, says why to people, and its log is read as this kind of failure.
void check_exits(const std::string& engine, const StartResult& result, FailureKind kind,
                 const std::string& cause) {
    INFO(engine << ": " << result.cause);
    REQUIRE_FALSE(result.serves);
    CHECK(result.seconds >= 20);
    CHECK(result.cause.find(cause) != std::string::npos);
    REQUIRE_FALSE(result.log.empty());
    for (const std::string& line : result.log) CHECK_FALSE(has_places_left(line));
    const auto decisive = decisive_line(shipped_catalogue.engine(engine), result.log);
    REQUIRE(decisive);
    CHECK(name_in(failure_kinds, decisive->kind) == name_in(failure_kinds, kind));
}

}  // namespace

TEST_CASE(
    "start failure: what every engine says when it dies is read as what it is, for all events of "
    "all engines") {
    const std::map<std::string, FailureKind> expected{
        {"weights", FailureKind::out_of_memory},
        {"no_cache", FailureKind::out_of_memory},
        {"context", FailureKind::out_of_memory},
        {"context_too_long", FailureKind::rejected_flags},
        {"graphs", FailureKind::out_of_memory},
        {"activations", FailureKind::out_of_memory},
        {"unsupported_attention", FailureKind::unsupported},
        {"rule", FailureKind::rejected_flags},
        {"quantization_mismatch", FailureKind::rejected_flags},
        {"died", FailureKind::crashed_under_load},
        {"load_out_of_memory", FailureKind::crashed_under_load}};
    for (const std::string& engine : engines) {
        const EngineTraits traits = shipped_catalogue.traits(engine);
        for (const char* event : {"started", "weights", "no_cache", "activations",
                                  "unsupported_attention", "rule", "died", "load_out_of_memory"})
            CHECK(traits.log.contains(event));
        for (const auto& [event, lines] : traits.log) {
            INFO(engine << ": " << event);
            const auto decisive = decisive_line(shipped_catalogue.engine(engine), lines);
            if (event == "started") {
                CHECK_FALSE(decisive);
                continue;
            }
            REQUIRE(expected.contains(event));
            REQUIRE(decisive);
            CHECK(name_in(failure_kinds, decisive->kind) ==
                  name_in(failure_kinds, expected.at(event)));
        }
    }
}

TEST_CASE("start failure: one that has room serves, and its log says how much") {
    for (const std::string& engine : engines) {
        ServingSettings settings = settings_of();
        if (engine == "llama.cpp") settings.cache_tokens = 16'000;
        const StartResult result = started(target_of(engine), settings);
        INFO(engine << ": " << result.cause);
        CHECK(result.serves);
        CHECK(result.seconds == Approx(30));  // 1 GB of weights at 100 MB/s after 20 s
        CHECK(result.cause.empty());
        REQUIRE_FALSE(result.log.empty());
        std::string all;
        for (const std::string& line : result.log) all += line + "\n";
        CHECK_FALSE(has_places_left(all));
        CHECK(all.find("0.93 G") != std::string::npos);  // 1 GB of weights
    }
}

TEST_CASE("start failure: weights that do not fit the device") {
    for (const std::string& engine : engines) {
        ServingTarget target = target_of(engine);
        target.model.weights["bf16"].bytes = 1e11;
        check_exits(engine, started(target, settings_of()), FailureKind::out_of_memory,
                    "weights and libraries need 94.06 GiB, the device has 74.51");
    }
}

TEST_CASE("start failure: no memory left for the cache") {
    for (const std::string engine : {"vllm", "sglang", "tensorrt-llm"}) {
        ServingTarget target = target_of(engine);
        target.model.weights["bf16"].bytes = 70e9;
        ServingSettings settings = settings_of();
        settings.memory_fraction = 0.5;
        if (target.traits.fraction_of == EngineTraits::FractionOf::free)
            target.hardware.memory_bytes = 71.7e9;
        check_exits(engine, started(target, settings), FailureKind::out_of_memory,
                    "no memory is left for the cache: ");
    }
}

TEST_CASE("start failure: one request of the longest context does not fit the cache") {
    ServingSettings settings = settings_of();
    settings.cache_bytes = 5e8;  // 5000 tokens in blocks of 16
    const StartResult result = started(target_of("vllm"), settings);
    check_exits("vllm", result, FailureKind::out_of_memory,
                "one request of 10000 tokens does not fit the cache of 4992");
    const auto decisive = decisive_line(shipped_catalogue.engine("vllm"), result.log);
    CHECK(decisive->line.find("max seq len (10000), (0.93 GiB KV cache is needed, which is larger "
                              "than the available KV cache memory "
                              "(0.46 GiB). The estimated maximum model length is 4992") !=
          std::string::npos);
    CHECK(started(target_of("sglang"), settings).serves);  // it does not ask
    settings.max_context_tokens = 4992;
    CHECK(started(target_of("vllm"), settings).serves);
}

TEST_CASE("start failure: graphs and activations that do not fit beside the cache") {
    for (const std::string& engine : engines) {
        ServingTarget target = target_of(engine);
        ServingSettings settings = settings_of();
        settings.cache_bytes = 77.2e9;  // 1 + 1 + 77.2: 0.8 GB are left, for graphs of 1 GB
        if (engine == "llama.cpp") settings.cache_bytes = 79e9;
        const bool graphs = target.traits.log.contains("graphs");
        check_exits(engine, started(target, settings), FailureKind::out_of_memory,
                    "are missing for graphs and activations");
        if (!graphs) continue;
        settings.graph_max_tokens = 0;
        target.traits.activation_bytes_per_token_and_width = 0;
        CHECK(started(target, settings).serves);
        if (target.traits.fraction_of == EngineTraits::FractionOf::weights_cache) continue;
        target.traits.activation_bytes_per_token_and_width =
            200;  // 8192 tokens x 1000 wide: 1.6 GB
        const StartResult tight = started(target, settings);
        check_exits(engine, tight, FailureKind::out_of_memory,
                    "are missing for graphs and activations");
    }
    // SGLang sees activations only under load: it starts.
    ServingTarget target = target_of("sglang");
    target.traits.activation_bytes_per_token_and_width = 2000;
    ServingSettings settings = settings_of();
    settings.memory_fraction = 0.97;
    CHECK(started(target, settings).serves);
}

TEST_CASE("start failure: an attention back end without kernels for the cache's type") {
    for (const std::string& engine : engines) {
        ServingTarget target = target_of(engine);
        target.traits.attention["plain"].cache_types = {"bf16"};
        ServingSettings settings = settings_of();
        settings.cache_type = "fp8_e5m2";
        check_exits(engine, started(target, settings), FailureKind::unsupported,
                    "plain has no kernels for a cache of fp8_e5m2");
        target = target_of(engine);
        settings.cache_tokens = 16'000;
        CHECK(started(target, settings).serves);
    }
}

TEST_CASE(
    "start failure: lines are filled in, unknown names stay, what is filled in is not filled "
    "again") {
    CHECK(filled("{a} of {b}, {c}; {a}", {{"a", "1"}, {"b", "{a}"}}) == "1 of {a}, {c}; 1");
    CHECK(filled("{b}{b}", {{"a", "1"}, {"b", "{b}"}}) == "{b}{b}");  // ends
    CHECK(filled("", {{"a", "1"}}).empty());
    CHECK(filled("{'EngineCore': 1}", {{"a", "1"}}) == "{'EngineCore': 1}");
}

TEST_CASE("start failure: the first line that says anything decides") {
    Engine engine;
    engine.failures = {{"out_of_memory", {"no room", "OOM"}},
                       {"crashed_under_load", {"died", "no room at all"}},
                       {"nonsense", {"odd"}}};
    const auto read = [&](const std::vector<std::string>& log) {
        return decisive_line(engine, log);
    };
    CHECK_FALSE(read({}));
    CHECK_FALSE(read({"all is well", ""}));
    CHECK(read({"x", "it died", "OOM"})->kind == FailureKind::crashed_under_load);
    CHECK(read({"x", "it died", "OOM"})->line == "it died");
    CHECK(read({"no room at all"})->kind ==
          FailureKind::out_of_memory);  // of one line, the first pattern of the file
    CHECK(read({"odd"})->kind == FailureKind::other);
}

TEST_CASE(
    "start failure: real words of engines have their kind, and each text says where it was found") {
    const auto kind_of = [](const std::string& engine, const std::string& line) {
        const auto decisive = decisive_line(shipped_catalogue.engine(engine), std::span(&line, 1));
        return decisive ? name_in(failure_kinds, decisive->kind) : "none";
    };
    // vLLM 0.32.0 and SGLang 0.5.23 on a CPU, llama-server build 11669.
    CHECK(kind_of("vllm", "vllm: error: unrecognized arguments: --no-such-flag 3") ==
          "rejected_flags");
    CHECK(kind_of("sglang",
                  "--enable-symm-mem is not supported on non CUDA/HIP devices (NCCL symmetric "
                  "memory is unavailable).") == "ignored_flags");
    // It says so of its own choice too: no flag was ignored (log of 0.5.23 without one).
    CHECK(kind_of("sglang",
                  "The current platform does not support Intel AMX, will fallback to torch_native "
                  "backend.") == "none");
    CHECK(kind_of("vllm",
                  "ValueError: Available memory on node 0 (20.07/23.54 GiB) on startup is less "
                  "than desired CPU memory utilization "
                  "(0.92, 21.66 GiB).") == "out_of_memory");
    CHECK(kind_of("vllm",
                  "Value error, Currently, async scheduling is only supported with EAGLE/MTP kind "
                  "of speculative decoding") == "rejected_flags");
    CHECK(kind_of("vllm",
                  "ValueError: Available memory on node 0 (20.64/23.54 GiB) on kv cache allocation "
                  "is less than requested memory "
                  "for kv (40.0 GiB).") == "out_of_memory");
    CHECK(kind_of("vllm",
                  "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate "
                  "cached snapshot folder") == "wrong_model");
    CHECK(kind_of("vllm",
                  "RuntimeError: Engine core initialization failed. See root cause above. Failed "
                  "core proc(s): {}") == "none");
    CHECK(kind_of("sglang",
                  "RuntimeError: Rank 0 scheduler died during initialization (exit code: -9). If "
                  "exit code is -9") == "out_of_memory");
    CHECK(kind_of("sglang", "huggingface_hub.errors.GatedRepoError: 401 Client Error.") ==
          "wrong_model");
    CHECK(kind_of("tensorrt-llm",
                  "huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error.") ==
          "wrong_model");
    CHECK(kind_of("llama.cpp",
                  "gguf_init_from_file: failed to open GGUF file '/nonexistent.gguf' (No such file "
                  "or directory)") == "wrong_model");
    for (const std::string& engine : engines)
        for (const FailurePattern& pattern : shipped_catalogue.engine(engine).failures) {
            INFO(engine << ": " << pattern.match.front());
            CHECK_FALSE(pattern.source.empty());
        }
}
