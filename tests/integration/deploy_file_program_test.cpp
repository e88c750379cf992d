// SPDX-License-Identifier: Apache-2.0
// `autotune recommend --into` where it cannot write, and killed; else:
// tests/data/cases/program/deploy-files.yaml.
#include "support/autotune.hpp"
#include "support/in_child.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

const std::string deployed_compose = R"(# ours
services:
  chat:
    image: vllm/vllm-openai:v0.20.0
    command:
      - --model=Qwen/Qwen3-8B
      - --max-num-seqs=8   # small
      - --port=8000
)";

/// A finished study of the cost model, whose recommendation is not the default.
struct RecommendingStudy {
    RecommendingStudy() {
        folder.write("study.yaml",
                     "study: served\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: "
                     "vllm\nworkloads: [{workload: chat, use: random, input_tokens: 100, "
                     "output_tokens: 100, requests: 100, arrival: {concurrency: 64}}]\nobjective: "
                     "{maximize: total_tokens_per_second}\nspace: {max_num_seqs: {choice: [8, "
                     "64], default: 8}}\nothers: default\nstrategy: exhaustive\nevaluator: "
                     "{simulate: {noise: 0.001}}\n");
        const Ran run =
            autotune({"run", "study.yaml", "--directory", "study", "--quiet"}, folder.path());
        INFO(run.out << run.err);
        REQUIRE(run.code == 0);
        REQUIRE(has(run.out, "Recommended: "));
    }
    [[nodiscard]] static std::vector<std::string> words() {
        return {SERVETUNE_PROGRAM, "recommend", "study.yaml",  "--directory",
                "study",           "--into",    "compose.yaml"};
    }
    [[nodiscard]] std::string read(const std::string& file) const {
        return read_file(folder.path() / file);
    }

    TemporaryFolder folder{};
};

}  // namespace

TEST_CASE(
    "recommend --into: a full disk and a folder that may not be written leave the file, with exit "
    "code 3") {
    const RecommendingStudy study;
    const std::string large = deployed_compose + "# " + std::string(1U << 17U, 'x') + "\n";
    study.folder.write("compose.yaml", large);
    const std::vector<std::string> words = RecommendingStudy::words();
    constexpr rlim_t most = 1U << 16U;
    ChildProcess full(words, study.folder.path(), most);
    CHECK(full.wait() == 3);
    CHECK(has(full.err(), "compose.yaml: File too large"));
    CHECK(study.read("compose.yaml") == large);
    CHECK_FALSE(fs::exists(study.folder.path() / "compose.yaml.part"));

    if (geteuid() != 0) {
        std::cout << "skipped: only root can become somebody else\n";
        return;
    }
    // Of somebody else: readable, and neither the file nor its folder writable.
    fs::permissions(study.folder.path(), static_cast<fs::perms>(0755));
    const TemporaryFolder output;
    fs::permissions(output.path(), static_cast<fs::perms>(0777));
    const auto as_nobody = [&] {
        return in_child([&]() -> std::string {
            if (setuid(65534) != 0) return "cannot become nobody";
            const std::string in = study.folder.path().string() + "/";
            const Ran one = autotune({"recommend", in + "study.yaml", "--directory", in + "study",
                                      "--into", in + "compose.yaml"},
                                     output.path());
            return std::to_string(one.code) + " " + one.err;
        });
    };
    const std::string refused = as_nobody();
    INFO(refused);
    CHECK(refused.starts_with("3 "));
    CHECK(has(refused, "compose.yaml: it belongs to somebody else"));
    CHECK(study.read("compose.yaml") == large);
}

TEST_CASE("recommend --into: kill -9 at any moment leaves the old file or the new one") {
    const RecommendingStudy study;
    const std::string old = deployed_compose + "# " + std::string(200000, 'x') + "\n";
    const std::string now = replaced(old, "seqs=8 ", "seqs=64 ");
    const std::vector<std::string> words = RecommendingStudy::words();
    study.folder.write("compose.yaml", old);
    const auto begin = std::chrono::steady_clock::now();
    CHECK(ChildProcess(words, study.folder.path()).wait() == 0);
    const auto whole = std::chrono::steady_clock::now() - begin;
    constexpr int times = 20;
    int killed = 0;
    for (int i = 0; i < times; ++i) {
        study.folder.write("compose.yaml", old);
        ChildProcess process(words, study.folder.path());
        std::this_thread::sleep_for(whole / 2 + whole * i / times);
        process.signal(SIGKILL);
        killed += process.wait() == 128 + SIGKILL ? 1 : 0;
        const std::string left = study.read("compose.yaml");
        CHECK((left == old || left == now));
    }
    CHECK(killed > 0);
    // What a killed one left behind is in nobody's way.
    study.folder.write("compose.yaml", old);
    study.folder.write("compose.yaml.part", "half");
    CHECK(ran(words, study.folder.path()).code == 0);
    CHECK(study.read("compose.yaml") == now);
}
