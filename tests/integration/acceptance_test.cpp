// SPDX-License-Identifier: Apache-2.0
// scripts/acceptance-gpu without a GPU: simengine takes the engine's place, so that the script
// itself is known to work before somebody spends an hour of a GPU on it.
#include "base/files.hpp"
#include "support/process.hpp"
#include "support/script.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <initializer_list>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

using namespace std::chrono_literals;

struct ScriptRun {
    int code;
    std::string out, err;
};

/// The script with simengine called `engine`, which has these options beside a quick start.
ScriptRun accept(const TemporaryFolder& folder, std::vector<std::string> more,
                 const std::string& simengine_options = "", const std::string& engine = "vllm") {
    const fs::path programs = folder.path() / "bin";
    fs::create_directories(programs);
    if (!fs::exists(programs / engine)) fs::create_symlink(SIMENGINE_PROGRAM, programs / engine);
    std::vector<std::string> words{"/usr/bin/env",
                                   "PATH=" + programs.string() + ":" + std::getenv("PATH"),
                                   "SIMENGINE_OPTIONS=--start-scale 1000 " + simengine_options,
                                   (fs::path(SERVETUNE_SOURCE) / "scripts/acceptance-gpu").string(),
                                   "--engine",
                                   engine,
                                   "--autotune",
                                   SERVETUNE_PROGRAM,
                                   "--directory",
                                   (folder.path() / "acceptance").string()};
    words.insert(words.end(), more.begin(), more.end());
    ChildProcess process(words, folder.path());
    const auto code = process.wait_at_most(240s);
    return {code.value_or(-1), process.out(), process.err()};
}

bool passes(const std::string& out, std::initializer_list<int> steps) {
    UNSCOPED_INFO(out);
    for (const int step : steps)
        if (!has(out, "step " + std::to_string(step) + "  PASS ")) return false;
    return true;
}
bool not_here(const std::string& out, int step, const std::string& why) {
    return has(out, "step " + std::to_string(step) + "  NOT HERE  " + why);
}

/// A vllm with a load generator of its own, which is ours.
void add_client(const TemporaryFolder& folder) {
    fs::create_directories(folder.path() / "bin");
    script(folder,
           "[ \"$1\" = bench ] || exec " SIMENGINE_PROGRAM
           " vllm \"$@\"\n"
           "while [ $# -gt 0 ]; do case $1 in --help) exit 0;; --base-url) url=$2;; "
           "esac; shift; done\n"
           "exec " SERVETUNE_PROGRAM
           " bench --url $url --workload random:512x128 --requests 40 --concurrency 128 "
           "--ignore-eos --quiet\n",
           "bin/vllm");
}

/// Two GPUs of so many watts, and a podman whose containers are processes of this machine.
void add_stand_ins(const TemporaryFolder& folder, const std::string& watts, int gpus = 2) {
    fs::create_directories(folder.path() / "bin");
    std::string names, states, numbers;
    for (int i = 0; i < gpus; ++i) {
        const std::string number = std::to_string(i);
        numbers += "echo " + number + "\n";
        names += "echo '" + number + ", GPU-" + number + "a, NVIDIA H100 80GB HBM3, 81559'\n";
        states += "echo '" + number + ", GPU-" + number + "a, 500, 81559, 1755, 1980, 64, " +
                  watts + ", 0x0000000000000000'\n";
    }
    script(folder,
           "case \"$*\" in\n*=index,uuid,name*)\n" + names + ";;\n*=index,uuid,memory*)\n" +
               states + ";;\n*=index\\ *)\n" + numbers +
               ";;\n*=memory.used*) echo 500;;\n*=name*) echo 'NVIDIA H100 "
               "80GB HBM3, 580.00, 81559 MiB';;\n"
               "'topo -m') printf '\\tGPU0\\tGPU1\\tCPU Affinity\\nGPU0\\t "
               "X \\tNV18\\t0\\nGPU1\\tNV18\\t X \\t0\\n';;\n"
               "esac\n",
           "bin/nvidia-smi");
    script(folder,
           "case \"$1 $2\" in\n"
           "'image inspect') [ \"$3\" = localhost/none:1 ] && { echo 'Error: no such image'; "
           "exit 125; }\n"
           "  echo 'servetune: sha256:1234 [\"localhost/engine@sha256:5678\"]';;\n"
           "'container inspect') echo 'servetune: false 0';;\n"
           "run\\ *) while [ \"$1\" != sha256:1234 ]; do case \"$1\" in --entrypoint=*) "
           "engine=${1#--entrypoint=};; esac; shift; done\n"
           "  shift; exec \"$engine\" \"$@\";;\nesac\n",
           "bin/podman");
}
bool fails(const std::string& out, int step) {
    UNSCOPED_INFO(out);
    return has(out, "step " + std::to_string(step) + "  FAIL ");
}

}  // namespace

