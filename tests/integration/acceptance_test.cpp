// SPDX-License-Identifier: Apache-2.0
// scripts/acceptance-gpu without a GPU: simengine takes the engine's place, so that the script itself is known to work
// before somebody spends an hour of a GPU on it.
#include "servetune/io/files.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct ScriptRun {
    int code;
    std::string out, err;
};

/// The script with simengine called `engine`, which has these options beside a quick start.
ScriptRun accept(const TemporaryFolder& folder, const std::string& engine, const std::string& simengine_options,
                 std::vector<std::string> more) {
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

bool passes(const std::string& out, int step) { return out.find("step " + std::to_string(step) + "  PASS ") != std::string::npos; }
bool fails(const std::string& out, int step) { return out.find("step " + std::to_string(step) + "  FAIL ") != std::string::npos; }

}  // namespace

TEST_CASE("acceptance: every step passes on an engine that does as it should, and leaves its evidence") {
    const TemporaryFolder folder;
    const ScriptRun ended =
        accept(folder, "vllm", "", {"--requests", "40", "--runs", "2", "--trials", "3", "--noise-limit", "100000"});  // the machine is busy
    INFO(ended.out);
    INFO(ended.err);
    CHECK(ended.code == 0);
    for (int step = 0; step <= 6; ++step) {
        INFO("step " << step);
        CHECK(passes(ended.out, step));
    }
    CHECK(ended.out.find("every token counted and by the server's own count") != std::string::npos);
    CHECK(ended.out.find("No available memory for the cache blocks") != std::string::npos);
    CHECK(ended.out.find("unrecognized arguments: --no-such-flag") != std::string::npos);
    CHECK(ended.out.find("recommended: vllm serve Qwen/Qwen3-0.6B") != std::string::npos);
    const fs::path evidence = folder.path() / "acceptance";
    CHECK(fs::exists(evidence / "6-study/results/report.md"));
    CHECK(read_file(evidence / "2-default/results/trials/0/engine.log").find("Application startup complete") != std::string::npos);
    CHECK(read_file(evidence / "summary.txt").find("step 5  PASS") != std::string::npos);
}

TEST_CASE("acceptance: an engine that is broken fails the step that finds it, with exit code 1") {
    const TemporaryFolder folder;
    const std::vector<std::string> deploy{"--requests", "20", "--step", "2"};
    const ScriptRun dead = accept(folder, "vllm", "--misbehave exit_at_once", deploy);
    INFO(dead.out);
    CHECK(dead.code == 1);
    CHECK(fails(dead.out, 2));
    const ScriptRun miscounting = accept(folder, "vllm", "--misbehave bad_usage", deploy);
    INFO(miscounting.out);
    CHECK(miscounting.code == 1);
    CHECK(fails(miscounting.out, 2));
    const ScriptRun dying = accept(folder, "vllm", "--misbehave die_at_tokens=300", {"--requests", "20", "--step", "3", "--runs", "2"});
    INFO(dying.out);
    CHECK(dying.code == 1);
    CHECK(dying.out.find("EngineCore") != std::string::npos);  // the log's own words
    const ScriptRun nothing_to_kill = accept(folder, "vllm", "--misbehave exit_at_once", {"--requests", "20", "--step", "5"});
    INFO(nothing_to_kill.out);
    CHECK(nothing_to_kill.code == 1);
    CHECK(fails(nothing_to_kill.out, 5));
}

TEST_CASE("acceptance: the other engines' studies say the flags that those engines have") {
    const TemporaryFolder folder;
    for (const auto& [engine, program] :
         {std::pair{"sglang", "python3"}, std::pair{"tensorrt-llm", "trtllm-serve"}, std::pair{"llama.cpp", "llama-server"}}) {
        INFO(engine);
        fs::create_directories(folder.path() / "bin");
        fs::create_symlink(SIMENGINE_PROGRAM, folder.path() / "bin" / program);
        const std::string model = std::string(engine) == "llama.cpp" ? " --model Qwen/Qwen3-0.6B" : "";
        const ScriptRun ended = accept(folder, engine, model, {"--requests", "20", "--step", "1", "--step", "2"});
        INFO(ended.out);
        INFO(ended.err);
        CHECK(ended.code == 0);
        CHECK(passes(ended.out, 1));
        CHECK(passes(ended.out, 2));
    }
}

TEST_CASE("acceptance: wrong words are told, and nothing is run") {
    const TemporaryFolder folder;
    CHECK(accept(folder, "vllm", "", {"--step", "9"}).code == 2);
    CHECK(accept(folder, "vllm", "", {"--runs", "1"}).code == 2);
    CHECK(accept(folder, "vllm", "", {"--requests", "many"}).code == 2);
    CHECK(accept(folder, "no-such-engine", "", {}).code == 2);
    const ScriptRun usage = accept(folder, "vllm", "", {"--step"});
    CHECK(usage.code == 2);
    CHECK(usage.err.find("scripts/acceptance-gpu --engine") != std::string::npos);
    CHECK_FALSE(fs::exists(folder.path() / "acceptance/2-default"));
}

TEST_CASE("acceptance: without the engine its steps are skipped, and that is no success") {
    const TemporaryFolder folder;
    ChildProcess process(
        {"/usr/bin/env", "PATH=/usr/bin:/bin", (fs::path(SERVETUNE_SOURCE) / "scripts/acceptance-gpu").string(), "--engine", "vllm",
         "--autotune", SERVETUNE_PROGRAM, "--directory", (folder.path() / "acceptance").string(), "--step", "0", "--step", "2"},
        folder.path());
    CHECK(process.wait_at_most(60s) == 1);
    INFO(process.out());
    CHECK(fails(process.out(), 0));
    CHECK(process.out().find("step 2  SKIPPED  there is no vllm on the PATH") != std::string::npos);
}
