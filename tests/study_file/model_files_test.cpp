// SPDX-License-Identifier: Apache-2.0
// What a model's own files say of it: each config.json has the keys that count, as the models named
// publish them. Figures are by hand, from the shapes.
#include "support/settings_for.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace servetune;
using namespace servetune::test;

namespace {

/// What a config.json is read as.
ModelSpec spec_of(const std::string& config, const std::string& modelopt = "") {
    const TemporaryFolder folder;
    if (!modelopt.empty()) folder.write("hf_quant_config.json", modelopt);
    return shipped_catalogue.model_from_files(folder.write("config.json", config));
}

std::string why_refused(const std::string& config) {
    return message_of<ParseError>([&] { (void)spec_of(config); });
}

Approx about(double value) { return Approx(value).epsilon(1e-9); }

const std::string qwen3_8b = R"({"model_type": "qwen3", "hidden_size": 4096,
  "num_hidden_layers": 36, "intermediate_size": 12288, "num_attention_heads": 32,
  "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "tie_word_embeddings": false,
  "max_position_embeddings": 40960, "use_sliding_window": false, "sliding_window": null)";

const std::string deepseek_v3 = R"({"model_type": "deepseek_v3", "hidden_size": 7168,
  "num_hidden_layers": 61, "intermediate_size": 18432, "num_attention_heads": 128,
  "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280, "n_routed_experts": 256,
  "num_experts_per_tok": 8, "n_shared_experts": 1, "moe_intermediate_size": 2048,
  "first_k_dense_replace": 3, "moe_layer_freq": 1, "num_nextn_predict_layers": 1,
  "max_position_embeddings": 163840, "tie_word_embeddings": false)";

/// "a", "b", "b" of `names` by the letters of `pattern`, times over.
std::string layers(const std::string& pattern, int times, const std::string& a,
                   const std::string& b) {
    std::string result;
    for (int i = 0; i < times; ++i)
        for (const char letter : pattern)
            result += (result.empty() ? "\"" : ", \"") + (letter == 'a' ? a : b) + "\"";
    return "[" + result + "]";
}

}  // namespace

TEST_CASE("model files: a dense model has the parameters, weights and cache of its shape") {
    const ModelSpec model = spec_of(qwen3_8b + "}");
    CHECK(model.notes.empty());
    CHECK(model.parameters_active == about(8190735360));  // as published
    CHECK(model.kv_bytes_per_token_16bit == 147456);
    CHECK(model.attention_layers == 36);
    CHECK(model.sliding_layers == 0);
    CHECK(model.context_tokens == 40960);
    CHECK(model.native_type == "bf16");
    CHECK(model.weights.at("bf16").bytes == about(16381470720));
    CHECK(model.weights.at("bf16").computed);
    CHECK(model.weights.at("fp8").bytes == Approx(9436551168).epsilon(1e-3));
    CHECK(model.weights.at("fp8").computes_in == "fp8");
    CHECK(model.weights.at("fp4").bytes == Approx(6396930048).epsilon(1e-3));
}

TEST_CASE("model files: keys and values that share a latent are counted once a layer") {
    const ModelSpec model =
        spec_of(deepseek_v3 + R"(, "quantization_config": {"quant_method": "fp8",
      "fmt": "e4m3", "weight_block_size": [128, 128]}})");
    CHECK(model.notes.empty());
    CHECK(model.latent_width == 576);
    CHECK(model.kv_bytes_per_token_16bit == 61 * 576 * 2);
    CHECK(model.dense_layers == 3);
    CHECK(model.experts == 256);
    CHECK(model.expert_parameters == about(58.0 * 256 * 3 * 7168 * 2048));
    CHECK(model.parameters_active == Approx(37.55e9).epsilon(1e-3));
    CHECK(model.native_type == "fp8");
    const ModelWeights& fp8 = model.weights.at("fp8");
    CHECK(fp8.bytes == Approx(672.99e9).epsilon(1e-3));  // without the layer that guesses
    CHECK(fp8.computes_in == "fp8_block");
    CHECK(fp8.experts_compute_in.empty());
}

