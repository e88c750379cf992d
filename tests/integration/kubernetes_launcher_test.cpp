// SPDX-License-Identifier: Apache-2.0
// The launcher for Kubernetes against a cluster that is a folder, so in every run of the tests;
// tests/integration/cluster_launcher_test.cpp has it on a real one.
#include "contract/launcher_contract.hpp"
#include "servetune/detail/base/present.hpp"
#include "support/fake_cluster.hpp"
#include "support/test.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
    std::size_t result = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size()))
        ++result;
    return result;
}

std::vector<std::string> in_shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

/// The numbers 1 to `last`, a line each.
std::string numbered_lines(int last) {
    std::string result;
    for (int i = 1; i <= last; ++i) result += "line " + std::to_string(i) + "\n";
    return result;
}

/// What was printed but for the client's own words.
std::string of_engine(const Launched& one) {
    std::string result;
    std::istringstream lines(one.said());
    for (std::string line; std::getline(lines, line);)
        if (!line.starts_with("servetune: ")) result += line + "\n";
    return result;
}

bool comes_to_print(const Process& process, const std::string& line) {
    return comes_true([&] {
        const auto lines = process.lines();
        return std::find(lines.begin(), lines.end(), line) != lines.end();
    });
}

}  // namespace

TEST_CASE("kubernetes: a launcher keeps its contract with a cluster that is a folder") {
    const FakeCluster cluster;
    const LauncherWorld world{kubernetes_launcher(cluster.options())};
    check_launcher(world);
}

TEST_CASE("kubernetes: the engine gets its words as they are") {
    const FakeCluster cluster;
    const LauncherWorld world{kubernetes_launcher(cluster.options())};
    Launched one(world, {"/bin/sh", "-c", "printf '<%s>' \"$@\"; echo", "x", "$(HOME)", "$$(HOME)",
                         "$(NOSUCH)", "$HOME", "{\"a\": \"b c\"}", "it's", "$", "$$"});
    REQUIRE(one.process().wait(30s));
    CHECK(of_engine(one) ==
          "<$(HOME)><$$(HOME)><$(NOSUCH)><$HOME><{\"a\": \"b c\"}><it's><$><$$>\n");
    CHECK(one.process().exit_code() == 0);
}

TEST_CASE("kubernetes: a trial costs few calls of kubectl") {
    const FakeCluster cluster;
    const LauncherWorld world{kubernetes_launcher(cluster.options())};
    Launched one(world, in_shell("echo begins; sleep 1; echo ends"));
    REQUIRE(one.comes_to_say("begins"));
    CHECK(world.launcher->place(one.launch()).waits.empty());
    CHECK(world.launcher->place(one.launch()).host == "127.0.0.1");
    REQUIRE(one.process().wait(30s));
    CHECK(world.launcher->remove(one.launch()) == "");
    const std::string calls = cluster.content("calls");
    INFO(calls);
    CHECK(count_of(calls, "create ") == 1);
    CHECK(count_of(calls, "--watch ") == 1);
    CHECK(count_of(calls, "logs ") <= 3);  // as it comes, what was printed last, one spare
    CHECK(count_of(calls, "delete ") == 1);
    CHECK(count_of(calls, "\n") <=
          9);  // and three questions: where it is, twice, and what its node is
    CHECK(!has(calls, "force"));
}

TEST_CASE("kubernetes: no line is lost or repeated where the API server is gone for a while") {
    const FakeCluster cluster;
    const LauncherWorld world{kubernetes_launcher(cluster.options())};
    Launched one(
        world,
        in_shell(
            "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep 0.1; done; exit 41"));
    REQUIRE(one.comes_to_say("line 5\n"));
    cluster.set("down");
    std::this_thread::sleep_for(1s);
    cluster.set("forbidden");
    cluster.unset("down");
    std::this_thread::sleep_for(500ms);
    cluster.unset("forbidden");
    REQUIRE(one.process().wait(60s));
    CHECK(of_engine(one) == numbered_lines(40));
    CHECK(one.process().exit_code() == 41);
    CHECK_FALSE(world.launcher->ended(one.launch(), 41, one.process().lines()));
    CHECK_FALSE(world.launcher->lost(one.launch()));
}

