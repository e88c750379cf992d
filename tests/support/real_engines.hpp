// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"
#include "support/tiny_model.hpp"

#include "servetune/catalogue.hpp"
#include "study_file/yaml.hpp"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <vector>

namespace servetune::test {

/// A file of a real engine that a script has fetched. Empty, and said so (ctest looks for this line
/// to call the test skipped), when it is not there.
inline std::string fetched(const std::filesystem::path& file, const std::string& what,
                           const std::string& by) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) return file.string();
    WARN("skipped: there is no " << what << " at " << file.string() << "; " << by << " fetches it");
    return {};
}

inline const std::filesystem::path engines_folder =
    std::filesystem::path(SERVETUNE_SOURCE) / "build";

/// The real llama-server: `$SERVETUNE_LLAMA_SERVER`, else where scripts/get-llama-server puts it.
inline std::string llama_server() {
    const char* given = std::getenv("SERVETUNE_LLAMA_SERVER");
    return fetched(
        given != nullptr ? std::filesystem::path(given) : engines_folder / "llama/llama-server",
        "llama-server", "scripts/get-llama-server");
}

/// A shipped engine whose command begins with this program.
inline Engine engine_started_by(const std::string& program, const std::string& name) {
    Engine result = Catalogue(SERVETUNE_SOURCE "/search_spaces").engine(name);
    result.launch.front() = program;
    return result;
}

/// A real engine, and with what it serves a tiny model on a processor.
struct RealEngine {
    std::string name{};     ///< of the engine file
    std::string program{};  ///< the first word of its command; empty: it is not here
    std::string model{};
    std::vector<std::string> arguments{};
    std::map<std::string, std::string> environment{};
    std::string space{};         ///< lines of a study
    std::string stages{};        ///< three, each with one candidate
    bool many_processes = true;  ///< one starts others, which import for long
    bool counts_cached =
        true;  ///< its count of prompt tokens holds those that its prefix cache had
    std::string limits = "true";  ///< of the shell that starts it
};

inline RealEngine real_llama(const TemporaryFolder& folder) {
    return {.name = "llama.cpp",
            .program = llama_server(),
            .model = folder.write("tiny.gguf", TinyModel{.context_tokens = 32768}.gguf()).string(),
            .space =
                "  threads: 1\n  ctx_size: 32768\n  parallel: {choice: [4, 8], default: 4}\n  "
                "ubatch_size: {choice: [512, 64], default: 512}\n"
                "  cache_type_k: {choice: [f16, q8_0], default: f16}\n",
            .stages = "parallel, ubatch_size, cache_type_k",
            .many_processes = false,
            .counts_cached = false};
}

/// Empty: it is not here.
inline std::string tiny_model() {
    return fetched(engines_folder / "tiny-model", "tiny model", "scripts/get-tiny-model");
}

inline RealEngine real_vllm() {
    return {.name = "vllm",
            .program = tiny_model().empty()
                           ? ""
                           : fetched(engines_folder / "vllm/bin/vllm", "vLLM", "scripts/get-vllm"),
            .model = tiny_model(),
            .arguments = {"--load-format", "dummy", "--kv-cache-memory-bytes", "1073741824"},
            .environment = {{"HF_HUB_OFFLINE", "1"}, {"VLLM_NO_USAGE_STATS", "1"}},
            .space =
                "  enforce_eager: true\n  max_num_seqs: {choice: [8, 4], default: 8}\n  "
                "enable_prefix_caching: {choice: [engine, false]}\n"
                "  speculative_method: {choice: [none, ngram]}\n  num_speculative_tokens: 3\n",
            .stages = "max_num_seqs, enable_prefix_caching, speculative_method"};
}

inline RealEngine real_sglang() {
    return {.name = "sglang",
            .program = tiny_model().empty() ? ""
                                            : fetched(engines_folder / "sglang/bin/python3",
                                                      "SGLang", "scripts/get-sglang"),
            .model = tiny_model(),
            // Without the last two it takes the machine's whole memory.
            .arguments = {"--load-format", "dummy", "--device", "cpu", "--skip-server-warmup",
                          "--mem-fraction-static", "0.3", "--max-total-tokens", "20000"},
            .environment = {{"HF_HUB_OFFLINE", "1"}},
            .space =
                "  attention_backend: torch_native\n  sampling_backend: pytorch\n  enable_metrics: "
                "true\n"
                "  max_running_requests: {choice: [8, 4], default: 8}\n  disable_radix_cache: "
                "{choice: [false, true]}\n"
                "  schedule_policy: {choice: [fcfs, lpm], default: fcfs}\n",
            .stages = "max_running_requests, disable_radix_cache, schedule_policy",
            .limits = "ulimit -v 40000000"};
}

}  // namespace servetune::test
