// SPDX-License-Identifier: Apache-2.0
// From commands to the cost model's figures: concepts, defaults by device, what is refused.
#include "support/test.hpp"

#include "engine/failure_reader.hpp"
#include "engine/flag_facts.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/perf/cost_model.hpp"
#include "servetune/detail/predict/serving.hpp"
#include "servetune/error.hpp"
#include "servetune/feasible_set.hpp"
#include "support/shipped.hpp"

#include <functional>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string vllm = "vllm serve Qwen/Qwen3-14B ";
const std::string sglang = "python3 -m sglang.launch_server --model-path Qwen/Qwen3-14B ";
const std::string tensorrt = "trtllm-serve Qwen/Qwen3-14B ";
const std::string llama = "llama-server --model Qwen/Qwen3-14B ";

ServingReader reader(const std::string& engine, const std::string& hardware = "h100-sxm",
                     const std::string& version = "") {
    return {shipped_catalogue.engine(engine), shipped_catalogue.traits(engine),
            shipped_catalogue.all_models(), shipped_catalogue.hardware(hardware), version};
}
const ServingReader& usual(const std::string& engine) {
    static std::map<std::string, ServingReader> readers;
    if (!readers.contains(engine)) readers.emplace(engine, reader(engine));
    return readers.at(engine);
}

std::string engine_of(const std::string& line) {
    return line.starts_with("vllm")      ? "vllm"
           : line.starts_with("python3") ? "sglang"
           : line.starts_with("trt")     ? "tensorrt-llm"
                                         : "llama.cpp";
}
Serving read(const std::string& line) { return usual(engine_of(line)).read({shell_words(line)}); }
ServingSettings settings(const std::string& line) { return read(line).settings; }
/// With the options of a file.
Serving read_with(const std::string& line, const std::string& options) {
    Command command{shell_words(line + "--extra_llm_api_options options.yaml")};
    command.files["options.yaml"] = options;
    return usual(engine_of(line)).read(command);
}
std::string refusal_of(const std::string& line) {
    return message_of<UsageError>([&] { (void)read(line); });
}

struct FlagCase {
    std::string words;
    std::function<bool(const ServingSettings&)> holds;
};
void check(const std::string& command, const std::vector<FlagCase>& cases) {
    for (const FlagCase& c : cases) {
        INFO(command << c.words);
        CHECK_FALSE(c.holds(settings(command)));  // it is not so by itself
        const Serving serving = read(command + c.words);
        CHECK(c.holds(serving.settings));
        CHECK(serving.refused.serves);
    }
}
using S = const ServingSettings&;
}  // namespace

TEST_CASE(
    "serving: the words of an engine that nobody knows count as its file says what they mean") {
    Engine quill{.name = "quill", .launch = {"quill", "{model}"}};
    const auto add = [&](const std::string& name, const std::string& concept_name,
                         std::vector<Value> values, std::map<std::string, std::string> means) {
        EngineParameter added{{name, ChoiceDomain{std::move(values)}, Unset{}}};
        added.parameter.offers_unset = true;
        added.parameter.concept_name = concept_name;
        added.destination.flag = "--" + name;
        added.means = std::move(means);
        quill.parameters.push_back(std::move(added));
    };
    add("memory", "kv_cache_dtype", {"Half", "Eighth", "q8_0"},
        {{"Half", "bf16"}, {"Eighth", "fp8_e4m3"}});
    add("guess", "speculative_method", {"No", "Oracle", "Seer"},
        {{"No", "none"}, {"Oracle", "ngram"}});
    add("crowd", "capacity_policy", {"Safe", "Bold"}, {{"Bold", "evicts"}});
    add("haste", "performance_mode", {"Calm", "Hurried"}, {{"Hurried", "double_batches"}});
    add("capture", "cuda_graph_mode", {"Off", "On"}, {{"Off", "none"}});
    const ServingReader words{quill, shipped_catalogue.traits("vllm"),
                              shipped_catalogue.all_models(),
                              shipped_catalogue.hardware("h100-sxm"), ""};
    const auto with = [&](const std::string& flags) {
        return words.read({shell_words("quill Qwen/Qwen3-14B " + flags)}).settings;
    };
    const ServingSettings plain = with("");
    CHECK(with("--memory=Half").cache_type == "bf16");
    CHECK(with("--memory=Eighth").cache_type == "fp8_e4m3");
    CHECK(with("--memory=Eighth").cache_bits == 8);
    CHECK(with("--memory=q8_0").cache_bits == 8.5);  // a word that needs no meaning
    CHECK(with("--guess=No").speculation.method.empty());
    CHECK(with("--guess=Oracle").speculation.method == "ngram");
    CHECK(message_of<UsageError>([&] {
              (void)with("--guess=Seer");
          }).starts_with("how often guesses of 'Seer' are right is not known"));
    CHECK(with("--crowd=Safe").reserved_share == plain.reserved_share);
    CHECK(with("--crowd=Bold").reserved_share == 0);
    CHECK(with("--haste=Calm").max_sequences == plain.max_sequences);
    CHECK(with("--haste=Hurried").max_sequences == 2 * plain.max_sequences);
    CHECK(with("--capture=On").graph_max_tokens == plain.graph_max_tokens);
    CHECK(with("--capture=Off").graph_max_tokens == 0);
}