TEST_CASE("kubernetes: a pod that waits says why, and is removed while it does") {
    const FakeCluster cluster;
    cluster.set("pending", "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
    const LauncherWorld world{kubernetes_launcher(cluster.options())};
    Launched one(world, in_shell("echo begins; sleep 60"));
    REQUIRE(comes_true([&] {
        return has(world.launcher->place(one.launch()).waits, "Insufficient nvidia.com/gpu");
    }));
    CHECK(one.something_left());
    CHECK_FALSE(one.end(10s).killed);
    CHECK(world.launcher->remove(one.launch()) == "");
    CHECK(one.comes_to_nothing());
    CHECK(of_engine(one).empty());
}

TEST_CASE(
    "kubernetes: a pod that is taken away is the cluster's fault, whatever its engine prints") {
    const FakeCluster cluster;
    const LauncherWorld world{kubernetes_launcher(cluster.options())};
    Launched one(
        world,
        in_shell(
            "trap 'echo EngineDeadError; exit 1' TERM; echo begins; while :; do sleep 0.1; done"));
    REQUIRE(one.comes_to_say("begins"));
    cluster.set("jobs/" + one.launch().name + "/disrupted", "PreemptionByScheduler");
    REQUIRE(one.process().wait(30s));
    CHECK(one.process().exit_code() == 1);
    CHECK(one.comes_to_say("EngineDeadError"));
    const auto failure = world.launcher->ended(one.launch(), 1, one.process().lines());
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::infrastructure);
    CHECK(has(failure->message, "preempted"));
}

TEST_CASE("kubernetes: a job that somebody deletes is the cluster's fault") {
    const FakeCluster cluster;
    const LauncherWorld world{kubernetes_launcher(cluster.options())};
    Launched one(world, in_shell("trap 'exit 0' TERM; echo begins; while :; do sleep 0.1; done"));
    REQUIRE(one.comes_to_say("begins"));
    cluster.set("jobs/" + one.launch().name + "/deleted");
    REQUIRE(one.process().wait(30s));
    const auto failure = world.launcher->ended(one.launch(), one.process().exit_code().value_or(0),
                                               one.process().lines());
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::infrastructure);
    CHECK(has(failure->message, "deleted"));
}

TEST_CASE("kubernetes: an engine does not outlive a tuner that is silent, or was killed") {
    const FakeCluster cluster;
    const auto launcher = kubernetes_launcher(cluster.options());
    const TemporaryFolder folder;
    LaunchRequest request;
    request.command.argv =
        in_shell("trap 'echo was told; exit 3' TERM; echo begins; while :; do sleep 0.1; done");
    request.mark = folder.path().string();
    const auto begun = [&](bool silent) {
        const Launch launch = launcher->launch(request);
        ProcessOptions options = client_of(launch);
        if (silent) {
            auto task = nlohmann::json::parse(launch.told);
            task["silent_within_seconds"] = 2;
            options.told = task.dump() + "\n";
            options.beats = 1h;
        }
        auto process = std::make_unique<Process>(options);
        REQUIRE(comes_to_print(*process, "begins"));
        return process;
    };
    const auto ends_by_itself = [&](Process& process) {
        REQUIRE(process.wait(30s));
        CHECK(process.exit_code() == 3);
        CHECK(comes_to_print(process, "was told"));
        CHECK(comes_true([&] { return launcher->leftovers(request.mark).empty(); }));
    };
    const auto silent = begun(true);
    ends_by_itself(*silent);
    const auto left = begun(false);
    left->hang_up();  // what the kernel does for a killed one
    ends_by_itself(*left);
    const auto termed = begun(false);
    kill(termed->id(), SIGTERM);
    ends_by_itself(*termed);
}

