// SPDX-License-Identifier: Apache-2.0
#include "shell_programs.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

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

std::size_t executed_at(const std::vector<std::string>& words, std::size_t first) {
    constexpr std::array<std::string_view, 5> programs{"docker", "podman", "nerdctl", "docker-compose", "kubectl"};
    constexpr std::array<std::string_view, 24> with_value{
        "-e",     "--env",       "--env-file", "-u",     "--user",         "-w",        "--workdir",    "--detach-keys",
        "-c",     "--container", "-n",         "-f",     "--namespace",    "--context", "--kubeconfig", "--index",
        "--file", "-p",          "-H",         "--host", "--project-name", "--profile", "--log-level",  "--filename"};
    std::size_t at = first;
    const auto skip_options = [&] {
        while (at < words.size() && words[at].starts_with('-') && words[at] != "--") at += is_one_of(words[at], with_value) ? 2 : 1;
    };
    while (at < words.size() && !is_one_of(program_name(words[at]), programs) &&
           (words[at].starts_with('-') || is_one_of(program_name(words[at]), wrappers)))
        ++at;
    if (at == words.size() || !is_one_of(program_name(words[at]), programs)) return 0;
    ++at;
    skip_options();
    if (at < words.size() && (words[at] == "compose" || words[at] == "container")) ++at;
    skip_options();
    if (at >= words.size() || words[at] != "exec") return 0;
    ++at;
    skip_options();
    if (at < words.size() && words[at] != "--") ++at;  // the name
    skip_options();
    if (at < words.size() && words[at] == "--") ++at;
    return std::min(at, words.size());
}

bool says_only_help(std::string_view command) {
    for (const std::string_view flag : {" --help", " --version"}) {
        const auto at = command.find(flag);
        if (at != std::string_view::npos &&
            (at + flag.size() == command.size() || std::string_view(" =").find(command[at + flag.size()]) != std::string_view::npos))
            return true;
    }
    return false;
}

bool is_shell_keyword(std::string_view word) {
    constexpr std::array<std::string_view, 17> keywords{"while", "until", "for",  "do",    "done",   "done;", "[",        "[[", "test",
                                                        "wait",  "trap",  "read", "unset", "return", "exit",  "function", "}"};
    return is_one_of(word, keywords);
}

std::string_view without_preparation(std::string_view line) {
    constexpr std::array<std::string_view, 14> programs{"cd",    "source", ".",   "pip", "pip3",    "conda",     "sleep",
                                                        "mkdir", "git",    "set", "apt", "apt-get", "apt-cache", "uv"};
    for (;;) {
        const auto end = std::min(line.find("&&"), line.find("; "));
        const std::string_view first = line.substr(0, line.find(' '));
        if (end == std::string_view::npos || !is_one_of(first, programs) || !serves_nothing(line.substr(0, end))) return line;
        line.remove_prefix(end + 2);
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    }
}

namespace {

/// `docker run ... nginx:1.29`: what stands beside an engine and serves no model.
bool runs_beside_engine(std::string_view line) {
    constexpr std::array<std::string_view, 9> images{"nginx",   "haproxy", "traefik",  "envoy",     "prometheus",
                                                     "grafana", "redis",   "postgres", "open-webui"};
    const bool runs = std::any_of(container_programs.begin(), container_programs.end(), [&](std::string_view program) {
        return line.find(std::string(program) + " run ") != std::string_view::npos;
    });
    while (runs && !line.empty()) {
        const auto end = std::min(line.find(' '), line.size());
        std::string_view image = program_name(line.substr(0, end));
        image = image.substr(0, image.find(':'));
        if (!line.starts_with('-') && is_one_of(image, images)) return true;
        line.remove_prefix(std::min(end + 1, line.size()));
    }
    return false;
}

/// `vllm bench serve`, `python -m bench_serving`, `kubectl apply -f genai-perf.yaml`: a word that
/// is a program, what it is told to do, or the file that it starts. A server's name, its model, its
/// log or a folder may be called so, too.
bool names_client(std::string_view line) {
    constexpr std::array<std::string_view, 9> clients{"bench",  "perftest",   "perf_test", "loadtest", "load_test",
                                                      "aiperf", "genai-perf", "genaiperf", "guidellm"};
    std::string_view before;
    while (!line.empty()) {
        const std::string_view word = line.substr(0, line.find(' '));
        line.remove_prefix(std::min(line.size(), word.size() + 1));
        if (word.empty()) continue;
        const std::string_view previous = std::exchange(before, word);
        const bool starts_it = previous == "-m" || previous == "-f" || previous == "-c";
        const bool is_value = (previous.starts_with('-') && !starts_it) || previous.ends_with('>') || previous == "serve" ||
                              previous == "tee" || previous == "cd";
        if (is_value || word.starts_with('-') || word.find_first_of(">=") != std::string_view::npos) continue;
        const std::string_view name = previous == "-f" ? program_name(word) : word;
        if (std::any_of(clients.begin(), clients.end(),
                        [&](std::string_view client) { return name.find(client) != std::string_view::npos; }))
            return true;
    }
    return false;
}

/// `timeout 900 bash -c 'until curl ...; do sleep 2; done'`: waits for a server.
bool waits(std::string_view line) {
    const auto shell = line.find("sh -c ");
    if (shell == std::string_view::npos) return false;
    std::string_view script = line.substr(shell + 6);
    script.remove_prefix(std::min(script.find_first_not_of("'\" "), script.size()));
    return script.starts_with("while ") || script.starts_with("until ");
}

}  // namespace

bool serves_nothing(std::string_view line) {
    constexpr std::array<std::string_view, 31> programs{"apt",     "apt-get",   "cat",    "cd",         "conda",      "curl",
                                                        "echo",    "evalscope", "git",    "guidellm",   "hf",         "huggingface-cli",
                                                        "kill",    "ls",        "mkdir",  "modelscope", "nvidia-smi", "pip",
                                                        "pip3",    "pkill",     "source", "tar",        "tail",       "unzip",
                                                        "wget",    "sleep",     "set",    "aiperf",     "genai-perf", "npu-smi",
                                                        "rocm-smi"};
    if (names_client(line) || waits(line) || runs_beside_engine(line)) return true;
    if (line.starts_with("kubectl run") && line.find("curl") != std::string_view::npos) return true;
    if (line.starts_with("gcloud ") && line.find("--command") == std::string_view::npos && line.find(" deploy") == std::string_view::npos)
        return true;  // of machines
    for (const std::string_view start :
         {"uv pip", "kubectl port-forward", "kubectl get", "kubectl logs", "kubectl wait", "kubectl describe", "kubectl delete",
          "kubectl rollout status", "kubectl create secret", "kubectl create namespace", "kubectl config", "docker logs", "docker ps",
          "docker pull", "docker compose logs", "docker compose ps", "docker compose pull"})
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