TEST_CASE("model files: experts of four bits beside attention of sixteen") {
    const ModelSpec model = spec_of(R"({"model_type": "gpt_oss", "hidden_size": 2880,
      "num_hidden_layers": 36, "intermediate_size": 2880, "num_attention_heads": 64,
      "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088, "num_local_experts": 128,
      "num_experts_per_tok": 4, "sliding_window": 128, "max_position_embeddings": 131072,
      "tie_word_embeddings": false, "attention_bias": true, "layer_types": )" +
                                    layers("ab", 18, "sliding_attention", "full_attention") +
                                    R"(, "quantization_config": {"quant_method": "mxfp4",
      "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
      "model.embed_tokens", "lm_head"]}})");
    CHECK(model.notes.empty());
    CHECK(model.sliding_layers == 18);
    CHECK(model.sliding_window == 128);
    CHECK(model.kv_bytes_per_token_16bit == 73728);
    CHECK(model.sliding_kv_bytes_per_token_16bit == 36864);
    CHECK(model.native_type == "mxfp4");
    const ModelWeights& native = model.weights.at("mxfp4");
    CHECK(native.bytes == Approx(65248815744).epsilon(1e-4));  // as published
    CHECK(native.computes_in == "bf16");
    CHECK(native.experts_compute_in == "mxfp4");
}

TEST_CASE("model files: linear layers keep a state of a sequence, and no cache") {
    const ModelSpec model =
        spec_of(R"({"model_type": "qwen3_5", "text_config": {
      "model_type": "qwen3_5_text", "hidden_size": 4096, "num_hidden_layers": 32,
      "intermediate_size": 12288, "num_attention_heads": 16, "num_key_value_heads": 4,
      "head_dim": 256, "vocab_size": 248320, "max_position_embeddings": 262144,
      "attn_output_gate": true, "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128,
      "linear_num_key_heads": 16, "linear_num_value_heads": 32, "linear_value_head_dim": 128,
      "mamba_ssm_dtype": "float32", "layer_types": )" +
                layers("bbba", 8, "full_attention", "linear_attention") +
                R"(}, "tie_word_embeddings": false, "vision_config": {"depth": 27,
      "hidden_size": 1152, "intermediate_size": 4304, "num_position_embeddings": 2304}})");
    CHECK(model.notes.empty());
    CHECK(model.attention_layers == 8);
    CHECK(model.kv_bytes_per_token_16bit == 8 * 2 * 4 * 256 * 2);
    CHECK(model.state_bytes_per_sequence == 51511296);
    CHECK(model.parameters_active == Approx(8953803264).epsilon(1e-4));
    // 19.3 GB are published, with 0.48 of the layer that guesses
    CHECK(model.weights.at("bf16").bytes == Approx(18.82e9).epsilon(3e-3));
    // the same figures that ship for it
    CHECK(model.state_bytes_per_sequence ==
          shipped_catalogue.model("Qwen/Qwen3.5-9B").model.state_bytes_per_sequence);
}

TEST_CASE("model files: heads and their sizes are those of each kind of layer") {
    SECTION("Gemma 4: global layers have wider heads whose values are their keys") {
        const ModelSpec model = spec_of(R"({"model_type": "gemma4", "text_config": {
          "hidden_size": 2816, "num_hidden_layers": 30, "intermediate_size": 2112,
          "moe_intermediate_size": 704, "num_experts": 128, "top_k_experts": 8,
          "num_attention_heads": 16, "num_key_value_heads": 8, "num_global_key_value_heads": 2,
          "head_dim": 256, "global_head_dim": 512, "attention_k_eq_v": true,
          "sliding_window": 1024, "vocab_size": 262144, "max_position_embeddings": 262144,
          "layer_types": )" + layers("bbbbba", 5, "full_attention", "sliding_attention") +
                                        "}}");
        CHECK(model.notes.empty());
        CHECK(model.tied_embeddings);
        CHECK(model.head_dim == 512);
        CHECK(model.kv_heads == 2);
        CHECK(model.sliding_kv_bytes_per_token_16bit == 25 * 2 * 8 * 256 * 2);
        CHECK(model.kv_bytes_per_token_16bit == 25 * 2 * 8 * 256 * 2 + 5 * 2 * 2 * 512 * 2);
        CHECK(model.weights.at("bf16").bytes == Approx(2 * 25.233e9).epsilon(1e-3));
        CHECK(model.parameters_active == Approx(3.822e9).epsilon(2e-3));
    }
    SECTION("MiMo-V2: sliding layers have twice the heads, and values are narrower than keys") {
        const ModelSpec model = spec_of(R"({"model_type": "mimo_v2_flash", "hidden_size": 4096,
          "num_hidden_layers": 6, "intermediate_size": 16384, "num_attention_heads": 64,
          "num_key_value_heads": 4, "head_dim": 192, "v_head_dim": 128, "vocab_size": 152576,
          "sliding_window": 128, "swa_num_attention_heads": 64, "swa_num_key_value_heads": 8,
          "swa_head_dim": 192, "swa_v_head_dim": 128, "hybrid_layer_pattern": [0, 1, 1, 1, 1, 0],
          "moe_layer_freq": [0, 1, 1, 1, 1, 1], "moe_intermediate_size": 2048,
          "n_routed_experts": 256, "n_shared_experts": null, "num_experts_per_tok": 8,
          "max_position_embeddings": 262144, "tie_word_embeddings": false})");
        CHECK(model.notes.empty());
        CHECK(model.dense_layers == 1);
        CHECK(model.sliding_layers == 4);
        CHECK(model.sliding_kv_bytes_per_token_16bit == 4 * 8 * 320 * 2);
        CHECK(model.kv_bytes_per_token_16bit == 4 * 8 * 320 * 2 + 2 * 4 * 320 * 2);
        CHECK(model.expert_parameters == about(5.0 * 256 * 3 * 4096 * 2048));
    }
}