TEST_CASE("serving: vLLM's defaults depend on the device") {
    const ServingSettings h100 = settings(vllm);
    CHECK(h100.quantization == "bf16");
    CHECK(h100.max_sequences == 1024);
    CHECK(h100.max_batched_tokens == 8192);
    CHECK(h100.memory_fraction == 0.92);
    CHECK(h100.max_context_tokens == 40'960);
    CHECK(h100.block_tokens == 16);
    CHECK(h100.cache_type == "bf16");
    CHECK(h100.cache_bits == 16);
    CHECK(h100.prefix_cache);
    CHECK(h100.chunked_prefill);
    CHECK(h100.graph_max_tokens == 512);
    CHECK(h100.compiled);
    CHECK(h100.attention_backend == "FLASH_ATTN");
    CHECK(h100.devices() == 1);
    CHECK(h100.speculation.tokens == 0);
    for (const auto& [hardware, sequences, tokens] : {std::tuple{"a100-sxm-80gb", 256, 2048},
                                                      {"a100-pcie-80gb", 256, 2048},
                                                      {"l4", 256, 2048},
                                                      {"h200-sxm", 1024, 8192}}) {
        const ServingSettings there = reader("vllm", hardware).read({shell_words(vllm)}).settings;
        CHECK(there.max_sequences == sequences);
        CHECK(there.max_batched_tokens == tokens);
    }
    CHECK(read(vllm).parameters.at("max_num_seqs") == Value(std::int64_t{1024}));
    CHECK(read(vllm).parameters.at("max_model_len") == Value(std::int64_t{40'960}));
}

TEST_CASE("serving: no chip that an engine serves refuses the engine's own defaults") {
    for (const char* version : {"0.11.0", "0.14.0", "0.16.0", "0.20.0", ""})
        for (const char* hardware : {"a100-sxm-80gb", "l40s", "mi300x", "h100-sxm", "b200-sxm"}) {
            const Serving serving = reader("vllm", hardware, version).read({shell_words(vllm)});
            INFO(version << " on " << hardware << ": " << serving.refused.cause);
            CHECK(serving.refused.serves);
        }
    const Serving asked =
        reader("vllm", "l40s", "0.16.0").read({shell_words(vllm), {{"VLLM_USE_DEEP_GEMM", "0"}}});
    CHECK(asked.refused.cause == "deep_gemm=0 is not for l40s (ada)");
}

TEST_CASE("serving: vLLM's defaults depend on the version") {
    const auto of = [](const char* version, const std::string& words) {
        const ServingReader asked{
            shipped_catalogue.engine("vllm"), shipped_catalogue.traits("vllm", version),
            shipped_catalogue.all_models(), shipped_catalogue.hardware("h100-sxm"), version};
        const Serving serving = asked.read({shell_words(vllm + words)});
        INFO(version << " " << words << ": " << serving.refused.cause);
        CHECK(serving.refused.serves);
        return serving.settings;
    };
    CHECK_FALSE(of("0.11.0", "").overlap);
    CHECK(of("0.14.0", "").overlap);
    CHECK(of("", "").overlap);
    CHECK_FALSE(of("", "--no-async-scheduling").overlap);
    const std::string ngram =
        "--speculative-config.method=ngram --speculative-config.num_speculative_tokens=3";
    CHECK_FALSE(of("", ngram).overlap);
    CHECK_FALSE(of("0.14.0", ngram).overlap);
    CHECK(of("0.19.1", "").memory_fraction == 0.9);
    CHECK(of("0.20.0", "").memory_fraction == 0.92);
    CHECK(of("0.24.0", "--gpu-memory-utilization=0.8").memory_fraction == 0.8);
}

TEST_CASE("serving: SGLang's defaults depend on the device") {
    const ServingSettings h100 = settings(sglang);
    CHECK(h100.memory_fraction == 0.835);
    CHECK(h100.max_batched_tokens == 8192);
    CHECK(h100.max_sequences == 2048);
    CHECK(h100.graph_max_tokens == 256);
    CHECK(h100.block_tokens == 1);
    CHECK(h100.attention_backend == "fa3");
    CHECK_FALSE(h100.mixed_steps);
    CHECK(h100.overlap);
    CHECK_FALSE(h100.compiled);
    for (const auto& [hardware, fraction, chunk, graphs, backend] :
         {std::tuple{"h200-sxm", 0.907, 8192, 256, "fa3"},
          {"l4", 0.86, 2048, 24, "flashinfer"},
          {"a100-sxm-40gb", 0.84, 4096, 32, "flashinfer"},
          {"b200-sxm", 0.907, 16384, 512, "flashinfer"},
          {"mi300x", 0.907, 16384, 512, "triton"}}) {
        INFO(hardware);
        const ServingSettings there =
            reader("sglang", hardware).read({shell_words(sglang)}).settings;
        CHECK(there.memory_fraction == fraction);
        CHECK(there.max_batched_tokens == chunk);
        CHECK(there.graph_max_tokens == graphs);
        CHECK(there.attention_backend == backend);
    }
}

TEST_CASE("serving: TensorRT-LLM's and llama.cpp's defaults") {
    const ServingSettings trt = settings(tensorrt);
    CHECK(trt.max_sequences == 2048);
    CHECK(trt.max_batched_tokens == 8192);
    CHECK(trt.memory_fraction == 0.9);
    CHECK(trt.block_tokens == 32);
    CHECK_FALSE(trt.chunked_prefill);
    CHECK(trt.reserved_share == 1);
    CHECK(trt.graph_max_tokens == 128);
    CHECK(trt.attention_backend == "TRTLLM");
    CHECK_FALSE(trt.compiled);
    const ServingSettings cpp = settings(llama);
    CHECK(cpp.max_sequences == 4);
    CHECK(cpp.max_batched_tokens == 2048);
    CHECK(cpp.micro_batch_tokens == 512);
    CHECK(cpp.attention_backend == "on");
    CHECK(cpp.graph_max_tokens == 0);
    CHECK(cpp.cache_bits == 16);
    CHECK(cpp.cache_tokens ==
          40'960);  // one cache for all slots, as long as the model was made for
}

TEST_CASE("serving: vLLM's flags") {
    check(
        vllm,
        {{"--max-num-seqs=100",
          [](S s) { return s.max_sequences == 100 && s.graph_max_tokens == 200; }},
         {"--max-num-batched-tokens 3000", [](S s) { return s.max_batched_tokens == 3000; }},
         {"--max-model-len=5000", [](S s) { return s.max_context_tokens == 5000; }},
         {"--gpu-memory-utilization=0.8", [](S s) { return s.memory_fraction == 0.8; }},
         {"--kv-cache-memory-bytes=1073741824", [](S s) { return s.cache_bytes == gib; }},
         {"--kv-cache-dtype=fp8",
          [](S s) { return s.cache_type == "fp8_e4m3" && s.cache_bits == 8; }},
         {"--kv-cache-dtype=fp8_e5m2",
          [](S s) { return s.cache_type == "fp8_e5m2" && s.cache_bits == 8; }},
         {"--block-size=64", [](S s) { return s.block_tokens == 64; }},
         {"--no-enable-prefix-caching", [](S s) { return !s.prefix_cache; }},
         {"--no-enable-chunked-prefill",
          [](S s) { return !s.chunked_prefill && s.max_batched_tokens == 40'960; }},
         {"--no-enable-chunked-prefill --max-num-batched-tokens=50000",
          [](S s) { return !s.chunked_prefill && s.max_batched_tokens == 50'000; }},
         {"--no-async-scheduling", [](S s) { return !s.overlap; }},
         {"--dtype=float32", [](S s) { return s.quantization == "fp32" && s.cache_bits == 32; }},
         {"--dtype=float32 --kv-cache-dtype=fp8",
          [](S s) { return s.quantization == "fp32" && s.cache_bits == 8; }},
         {"--attention-backend=TRITON_ATTN",
          [](S s) { return s.attention_backend == "TRITON_ATTN"; }},
         {"--enforce-eager", [](S s) { return s.graph_max_tokens == 0 && !s.compiled; }},
         {"--compilation-config.cudagraph_mode=NONE", [](S s) { return s.graph_max_tokens == 0; }},
         {"--max-cudagraph-capture-size=64", [](S s) { return s.graph_max_tokens == 64; }},
         {"--compilation-config.mode=0",
          [](S s) { return !s.compiled && s.graph_max_tokens == 512; }},
         {"--optimization-level=0", [](S s) { return !s.compiled; }},
         {"--tensor-parallel-size=4", [](S s) { return s.tensor_parallel == 4; }},
         {"--pipeline-parallel-size=2", [](S s) { return s.pipeline_parallel == 2; }},
         {"--data-parallel-size=2", [](S s) { return s.data_parallel == 2; }},
         {"--cpu-offload-gb=4", [](S s) { return s.weight_offload_bytes == 4 * gib; }},
         {"--stream-interval=8", [](S s) { return s.stream_interval == 8; }},
         {"--api-server-count=3", [](S s) { return s.front_ends == 3; }},
         {"--performance-mode=throughput",
          [](S s) { return s.max_sequences == 2048 && s.max_batched_tokens == 16'384; }},
         {"--performance-mode=throughput --max-num-seqs=10",
          [](S s) { return s.max_sequences == 10; }},
         {"--quantization=fp8", [](S s) { return s.quantization == "fp8"; }},
         {R"(--speculative-config={"method":"ngram","num_speculative_tokens":5})",
          [](S s) { return s.speculation.method == "ngram" && s.speculation.tokens == 5; }},
         {R"(--speculative-config {"method":"eagle3","model":"some/head","num_speculative_tokens":2})",
          [](S s) {
              return s.speculation.method == "eagle3" && s.speculation.tokens == 2 &&
                     s.speculation.draft_bytes == 0;
          }},
         {R"(--speculative-config={"method":"draft_model","model":"Qwen/Qwen3-0.6B","num_speculative_tokens":4})",
          [](S s) {
              return s.speculation.method == "draft_model" && s.speculation.draft_bytes > 1e9;
          }}});
    const ServingSettings experts =
        settings("vllm serve Qwen/Qwen3-30B-A3B --tensor-parallel-size=2 --enable-expert-parallel");
    CHECK(experts.expert_parallel);
}

TEST_CASE("serving: an engine that compiles by itself launches more without it") {
    const auto launches = [](const std::string& engine, const std::string& command) {
        return reader(engine, "a100-sxm-40gb")
            .read({shell_words(command)})
            .target.traits.eager_layer_seconds;
    };
    // A step of 28 layers: 20.1 ms (SLO-Guard, Qwen2-1.5B) and 22 ms (vllm-omni issue 7960).
    CHECK(28 * launches("vllm", vllm) < 17e-3);
    CHECK(28 * launches("vllm", vllm + " --enforce-eager") == Approx(21e-3).epsilon(0.05));
    CHECK(launches("sglang", sglang + " --disable-cuda-graph") == launches("sglang", sglang));
}

TEST_CASE("serving: SGLang's flags") {
    check(
        sglang,
        {{"--max-running-requests=100", [](S s) { return s.max_sequences == 100; }},
         {"--chunked-prefill-size=4000",
          [](S s) { return s.max_batched_tokens == 4000 && s.chunked_prefill; }},
         {"--context-length=5000", [](S s) { return s.max_context_tokens == 5000; }},
         {"--mem-fraction-static=0.7", [](S s) { return s.memory_fraction == 0.7; }},
         {"--max-total-tokens=4096", [](S s) { return s.cache_tokens == 4096; }},
         {"--kv-cache-dtype fp8_e5m2",  // for which fa3 has no kernels
          [](S s) {
              return s.cache_type == "fp8_e5m2" && s.cache_bits == 8 &&
                     s.attention_backend == "triton";
          }},
         {"--page-size=64", [](S s) { return s.block_tokens == 64; }},
         {"--disable-radix-cache", [](S s) { return !s.prefix_cache; }},
         {"--enable-mixed-chunk", [](S s) { return s.mixed_steps; }},
         {"--disable-overlap-schedule", [](S s) { return !s.overlap; }},
         {"--schedule-conservativeness=0.5", [](S s) { return s.reserved_share == Approx(0.35); }},
         {"--schedule-conservativeness=2", [](S s) { return s.reserved_share == 1; }},
         {"--attention-backend=triton", [](S s) { return s.attention_backend == "triton"; }},
         {"--disable-cuda-graph", [](S s) { return s.graph_max_tokens == 0; }},
         {"--cuda-graph-max-bs-decode=64", [](S s) { return s.graph_max_tokens == 64; }},
         {"--cuda-graph-backend-decode=disabled", [](S s) { return s.graph_max_tokens == 0; }},
         {"--enable-torch-compile", [](S s) { return s.compiled; }},
         {"--tp-size=4", [](S s) { return s.tensor_parallel == 4; }},
         {"--pp-size=2", [](S s) { return s.pipeline_parallel == 2; }},
         {"--dp-size=2", [](S s) { return s.data_parallel == 2; }},
         {"--cpu-offload-gb=4", [](S s) { return s.weight_offload_bytes == 4 * gib; }},
         {"--stream-interval=8", [](S s) { return s.stream_interval == 8; }},
         {"--quantization=fp8", [](S s) { return s.quantization == "fp8"; }},
         {"--speculative-algorithm=NGRAM --speculative-num-draft-tokens=6",
          [](S s) { return s.speculation.method == "ngram" && s.speculation.tokens == 6; }}});
    const std::string chain =
        " --speculative-num-steps=4 --speculative-eagle-topk=1 --speculative-num-draft-tokens=5";
    const Serving head = read(
        sglang + "--speculative-algorithm=EAGLE3 --speculative-draft-model-path=some/head" + chain);
    CHECK(head.refused.serves);
    CHECK(head.settings.speculation.method == "eagle3");
    CHECK(head.settings.speculation.tokens == 4);
    const Serving draft =
        read(sglang +
             "--speculative-algorithm=STANDALONE --speculative-draft-model-path=Qwen/Qwen3-0.6B" +
             chain);
    CHECK(draft.settings.speculation.method == "draft_model");
    CHECK(draft.settings.speculation.draft_bytes > 1e9);
    const Serving headless = read(sglang + "--speculative-algorithm=EAGLE3" + chain);
    CHECK_FALSE(headless.refused.serves);
    CHECK(has(headless.refused.cause, "these need a draft model"));
    CHECK(settings("python3 -m sglang.launch_server --model-path Qwen/Qwen3-30B-A3B --tp-size=2 "
                   "--ep-size=2")
              .expert_parallel);
}

TEST_CASE("serving: TensorRT-LLM's flags and its options file") {
    check(tensorrt, {{"--max_batch_size=100", [](S s) { return s.max_sequences == 100; }},
                     {"--max_num_tokens 3000", [](S s) { return s.max_batched_tokens == 3000; }},
                     {"--max_seq_len=5000", [](S s) { return s.max_context_tokens == 5000; }},
                     {"--kv_cache_free_gpu_memory_fraction=0.7",
                      [](S s) { return s.memory_fraction == 0.7; }},
                     {"--tp_size=4", [](S s) { return s.tensor_parallel == 4; }},
                     {"--pp_size=2", [](S s) { return s.pipeline_parallel == 2; }}});
    const std::vector<FlagCase> options{
        {R"({"kv_cache_config":{"dtype":"fp8"}})",
         [](S s) { return s.cache_type == "fp8_e4m3" && s.cache_bits == 8; }},
        {R"({"kv_cache_config":{"enable_block_reuse":false}})",
         [](S s) { return !s.prefix_cache; }},
        {R"({"kv_cache_config":{"max_tokens":4096}})", [](S s) { return s.cache_tokens == 4096; }},
        {R"({"kv_cache_config":{"tokens_per_block":64}})",
         [](S s) { return s.block_tokens == 64; }},
        {R"({"enable_chunked_prefill":true})", [](S s) { return s.chunked_prefill; }},
        {R"({"disable_overlap_scheduler":true})", [](S s) { return !s.overlap; }},
        {R"({"attn_backend":"FLASHINFER"})",
         [](S s) { return s.attention_backend == "FLASHINFER"; }},
        {R"({"cuda_graph_config":{"max_batch_size":64}})",
         [](S s) { return s.graph_max_tokens == 64; }},
        {R"({"scheduler_config":{"capacity_scheduler_policy":"MAX_UTILIZATION"}})",
         [](S s) { return s.reserved_share == 0; }},
        {R"({"stream_interval":8})", [](S s) { return s.stream_interval == 8; }},
        {R"({"speculative_config":{"decoding_type":"NGram","max_draft_len":5}})",
         [](S s) { return s.speculation.method == "ngram" && s.speculation.tokens == 5; }},
        {R"({"speculative_config":{"decoding_type":"Draft_Target","max_draft_len":4,"speculative_model":"Qwen/Qwen3-0.6B"}})",
         [](S s) {
             return s.speculation.method == "draft_model" && s.speculation.draft_bytes > 1e9;
         }}};
    for (const FlagCase& c : options) {
        INFO(c.words);
        CHECK_FALSE(c.holds(settings(tensorrt)));
        CHECK(c.holds(read_with(tensorrt, c.words).settings));
    }
}

TEST_CASE("serving: llama.cpp's flags") {
    check(llama,
          {{"--parallel 16", [](S s) { return s.max_sequences == 16; }},
           {"--batch-size 1024", [](S s) { return s.max_batched_tokens == 1024; }},
           {"--ubatch-size 128", [](S s) { return s.micro_batch_tokens == 128; }},
           {"--ctx-size 20000", [](S s) { return s.cache_tokens == 20'000; }},
           {"--flash-attn off", [](S s) { return s.attention_backend == "off"; }},
           {"--cache-type-k q8_0 --cache-type-v q8_0",
            [](S s) { return s.cache_bits == 8.5 && s.cache_type == "q8_0"; }},
           {"--cache-type-k q8_0", [](S s) { return s.cache_bits == 12.25; }},
           {"--cache-type-k q4_0 --cache-type-v q4_0", [](S s) { return s.cache_bits == 4.5; }},
           {"--no-cache-prompt", [](S s) { return !s.prefix_cache; }},
           {"--spec-type ngram-simple --spec-ngram-simple-size-m 7",
            [](S s) { return s.speculation.method == "ngram" && s.speculation.tokens == 7; }},
           {"--spec-type draft-simple --spec-draft-model Qwen/Qwen3-0.6B --spec-draft-n-max 4",
            [](S s) {
                return s.speculation.method == "draft_model" && s.speculation.tokens == 4 &&
                       s.speculation.draft_bytes > 1e9;
            }}});
}

TEST_CASE(
    "serving: weights in 32 bits take twice the memory and time, quantized ones stay as they are") {
    const auto cost = [](const std::string& line) {
        const Serving serving = read(line);
        REQUIRE(serving.refused.serves);
        return CostModel(serving.target, serving.settings);
    };
    const StepWork one{.decode_sequences = 1, .decode_context_tokens = 1};
    const StepWork prompt{.prefill_sequences = 1, .prefill_tokens = 4096};
    for (const std::string& command : {vllm, sglang}) {
        const CostModel narrow = cost(command), wide = cost(command + "--dtype=float32");
        const double read = wide.step(one).linear / narrow.step(one).linear;
        CHECK((read > 1.8 && read < 2.01));  // each call has seconds of its own
        CHECK(wide.step(prompt).linear / narrow.step(prompt).linear > 1.9);  // computed
        CHECK(cost(command + "--dtype=float").step(one).linear == wide.step(one).linear);
        CHECK(cost(command + "--dtype=float16").step(one).linear == narrow.step(one).linear);
        CHECK(wide.memory().weights_bytes / narrow.memory().weights_bytes ==
              Approx(2).epsilon(0.01));
    }
    CHECK(settings("vllm serve Qwen/Qwen3-14B-AWQ --dtype=float32").quantization == "awq");
}

TEST_CASE("serving: names, addresses, checkpoints") {
    const Serving plain = read(vllm + "--host 127.0.0.1 --port 8000");
    CHECK(plain.model == "Qwen/Qwen3-14B");
    CHECK(settings("vllm serve Qwen/Qwen3-14B-FP8").quantization == "fp8");
    CHECK(settings("vllm serve /models/Qwen3-14B-AWQ").quantization == "awq");
    CHECK(settings("vllm serve openai/gpt-oss-120b").quantization == "mxfp4");
    CHECK(
        settings("python3 -m sglang.launch_server --model-path=Qwen/Qwen3-14B-FP8").quantization ==
        "fp8");
}

TEST_CASE("serving: an environment variable is a flag too where an engine has it so") {
    Command command{shell_words("vllm serve Qwen/Qwen3-14B"),
                    {{"VLLM_ATTENTION_BACKEND", "TRITON_ATTN"}}};
    CHECK(reader("vllm", "h100-sxm", "0.11").read(command).settings.attention_backend ==
          "TRITON_ATTN");
}

TEST_CASE("serving: versions have their own flags") {
    const ServingReader old = reader("vllm", "h100-sxm", "0.12");
    CHECK(settings(vllm + "--performance-mode=throughput").max_sequences == 2048);
    CHECK(old.read({shell_words(vllm + "--performance-mode=throughput")}).unknown ==
          std::vector<std::string>{"--performance-mode=throughput"});
    CHECK(old.read({shell_words(vllm + "--max-num-seqs=64")}).settings.max_sequences == 64);
    const ServingReader older = reader("sglang", "h100-sxm", "0.5.9");
    CHECK(older.read({shell_words(sglang + "--cuda-graph-max-bs=64")}).settings.graph_max_tokens ==
          64);
}

TEST_CASE("serving: what the engine would refuse is refused with its own kind of message") {
    const auto kind = [](const std::string& line) {
        const Serving serving = read(line);
        INFO(line);
        REQUIRE_FALSE(serving.refused.serves);
        CHECK_FALSE(serving.refused.cause.empty());
        const auto decisive = decisive_line(usual(engine_of(line)).engine(), serving.refused.log);
        REQUIRE(decisive);
        CHECK_FALSE(has(decisive->line, "{"));
        return decisive->kind;
    };
    CHECK(kind("vllm serve Qwen/Qwen3-14B-AWQ --quantization=fp8") == FailureKind::rejected_flags);
    CHECK(read("vllm serve Qwen/Qwen3-14B-AWQ --quantization=fp8").refused.cause ==
          "the checkpoint is awq, not fp8");
    CHECK(kind(vllm + "--quantization=awq") == FailureKind::rejected_flags);
    CHECK(
        kind(
            "python3 -m sglang.launch_server --model-path Qwen/Qwen3-14B-FP8 --quantization awq") ==
        FailureKind::rejected_flags);
    CHECK(kind(vllm + "--max-num-seqs=512 --max-num-batched-tokens=256") ==
          FailureKind::rejected_flags);  // fewer tokens than sequences
    CHECK(read("vllm serve Qwen/Qwen3-14B-AWQ --quantization=awq_marlin").refused.serves);
    CHECK(read("vllm serve Qwen/Qwen3-14B-FP8 --quantization=fp8").refused.serves);
    CHECK(kind(vllm + "--attention-backend=FLASHMLA") == FailureKind::unsupported);
    CHECK(kind(vllm + "--kv-cache-dtype=fp8_ds_mla") == FailureKind::unsupported);
}

TEST_CASE("serving: a command of another program, or without a known model, is refused") {
    CHECK(
        refusal_of("vllm serve Qwen/Qwen3-14")
            .find(
                "the figures of the model 'Qwen/Qwen3-14' are not known; known: Qwen/Qwen3-14B") ==
        0);
    CHECK(has(refusal_of("vllm serve --max-num-seqs=64"),
              "the model's name is wanted behind 'serve'"));
    CHECK(has(refusal_of("python3 -m sglang.launch_server --tp-size=1"),
              "--model-path is missing: no model is named"));
    CHECK(refusal_of("vllm") == "this is no command of vllm: vllm");
    CHECK(message_of<UsageError>([] { (void)usual("vllm").read({shell_words(sglang)}); }) != "");
    CHECK(
        refusal_of(vllm + R"(--speculative-config={"method":"suffix","num_speculative_tokens":5})")
            .find("how often guesses of 'suffix' are right") == 0);
    CHECK(
        refusal_of(
            vllm +
            R"(--speculative-config={"method":"draft_model","model":"un/known","num_speculative_tokens":5})") ==
        "the draft model 'un/known' is not among the known models");
}

TEST_CASE(
    "serving: flags that are not about speed are passed over, for every engine and spelling") {
    for (const std::string flags :
         {"--load-format dummy", "--load_format=dummy", "--seed 7 --trust-remote-code",
          "--chat-template /a/b.jinja --tool-call-parser hermes",
          "--api-key a b c --revision main --tokenizer /t",
          "--no-enable-log-requests --disable-log-stats", "--reasoning-parser my_own"}) {
        INFO(flags);
        const Serving plain = read(vllm + "--max-num-seqs=64");
        const Serving with = read(vllm + flags + " --max-num-seqs=64");
        CHECK(with.parameters == plain.parameters);
        CHECK(with.unknown.empty());
    }
    CHECK(refusal_of(sglang + "--load-format dummy --random-seed 3 --log-level info").empty());
    CHECK(refusal_of(
              "trtllm-serve Qwen/Qwen3-14B --trust_remote_code --tokenizer /t --log-level info")
              .empty());
}

TEST_CASE("serving: what nobody knows is kept apart, and the rest counts") {
    const Serving some = read(
        vllm +
        "--brand-new 3 --max-num-seqs=64 --kv-cache-dtype=fp9 --speculative-config={\"depth\":3}");
    CHECK(some.settings.max_sequences == 64);
    CHECK(some.unknown == std::vector<std::string>{"--brand-new", "--kv-cache-dtype=fp9",
                                                   "--speculative-config depth"});
}

TEST_CASE("serving: whatever a search space renders is read, and comes back as it was") {
    int served = 0;  // most break a rule
    for (const char* name : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
        SpaceDescription description{{shipped_catalogue.engine(std::string(name))}};
        description.architecture = "hopper";
        description.model_facts = {{"model.experts", 0}};
        const Composition composition(description);
        const SearchSpace space(composition.parameters(), composition.constraints());
        const FeasibleSet feasible(space);
        Rng rng(1);
        for (int i = 0; i < 150; ++i) {
            const Configuration configuration = feasible.sample(rng);
            const Command command =
                composition.render(configuration, {"meta-llama/Llama-3.1-8B-Instruct", {}, 0});
            INFO(command.text());
            const std::string why = message_of<UsageError>([&] {
                const Serving serving = usual(name).read(command);
                if (!serving.refused.serves) return;
                ++served;
                for (const auto& [parameter, value] : configuration.entries())
                    if (!is_unset(value) && usual(name).engine().find(parameter) != nullptr &&
                        value != space.find(parameter)->default_value) {
                        INFO(parameter);
                        CHECK(serving.parameters.at(parameter) == value);
                    }
                CHECK(serving.settings.max_sequences > 0);
            });
            INFO(why);  // only what is not known of a way to guess may stop it
            if (!why.empty())
                CHECK(
                    (why.find("how often guesses of") == 0 || why.find("the draft model ''") == 0));
        }
    }
    CHECK(served > 20);
}
