// SPDX-License-Identifier: Apache-2.0
// scripts/acceptance-gpu without a GPU: simengine takes the engine's place, so that the script
// itself is known to work before somebody spends an hour of a GPU on it.
#include "base/files.hpp"
#include "support/process.hpp"
#include "support/test.hpp"

#include <chrono>
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
ScriptRun accept(const TemporaryFolder& folder, const std::string& engine,
                 const std::string& simengine_options, std::vector<std::string> more) {
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

bool passes(const std::string& out, int step) {
    return has(out, "step " + std::to_string(step) + "  PASS ");
}
bool not_here(const std::string& out, int step, const std::string& why) {
    return has(out, "step " + std::to_string(step) + "  NOT HERE  " + why);
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
    folder.write("bin/nvidia-smi", "#!/bin/sh\ncase \"$*\" in\n*=index,uuid,name*)\n" + names +
                                       ";;\n*=index,uuid,memory*)\n" + states +
                                       ";;\n*=index\\ *)\n" + numbers +
                                       ";;\n*=memory.used*) echo 500;;\n*=name*) echo 'NVIDIA H100 "
                                       "80GB HBM3, 580.00, 81559 MiB';;\n"
                                       "'topo -m') printf '\\tGPU0\\tGPU1\\tCPU Affinity\\nGPU0\\t "
                                       "X \\tNV18\\t0\\nGPU1\\tNV18\\t X \\t0\\n';;\n"
                                       "esac\n");
    folder.write("bin/podman",
                 "#!/bin/sh\ncase \"$1 $2\" in\n"
                 "'image inspect') [ \"$3\" = localhost/none:1 ] && { echo 'Error: no such image'; "
                 "exit 125; }\n"
                 "  echo 'servetune: sha256:1234 [\"localhost/engine@sha256:5678\"]';;\n"
                 "'container inspect') echo 'servetune: false 0';;\n"
                 "run\\ *) while [ \"$1\" != sha256:1234 ]; do case \"$1\" in --entrypoint=*) "
                 "engine=${1#--entrypoint=};; esac; shift; done\n"
                 "  shift; exec \"$engine\" \"$@\";;\nesac\n");
    for (const char* name : {"nvidia-smi", "podman"})
        fs::permissions(folder.path() / "bin" / name, fs::perms::owner_all);
}
bool fails(const std::string& out, int step) {
    return has(out, "step " + std::to_string(step) + "  FAIL ");
}

}  // namespace

