// SPDX-License-Identifier: Apache-2.0
// The first hour of a new user, where it needs a terminal or a signal; the rest is in
// tests/data/cases/program/first-hour.yaml.
#include "support/autotune.hpp"
#include "support/process.hpp"
#include "support/terminal.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/detail/host/process.hpp"

#include <chrono>
#include <csignal>

using namespace servetune;
using namespace servetune::test;

namespace {

/// What `init` comes to when these lines are typed, and what it shows.
std::pair<int, std::string> init_asked(const TemporaryFolder& folder, const std::string& typed) {
    OnTerminal terminal({SERVETUNE_PROGRAM, "init", "--output", "asked.yaml", "--force"},
                        folder.path(), 400);
    terminal.type(typed);
    const int code = terminal.watch([](const ShownRows&) {});
    return {code, terminal.shown().text()};
}

}  // namespace

TEST_CASE("first hour: Ctrl-C ends the demo and its engines") {
    const TemporaryFolder folder;
    ChildProcess process({SERVETUNE_PROGRAM, "demo"}, folder.path());
    const fs::path demo = folder.path() / "autotune-demo";
    REQUIRE(comes_to_trial(demo, 2));
    process.signal(SIGINT);
    CHECK(process.wait_at_most(std::chrono::seconds(30)) == 130);
    INFO(process.err());
    CHECK(has(process.err(), "nothing of it is running"));
    CHECK(process.out().empty());
    CHECK(leftovers(demo.string()).empty());
}

TEST_CASE(
    "first hour: init asks again after a wrong answer, three times in all, whatever the case of "
    "letters") {
    const TemporaryFolder folder;
    const auto [code, shown] = init_asked(
        folder, "vlm\nVLLM\norg/Model\nh1000\nH100-SXM\nchta\nCHAT\nspeed\nTTFT_P95 < 2s\n");
    INFO(shown);
    REQUIRE(code == 0);
    CHECK(has(shown, "the goal is throughput, latency, or a limit"));
    const std::string text = read_file(folder.path() / "asked.yaml");
    for (const char* part : {"model: org/Model\nengine: vllm\n", "hardware: h100-sxm\n",
                             "use: chat", "limits: [\"ttft_p95 < 2s\", success_ratio >= 0.99]"})
        CHECK(has(text, part));
    fs::remove(folder.path() / "asked.yaml");
    CHECK(init_asked(folder, "a\nb\nc\n").first == 2);
    CHECK_FALSE(fs::exists(folder.path() / "asked.yaml"));
}