TEST_CASE("model files: Mamba layers, and a bare Infinity, hide nothing") {
    const ModelSpec model = spec_of(R"({"model_type": "nemotron_h", "hidden_size": 2688,
      "num_hidden_layers": 52, "intermediate_size": 1856, "num_attention_heads": 32,
      "num_key_value_heads": 2, "head_dim": 128, "vocab_size": 131072, "conv_kernel": 4,
      "mamba_head_dim": 64, "mamba_num_heads": 64, "ssm_state_size": 128, "n_groups": 8,
      "mamba_ssm_cache_dtype": "float32", "n_routed_experts": 128, "n_shared_experts": 1,
      "num_experts_per_tok": 6, "moe_intermediate_size": 1856,
      "moe_shared_expert_intermediate_size": 3712, "max_position_embeddings": 262144,
      "time_step_limit": [0.0, Infinity], "tie_word_embeddings": false, "hybrid_override_pattern":
      "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"})");
    CHECK(model.notes.empty());
    CHECK(model.attention_layers == 6);
    CHECK(model.kv_bytes_per_token_16bit == 6 * 2 * 2 * 128 * 2);
    CHECK(model.state_bytes_per_sequence == 23.0 * (4096 * 128 * 4 + 6144 * 3 * 2));
    CHECK(model.weights.at("bf16").bytes == Approx(2 * 31.578e9).epsilon(1e-3));
}

TEST_CASE("model files: what a checkpoint leaves out of its quantization stays wide") {
    const auto bytes = [](const std::string& quantization, const std::string& modelopt = "") {
        const ModelSpec model =
            spec_of(deepseek_v3 + R"(, "quantization_config": )" + quantization + "}", modelopt);
        return model.weights.at(model.native_type).bytes / 1e9;
    };
    const double experts = 653.9, attention = 11.41, rest = 671.03 - experts - attention;
    const double other = 1.97;  // embeddings, head, routers and norms: never quantized
    CHECK(bytes(R"({"quant_method": "compressed-tensors", "format": "pack-quantized",
      "ignore": ["lm_head", "re:.*self_attn.*", "re:.*shared_experts.*",
                 "re:.*mlp\\.(gate|up|gate_up|down)_proj.*"],
      "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": null,
        "weights": {"num_bits": 4, "type": "int", "group_size": 32, "strategy": "group"}}}})") ==
          Approx(experts * 4.5 / 8 + 2 * (attention + rest)).epsilon(2e-3));
    CHECK(bytes("null", R"({"quantization": {"quant_algo": "NVFP4", "group_size": 16,
      "exclude_modules": ["lm_head", "model.layers.*.self_attn*"]}})") ==
          Approx((671.03 - attention - other) * 4.5 / 8 + 2 * (attention + other)).epsilon(2e-3));
    CHECK(bytes(R"({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION",
      "quantized_layers": {"model.layers.3.mlp.experts": {"quant_algo": "NVFP4"}}})") ==
          Approx(2 * 671.03 - experts / 58 * (2 - 4.5 / 8)).epsilon(2e-3));
    // A list of layers goes before a group that means all of them.
    CHECK(bytes(R"({"quant_method": "fp8", "quant_algo": "MIXED_PRECISION",
      "config_groups": {"group_0": {"targets": ["Linear"], "input_activations": {"num_bits": 4},
        "weights": {"num_bits": 4, "type": "float", "group_size": 16}}},
      "quantized_layers": {"model.layers.3.mlp.experts": {"quant_algo": "NVFP4"}}})") ==
          Approx(2 * 671.03 - experts / 58 * (2 - 4.5 / 8)).epsilon(2e-3));
    CHECK(bytes(R"({"quant_method": "modelopt", "quant_algo": "NVFP4",
      "ignore": ["*.attn.*", "*.mlp.shared_experts.*"]})") ==
          Approx((experts + 3 * 3 * 7.168 * 18.432 / 1e3) * 4.5 / 8 +
                 2 * (671.03 - experts - 3 * 3 * 7.168 * 18.432 / 1e3))
              .epsilon(2e-3));
    const ModelSpec odd =
        spec_of(qwen3_8b + R"(, "quantization_config": {"quant_method": "hqq"}})");
    REQUIRE(odd.notes.size() == 1);
    CHECK(has(odd.notes[0], "hqq"));
}