TEST_CASE(
    "acceptance: every step passes on an engine that does as it should, and leaves its evidence",
    "[acceptance]") {
    const TemporaryFolder folder;
    const ScriptRun ended = accept(folder, "vllm", "",
                                   {"--requests", "40", "--runs", "2", "--trials", "3",
                                    "--noise-limit", "100000"});  // the machine is busy
    INFO(ended.out);
    INFO(ended.err);
    CHECK(ended.code == 0);
    for (int step = 0; step <= 6; ++step) {
        INFO("step " << step);
        CHECK(passes(ended.out, step));
    }
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

TEST_CASE(
    "acceptance: the quick way measures with two clients, fails twice, and resumes a killed study "
    "of three trials",
    "[acceptance][long]") {
    const TemporaryFolder folder;
    fs::create_directories(folder.path() / "bin");
    fs::create_directories(folder.path() / "engine");
    fs::create_symlink(SIMENGINE_PROGRAM, folder.path() / "engine/vllm");
    folder.write("bin/vllm",  // simengine with a load generator of its own, which is ours
                 "#!/bin/sh\n[ \"$1\" = bench ] || exec " +
                     (folder.path() / "engine/vllm").string() +
                     " \"$@\"\n"
                     "while [ $# -gt 0 ]; do case $1 in --help) exit 0;; --base-url) url=$2;; "
                     "esac; shift; done\n"
                     "exec " SERVETUNE_PROGRAM
                     " bench --url $url --workload random:512x128 --requests 40 --concurrency 128 "
                     "--ignore-eos --quiet\n");
    fs::permissions(folder.path() / "bin/vllm", fs::perms::owner_all);
    const ScriptRun ended =
        accept(folder, "vllm", "", {"--quick", "--random-weights", "--requests", "40"});
    INFO(ended.out);
    INFO(ended.err);
    for (int step : {0, 4, 5}) {
        INFO("step " << step);
        CHECK(passes(ended.out, step));
    }
    CHECK(has(
        ended.out,
        " output tokens/s by autotune bench, "));  // whether they agree depends on the machine's load
    CHECK(has(ended.out, "resumed: 3 trials told"));
    CHECK_FALSE(has(ended.out, "step 6"));
    CHECK(has(read_file(folder.path() / "acceptance/5-killed/study.yaml"), "--load-format=dummy"));
}

TEST_CASE("acceptance: an engine that is broken fails the step that finds it, with exit code 1",
          "[acceptance][long]") {
    const TemporaryFolder folder;
    const std::vector<std::string> deploy{"--requests", "20", "--step", "2"};
    const ScriptRun dead = accept(folder, "vllm", "--fault exit_at_once", deploy);
    INFO(dead.out);
    CHECK(dead.code == 1);
    CHECK(fails(dead.out, 2));
    const ScriptRun miscounting = accept(folder, "vllm", "--fault bad_usage", deploy);
    INFO(miscounting.out);
    CHECK(miscounting.code == 1);
    CHECK(fails(miscounting.out, 2));
    const ScriptRun dying = accept(folder, "vllm", "--fault die_at_tokens=300",
                                   {"--requests", "20", "--step", "3", "--runs", "2"});
    INFO(dying.out);
    CHECK(dying.code == 1);
    CHECK(has(dying.out, "EngineCore"));  // the log's own words
    const ScriptRun nothing_to_kill =
        accept(folder, "vllm", "--fault exit_at_once", {"--requests", "20", "--step", "5"});
    INFO(nothing_to_kill.out);
    CHECK(nothing_to_kill.code == 1);
    CHECK(fails(nothing_to_kill.out, 5));
}

TEST_CASE("acceptance: power, containers and two GPUs pass where they are, in stand-ins",
          "[acceptance][long]") {
    const TemporaryFolder folder;
    add_stand_ins(folder, "350.00");
    const ScriptRun ended = accept(folder, "vllm", "",
                                   {"--requests", "40", "--step", "7", "--step", "8", "--step", "9",
                                    "--image", "localhost/engine:1"});
    INFO(ended.out);
    INFO(ended.err);
    CHECK(ended.code == 0);
    for (int step = 7; step <= 9; ++step) {
        INFO("step " << step);
        CHECK(passes(ended.out, step));
    }
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
    const ScriptRun absent = accept(folder, "vllm", "",
                                    {"--requests", "40", "--step", "7", "--step", "8", "--step",
                                     "9", "--image", "localhost/none:1"});
    INFO(absent.out);
    INFO(absent.err);
    CHECK(absent.code == 0);
    CHECK(not_here(absent.out, 7,
                   "nvidia-smi tells the power of no GPU that this study may use ([N/A])"));
    CHECK(not_here(
        absent.out, 8,
        "podman does not have the image localhost/none:1; run podman pull localhost/none:1"));
    CHECK(not_here(absent.out, 9, "1 GPU(s) seen, two wanted"));

    add_stand_ins(folder, "5.00");
    const ScriptRun impossible = accept(folder, "vllm", "", {"--requests", "40", "--step", "7"});
    INFO(impossible.out);
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
        const std::string model =
            std::string(engine) == "llama.cpp" ? " --model Qwen/Qwen3-0.6B" : "";
        const ScriptRun ended =
            accept(folder, engine, model, {"--requests", "20", "--step", "1", "--step", "2"});
        INFO(ended.out);
        INFO(ended.err);
        CHECK(ended.code == 0);
        CHECK(passes(ended.out, 1));
        CHECK(passes(ended.out, 2));
    }
}

TEST_CASE("acceptance: wrong words are told, and nothing is run", "[acceptance]") {
    const TemporaryFolder folder;
    CHECK(accept(folder, "vllm", "", {"--step", "11"}).code == 2);
    CHECK(accept(folder, "vllm", "", {"--runs", "1"}).code == 2);
    CHECK(accept(folder, "vllm", "", {"--requests", "many"}).code == 2);
    CHECK(accept(folder, "no-such-engine", "", {}).code == 2);
    const ScriptRun usage = accept(folder, "vllm", "", {"--step"});
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
