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

TEST_CASE(
    "first study: a study that differs from the journal in its folder, and an address where nobody "
    "listens") {
    const Machine machine;
    machine.folder().write("t.csv", measured_rows);
    machine.folder().write("s.yaml", replaced(replayed, ", delay: 2s", ""));
    REQUIRE(machine.run({"run", "s.yaml", "--quiet"}).code == 0);
    CHECK_FALSE(has(machine.run({"validate", "s.yaml", "--no-installed"}).out, "differs"));
    machine.folder().write(
        "s.yaml", replaced(replaced(replayed, ", delay: 2s", ""), "default: 128", "default: 256"));
    const Ran valid = machine.run({"validate", "s.yaml", "--no-installed"});
    INFO(valid.out);
    CHECK(valid.code == 0);
    CHECK(has(valid.out,
              "warning: s holds trials of a study that differs from this one: 'run' wants "
              "--accept-changes"));
    CHECK(has(machine.run({"run", "s.yaml", "--dry-run"}).out,
              "holds trials of a study that differs from this one"));
    const Ran dead = machine.run({"init", "--engine", "vllm", "--attach", "http://127.0.0.1:9",
                                  "--output", "a.yaml", "--yes"});
    CHECK(dead.code == 2);
    CHECK(has(dead.err, "nothing listens on http://127.0.0.1:9"));
}

TEST_CASE(
    "first study: a time alone bounds a study by time, and a small space what is left of it") {
    const Machine machine;
    machine.folder().write("t.csv", measured_rows);
    machine.folder().write(
        "s.yaml", replaced(replayed, "strategy: exhaustive", "strategy: random") + "budget: 8h\n");
    const Ran valid = machine.run({"validate", "s.yaml", "--no-installed"});
    INFO(valid.out);
    CHECK(has(valid.out,
              "run: as many trials as time allows, ends after 8 h at the latest, time for about "
              "14400 trials"));
    const FirstJson plan = FirstJson::parse(
        machine.run({"validate", "s.yaml", "--no-installed", "--json"}).out)["plan"];
    CHECK(plan["trials"].is_null());
    CHECK(plan["seconds"] == 8 * 3600.0);
    machine.folder().write("s.yaml", replaced(replayed, "delay: 2s", "delay: 200ms"));
    const Ran run = machine.run({"run", "s.yaml"});
    INFO(run.err);
    REQUIRE(run.code == 0);
    CHECK(has(
        run.err,
        "trial 0 | the default | 1000.00 (+0.00 %) | best 1000.00 (+0.00 %) | less than 1 s left"));
}

TEST_CASE(
    "first study: a file that cannot be read is a file error for every command, an invalid study "
    "only for `validate`") {
    const Machine machine;
    machine.folder().write("wrong.yaml", "study: [\n");
    for (const std::string command : {"validate", "run", "status", "report"}) {
        INFO(command);
        const Ran absent = machine.run({command, "none.yaml"});
        CHECK(absent.code == 2);
        CHECK(absent.err == "autotune: cannot read none.yaml: No such file or directory\n");
        CHECK(machine.run({command, "."}).code == 2);
        CHECK(machine.run({command, "wrong.yaml"}).code == (command == "validate" ? 1 : 2));
    }
    CHECK(machine.run({"validate", "none.yaml", "--json"}).out.empty());
}

TEST_CASE("first study: all errors of a file in one run, as lines and as JSON") {
    const Machine machine;
    machine.folder().write("bad.yaml",
                           "study: s\nmodle: m\nengine: vlm\nworkloads: [chta]\nobjective: "
                           "{maximize: throughput, limits: [ttft_p95 < 2x]}\n"
                           "budget: soon\nevaluator: depoly\n");
    const Ran bad = machine.run({"validate", "bad.yaml"});
    INFO(bad.err);
    CHECK(bad.code == 1);
    CHECK(
        bad.err.starts_with("autotune: 7 errors:\nbad.yaml:1:1: the key 'model' is missing (what "
                            "is served: a name, a path, or a file with a model's facts "
                            "(.yaml))\nbad.yaml:2:8: 'modle': "));
    CHECK(std::count(bad.err.begin(), bad.err.end(), '\n') == 8);
    const FirstJson json = FirstJson::parse(machine.run({"validate", "bad.yaml", "--json"}).out);
    CHECK(json["problems"].size() == 7);
    CHECK(machine.run({"run", "bad.yaml"}).err == bad.err);
}

TEST_CASE("first study: validate and a dry run say how large and how long, and write nothing") {
    const Machine machine;
    machine.folder().write("s.yaml", replayed);
    machine.folder().write("t.csv", measured_rows);
    const Ran valid = machine.run({"validate", "s.yaml", "--no-installed"});
    INFO(valid.out << valid.err);
    CHECK(valid.code == 0);
    CHECK(has(valid.out,
              "\n2 feasible configurations\nrun: at most 2 trials, about 4 s (answers come from a "
              "table)\ndefault: "));
    const FirstJson plan = FirstJson::parse(
        machine.run({"validate", "s.yaml", "--no-installed", "--json"}).out)["plan"];
    CHECK(plan["trials"] == 2);
    CHECK(plan["seconds"] == 4.0);
    const Ran dry = machine.run({"run", "s.yaml", "--dry-run"});
    CHECK(dry.code == 0);
    CHECK(has(dry.out, "2 configurations; at most 2 trials, about 4 s"));
    CHECK(has(dry.out, "writes into s\ntrial 0 would be: vllm serve m --max-num-seqs=128\n"));
    CHECK_FALSE(fs::exists(machine.folder().path() / "s"));
    machine.folder().write("s.yaml", replaced(replayed, ", delay: 2s", ""));
    REQUIRE(machine.run({"run", "s.yaml", "--quiet"}).code == 0);
    CHECK(has(machine.run({"run", "s.yaml", "--dry-run"}).out, "all 2 trials are done"));
}