TEST_CASE("model files: a family that nobody described is said, and read by the usual names") {
    const ModelSpec model = spec_of(replaced(qwen3_8b, "qwen3", "brandnew") + "}");
    REQUIRE(model.notes.size() == 1);
    CHECK(has(model.notes[0], "'brandnew' is in no family"));
    CHECK(model.kv_bytes_per_token_16bit == 147456);
}

TEST_CASE("model files: the size of the weights' files counts, and what contradicts it is said") {
    const TemporaryFolder folder;
    folder.write("config.json", qwen3_8b + "}");
    folder.write("model.safetensors.index.json",
                 R"({"metadata": {"total_size": 16381470720}, "weight_map": {)");
    ModelSpec model = shipped_catalogue.model_from_files(folder.path());
    CHECK(model.notes.empty());
    CHECK_FALSE(model.weights.at("bf16").computed);
    CHECK(model.name == folder.path());
    folder.write("model.safetensors.index.json",
                 R"({"metadata": {"total_size": 32762941440}, "weight_map": {)");
    model = shipped_catalogue.model_from_files(folder.path());
    REQUIRE(model.notes.size() == 1);
    CHECK(has(model.notes[0], "32.76 GB"));
    CHECK(has(model.notes[0], "16.38 GB"));
    CHECK(model.weights.at("bf16").bytes == 32762941440);
}

TEST_CASE("model files: figures that contradict each other are said, both of them") {
    ModelSpec model =
        spec_of(replaced(qwen3_8b, "key_value_heads\": 8", "key_value_heads\": 5") + "}");
    REQUIRE(model.notes.size() == 1);
    CHECK(has(model.notes[0], "heads 32, kv_heads 5"));
    model =
        spec_of(replaced(qwen3_8b, "\"head_dim\": 128,", "") + R"(, "num_attention_heads": 24})");
    REQUIRE_FALSE(model.notes.empty());
    CHECK(has(model.notes[0], "head_dim 170.6"));
    model = spec_of(qwen3_8b + R"(, "layer_types": )" + layers("a", 36, "quantum", "") + "}");
    REQUIRE(model.notes.size() == 1);
    CHECK(has(model.notes[0], "quantum"));
}

