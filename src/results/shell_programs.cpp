// SPDX-License-Identifier: Apache-2.0
#include "shell_programs.hpp"

#include <cctype>

namespace servetune {

bool changes_nothing(std::string_view variable) {
    constexpr std::array<std::string_view, 12> names{"CUDA_VISIBLE_DEVICES",   "HIP_VISIBLE_DEVICES",
                                                     "ROCR_VISIBLE_DEVICES",   "ASCEND_RT_VISIBLE_DEVICES",
                                                     "NVIDIA_VISIBLE_DEVICES", "PATH",
                                                     "LD_LIBRARY_PATH",        "NCCL_DEBUG",
                                                     "NCCL_SOCKET_IFNAME",     "GLOO_SOCKET_IFNAME",
                                                     "TOKENIZERS_PARALLELISM", "HTTPS_PROXY"};
    if (is_one_of(variable, names)) return true;
    for (const std::string_view prefix : {"HF_", "HUGGING_FACE_", "HUGGINGFACE_", "TRANSFORMERS_", "PYTHON", "WANDB_"})
        if (variable.starts_with(prefix)) return true;
    for (const std::string_view part : {"LOGGING", "PASSWORD", "SECRET", "ACCESS_KEY"})
        if (variable.find(part) != std::string_view::npos) return true;
    return variable.ends_with("_TOKEN") || variable.ends_with("_API_KEY");
}

bool serves_nothing(std::string_view line) {
    constexpr std::array<std::string_view, 31> programs{"apt",     "apt-get",   "cat",    "cd",         "conda",      "curl",
                                                        "echo",    "evalscope", "git",    "guidellm",   "hf",         "huggingface-cli",
                                                        "kill",    "ls",        "mkdir",  "modelscope", "nvidia-smi", "pip",
                                                        "pip3",    "pkill",     "source", "tar",        "tail",       "unzip",
                                                        "wget",    "sleep",     "set",    "aiperf",     "genai-perf", "npu-smi",
                                                        "rocm-smi"};
    if (line.find("bench") != std::string_view::npos) return true;
    for (const std::string_view start : {"uv pip", "kubectl port-forward", "kubectl get", "kubectl logs"})
        if (line.starts_with(start)) return true;
    return is_one_of(line.substr(0, line.find(' ')), programs);
}

bool says_that_it_serves(std::string_view line) {
    const std::string_view program = line.substr(0, line.find(' '));
    const bool is_program = std::all_of(program.begin(), program.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '/' || c == '-' || c == '~';
    });
    if (!is_program || (line.find(" -") == std::string_view::npos && !line.starts_with("mindie"))) return false;
    for (const std::string_view word : {" serve", "server", "launch_", "docker run ", "podman run ", " --model", "mindie"})
        if (line.find(word) != std::string_view::npos) return true;
    return false;
}

}  // namespace servetune