TEST_CASE(
    "export: the table of a study replays as the same study, and the lines have every trial") {
    const Machine machine;
    machine.folder().write("s.yaml", replaced(replayed, ", delay: 2s", ""));
    machine.folder().write("t.csv", measured_rows + "256,ok,1110\n");
    REQUIRE(machine.run({"run", "s.yaml", "--quiet"}).code == 0);
    const Ran table = machine.run({"export", "s.yaml"});
    INFO(table.out << table.err);
    CHECK(table.code == 0);
    CHECK(
        table.out.starts_with("block,max_num_seqs,status,total_tokens_per_second,verdict,findings,"
                              "message\n0,128,ok,1000"));
    REQUIRE(machine.run({"export", "s.yaml", "--output", "out.csv"}).code == 0);
    CHECK(read_file(machine.folder().path() / "out.csv") == table.out);
    machine.folder().write("again.yaml",
                           replaced(replaced(replayed, ", delay: 2s", ""), "t.csv", "out.csv"));
    REQUIRE(machine.run({"run", "again.yaml", "--directory", "again", "--quiet"}).code == 0);
    const auto recommended = [&](std::vector<std::string> words) {
        return FirstJson::parse(machine.run(std::move(words)).out)["recommended"]["command"];
    };
    CHECK(recommended({"report", "again.yaml", "--directory", "again", "--json"}) ==
          recommended({"report", "s.yaml", "--json"}));
    const Ran lines = machine.run({"export", "s.yaml", "--format", "jsonl"});
    CHECK(lines.code == 0);
    CHECK(std::count(lines.out.begin(), lines.out.end(), '\n') == 2);
    const FirstJson first = FirstJson::parse(lines.out.substr(0, lines.out.find('\n')));
    CHECK(first["trial"] == 0);
    CHECK(first["configuration"]["max_num_seqs"] == 128);
    CHECK(first["told_at"].get<double>() >= first["started_at"].get<double>());
    CHECK(machine.run({"export", "s.yaml", "--format", "xml"}).code == 2);
    CHECK(machine.run({"export", "s.yaml", "--directory", "nowhere"}).code != 0);
}

TEST_CASE(
    "first study: a space without words of its own is the quick preset, and large ones are told by "
    "their power of ten") {
    const Machine machine;
    const std::string study =
        "study: s\nmodel: Qwen/Qwen3-14B\nengine: vllm\nhardware: h100-sxm\nworkloads: [{use: "
        "random, requests: 100, arrival: "
        "{concurrency: "
        "16}}]\nobjective: {maximize: throughput}\nbudget: 30 trials\nevaluator: deploy\n";
    machine.folder().write("s.yaml", study);
    const Ran valid = machine.run({"validate", "s.yaml"});
    INFO(valid.out << valid.err);
    CHECK(valid.code == 0);
    CHECK(has(valid.out, "searched: the preset quick, as the study has no `space`"));
    CHECK(has(valid.out, "feasible configurations\nrun: at most 30 trials, about "));
    CHECK(has(valid.out, "(by the cost model of the default)\n"));
    CHECK(has(valid.out,
              "warning: 'run' needs the program vllm (vllm), which is not on the PATH here\n"));
    machine.folder().write("s.yaml", study + "others: search\n");
    CHECK(has(machine.run({"validate", "s.yaml"}).out, " (about 10^"));
}

TEST_CASE(
    "first study: validate says that nothing listens where a server is to be attached, and which "
    "data is not there") {
    const Machine machine;
    const std::string study =
        "study: s\nmodel: m\nengine: vllm\nworkloads: [random]\nobjective: {maximize: throughput}\n"
        "space: {load.concurrency: [1, 2]}\nevaluator: {attach: http://127.0.0.1:9}\n";
    machine.folder().write("s.yaml", study);
    const Ran absent = machine.run({"validate", "s.yaml"});
    INFO(absent.out << absent.err);
    CHECK(absent.code == 0);
    CHECK(has(absent.out,
              "warning: nothing listens on http://127.0.0.1:9: start the server before 'run'\n"));
    machine.folder().write("s.yaml", replaced(study, "[random]",
                                              "[{workload: w, dataset: {kind: prompts, path: "
                                              "none.jsonl, output_tokens: 8}, requests: 4}]"));
    const Ran lacking = machine.run({"validate", "s.yaml"});
    INFO(lacking.err);
    CHECK(lacking.code == 1);
    CHECK(has(lacking.err, "the workload 'w' draws from "));
    CHECK(has(lacking.err, "none.jsonl, which does not exist"));
    CHECK(machine.run({"run", "s.yaml"}).code == 2);
}
