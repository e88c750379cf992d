// SPDX-License-Identifier: Apache-2.0
// The watch over the cores: a folder in /proc's place, and this machine's own.
#include "support/test.hpp"

#include "host/cpu_use.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/detail/host/process.hpp"
#include "support/waiting.hpp"
#include "support/watched_machine.hpp"

#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

TEST_CASE("machine watch: time given to other virtual machines is found") {
    Scene scene;
    scene.options.nvidia_smi = "none";
    const auto after = [&](const FakeProc::Core& core) {
        scene.proc.cores({{1000, 1000, 50}, {1000, 1000, 50}});
        MachineWatch machine = scene.watch();
        scene.proc.cores({{1000 + core.user, 1000 + core.idle, 50 + core.stolen},
                          {1000, 1000 + core.user + core.idle + core.stolen, 50}});
        return machine.findings();
    };
    const auto findings = after({.user = 400, .idle = 500, .stolen = 100});
    REQUIRE(ids(findings) == Words{"cpu_stolen"});
    CHECK(findings.front().left == "20 % of the time that the cores had work was given away");
    CHECK(findings.front().right == "at most 2.0 %");
    CHECK(after({.user = 990, .idle = 0, .stolen = 10}).empty());  // 1 %
    CHECK(after({.user = 40, .idle = 956, .stolen = 4}).empty());  // nothing that could be counted
    CHECK(after({.user = 10, .idle = 40, .stolen = 40}).empty());  // less than a second
    CHECK(after({.user = 0, .idle = 0, .stolen = 0}).empty());
}

TEST_CASE("machine watch: cores that are with others are found, cores that are with us are not") {
    Scene scene;
    scene.options.nvidia_smi = "none";
    constexpr int other = 4711;
    struct Ticks {
        std::uint64_t engine = 0, ended_child = 0, self = 0, other = 0, idle = 0;
    };
    const auto after = [&](const Ticks& ticks) {
        const auto now = [&](const Ticks& add) {
            scene.proc.process(engine_process, getpid(), engine_process, "vllm serve",
                               70 + add.engine, 30 + add.ended_child);
            scene.proc.process(getpid(), 1, 1, "tests", 200 + add.self);
            scene.proc.process(other, 1, other, "cc1plus", 500 + add.other);
            const std::uint64_t busy = add.engine + add.ended_child + add.self + add.other;
            scene.proc.cores(
                {{busy / 2, add.idle / 2}, {busy - busy / 2, add.idle - add.idle / 2}});
        };
        now({});
        MachineWatch machine = scene.watch();
        now(ticks);
        return machine.findings();
    };
    const auto findings = after({.engine = 600, .ended_child = 100, .self = 100, .other = 1200});
    REQUIRE(ids(findings) == Words{"cpu_shared"});
    CHECK(findings.front().left == "the cores 100 % busy, 60 % of their time with other processes");
    CHECK(findings.front().right == "below 90 % busy, or at most 5.0 % with others");
    CHECK(findings.front().cause ==
          "other processes had cores that were needed here; most had cc1plus (12.0 s)");
    CHECK(after({.engine = 1500, .ended_child = 300, .self = 150, .other = 50}).empty());  // ours
    CHECK(after({.engine = 100, .other = 1600, .idle = 300}).empty());  // a core was free at times
    CHECK(after({.engine = 40, .other = 100}).empty());                 // 0.7 s
    CHECK(scene.said.empty());
}

TEST_CASE("machine watch: an engine pinned to cores is judged by these") {
    Scene scene;
    scene.options.nvidia_smi = "none";
    scene.options.cores = {1};
    const auto after = [&](std::uint64_t of_engine, std::uint64_t of_self,
                           const std::vector<FakeProc::Core>& cores) {
        const auto now = [&](std::uint64_t one, std::uint64_t self,
                             const std::vector<FakeProc::Core>& all) {
            scene.proc.process(engine_process, getpid(), engine_process, "vllm serve", one);
            scene.proc.process(getpid(), 1, 1, "tests", self);
            scene.proc.cores(all);
        };
        now(0, 0, {{}, {}});
        MachineWatch machine = scene.watch();
        now(of_engine, of_self, cores);
        return ids(machine.findings());
    };
    CHECK(after(500, 500, {{1000, 0, 0}, {500, 500, 0}}).empty());
    CHECK(after(1000, 0, {{900, 0, 100}, {1000, 0, 0}}).empty());
    CHECK(after(900, 0, {{0, 1000, 0}, {900, 0, 100}}) == Words{"cpu_stolen"});
    CHECK(after(500, 500, {{1000, 0, 0}, {1000, 0, 0}})
              .empty());  // this process may run there too, as far as is known
    scene.proc.may_run_on(getpid(), "0,2-7");
    CHECK(after(500, 500, {{1000, 0, 0}, {1000, 0, 0}}) == Words{"cpu_shared"});
    scene.proc.may_run_on(getpid(), "0-3");
    CHECK(after(500, 500, {{1000, 0, 0}, {1000, 0, 0}}).empty());
    CHECK(scene.said.empty());
    scene.options.cores = {1, 7};
    CHECK(after(1000, 0, {{1000, 0, 0}, {1000, 0, 0}}).empty());
    CHECK(scene.said ==
          Words{"the CPU cannot be watched: " + (scene.proc.path() / "stat").string() +
                " does not tell of cores 1, 7"});
}

TEST_CASE("machine watch: this machine as it is") {
    const Process spinner(
        {.argv = {"sh", "-c", "sh -c 'while :; do :; done' & wait"}, .mark = "study-8"});
    Words said;
    MachineWatchOptions options;
    options.nvidia_smi = "none";
    options.say = [&](const std::string& line) { said.push_back(line); };
    MachineWatch machine({spinner.id(), "study-8"}, options);
    OurProcesses processes("/proc", spinner.id(), "");
    processes.look();
    const std::uint64_t before = processes.ticks(false);
    REQUIRE(comes_true([&] {
        processes.look();
        return processes.ticks(false) > before + 50;  // of its child, half a second
    }));
    CHECK(processes.ours(spinner.id()));
    CHECK(processes.ours(getpid()));
    CHECK(processes.seen(1));
    CHECK_FALSE(processes.ours(1));
    std::this_thread::sleep_for(600ms);
    for (const Finding& one : machine.findings()) {  // others may be at work here
        CHECK((one.id == "cpu_shared" || one.id == "cpu_stolen"));
        CHECK_FALSE(one.left.empty());
    }
    CHECK(said.empty());
    const auto times = cpu_times("/proc", {});
    REQUIRE(times);
    CHECK(times->cores >= 1);
    CHECK(times->busy > 0);
    cpu_set_t allowed;
    REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
    for (int core = 0; core < 64; ++core)
        CHECK(may_run_on("/proc", getpid(), {core}) ==
              static_cast<bool>(CPU_ISSET(std::size_t(core), &allowed)));
}