TEST_CASE(
    "kubernetes: a forward that breaks under load is the cluster's fault, one that is refused is "
    "made anew") {
    const FakeCluster cluster;
    KubernetesOptions options = cluster.options();
    options.reach = KubernetesReach::forward;
    const auto launcher = kubernetes_launcher(options);
    const TemporaryFolder folder;
    LaunchRequest request;
    request.command.argv = in_shell("echo begins; sleep 300");
    request.mark = folder.path().string();
    request.port = 12345;
    const Launch launch = launcher->launch(request);
    cluster.set("refusing");
    Process process(client_of(launch));
    const auto forwards = [&] {
        return count_of(cluster.content("calls"),
                        "port-forward pod/" + launch.name + "-abcde 12345:12345 ");
    };
    REQUIRE(comes_true([&] { return forwards() >= 3; }));  // until the engine listens
    CHECK(process.running());
    cluster.unset("refusing");
    CHECK(comes_true([&] {
        const std::size_t so_far = forwards();
        std::this_thread::sleep_for(1s);
        return forwards() == so_far;  // the last one stands
    }));
    CHECK(process.running());
    CHECK(launcher->place(launch).host == "127.0.0.1");
    cluster.set("down");
    REQUIRE(process.wait(20s));
    cluster.unset("down");
    CHECK(process.exit_code() == 125);
    const auto failure = launcher->ended(launch, 125, process.lines());
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::infrastructure);
    CHECK(has(failure->message, "kubectl port-forward"));
    CHECK(launcher->remove(launch) == "");
    CHECK(launcher->leftovers(request.mark).empty());
}

TEST_CASE("kubernetes: nobody waits for an API server for ever") {
    const FakeCluster cluster;
    const auto launcher = kubernetes_launcher(cluster.options());
    const TemporaryFolder folder;
    LaunchRequest request;
    request.command.argv = in_shell("echo begins; sleep 300");
    request.mark = folder.path().string();
    const Launch launch = launcher->launch(request);
    auto task = nlohmann::json::parse(launch.told);
    CHECK(task["unanswered_within_seconds"] == 60);
    task["unanswered_within_seconds"] = 3;
    ProcessOptions options = client_of(launch);
    options.told = task.dump() + "\n";
    Process process(options);
    REQUIRE(comes_to_print(process, "begins"));
    cluster.set("down");
    const auto begin = std::chrono::steady_clock::now();
    REQUIRE(process.wait(60s));
    CHECK(seconds_since(begin) > 2.5);
    CHECK(process.exit_code() == 125);
    const auto failure = launcher->ended(launch, 125, process.lines());
    REQUIRE(failure);
    CHECK(failure->kind == FailureKind::infrastructure);
    CHECK(has(failure->message, "has not answered for 3 s"));
    cluster.unset("down");
    CHECK(launcher->remove(launch) == "");
    CHECK(comes_true([&] { return launcher->leftovers(request.mark).empty(); }));
}

TEST_CASE("kubernetes: no trial is started beside one whose job would not go") {
    const FakeCluster cluster;
    const auto launcher = kubernetes_launcher(cluster.options());
    const LauncherWorld world{launcher};
    {
        Launched one(world, in_shell("echo begins; sleep 300"));
        REQUIRE(one.comes_to_say("begins"));
        cluster.set("stuck");
        (void)one.end(1s);
        const std::string why = launcher->remove(one.launch());
        CHECK(has(cluster.content("calls"), "--timeout=80s "));
        CHECK(has(why, "the job " + one.launch().name + " would not go: error: timed out"));
        cluster.unset("stuck");
        CHECK(comes_true([&] { return cluster.jobs().empty(); }));
    }
    Launched next(world, in_shell("exit 5"));
    REQUIRE(next.process().wait(30s));
    CHECK(next.process().exit_code() == 5);
}