TEST_CASE(
    "acceptance: every step passes on an engine that does as it should, and leaves its evidence",
    "[acceptance]") {
    const TemporaryFolder folder;
    const ScriptRun ended = accept(folder, {"--requests", "40", "--runs", "2", "--trials", "3",
                                            "--noise-limit", "100000"});  // the machine is busy
    CHECK(ended.code == 0);
    CHECK(passes(ended.out, {0, 1, 2, 3, 4, 5, 6}));
    CHECK(not_here(ended.out, 7, "there is no nvidia-smi, amd-smi or tegrastats on the PATH"));
    CHECK(has(ended.out, "step 8  NOT HERE  "));  // with a podman or without
    CHECK(not_here(ended.out, 9, "0 GPU(s) seen, two wanted"));
    CHECK(not_here(ended.out, 10, "vllm's load generator does not start here: "));
    CHECK(has(ended.out, "every token counted and by the server's own count"));
    CHECK(has(ended.out, "No available memory for the cache blocks"));
    CHECK(has(ended.out, "error: argument --max-num-seqs: "));
    CHECK(has(ended.out, "recommended: vllm serve Qwen/Qwen3-0.6B"));
    const fs::path evidence = folder.path() / "acceptance";
    CHECK(fs::exists(evidence / "6-study/results/report.md"));
    CHECK(has(read_file(evidence / "2-default/results/trials/0/engine.log"),
              "Application startup complete"));
    CHECK(has(read_file(evidence / "summary.txt"), "step 5  PASS"));
}

TEST_CASE("acceptance: a record has what its study measured, and the simulator's says so",
          "[acceptance]") {
    const TemporaryFolder folder;
    add_client(folder);
    const fs::path evidence = folder.path() / "acceptance", results = folder.path() / "results";
    const ScriptRun ended = accept(folder,
                                   {"--record", "--random-weights", "--requests", "40", "--trials",
                                    "3", "--results", results.string()},
                                   "--time-scale 4");
    CHECK(passes(ended.out, {0, 6, 11}));
    CHECK(has(ended.out, " output tokens/s by autotune bench, "));
    REQUIRE(fs::exists(results));
    const fs::path made = fs::directory_iterator(results)->path();
    CHECK(made.string().ends_with("-simulated"));
    const auto report = [](const fs::path& of) {
        return nlohmann::json::parse(read_file(of / "report.json"));
    };
    CHECK(report(made / "record") == report(evidence / "6-study"));
    CHECK_FALSE(fs::exists(made / "record/logs"));
    const std::string summary = read_file(made / "summary.txt");
    CHECK(has(summary, "step 11  PASS     record: agrees; "));
    CHECK(has(summary, "no GPU was seen"));
    CHECK_FALSE(has(summary, "evidence"));
    CHECK(has(read_file(made / "study.yaml"), "model: \"Qwen/Qwen3-8B\""));
    for (const char* client : {"ours.txt", "theirs.txt"})
        CHECK(has(read_file(made / client), "Output token throughput"));

    const ScriptRun quick =
        accept(folder, {"--quick", "--random-weights", "--requests", "40", "--step", "5"});
    CHECK(has(quick.out, "resumed: 3 trials told"));
    CHECK(has(read_file(evidence / "5-killed/study.yaml"), "--load-format=dummy"));

    add_stand_ins(folder, "350.00", 1);  // a GPU; but the logs are the simulator's
    CHECK(has(accept(folder, {"--step", "11"}).out, "-simulated\n"));
    fs::remove_all(evidence / "6-study/results/trials");
    CHECK(has(accept(folder, {"--step", "11", "--results", results.string()}).out,
              "-nvidia-h100-80gb-hbm3"));
}

TEST_CASE("acceptance: an engine that is broken fails the step that finds it, with exit code 1",
          "[acceptance][long]") {
    const TemporaryFolder folder;
    const auto fails_by = [&](const std::string& fault, int step) {
        const ScriptRun ended = accept(
            folder, {"--requests", "20", "--runs", "2", "--step", std::to_string(step)}, fault);
        CHECK(ended.code == 1);
        CHECK(fails(ended.out, step));
        return ended.out;
    };
    fails_by("--fault exit_at_once", 2);
    fails_by("--fault bad_usage", 2);
    CHECK(has(fails_by("--fault die_at_tokens=300", 3), "EngineCore"));  // the log's own words
    fails_by("--fault exit_at_once", 5);
}

