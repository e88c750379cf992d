// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "interop/deployment_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace servetune::test {

/// One GPU and one copy, with nothing odd in it.
inline DeploymentModel plain_deployment(const std::string& engine = "vllm") {
    const bool vllm = engine == "vllm";
    DeploymentModel model{"chat-" + engine, "Recommended: +12 % [8 %, 16 %]."};
    model.engine = engine;
    model.model = "Qwen/Qwen3-8B";
    model.image = {{vllm ? "vllm/vllm-openai:v0.33.0" : "lmsysorg/sglang:v0.5.23"}};
    model.ready_path = "/health";
    model.ready_within_seconds = 1200;
    model.shm_bytes = 34359738368;
    model.platforms =
        vllm ? PlatformStarts{{"python3", "-m", "dynamo.vllm", "--model", "{model}"},
                              "VLLM_ADDITIONAL_ARGS",
                              "vLLM",
                              "vLLM",
                              {"--api-key", "--ssl-*"}}
             : PlatformStarts{
                   {"python3", "-m", "dynamo.sglang", "--model-path", "{model}"}, "", "SGLang"};
    const std::vector<std::string> words =
        vllm ? std::vector<std::string>{"vllm",    "serve",  model.model, "--host",
                                        "0.0.0.0", "--port", "8000",      "--max-num-seqs=512"}
             : std::vector<std::string>{"python3",
                                        "-m",
                                        "sglang.launch_server",
                                        "--model-path",
                                        model.model,
                                        "--host",
                                        "0.0.0.0",
                                        "--port",
                                        "8000",
                                        "--max-running-requests=512"};
    DeployedEngine one;
    for (const std::string& word : words) one.argv.push_back({{word}});
    one.launch_words = words.size() - 1;
    one.gpus = 1;
    one.port = 8000;
    model.engines.push_back(one);
    return model;
}

/// Four GPUs in two copies, a secret by reference, hard words, and a value of JSON.
inline DeploymentModel hard_deployment(const std::string& engine = "vllm") {
    DeploymentModel model = plain_deployment(engine);
    DeployedEngine& one = model.engines.front();
    const auto add = [&](const std::string& word) { one.argv.push_back({{word}}); };
    if (engine == "vllm") {
        add("--tensor-parallel-size=4");
        add("--no-enable-prefix-caching");
        add("--compilation-config.cudagraph_mode=FULL");
        add(R"(--speculative-config={"method":"ngram","num_speculative_tokens":3})");
        one.argv.push_back({{"--api-key"}});
        one.argv.push_back({{"SERVING_KEY", true}});
        one.variables.insert("SERVING_KEY");
        add("--override-generation-config");
        add(R"x({"note":"it's $HOME 100% \\ {{.}} $(id)"})x");
    } else {
        add("--tp-size=4");
        add("--schedule-policy=lpm");
        add("--json-model-override-args");
        add(R"({"note":"it's $HOME"})");
    }
    one.environment["HF_TOKEN"] = {{"HF_TOKEN", true}};
    one.environment["NCCL_DEBUG"] = {{"WARN"}};
    one.variables.insert("HF_TOKEN");
    one.gpus = 4;
    one.copies = 2;
    return model;
}

/// From a study whose trials were pods of the user's template.
inline DeploymentModel templated_deployment() {
    DeploymentModel model = plain_deployment();
    model.device_resource = "amd.com/gpu";
    model.engines.front().environment["NCCL_DEBUG"] = {{"WARN"}};
    model.pod_template = R"({"kind": "Pod", "spec": {
      "nodeSelector": {"gpu": "yes"}, "tolerations": [{"key": "gpu", "operator": "Exists"}],
      "imagePullSecrets": [{"name": "registry"}], "securityContext": {"fsGroup": 1000},
      "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "models"}},
                  {"name": "files", "emptyDir": {}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}],
      "containers": [
        {"name": "logs", "image": "logs:1"},
        {"name": "engine", "envFrom": [{"secretRef": {"name": "hub"}}],
         "env": [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "HF_HOME", "value": "/models"}],
         "resources": {"limits": {"memory": "64Gi"}, "requests": {"cpu": "8"}}, "securityContext": {"privileged": false},
         "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": true}, {"name": "memory", "mountPath": "/dev/shm"}]}]}})";
    return model;
}

}  // namespace servetune::test
