// SPDX-License-Identifier: Apache-2.0
// `autotune recommend --into` and `--check`, from outside.
#include "support/autotune.hpp"
#include "support/in_child.hpp"
#include "support/script.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

using DeployJson = nlohmann::json;
namespace fs = std::filesystem;

const std::string deploy_secret = "sk-4711-not-to-be-seen";

const std::string deployed_compose = R"(# ours
services:
  chat:
    image: vllm/vllm-openai:v0.20.0
    command:
      - --model=Qwen/Qwen3-8B
      - --max-num-seqs=8   # small
      - --port=8000
)";
std::string recommended_compose() { return replaced(deployed_compose, "seqs=8 ", "seqs=64 "); }

/// A finished study of the cost model, whose recommendation is not the default.
struct RecommendingStudy {
    explicit RecommendingStudy(
        const std::string& engine = "vllm",
        const std::string& flags = "{max_num_seqs: {choice: [8, 64], default: 8}}") {
        folder.write(
            "study.yaml",
            "study: served\nmodel: Qwen/Qwen3-8B\nhardware: {device: h100-sxm, count: "
            "2}\nengine: " +
                engine +
                "\nworkloads: [{workload: chat, use: random, input_tokens: 100, output_tokens: "
                "100, requests: 100, "
                "arrival: {concurrency: 64}}]\nobjective: {maximize: "
                "total_tokens_per_second}\nspace: " +
                flags +
                "\nothers: default\nstrategy: exhaustive\nevaluator: {simulate: {noise: 0.001}}\n");
        const Ran run =
            autotune({"run", "study.yaml", "--directory", "study", "--quiet"}, folder.path());
        INFO(run.out << run.err);
        REQUIRE(run.code == 0);
        REQUIRE(has(run.out, "Recommended: "));
    }
    [[nodiscard]] static std::vector<std::string> words(const std::string& what,
                                                        const std::string& file,
                                                        const std::vector<std::string>& more = {}) {
        std::vector<std::string> result{"recommend", "study.yaml", "--directory",
                                        "study",     what,         file};
        result.insert(result.end(), more.begin(), more.end());
        return result;
    }
    [[nodiscard]] Ran into(const std::string& file,
                           const std::vector<std::string>& more = {}) const {
        return autotune(words("--into", file, more), folder.path());
    }
    [[nodiscard]] Ran check(const std::string& file,
                            const std::vector<std::string>& more = {}) const {
        return autotune(words("--check", file, more), folder.path());
    }
    [[nodiscard]] std::string read(const std::string& file) const {
        return read_file(folder.path() / file);
    }

    TemporaryFolder folder{};
};

}  // namespace

TEST_CASE("recommend --check and --into: the difference, the change, and then none") {
    const RecommendingStudy study;
    study.folder.write("compose.yaml", deployed_compose);
    const Ran before = study.check("compose.yaml");
    CHECK(before.code == 1);
    CHECK(has(before.out, "--max-num-seqs: --max-num-seqs=8 -> --max-num-seqs=64\n"));
    CHECK(study.read("compose.yaml") == deployed_compose);
    const Ran changed = study.into("compose.yaml");
    INFO(changed.out << changed.err);
    CHECK(changed.code == 0);
    CHECK(study.read("compose.yaml") == recommended_compose());
    CHECK(changed.out.starts_with(
        "--- compose.yaml\n+++ compose.yaml\n- --max-num-seqs=8\n+ --max-num-seqs=64\n"));
    CHECK(study.check("compose.yaml").code == 0);
    const Ran again = study.into("compose.yaml");
    CHECK(again.code == 0);
    CHECK(again.out == "compose.yaml: chat is as recommended; nothing is changed\n");
}

