// SPDX-License-Identifier: Apache-2.0
// The first hour of a new user: `init`, all errors at once, what `validate` and `run --dry-run`
// promise.
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/terminal.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;
using FirstJson = nlohmann::json;

/// A folder on whose PATH there are only these programs, each a script.
class Machine {
public:
    void install(const std::string& name, const std::string& body = "exit 0\n") {
        fs::create_directories(folder_.path() / "bin");
        const fs::path file = folder_.write("bin/" + name, "#!/bin/sh\n" + body);
        fs::permissions(file, fs::perms::owner_all);
    }
    void install_gpus(int count) {
        install("nvidia-smi", "i=0; while [ $i -lt " + std::to_string(count) +
                                  " ]; do echo \"$i, GPU-$i, NVIDIA H100 80GB HBM3, 81559, "
                                  "570.86\"; i=$((i + 1)); done\n");
    }
    [[nodiscard]] Ran run(std::vector<std::string> words) const {
        fs::create_directories(folder_.path() / "bin");
        std::vector<std::string> all{"/usr/bin/env", "PATH=" + (folder_.path() / "bin").string(),
                                     SERVETUNE_PROGRAM};
        all.insert(all.end(), words.begin(), words.end());
        return ran(all, folder_.path());
    }
    [[nodiscard]] const TemporaryFolder& folder() const { return folder_; }

private:
    TemporaryFolder folder_;
};

const std::string replayed =
    "study: s\nmodel: m\nengine: vllm\nothers: default\nstrategy: exhaustive\nworkloads: [random]\n"
    "objective: {maximize: total_tokens_per_second}\nspace: {max_num_seqs: {choice: [128, 256], "
    "default: 128}}\n"
    "evaluator: {replay: {table: t.csv, delay: 2s}}\n";
const std::string measured_rows =
    "max_num_seqs,status,total_tokens_per_second\n128,ok,1000\n256,ok,1100\n";

}  // namespace

TEST_CASE("first study: init finds engine and GPU and writes a study that validates") {
    Machine machine;
    machine.install("vllm", "echo '--model'; exit 0\n");
    machine.install_gpus(2);
    const Ran init = machine.run({"init", "--model", "Qwen/Qwen3-8B", "--goal", "ttft_p95 < 500ms",
                                  "--budget", "45min", "--yes"});
    INFO(init.out << init.err);
    REQUIRE(init.code == 0);
    CHECK(has(init.out, "installed here: vllm\n"));
    CHECK(has(init.out, "nvidia-smi: 2 x NVIDIA H100 80GB HBM3\n"));
    const std::string text = read_file(machine.folder().path() / "study.yaml");
    CHECK(has(text, "model: Qwen/Qwen3-8B\nengine: vllm\n"));
    CHECK(has(text, "hardware: {device: h100-sxm, count: 2}\n"));
    CHECK(has(text, "limits: [\"ttft_p95 < 500ms\", success_ratio >= 0.99]"));
    CHECK(has(text, "preset: quick\n"));
    CHECK(has(text, "\nbudget: 45min\n"));
    CHECK(has(text, "\nevaluator: deploy\n"));
    const Ran valid = machine.run({"validate", "study.yaml", "--no-installed", "--json"});
    INFO(valid.out << valid.err);
    CHECK(valid.code == 0);
    CHECK(FirstJson::parse(valid.out)["valid"] == true);

    const Ran again = machine.run({"init", "--model", "m", "--yes"});
    CHECK(again.code == 2);
    CHECK(has(again.err, "study.yaml is there already"));
    CHECK(machine.run({"init", "--model", "m", "--yes", "--force"}).code == 0);
    machine.folder().write("m.gguf", "");
    REQUIRE(machine.run({"init", "--model", "m.gguf", "--yes", "--force"}).code == 0);
    CHECK(has(read_file(machine.folder().path() / "study.yaml"),
              "model: \"" + (machine.folder().path() / "m.gguf").string() + "\""));
}