TEST_CASE("model files: damaged and hostile ones are refused by file and field") {
    CHECK(has(why_refused(qwen3_8b), "config.json"));  // cut
    CHECK(has(why_refused("[1]"), "no JSON object"));
    CHECK(has(why_refused(std::string(200'000, '[')), "nests deeper"));
    CHECK(has(why_refused(replaced(qwen3_8b, "36", "4000000") + "}"), "4000000 layers"));
    CHECK(has(why_refused(replaced(qwen3_8b, "36", "1e300") + "}"), "'num_hidden_layers'"));
    CHECK(has(why_refused(replaced(qwen3_8b, "36", "-1") + "}"), "'num_hidden_layers"));
    CHECK(has(why_refused(replaced(qwen3_8b, "4096", "\"wide\"") + "}"), "'hidden_size"));
    CHECK(has(why_refused(qwen3_8b + R"(, "layer_types": ["full_attention"]})"),
              "'layer_types' has 1"));
    CHECK(has(
        why_refused(
            replaced(deepseek_v3, "num_experts_per_tok\": 8", "num_experts_per_tok\": 800") + "}"),
        "800 of 256 experts"));
}

namespace {

/// A GGUF file in the making (little-endian).
class Gguf {
public:
    template <class Number>
    Gguf& number(Number value) {
        bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
        return *this;
    }
    Gguf& text(const std::string& value) {
        number(std::uint64_t{value.size()});
        bytes += value;
        return *this;
    }
    Gguf& key(const std::string& name, std::uint32_t value) {
        return text(name).number(std::uint32_t{4}).number(value);
    }
    Gguf& tensor(const std::string& name, std::uint64_t rows, std::uint64_t columns,
                 std::uint64_t offset) {
        return text(name)
            .number(std::uint32_t{2})
            .number(columns)
            .number(rows)
            .number(std::uint32_t{12})
            .number(offset);
    }
    std::string bytes{};
};

/// Two layers of width 256: an embedding, one matrix and experts, of 4.5 bits.
std::string small_gguf() {
    Gguf file;
    file.bytes = "GGUF";
    file.number(std::uint32_t{3}).number(std::uint64_t{3}).number(std::uint64_t{11});
    file.text("general.architecture").number(std::uint32_t{8}).text("gemma3");
    file.key("gemma3.block_count", 12).key("gemma3.embedding_length", 256);
    file.key("gemma3.attention.head_count", 4).key("gemma3.attention.head_count_kv", 2);
    file.key("gemma3.attention.key_length", 64).key("gemma3.attention.value_length", 64);
    file.key("gemma3.attention.sliding_window", 512).key("gemma3.context_length", 8192);
    file.key("gemma3.feed_forward_length", 512);
    file.text("tokenizer.ggml.tokens").number(std::uint32_t{9}).number(std::uint32_t{8});
    file.number(std::uint64_t{1000});
    for (int i = 0; i < 1000; ++i) file.text("token");
    file.tensor("token_embd.weight", 1000, 256, 0);
    file.tensor("blk.0.attn_q.weight", 256, 256, 144000);
    file.tensor("blk.0.ffn_up.weight", 512, 256, 144000 + 36864);
    file.bytes += std::string(144000 + 36864 + 73728, 'x');
    return file.bytes;
}

}  // namespace

TEST_CASE("model files: a GGUF file's header has shape and bytes") {
    const TemporaryFolder folder;
    const ModelSpec model =
        shipped_catalogue.model_from_files(folder.write("small.gguf", small_gguf()));
    CHECK(model.notes.empty());
    CHECK(model.layers == 12);
    CHECK(model.vocabulary == 1000);
    CHECK(model.sliding_layers == 10);  // five of six
    CHECK(model.sliding_window == 512);
    CHECK(model.kv_bytes_per_token_16bit == 12 * 2 * 2 * 64 * 2);
    CHECK(model.native_type == "gguf");
    CHECK(model.tied_embeddings);
    CHECK(model.weights.at("gguf").bytes == Approx(144000 + 36864 + 73728).epsilon(1e-3));
    CHECK(model.parameters_active == 1000 * 256 + 256 * 256 + 512 * 256);
}

TEST_CASE("model files: a folder with one GGUF file in parts, and a name in the hub's cache") {
    const TemporaryFolder folder;
    const std::string whole = small_gguf();
    folder.write("m-Q4-00001-of-00002.gguf", whole);
    folder.write("m-Q4-00002-of-00002.gguf", whole);
    folder.write("mmproj-m.gguf", "no model");
    const double once = 144000 + 36864 + 73728;
    CHECK(shipped_catalogue.model_from_files(folder.path()).weights.at("gguf").bytes ==
          Approx(2 * once).epsilon(1e-3));
    folder.write("other.gguf", whole);
    CHECK(has(message_of<IoError>([&] { (void)shipped_catalogue.model_from_files(folder.path()); }),
              "name a file"));
    const auto snapshot = folder.path() / "models--org--tiny/snapshots/0123abc";
    std::filesystem::create_directories(snapshot);
    std::filesystem::create_directories(folder.path() / "models--org--tiny/refs");
    folder.write("models--org--tiny/refs/main", "0123abc\n");
    folder.write("models--org--tiny/snapshots/0123abc/config.json", qwen3_8b + "}");
    const char* set = std::getenv("HF_HUB_CACHE");
    const std::string before = set == nullptr ? "" : set;
    setenv("HF_HUB_CACHE", folder.path().c_str(), 1);
    CHECK(shipped_catalogue.model_from_files("org/tiny").name == "org/tiny");
    CHECK(has(message_of<IoError>([] { (void)shipped_catalogue.model_from_files("org/none"); }),
              "no files of 'org/none'"));
    if (before.empty()) unsetenv("HF_HUB_CACHE");
    else setenv("HF_HUB_CACHE", before.c_str(), 1);
}

TEST_CASE("model files: a cut or made-up GGUF header is refused, wherever it ends") {
    const TemporaryFolder folder;
    const std::string whole = small_gguf();
    const auto refusal = [&](const std::string& bytes) {
        return message_of<ParseError>(
            [&] { (void)shipped_catalogue.model_from_files(folder.write("odd.gguf", bytes)); });
    };
    for (std::size_t at = 0; at < 600; at += 7) {
        INFO(at);
        CHECK(has(refusal(whole.substr(0, at)), "odd.gguf"));
    }
    CHECK(has(refusal(whole.substr(0, whole.size() - 100'000)), "behind the file's end"));
    const auto with = [&](std::size_t at, std::uint64_t value) {
        std::string bytes = whole;
        std::memcpy(&bytes[at], &value, sizeof value);
        return refusal(bytes);
    };
    CHECK(has(with(8, ~0ULL), "tensors"));
    CHECK(has(with(16, ~0ULL), "keys"));
    CHECK(has(with(24, 1ULL << 62), "a text of"));
}

TEST_CASE("model files: layers that a period places are of the kind it says") {
    SECTION("Qwen3-Next without a list of its layers") {
        const ModelSpec model = spec_of(R"({"model_type": "qwen3_next", "hidden_size": 2048,
          "num_hidden_layers": 48, "intermediate_size": 5120, "num_attention_heads": 16,
          "num_key_value_heads": 2, "head_dim": 256, "vocab_size": 151936, "num_experts": 512,
          "num_experts_per_tok": 10, "moe_intermediate_size": 512,
          "shared_expert_intermediate_size": 512, "full_attention_interval": 4,
          "linear_conv_kernel_dim": 4, "linear_key_head_dim": 128, "linear_num_key_heads": 16,
          "linear_num_value_heads": 32, "linear_value_head_dim": 128,
          "max_position_embeddings": 262144})");
        CHECK(model.notes.empty());
        CHECK(model.attention_layers == 12);
        CHECK(model.state_bytes_per_sequence == 36.0 * (32 * 128 * 128 * 4 + 8192 * 3 * 2));
    }
    SECTION("Jamba 1.5 Mini has 51.6e9 parameters") {
        const ModelSpec model = spec_of(R"({"model_type": "jamba", "hidden_size": 4096,
          "num_hidden_layers": 32, "intermediate_size": 14336, "num_attention_heads": 32,
          "num_key_value_heads": 8, "vocab_size": 65536, "num_experts": 16,
          "num_experts_per_tok": 2, "attn_layer_period": 8, "attn_layer_offset": 4,
          "expert_layer_period": 2, "expert_layer_offset": 1, "mamba_d_state": 16,
          "mamba_d_conv": 4, "mamba_expand": 2, "mamba_dt_rank": 256,
          "max_position_embeddings": 262144, "tie_word_embeddings": false})");
        CHECK(model.notes.empty());
        CHECK(model.attention_layers == 4);
        CHECK(model.dense_layers == 16);
        CHECK(model.weights.at("bf16").bytes == Approx(2 * 51.57e9).epsilon(2e-3));
    }
    SECTION("Falcon 7B keeps one head of keys and values") {
        const ModelSpec model = spec_of(R"({"model_type": "falcon", "hidden_size": 4544,
          "num_hidden_layers": 32, "num_attention_heads": 71, "multi_query": true,
          "new_decoder_architecture": false, "vocab_size": 65024})");
        CHECK(model.kv_bytes_per_token_16bit == 32 * 2 * 64 * 2);
        CHECK(model.weights.at("bf16").bytes == Approx(2 * 6.9217e9).epsilon(2e-3));
    }
}

TEST_CASE("model files: what is assumed, read twice or read by nobody is said") {
    const auto notes = [](const std::string& config) { return spec_of(config).notes; };
    const auto without = [](const std::string& key) {
        const auto at = qwen3_8b.find("\"" + key + "\"");
        return qwen3_8b.substr(0, at) + qwen3_8b.substr(qwen3_8b.find(',', at) + 1) + "}";
    };
    REQUIRE(notes(without("intermediate_size")).size() == 1);
    CHECK(has(notes(without("intermediate_size")).front(), "is not there: 4 * hidden is assumed"));
    CHECK(has(notes(without("num_key_value_heads")).front(), "is not there: heads is assumed"));
    CHECK(notes(qwen3_8b + R"(, "text_config": )" + qwen3_8b + "}}").empty());
    CHECK(has(notes(R"({"num_hidden_layers": 40, "text_config": )" + qwen3_8b + "}}").front(),
              "'num_hidden_layers' is 36 in the part of the language model and 40 above it"));
    CHECK(
        has(notes(qwen3_8b + R"(, "architectures": ["MistralForSequenceClassification"]})").front(),
            "answers with no text"));
    CHECK(notes(qwen3_8b + R"(, "architectures": ["InternVLChatModel"]})").empty());
    std::string odd = qwen3_8b;
    odd.replace(odd.find("qwen3"), 5, "other");
    CHECK(has(notes(odd + R"(, "attn_layer_period": 8, "mamba_d_state": 16})").front(),
              "is in no family of architectures.yaml: its figures are by the usual names, and "
              "nothing reads mamba_d_state"));
    CHECK(notes(qwen3_8b + R"(, "layer_types": )" + layers("a", 40, "full_attention", "") + "}")
              .size() == 1);
}

TEST_CASE("model files: a rank has whole blocks of FP8 weights") {
    const ModelSpec model = spec_of(qwen3_8b + R"(, "quantization_config": {"quant_method": "fp8",
      "weight_block_size": [128, 128]}})");
    CHECK(model.weight_blocks == 96);
    CHECK(facts_of(model).at("model.weight_blocks") == 96);
    CHECK_FALSE(facts_of(spec_of(qwen3_8b + "}")).contains("model.weight_blocks"));
}

TEST_CASE(
    "model files: what cannot be modelled, or is no number of layers, is refused by its key") {
    const auto with = [](const std::string& key, const std::string& value) {
        std::string config = qwen3_8b + "}";
        const auto at = config.find("\"" + key + "\": ") + key.size() + 4;
        return config.replace(at, config.find(',', at) - at, value);
    };
    for (const std::string value : {"true", "40.5", "-40", "\"40\"", "NaN"}) {
        INFO(value);
        const std::string why = why_refused(with("num_hidden_layers", value));
        CHECK(has(why, "num_hidden_layers"));
        CHECK(has(why, "a whole number above 0 wanted"));
    }
    CHECK(has(why_refused(with("num_hidden_layers", "true")), "num_hidden_layers is true"));
    CHECK(has(
        why_refused(R"({"model_type": "gemma3", "hidden_size": 2560, "num_hidden_layers": 34})"),
        "'vocab_size', 'padded_vocab_size': a whole number above 0 wanted, and none of them "
        "is there"));
    CHECK(has(why_refused(qwen3_8b + R"(, "is_encoder_decoder": true})"), "is_encoder_decoder"));
    CHECK(has(why_refused(qwen3_8b + R"(, "quantization_config": "fp8"})"), "quantization_config"));
    CHECK(has(why_refused(R"({"model_type": "mamba2", "hidden_size": 4096, "num_hidden_layers": 2,
      "vocab_size": 32768, "layers_block_type": ["mamba", "mamba"], "mamba_num_heads": 128,
      "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8})"),
              "without a cache are not modelled"));
}

TEST_CASE("model files: reading one takes a few milliseconds") {
    const TemporaryFolder folder;
    const auto file = folder.write("config.json", deepseek_v3 + "}");
    (void)shipped_catalogue.model_from_files(file);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 5; ++i) (void)shipped_catalogue.model_from_files(file);
    const auto each = (std::chrono::steady_clock::now() - start) / 5;
    CHECK(each < std::chrono::milliseconds(sanitized ? 500 : 50));  // 5 with the optimizer
}

TEST_CASE("facts: a model's config.json stands where a file of facts does") {
    const TemporaryFolder folder;
    const auto file = folder.write("config.json", qwen3_8b + "}");
    Catalogue catalogue(search_spaces);
    CHECK(catalogue.model(file.string()).quantization == "bf16");
    catalogue.use_model(file);
    CHECK(catalogue.all_models().front().name == folder.path());
}
