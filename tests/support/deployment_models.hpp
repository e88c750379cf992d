// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "handover/deployment_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace servetune::test {

/// One GPU and one copy, with nothing odd in it.
inline DeploymentModel plain_deployment() {
    DeploymentModel model{"chat-vllm", "Recommended: +12 % [8 %, 16 %]."};
    model.model = "Qwen/Qwen3-8B";
    model.image = {{"vllm/vllm-openai:v0.33.0"}};
    model.ready_path = "/health";
    model.ready_within_seconds = 1200;
    model.shm_bytes = 34359738368;
    for (const char* word : {"vllm", "serve", "Qwen/Qwen3-8B", "--host", "0.0.0.0", "--port",
                             "8000", "--max-num-seqs=512"})
        model.argv.push_back({{word}});
    model.launch_words = model.argv.size() - 1;
    model.gpus = 1;
    model.port = 8000;
    return model;
}

/// Four GPUs in two copies, a secret by reference, hard words, and a value of JSON.
inline DeploymentModel hard_deployment() {
    DeploymentModel model = plain_deployment();
    const auto add = [&](const std::string& word) { model.argv.push_back({{word}}); };
    add("--tensor-parallel-size=4");
    add("--no-enable-prefix-caching");
    add("--compilation-config.cudagraph_mode=FULL");
    add(R"(--speculative-config={"method":"ngram","num_speculative_tokens":3})");
    add("--api-key");
    model.argv.push_back({{"SERVING_KEY", true}});
    model.variables.insert("SERVING_KEY");
    add("--override-generation-config");
    add(R"x({"note":"it's $HOME 100% \\ {{.}} $(id)"})x");
    model.environment["HF_TOKEN"] = {{"HF_TOKEN", true}};
    model.environment["NCCL_DEBUG"] = {{"WARN"}};
    model.variables.insert("HF_TOKEN");
    model.gpus = 4;
    model.copies = 2;
    return model;
}

}  // namespace servetune::test