TEST_CASE("first study: init says what it cannot find, and refuses what cannot be") {
    const Machine machine;
    const Ran none = machine.run({"init", "--model", "m", "--yes"});
    CHECK(none.code == 2);
    CHECK(has(none.err, "no known engine is installed here; say which with --engine: "));
    CHECK_FALSE(fs::exists(machine.folder().path() / "study.yaml"));
    CHECK(has(machine.run({"init", "--engine", "vllm", "--yes"}).err, "which model is served?"));
    CHECK(has(machine.run({"init", "--engine", "vlm", "--model", "m", "--yes"}).err, "vllm"));
    CHECK(has(
        machine.run({"init", "--engine", "vllm", "--model", "m", "--goal", "speed", "--yes"}).err,
        "the goal is throughput, latency, or a limit such as 'ttft_p95 < 2s', got 'speed'"));
    CHECK_FALSE(fs::exists(machine.folder().path() / "study.yaml"));
    const auto refused = [&](const std::string& option, const std::string& value) {
        const Ran ran =
            machine.run({"init", "--engine", "vllm", "--model", "m", option, value, "--yes"});
        CHECK(ran.code == 2);
        CHECK_FALSE(fs::exists(machine.folder().path() / "study.yaml"));
        return ran.err;
    };
    const Ran on_gpus =
        machine.run({"init", "--engine", "tensorrt-llm", "--model", "m", "--gpus", "0", "--yes"});
    CHECK(on_gpus.code == 2);
    CHECK(has(on_gpus.err, "--gpus 0: tensorrt-llm needs at least one GPU"));
    CHECK(has(refused("--budget", "8 hours"),
              "nothing was written; the study would have been wrong: "));
    CHECK(
        has(refused("--traffic", "512/128"), "--traffic: tokens in x out such as 512x128 wanted"));
    CHECK(has(refused("--goal", "ttft_p95 < 200"), "in which unit?"));
    machine.folder().write("study.yaml", "mine\n");
    CHECK(machine
              .run({"init", "--engine", "vllm", "--model", "m", "--budget", "8 hours", "--yes",
                    "--force"})
              .code == 2);
    CHECK(read_file(machine.folder().path() / "study.yaml") == "mine\n");
    fs::remove(machine.folder().path() / "study.yaml");
    const Ran odd = machine.run({"init", "--engine", "llama.cpp", "--model",
                                 "./a \"b\": ${HOME}.gguf", "--traffic", "64x16", "--yes"});
    INFO(odd.out << odd.err);
    CHECK(odd.code == 0);
    CHECK(has(odd.out, "missing: study.yaml: the model './a \"b\": ${HOME}.gguf' does not exist"));
    CHECK(has(odd.out,
              "missing: 'run' needs the program llama-server (llama.cpp), which is not on the PATH "
              "here"));
}

TEST_CASE("first study: --gpus 0 leaves the GPUs of the machine unused, where the engine can") {
    Machine machine;
    machine.install_gpus(1);
    const std::vector<std::string> words{"init",   "--engine", "llama.cpp", "--model",
                                         "m.gguf", "--gpus",   "0",         "--yes"};
    const Ran init = machine.run(words);
    INFO(init.out << init.err);
    REQUIRE(init.code == 0);
    const std::string text = read_file(machine.folder().path() / "study.yaml");
    CHECK_FALSE(has(text, "h100"));
    CHECK(has(text, "\npreset: cpu\n"));
    CHECK_FALSE(has(init.out, "of this kind"));
    CHECK(has(machine.run({"render", "study.yaml"}).out, " --n-gpu-layers 0"));
    std::vector<std::string> contradicting = words;
    contradicting.insert(contradicting.end(), {"--hardware", "h100-sxm", "--force"});
    CHECK(has(machine.run(contradicting).err,
              "--gpus 0 and --hardware h100-sxm contradict each other"));
}

