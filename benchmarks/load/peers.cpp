// SPDX-License-Identifier: Apache-2.0
#include "load/peers.hpp"

#include "load/truth.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <vector>

namespace servetune::benchmark {

namespace {

/// Runs a program found on the path; its output goes to a file. It inherits this process's core.
int run(const std::vector<std::string>& argv, const std::filesystem::path& output) {
    std::vector<char*> words;
    for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    const pid_t pid = fork();
    if (pid == 0) {
        const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
        dup2(file, 1), dup2(file, 2);
        execvp(words[0], words.data());
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

struct Peer {
    std::string name, module;
    std::vector<std::string> (*command)(const std::string& url, const std::string& tokenizer,
                                        std::size_t streams, const std::filesystem::path& folder);
};

constexpr int tokens = 400;  // eight seconds at 50 tok/s, as the other cases

/// Flags as in docs.vllm.ai/en/latest/cli/bench/serve.
std::vector<std::string> vllm(const std::string& url, const std::string& tokenizer,
                              std::size_t streams, const std::filesystem::path& folder) {
    return {"vllm",
            "bench",
            "serve",
            "--backend",
            "openai-chat",
            "--endpoint",
            "/v1/chat/completions",
            "--base-url",
            url,
            "--model",
            std::string(Server::model),
            "--tokenizer",
            tokenizer,
            "--dataset-name",
            "random",
            "--random-input-len",
            "32",
            "--random-output-len",
            std::to_string(tokens),
            "--num-prompts",
            std::to_string(streams),
            "--ignore-eos",
            "--save-result",
            "--result-dir",
            folder.string(),
            "--result-filename",
            "result.json"};
}

/// Flags as in docs.sglang.io/docs/developer_guide/bench_serving. `random` varies lengths unless
/// its range ratio is 1.
std::vector<std::string> sglang(const std::string& url, const std::string& tokenizer,
                                std::size_t streams, const std::filesystem::path& folder) {
    return {"python3",
            "-m",
            "sglang.bench_serving",
            "--backend",
            "vllm-chat",
            "--base-url",
            url,
            "--model",
            std::string(Server::model),
            "--tokenizer",
            tokenizer,
            "--dataset-name",
            "random-ids",
            "--random-input-len",
            "32",
            "--random-output-len",
            std::to_string(tokens),
            "--random-range-ratio",
            "1",
            "--num-prompts",
            std::to_string(streams),
            "--output-file",
            (folder / "result.json").string()};
}

}  // namespace

void compare_peers(const std::string& server_program, const std::string& tokenizer) {
    std::printf(
        "\n| tool | streams | tok/s | TTFT mean, it says | the server says | ITL mean, it says | "
        "the server says "
        "|\n|---|---|---|---|---|---|---|\n");
    for (const Peer& peer : {Peer{"vllm bench serve", "vllm", vllm},
                             Peer{"SGLang bench_serving", "sglang.bench_serving", sglang}}) {
        const test::TemporaryFolder folder;
        const auto output = folder.path() / "output";
        if (run({"python3", "-c", "import " + peer.module}, output) != 0) {
            std::printf("%s: skipped, python3 cannot import %s\n", peer.name.c_str(),
                        peer.module.c_str());
            continue;
        }
        if (tokenizer.empty()) {
            std::printf("%s: skipped, it needs --tokenizer\n", peer.name.c_str());
            continue;
        }
        for (const std::size_t streams : {64, 256, 1024}) {
            const auto file = folder.path() / "result.json";
            std::filesystem::remove(file);
            const Server server(server_program, "0.2,0.02,staggered");
            const int code =
                run(peer.command(server.url(), tokenizer, streams, folder.path()), output);
            try {
                // SGLang appends a line for each run.
                const auto result = nlohmann::json::parse(std::ifstream(file));
                const Truth truth = server.truth();
                std::printf("| %s | %zu | %.0f | %.1f | %.1f | %.3f | %.3f |\n", peer.name.c_str(),
                            streams, result.at("output_throughput").get<double>(),
                            result.at("mean_ttft_ms").get<double>(),
                            truth.mean_first_token_seconds() * 1e3,
                            result.at("mean_itl_ms").get<double>(), truth.mean_gap_seconds() * 1e3);
            } catch (const std::exception& error) {
                std::printf("%s, %zu streams: no result (exit code %d): %s\n", peer.name.c_str(),
                            streams, code, error.what());
            }
            std::fflush(stdout);
        }
    }
}

}  // namespace servetune::benchmark
