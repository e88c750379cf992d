// SPDX-License-Identifier: Apache-2.0
#include "shell_programs.hpp"

#include "engine/launcher.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace servetune {

bool changes_nothing(std::string_view variable) {
    constexpr std::array<std::string_view, 12> names{
        "CUDA_VISIBLE_DEVICES",   "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",   "ASCEND_RT_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES", "PATH",
        "LD_LIBRARY_PATH",        "NCCL_DEBUG",
        "NCCL_SOCKET_IFNAME",     "GLOO_SOCKET_IFNAME",
        "TOKENIZERS_PARALLELISM", "HTTPS_PROXY"};
    if (is_one_of(variable, names)) return true;
    for (const std::string_view prefix :
         {"HF_", "HUGGING_FACE_", "HUGGINGFACE_", "TRANSFORMERS_", "PYTHON", "WANDB_"})
        if (variable.starts_with(prefix)) return true;
    for (const std::string_view part : {"LOGGING", "PASSWORD", "SECRET", "ACCESS_KEY"})
        if (variable.find(part) != std::string_view::npos) return true;
    return variable.ends_with("_TOKEN") || variable.ends_with("_API_KEY");
}

bool says_only_help(std::string_view command) {
    for (const std::string_view flag : {" --help", " --version"}) {
        const auto at = command.find(flag);
        if (at != std::string_view::npos &&
            (at + flag.size() == command.size() ||
             std::string_view(" =").find(command[at + flag.size()]) != std::string_view::npos))
            return true;
    }
    return false;
}

namespace {

/// `vllm bench serve`, `python -m bench_serving`, `kubectl apply -f genai-perf.yaml`: a word that
/// is a program, what it is told to do, or the file that it starts. A server's name, its model, its
/// log or a folder may be called so, too.
bool names_client(std::string_view line) {
    constexpr std::array<std::string_view, 9> clients{"bench",      "perftest",  "perf_test",
                                                      "loadtest",   "load_test", "aiperf",
                                                      "genai-perf", "genaiperf", "guidellm"};
    std::string_view before;
    while (!line.empty()) {
        const std::string_view word = line.substr(0, line.find(' '));
        line.remove_prefix(std::min(line.size(), word.size() + 1));
        if (word.empty()) continue;
        const std::string_view previous = std::exchange(before, word);
        const bool starts_it = previous == "-m" || previous == "-f" || previous == "-c";
        const bool is_value = (previous.starts_with('-') && !starts_it) ||
                              previous.ends_with('>') || previous == "serve" || previous == "tee" ||
                              previous == "cd";
        if (is_value || word.starts_with('-') || word.find_first_of(">=") != std::string_view::npos)
            continue;
        const std::string_view name = previous == "-f" ? program_name(word) : word;
        if (std::any_of(clients.begin(), clients.end(), [&](std::string_view client) {
                return name.find(client) != std::string_view::npos;
            }))
            return true;
    }
    return false;
}

}  // namespace

bool serves_nothing(std::string_view command) {
    constexpr std::array<std::string_view, 34> programs{
        "apt",      "apt-get",   "cat",    "cd",         "conda",      "curl",
        "echo",     "evalscope", "git",    "guidellm",   "hf",         "huggingface-cli",
        "kill",     "ls",        "mkdir",  "modelscope", "nvidia-smi", "pip",
        "pip3",     "pkill",     "source", "tar",        "tail",       "unzip",
        "wget",     "sleep",     "set",    "aiperf",     "genai-perf", "npu-smi",
        "rocm-smi", "wait",      ".",      "unset"};
    return names_client(command) || command.starts_with("uv pip") ||
           is_one_of(command.substr(0, command.find(' ')), programs);
}

}  // namespace servetune