TEST_CASE("recommend --check and --into --json: one object, also where the file is left alone") {
    const RecommendingStudy study;
    study.folder.write("compose.yaml", deployed_compose);
    const Ran checked = study.check("compose.yaml", {"--json"});
    CHECK(checked.code == 1);
    const DeployJson said = DeployJson::parse(checked.out);
    CHECK(said["same"] == false);
    CHECK(said["at"] == "chat");
    CHECK(said["differences"][0]["before"] == "--max-num-seqs=8");
    CHECK(said["differences"][0]["after"] == "--max-num-seqs=64");
    const Ran changed = study.into("compose.yaml", {"--json"});
    CHECK(changed.code == 0);
    const DeployJson object = DeployJson::parse(changed.out);
    CHECK(object["changed"] == true);
    CHECK(has(object["diff"], "\n+ --max-num-seqs=64\n"));
    CHECK(object["risks"].is_array());
    CHECK(DeployJson::parse(study.into("compose.yaml", {"--json"}).out)["changed"] == false);
    CHECK(DeployJson::parse(study.check("compose.yaml", {"--json"}).out)["same"] == true);

    const std::string varies = replaced(deployed_compose, "seqs=8 ", "seqs=${SEQS} ");
    study.folder.write("varies.yaml", varies);
    const Ran left = study.into("varies.yaml", {"--json"});
    CHECK(left.code == 7);
    CHECK(DeployJson::parse(left.out)["changed"] == false);
    CHECK(has(DeployJson::parse(left.out)["why"], "known only where it runs"));
    CHECK(study.check("varies.yaml").code == 6);
    CHECK(study.read("varies.yaml") == varies);
}

TEST_CASE("recommend --into: exit codes 2 and 7 say what to do, and the file stays") {
    const RecommendingStudy study;
    const std::string two =
        deployed_compose +
        "  mail:\n    image: vllm/vllm-openai\n    command: [--model, m, --max-num-seqs, \"8\"]\n";
    const std::string web = "services:\n  web:\n    image: nginx\n";
    study.folder.write("two.yaml", two);
    study.folder.write("web.yaml", web);
    const auto said = [&](const std::string& file, int code, const std::string& what,
                          const std::vector<std::string>& more = {}) {
        for (const Ran& one : {study.check(file, more), study.into(file, more)}) {
            INFO(file << ": " << one.out << one.err);
            CHECK(one.code == code);
            CHECK(has(one.err, what));
        }
    };
    said("two.yaml", 2,
         "two.yaml starts vllm in several places; say which with --at NAME: chat, mail");
    said("two.yaml", 2, "--at post: two.yaml has chat, mail", {"--at", "post"});
    said("missing.yaml", 2, "missing.yaml");
    study.folder.write("start.sh", "#!/bin/sh\nvllm serve m\n");
    for (const std::string file : {"web.yaml", "start.sh"}) {
        CHECK(study.check(file).code == 6);
        CHECK(has(study.check(file).err, file + " is undecided: "));
        CHECK(study.into(file).code == 7);
        CHECK(has(study.into(file).err, file + " is left as it is: "));
    }
    CHECK(has(study.into("web.yaml").out, "--max-num-seqs=64\n"));  // to do it by hand
    CHECK(study.read("two.yaml") == two);
    CHECK(study.read("web.yaml") == web);
    CHECK(autotune({"recommend", "study.yaml", "--into", "a", "--check", "b"}, study.folder.path())
              .code == 2);
    CHECK(study.into("two.yaml", {"--at", "mail"}).code == 0);
    CHECK(study.read("two.yaml") == replaced(two, "\"8\"", "\"64\""));
    CHECK(study.check("two.yaml", {"--at", "mail"}).code == 0);
    CHECK(study.check("two.yaml", {"--at", "chat"}).code == 1);
}

TEST_CASE("recommend --into: mode and symbolic link stay") {
    const RecommendingStudy study;
    fs::create_directory(study.folder.path() / "real");
    const fs::path file = study.folder.write("real/compose.yaml", deployed_compose);
    REQUIRE(chmod(file.c_str(), 0640) == 0);
    fs::create_symlink("real/compose.yaml", study.folder.path() / "linked.yaml");
    CHECK(study.into("linked.yaml").code == 0);
    CHECK(fs::is_symlink(fs::symlink_status(study.folder.path() / "linked.yaml")));
    CHECK(read_file(file) == recommended_compose());
    CHECK((static_cast<unsigned>(fs::status(file).permissions()) & 0777U) == 0640U);
    CHECK(entries(study.folder.path() / "real") == 1);
}

