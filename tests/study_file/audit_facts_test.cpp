// SPDX-License-Identifier: Apache-2.0
// What the audit knows of a measurement besides its figures: models, accelerators, and what
// commands say.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/audit.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/error.hpp"
#include "study_file/audit_context.hpp"

using namespace servetune;
using namespace servetune::test;

TEST_CASE("facts: a served name finds its model and quantization, or nothing") {
    const std::vector<ModelSpec> known = Catalogue(search_spaces).all_models();
    CHECK(known.size() == 15);
    const auto found = [&](const char* name) {
        const auto served = served_model(name, known);
        return served ? served->model.name + " " + served->quantization : std::string();
    };
    CHECK(found("/models/Qwen/Qwen3-8B") == "Qwen/Qwen3-8B bf16");
    CHECK(found("/models/Qwen/Qwen3-8B-FP8/") == "Qwen/Qwen3-8B fp8");
    CHECK(found("qwen3-8b-gptq-int4") == "Qwen/Qwen3-8B gptq-int4");
    CHECK(found("Qwen/Qwen3-Coder-30B-A3B-Instruct-AWQ-4bit") == "Qwen/Qwen3-30B-A3B awq-4bit");
    CHECK(found("Qwen/Qwen3-30B-A3B-Instruct-2507-FP8") == "Qwen/Qwen3-30B-A3B fp8");
    CHECK(found("meta-llama/Meta-Llama-3.1-8B-Instruct") ==
          "meta-llama/Llama-3.1-8B-Instruct bf16");
    CHECK(found("org/Llama-3.1-8B-Instruct-quantized.w4a16") ==
          "meta-llama/Llama-3.1-8B-Instruct int4-w4a16");
    CHECK(found("nvidia/Llama-3.1-8B-Instruct-NVFP4") == "meta-llama/Llama-3.1-8B-Instruct fp4");
    CHECK(found("deepseek-ai/DeepSeek-R1-0528") == "deepseek-ai/DeepSeek-R1 fp8");
    CHECK(found("Qwen/Qwen3-8B-GGUF") == "Qwen/Qwen3-8B gguf");  // the model, but no bytes
    for (const auto& [suffix, quantization] :
         {std::pair{"FP8-KV", "fp8"},
          {"w8a8-fp8", "fp8"},
          {"AWQ", "awq"},
          {"GPTQ-Int4", "gptq-int4"},
          {"quantized.w4a16", "int4-w4a16"},
          {"W4A16-G128", "int4-w4a16"},
          {"Instruct-2507-NVFP4", "fp4"},
          {"NVFP4A16", "nvfp4a16"},  // these have no bytes of ours
          {"INT4", "int4"},
          {"UD-Q4_K_XL.gguf", "ud-q4-k-xl"},
          {"IQ2_XXS", "iq2-xxs"}}) {
        INFO(suffix);
        CHECK(found(("org/Qwen3-8B-" + std::string(suffix)).c_str()) ==
              "Qwen/Qwen3-8B " + std::string(quantization));
    }
    const auto note = [&](const char* name) { return note_of(*served_model(name, known), name); };
    CHECK(note("/models/Qwen3-8B").empty());
    CHECK(note("org/Qwen3-8B-AWQ") == "org/Qwen3-8B-AWQ is Qwen/Qwen3-8B in awq, by its name");
    CHECK(note("a/Qwen3-8B-GGUF") ==
          "a/Qwen3-8B-GGUF is Qwen/Qwen3-8B in gguf, by its name; its bytes in gguf are not known, "
          "so nothing "
          "is predicted or checked by them");
    for (const char* name :
         {"deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
          "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "Qwen/Qwen3-8B-my-finetune", "Qwen/Qwen3-80B",
          "Qwen/Qwen3", "", "org/Qwen3-8B-Q9_K", "org/Qwen3-8B-FP8-pruned"})
        CHECK(found(name).empty());
}

TEST_CASE("facts: an accelerator is found where a text mentions it alone") {
    const Catalogue catalogue(search_spaces);
    const std::vector<HardwareSpec> known = catalogue.all_hardware();
    CHECK(known.size() == 26);
    const auto found = [&](const char* text) {
        const auto spec = hardware_in(text, known);
        return spec ? spec->name : std::string();
    };
    CHECK(found("one NVIDIA H100 SXM") == "h100-sxm");
    CHECK(found("NVIDIA H100 80GB HBM3") == "h100-sxm");
    CHECK(found("h100-sxm-80gb") == "h100-sxm");
    CHECK(found("an H100 PCIe card") == "h100-pcie");
    CHECK(found("NVIDIA Jetson AGX Thor") == "jetson-thor");
    CHECK(found("an L40S, 48 GB") == "l40s");
    for (const char* text :
         {"H100 NVL", "H100-NVL", "H100-96GB", "GH200", "H100 and H200", "RTX 4090 Laptop", ""})
        CHECK(found(text).empty());
    CHECK(catalogue.hardware("h100-sxm").memory_bandwidth_bytes_per_second == 3.35e12);
    CHECK(has(message_of<IoError>([&] { (void)catalogue.hardware("h100-sx"); }),
              "; known: h100-sxm, "));
    CHECK(has(message_of<IoError>([&] { (void)catalogue.model("Qwen3-9B"); }),
              "; known: Qwen/Qwen3-"));
    CHECK(known[0].flops("fp4") == known[0].flops("bf16"));  // an A10 has neither fp4 nor fp8
}