TEST_CASE("acceptance: power, containers and two GPUs pass where they are, in stand-ins",
          "[acceptance][long]") {
    const TemporaryFolder folder;
    add_stand_ins(folder, "350.00");
    const ScriptRun ended = accept(folder, {"--requests", "40", "--step", "7", "--step", "8",
                                            "--step", "9", "--image", "localhost/engine:1"});
    CHECK(ended.code == 0);
    CHECK(passes(ended.out, {7, 8, 9}));
    CHECK(has(ended.out, "350 W on average, 350 W at most, "));
    CHECK(has(ended.out, "localhost/engine:1 by podman: "));
    CHECK(has(ended.out, "nvidia-smi finds 2 x NVIDIA H100"));
    CHECK(has(read_file(folder.path() / "acceptance/8-container/results/report.md"),
              "container of podman"));
}

TEST_CASE(
    "acceptance: what a machine does not have is not here, with the reason, and a power that "
    "cannot be fails",
    "[acceptance][long]") {
    const TemporaryFolder folder;
    add_stand_ins(folder, "[N/A]", 1);
    const ScriptRun absent = accept(folder, {"--requests", "40", "--step", "7", "--step", "8",
                                             "--step", "9", "--image", "localhost/none:1"});
    CHECK(absent.code == 0);
    CHECK(not_here(absent.out, 7,
                   "nvidia-smi tells the power of no GPU that this study may use ([N/A])"));
    CHECK(not_here(
        absent.out, 8,
        "podman does not have the image localhost/none:1; run podman pull localhost/none:1"));
    CHECK(not_here(absent.out, 9, "1 GPU(s) seen, two wanted"));

    add_stand_ins(folder, "5.00");
    const ScriptRun impossible = accept(folder, {"--requests", "40", "--step", "7"});
    CHECK(impossible.code == 1);
    CHECK(fails(impossible.out, 7));
    CHECK(has(impossible.out, "a mean power of 5 W for 1 GPU(s), 20 to 2000 W each wanted"));
}

TEST_CASE("acceptance: the other engines' studies say the flags that those engines have",
          "[acceptance]") {
    const TemporaryFolder folder;
    for (const auto& [engine, program] :
         {std::pair{"sglang", "python3"}, std::pair{"tensorrt-llm", "trtllm-serve"},
          std::pair{"llama.cpp", "llama-server"}}) {
        INFO(engine);
        fs::create_directories(folder.path() / "bin");
        fs::create_symlink(SIMENGINE_PROGRAM, folder.path() / "bin" / program);
        const ScriptRun ended = accept(folder, {"--requests", "20", "--step", "1", "--step", "2"},
                                       "--model Qwen/Qwen3-0.6B", engine);
        CHECK(ended.code == 0);
        CHECK(passes(ended.out, {1, 2}));
    }
}

TEST_CASE("acceptance: wrong words are told, and nothing is run", "[acceptance]") {
    const TemporaryFolder folder;
    CHECK(accept(folder, {"--step", "12"}).code == 2);
    CHECK(accept(folder, {"--runs", "1"}).code == 2);
    CHECK(accept(folder, {"--requests", "many"}).code == 2);
    CHECK(accept(folder, {}, "", "no-such-engine").code == 2);
    const ScriptRun usage = accept(folder, {"--step"});
    CHECK(usage.code == 2);
    CHECK(has(usage.err, "scripts/acceptance-gpu --engine"));
    CHECK_FALSE(fs::exists(folder.path() / "acceptance/2-default"));
}

TEST_CASE("acceptance: without the engine its steps are skipped, and that is no success",
          "[acceptance]") {
    const TemporaryFolder folder;
    ChildProcess process({"/usr/bin/env", "PATH=/usr/bin:/bin",
                          (fs::path(SERVETUNE_SOURCE) / "scripts/acceptance-gpu").string(),
                          "--engine", "vllm", "--autotune", SERVETUNE_PROGRAM, "--directory",
                          (folder.path() / "acceptance").string(), "--step", "0", "--step", "2"},
                         folder.path());
    CHECK(process.wait_at_most(60s) == 1);
    INFO(process.out());
    CHECK(fails(process.out(), 0));
    CHECK(has(process.out(), "step 2  SKIPPED  there is no vllm on the PATH"));
}