TEST_CASE("recommend --check and --into: secrets of the file are never printed") {
    const RecommendingStudy study;
    for (const std::string& command :
         {"[--model, m, --max-num-seqs, \"8\", --api-key, " + deploy_secret + "]",
          "[--api-key=" + deploy_secret + ", --max-num-seqs=8]",
          "--max-num-seqs 8 --api-key " + deploy_secret,
          "[--max-num-seqs=8, --hf-token=" + deploy_secret + ", --own-key, " + deploy_secret + "]",
          "\n      - --api-key\n      - " + deploy_secret + "\n      - --max-num-seqs=8"}) {
        const std::string text = "# " + deploy_secret +
                                 "\nservices:\n  chat:\n    image: vllm/vllm-openai\n    "
                                 "environment:\n      HF_TOKEN: " +
                                 deploy_secret + "\n    command: " + command + "\n";
        for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--json"}}) {
            study.folder.write("compose.yaml", text);
            const Ran checked = study.check("compose.yaml", more);
            const Ran changed = study.into("compose.yaml", more);
            const std::string all = checked.out + checked.err + changed.out + changed.err;
            INFO(all);
            CHECK(checked.code == 1);
            CHECK(changed.code == 0);
            CHECK_FALSE(has(all, deploy_secret));
            CHECK(has(study.read("compose.yaml"), deploy_secret));
        }
    }
}

TEST_CASE(
    "recommend --into: a full disk and a folder that may not be written leave the file, with exit "
    "code 3") {
    const RecommendingStudy study;
    const std::string large = deployed_compose + "# " + std::string(1U << 17U, 'x') + "\n";
    study.folder.write("compose.yaml", large);
    std::vector<std::string> words = study.words("--into", "compose.yaml");
    words.insert(words.begin(), SERVETUNE_PROGRAM);
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
    std::vector<std::string> words = study.words("--into", "compose.yaml");
    words.insert(words.begin(), SERVETUNE_PROGRAM);
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
    CHECK(study.into("compose.yaml").code == 0);
    CHECK(study.read("compose.yaml") == now);
}

TEST_CASE("recommend --check: other order, spelling and aliases of the same flags are the same") {
    const RecommendingStudy study(
        "vllm",
        "{max_num_seqs: {choice: [8, 64], default: 8}, tensor_parallel_size: 2, "
        "max_num_batched_tokens: 8192, enable_prefix_caching: false}");
    const auto checked = [&](const std::string& flags) {
        study.folder.write("start.yaml", "command: vllm serve Qwen/Qwen3-8B " + flags + "\n");
        return study.check("start.yaml");
    };
    for (const char* flags :
         {"--no-enable-prefix-caching --max-num-seqs=64 --max-num-batched-tokens=8192 "
          "--tensor-parallel-size=2",
          "--tensor-parallel-size=2 --max-num-batched-tokens=8192 --max-num-seqs=64 "
          "--no-enable-prefix-caching",
          "-tp 2 --max-num-batched-tokens 8192 --max-num-seqs 64 --no-enable-prefix-caching",
          "-tp=2 --max_num_batched_tokens=8K --max_num_seqs 64 --no-enable-prefix-caching",
          "--max-num-seqs 8 -tp 2 --max-num-batched-tokens 8192 --no-enable-prefix-caching "
          "--max-num-seqs 64",
          "--port 9 -tp 2 --max-num-batched-tokens 8192 --max-num-seqs 64 "
          "--no-enable-prefix-caching -pp 1"}) {
        const Ran ran = checked(flags);
        INFO(flags << ": " << ran.out << ran.err);
        CHECK(ran.code == 0);
    }
    for (const auto& [flags, difference] :
         {std::pair<const char*, const char*>{
              "-tp 1 --max-num-batched-tokens 8192 --max-num-seqs 64 --no-enable-prefix-caching",
              "--tensor-parallel-size: -tp 1 -> --tensor-parallel-size=2\n"},
          {"-tp 2 --max-num-batched-tokens 8192 --max-num-seqs 64",
           "--no-enable-prefix-caching: not set -> "},
          {"-tp 2 --max-num-batched-tokens 8k --max-num-seqs 64 --no-enable-prefix-caching",
           "8k -> "},  // 8000
          {"-tp 2 --max-num-batched-tokens 8192 --max-num-seqs 64 --max-num-seqs 8 "
           "--no-enable-prefix-caching",
           "--max-num-seqs: --max-num-seqs 8 -> "}}) {
        const Ran ran = checked(flags);
        INFO(flags << ": " << ran.out << ran.err);
        CHECK(ran.code == 1);
        CHECK(has(ran.out, difference));
    }
}

TEST_CASE("recommend --check: of a server, `watch` says more") {
    const RecommendingStudy study;
    const Ran refused = study.check("http://127.0.0.1:8000");
    CHECK(refused.code == 2);
    CHECK(has(refused.err, "`autotune watch` holds a server against its study"));
}