TEST_CASE("facts: what the shipped files say hangs together") {
    for (const ModelSpec& model : Catalogue(search_spaces).all_models())
        for (const auto& [quantization, weights] : model.weights) {
            INFO(model.name << " " << quantization);
            // Every active parameter but the input embedding is read, at 3.9 bits or more; never
            // more than the checkpoint.
            const double read = model.parameters_active -
                                (model.tied_embeddings ? 0 : model.parameters_embedding / 2);
            CHECK(weights.per_token >= read * 3.9 / 8);
            CHECK(weights.per_token <= read * 2.01);
            CHECK(weights.bytes >= model.parameters_active * 3.9 / 8);
        }
    for (const HardwareSpec& spec : Catalogue(search_spaces).all_hardware()) {
        INFO(spec.name);
        CHECK(spec.flops("bf16").value_or(0) > 10 * spec.memory_bandwidth_bytes_per_second);
        if (spec.flops_per_second.contains("fp8"))
            CHECK(*spec.flops("fp8") >= 1.9 * *spec.flops("bf16"));
    }
}

TEST_CASE("audit: commands say the model, its quantization, devices and speculation") {
    const std::vector<ModelSpec> known = Catalogue(search_spaces).all_models();
    const CommandReader commands(Catalogue(search_spaces).engines(), search_spaces);
    const auto described = [&](const std::vector<std::string>& words,
                               const std::string& model = "") {
        AuditContext context;
        describe(context, commands.read({words}), model, known);
        return context;
    };
    AuditContext c = described({"vllm", "serve", "/models/Qwen/Qwen3-8B-FP8", "--served-model-name",
                                "Qwen3-32B", "--tensor-parallel-size", "2"});
    REQUIRE(c.served.has_value());
    CHECK(c.served->model.name == "Qwen/Qwen3-8B");
    CHECK(c.served->quantization == "fp8");
    CHECK(c.devices == 2);
    CHECK(c.tokens_per_step == 1);
    CHECK(c.command_is_known);
    CHECK(described({"--max-num-seqs=8"}).command_is_known);
    CHECK_FALSE(described({}, "Qwen/Qwen3-8B").command_is_known);
    CHECK_FALSE(described({"see", "run.sh"}).command_is_known);
    c = described({"python3", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-14B",
                   "--quantization=fp8", "--disable-radix-cache"});
    REQUIRE(c.served.has_value());
    CHECK(c.served->quantization == "fp8");
    CHECK(c.prefix_cache_intended == false);
    c = described({"--speculative-config={\"method\":\"mtp\",\"num_speculative_tokens\":4}"},
                  "Qwen/Qwen3.5-9B");
    REQUIRE(c.served.has_value());
    CHECK(c.tokens_per_step == 5);
    CHECK_FALSE(described({"--speculative-algorithm", "EAGLE"}, "Qwen/Qwen3-8B")
                    .tokens_per_step.has_value());
    CHECK_FALSE(described({"vllm", "serve", "org/unknown"}, "Qwen/Qwen3-8B")
                    .served.has_value());  // not what the study serves
    // The same said otherwise: by other programs, with other spellings, with the engine's own
    // options.
    c = described({"/opt/bin/python", "-m", "vllm.entrypoints.openai.api_server",
                   "--model=Qwen/Qwen3-8B", "-tp", "4", "-q", "fp8"});
    CHECK((c.served && c.served->model.name == "Qwen/Qwen3-8B" && c.served->quantization == "fp8"));
    CHECK(c.devices == 4);
    c = described({"sglang", "serve", "--model", "Qwen/Qwen3-14B", "--tp", "2",
                   "--data-parallel-size=2", "--cuda-graph-bs", "1", "2"});
    CHECK((c.served && c.served->model.name == "Qwen/Qwen3-14B"));
    CHECK(c.devices == 4);
    CHECK(c.prefix_cache_intended.value_or(true));
    c = described({"trtllm-serve", "serve", "Qwen/Qwen3-8B", "--tp_size", "2",
                   "--kv_cache_config.enable_block_reuse=false",
                   "--speculative_config.max_draft_len=3"});
    CHECK((c.served && c.served->model.name == "Qwen/Qwen3-8B"));
    CHECK(c.devices == 2);
    CHECK(c.prefix_cache_intended == false);
    CHECK(c.tokens_per_step == 4);
    c = described({"CUDA_VISIBLE_DEVICES=0", "llama-server", "-m", "Qwen/Qwen3-8B",
                   "--no-cache-prompt", "--draft-max", "7"});
    CHECK((c.served && c.served->model.name == "Qwen/Qwen3-8B"));
    CHECK(c.prefix_cache_intended == false);
    CHECK(c.tokens_per_step == 8);
    CHECK(described({"llama-server", "--spec-type", "none"}, "Qwen/Qwen3-8B").tokens_per_step == 1);
    CHECK(described({"--speculative_x", "1"}, "Qwen/Qwen3-8B").tokens_per_step == std::nullopt);
}