TEST_CASE(
    "first study: init asks again after a wrong answer, three times in all, whatever the case of "
    "letters") {
    const Machine machine;
    const auto asks = [&](const std::string& typed) {
        auto terminal = std::make_unique<OnTerminal>(
            std::vector<std::string>{SERVETUNE_PROGRAM, "init", "--output", "asked.yaml",
                                     "--force"},
            machine.folder().path(), 400);
        terminal->type(typed);
        return terminal;
    };
    auto answered =
        asks("vlm\nVLLM\norg/Model\nh1000\nH100-SXM\nchta\nCHAT\nspeed\nTTFT_P95 < 2s\n");
    const int code = answered->watch([](const ShownRows&) {});
    const std::string shown = answered->shown().text();
    INFO(shown);
    REQUIRE(code == 0);
    CHECK(has(shown, "vllm"));
    CHECK(has(shown, "the goal is throughput, latency, or a limit"));
    const std::string text = read_file(machine.folder().path() / "asked.yaml");
    CHECK(has(text, "model: org/Model\nengine: vllm\n"));
    CHECK(has(text, "hardware: h100-sxm\n"));
    CHECK(has(text, "use: chat"));
    CHECK(has(text, "limits: [\"ttft_p95 < 2s\", success_ratio >= 0.99]"));
    fs::remove(machine.folder().path() / "asked.yaml");
    auto wrong = asks("a\nb\nc\n");
    CHECK(wrong->watch([](const ShownRows&) {}) == 2);
    CHECK_FALSE(fs::exists(machine.folder().path() / "asked.yaml"));
}

TEST_CASE(
    "first study: a model that one GPU cannot hold is spread over several, and validate looks at "
    "the memory") {
    Machine machine;
    machine.install_gpus(4);
    const std::vector<std::string> words{
        "init", "--engine", "vllm", "--model", "meta-llama/Llama-3.1-70B-Instruct", "--yes"};
    const Ran init = machine.run(words);
    INFO(init.out << init.err);
    REQUIRE(init.code == 0);
    const std::string text = read_file(machine.folder().path() / "study.yaml");
    INFO(text);
    CHECK(has(text, "preset: quick\n"));
    const bool spread = has(text, "\nspace: {tensor_parallel_size: 2}\n") ||
                        has(text, "\nspace: {tensor_parallel_size: 4}\n");
    CHECK(spread);
    const Ran valid = machine.run({"validate", "study.yaml", "--no-installed"});
    CHECK(valid.code == 0);
    CHECK(has(valid.out, "default: vllm serve meta-llama/Llama-3.1-70B-Instruct"));
    CHECK(has(valid.out, "--tensor-parallel-size"));
    CHECK_FALSE(has(valid.out, "warning: by the cost model"));
    const auto at = text.find("\nspace: {tensor_parallel_size: ");
    REQUIRE(at != std::string::npos);
    machine.folder().write("one.yaml",
                           std::string(text).erase(at + 1, text.find('\n', at + 1) - at));
    const Ran one = machine.run({"validate", "one.yaml", "--no-installed"});
    INFO(one.out);
    CHECK(one.code == 0);
    CHECK(has(one.out, "warning: by the cost model "));
    const Ran small =
        machine.run({"init", "--engine", "vllm", "--model", "Qwen/Qwen3-8B", "--yes", "--force"});
    CHECK(small.code == 0);
    CHECK_FALSE(has(read_file(machine.folder().path() / "study.yaml"), "tensor_parallel_size"));
}

TEST_CASE(
    "first study: of a model that the GPUs cannot hold together, init says how many are needed, "
    "and types the file's name") {
    Machine machine;
    machine.install_gpus(2);
    const Ran init = machine.run({"init", "--engine", "vllm", "--model", "deepseek-ai/DeepSeek-R1",
                                  "--yes", "--output", "e 7.yaml"});
    INFO(init.out << init.err);
    REQUIRE(init.code == 0);
    // 641 GiB of weights, 75.7 GiB that the engine takes of a device: eight have too little.
    CHECK(has(init.out,
              "needs at least 16 GPUs of this kind (tensor_parallel_size of 1, 2, 4 and so on), "
              "and the study has 2"));
    CHECK(has(init.out, "next: autotune validate 'e 7.yaml', then autotune run 'e 7.yaml'\n"));
    const std::string text = read_file(machine.folder().path() / "e 7.yaml");
    CHECK(has(text, "count: 2}"));
    CHECK(has(text, "start it with `autotune run 'e 7.yaml'`"));
    CHECK_FALSE(has(text, "tensor_parallel_size"));
}
