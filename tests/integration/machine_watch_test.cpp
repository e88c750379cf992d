// SPDX-License-Identifier: Apache-2.0
// The watch over the machine: a script in nvidia-smi's place, a folder in /proc's.
#include "support/test.hpp"

#include "../src/machine/cpu_use.hpp"
#include "servetune/machine/machine_watch.hpp"
#include "servetune/process/process.hpp"
#include "support/waiting.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <map>
#include <thread>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

const std::string event_reasons = "clocks_event_reasons.active";

struct Gpu {
    int index = 0;
    std::string used = "20480";
    std::string reasons = "0x0000000000000004";  // its own power limit, as under any load
    std::string sm_mhz = "1755";
    std::string celsius = "64";
};

std::string uuid(int index) { return "GPU-" + std::to_string(index) + "a571b1-79ee-1016-8ea3-c1fff3f1c1d2"; }

std::string row(const Gpu& gpu) {
    return std::to_string(gpu.index) + ", " + uuid(gpu.index) + ", " + gpu.used + ", 81559, " + gpu.sm_mhz + ", 1980, " + gpu.celsius +
           ", " + gpu.reasons + "\n";
}

std::string app(int process, int gpu, const std::string& mib) { return std::to_string(process) + ", " + uuid(gpu) + ", " + mib + "\n"; }

/// What nvidia-smi answers: `gpus` and `apps`, for the n-th question about GPUs `gpus.n` where it is there; with `old`
/// it knows only the old field's name, with `hang` it never ends, with `code` it ends with that where GPUs are asked
/// for.
class FakeSmi {
public:
    FakeSmi() {
        folder_.write("nvidia-smi", "#!/bin/sh\ncd " + folder_.path().string() +
                                        "\n"
                                        "case \"$1\" in\n"
                                        "--query-gpu=*event_reasons*) [ -f old ] && {\n"
                                        "  echo 'Field \"clocks_event_reasons.active\" is not a valid field to query.'; exit 2; };;\n"
                                        "esac\n"
                                        "echo \"$*\" >> calls\n"
                                        "[ -f hang ] && exec sleep 100\n"
                                        "case \"$1\" in\n"
                                        "--query-gpu=*) n=$(grep -c query-gpu calls); if [ -f gpus.$n ]; then cat gpus.$n; else cat gpus; "
                                        "fi; [ -f code ] && exit $(cat code);;\n"
                                        "*) cat apps;;\n"
                                        "esac\n"
                                        "exit 0\n");
        fs::permissions(program(), fs::perms::owner_all);
        say("apps", "");
        say("gpus", row({}));
        unsetenv("CUDA_VISIBLE_DEVICES");
    }

    [[nodiscard]] std::string program() const { return (folder_.path() / "nvidia-smi").string(); }
    /// In one step: a question meanwhile reads the old words or the new ones.
    void say(const std::string& name, const std::string& words) const {
        folder_.write(name + ".new", words);
        fs::rename(folder_.path() / (name + ".new"), folder_.path() / name);
    }
    [[nodiscard]] Words calls(const std::string& with) const {
        std::ifstream stream(folder_.path() / "calls");
        Words result;
        for (std::string line; std::getline(stream, line);)
            if (line.find(with) != std::string::npos) result.push_back(line);
        return result;
    }
    /// Until it was asked about GPUs so many more times, and the last answer is over.
    [[nodiscard]] bool asked(std::size_t more) const {
        const std::size_t enough = calls("query-gpu").size() + more + 1;
        return comes_true([&] { return calls("query-gpu").size() >= enough; });
    }

private:
    TemporaryFolder folder_;
};

/// A folder as /proc.
class FakeProc {
public:
    FakeProc() { process(getpid(), 1, getpgrp(), "tests"); }

    [[nodiscard]] const fs::path& path() const { return folder_.path(); }
    void process(int id, int parent, int group, const std::string& name, std::uint64_t own = 0, std::uint64_t children = 0,
                 const std::string& environment = "") const {
        const std::string folder = std::to_string(id);
        fs::create_directories(folder_.path() / folder);
        const std::string half = std::to_string(own / 2) + " " + std::to_string(own - own / 2) + " ";
        folder_.write(folder + "/stat", folder + " (" + name + ") S " + std::to_string(parent) + " " + std::to_string(group) +
                                            " 1 0 -1 4194304 1 1 1 1 " + half + std::to_string(children) + " 0 20 0 1 0 " +
                                            std::to_string(1000 + id) + " 1 1\n");
        folder_.write(folder + "/environ", environment);
    }
    void may_run_on(int id, const std::string& cores) const {
        folder_.write(std::to_string(id) + "/status", "Name:\tx\nCpus_allowed_list:\t" + cores + "\n");
    }
    struct Core {
        std::uint64_t user = 0, idle = 0, stolen = 0;
    };
    void cores(const std::vector<Core>& cores) const {
        Core all;
        std::string lines;
        const auto line = [](const std::string& name, const Core& core) {
            return name + " " + std::to_string(core.user) + " 0 0 " + std::to_string(core.idle) + " 0 0 0 " + std::to_string(core.stolen) +
                   " 0 0\n";
        };
        for (const Core& core : cores) {
            lines += line("cpu" + std::to_string(&core - cores.data()), core);
            all.user += core.user;
            all.idle += core.idle;
            all.stolen += core.stolen;
        }
        folder_.write("stat", line("cpu ", all) + lines + "intr 1 2 3\n");
    }

private:
    TemporaryFolder folder_;
};

constexpr int engine_process = 400'100;  // beyond any process number that is usual, so no fixture has this process's own

struct Scene {
    FakeSmi smi;
    FakeProc proc;
    Words said{};
    MachineWatchOptions options{};

    Scene() {
        options.nvidia_smi = smi.program();
        options.every_seconds = 0.01;
        options.nvidia_smi_within_seconds = 30;
        options.proc = proc.path();
        options.say = [this](const std::string& line) { said.push_back(line); };
        proc.cores({{0, 0, 0}});
        proc.process(engine_process, getpid(), engine_process, "vllm serve");
    }
    [[nodiscard]] MachineWatch watch() const { return MachineWatch({engine_process, "study-7"}, options); }
    /// What three samples and more find.
    std::vector<Finding> found() {
        MachineWatch machine({engine_process, "study-7"}, options);
        REQUIRE(smi.asked(3));
        return machine.findings();
    }
};

Words ids(const std::vector<Finding>& findings) {
    Words result;
    for (const Finding& one : findings) result.push_back(one.id);
    return result;
}

}  // namespace

TEST_CASE("machine watch: a GPU of one's own at its power limit is undisturbed") {
    Scene scene;
    scene.smi.say("apps", app(engine_process, 0, "20000"));
    CHECK(scene.found().empty());
    CHECK(scene.said.empty());
    const Words gpus = scene.smi.calls("query-gpu");
    CHECK(gpus.front() == "--query-gpu=index,uuid,memory.used,memory.total,clocks.sm,clocks.max.sm,temperature.gpu," + event_reasons +
                              " --format=csv,noheader,nounits");
    CHECK(scene.smi.calls("query-compute").front() == "--query-compute-apps=pid,gpu_uuid,used_memory --format=csv,noheader,nounits");
}

TEST_CASE("machine watch: samples are taken at the beginning and at the end, however far apart they are") {
    Scene scene;
    scene.options.every_seconds = 3600;
    MachineWatch machine = scene.watch();
    REQUIRE(comes_true([&] { return scene.smi.calls("query-compute").size() == 1; }));
    scene.smi.say("gpus", row({.reasons = "0x0000000000000040"}));
    const auto begin = Clock::now();
    CHECK(ids(machine.findings()) == Words{"gpu_throttled"});
    CHECK(seconds_since(begin) < 30);
    CHECK(scene.smi.calls("query-gpu").size() == 2);
    CHECK(machine.findings().size() == 1);
    CHECK(scene.smi.calls("query-gpu").size() == 2);
}

TEST_CASE("machine watch: a GPU that is held back by heat or power is found, with what was seen") {
    Scene scene;
    scene.smi.say("gpus.1", row({}));
    scene.smi.say("gpus", row({.reasons = "0x0000000000000048", .sm_mhz = "810", .celsius = "91"}));
    const auto findings = scene.found();
    REQUIRE(ids(findings) == Words{"gpu_throttled"});
    const std::string& left = findings.front().left;
    const std::size_t samples = scene.smi.calls("query-gpu").size();
    CHECK(left == "GPU 0: HW slowdown, HW thermal slowdown in " + std::to_string(samples - 1) + " of " + std::to_string(samples) +
                      " samples, SM clock down to 810 of 1980 MHz, up to 91 C");
    CHECK(findings.front().right == "in at most 10 % of the samples");
    CHECK(findings.front().cause.find("hot") != std::string::npos);

    for (const char* reasons : {"0x0000000000000008", "0x0000000000000020", "0x0000000000000080"}) {
        Scene other;
        other.smi.say("gpus", row({.reasons = reasons}));
        INFO(reasons);
        CHECK(ids(other.found()) == Words{"gpu_throttled"});
    }
    for (const char* reasons :
         {"0x0000000000000000", "0x0000000000000001", "0x0000000000000002", "0x0000000000000010", "0x0000000000000100"}) {
        Scene other;
        other.smi.say("gpus", row({.reasons = reasons}));
        INFO(reasons);
        CHECK(other.found().empty());
    }
}

TEST_CASE("machine watch: a slowdown in one sample of many is none, nor one that is told while clocks change") {
    Scene many;
    many.smi.say("gpus.3", row({.reasons = "0x0000000000000040"}));
    MachineWatch machine = many.watch();
    REQUIRE(comes_true([&] { return many.smi.calls("query-gpu").size() >= 12; }, 60));
    CHECK(machine.findings().empty());

    Scene few;
    few.smi.say("gpus.1", row({.reasons = "0x0000000000000008"}));
    CHECK(few.found().empty());
}

TEST_CASE("machine watch: another process on the engine's GPU is found by name") {
    Scene scene;
    scene.proc.process(4711, 1, 4711, "train (a)");
    scene.proc.process(4712, 1, 4712, "notebook");
    scene.smi.say("apps", app(engine_process, 0, "20000") + app(4711, 0, "12000") + app(4712, 0, "300"));
    const auto findings = scene.found();
    REQUIRE(ids(findings) == Words{"gpu_shared"});
    CHECK(findings.front().left == "GPU 0: 12300 MiB held by train (a) (4711), notebook (4712)");
    CHECK(findings.front().right == "at most 256 MiB held by processes that are not the engine's");

    scene.smi.say("apps", app(engine_process, 0, "20000") + app(4711, 0, "30"));  // only looks
    CHECK(scene.found().empty());
    scene.smi.say("apps", app(engine_process, 0, "20000") + app(4711, 0, "[N/A]"));
    CHECK(scene.found().empty());
    scene.smi.say("apps", app(engine_process, 0, "20000") + app(999'999, 0, "12000"));  // a number of another container
    CHECK(scene.found().empty());
}

TEST_CASE("machine watch: all that the engine has started is the engine's") {
    Scene scene;
    scene.proc.process(400'200, engine_process, engine_process, "worker");
    scene.proc.process(400'300, 1, engine_process, "orphan of the group");
    scene.proc.process(400'400, 400'200, 400'400, "left the group");
    scene.proc.process(400'500, 1, 400'500, "left all", 0, 0, std::string("A=b\0SERVETUNE_STUDY=study-7\0", 27));
    scene.proc.process(400'600, 400'500, 400'600, "child of what left all");
    std::string apps;
    for (const int id : {getpid(), 400'200, 400'300, 400'400, 400'500, 400'600}) apps += app(id, 0, "9000");
    scene.smi.say("apps", apps);
    CHECK(scene.found().empty());
    scene.proc.process(400'700, 1, 400'700, "of another study", 0, 0, std::string("SERVETUNE_STUDY=study-70\0", 25));
    scene.smi.say("apps", apps + app(400'700, 0, "9000"));
    CHECK(ids(scene.found()) == Words{"gpu_shared"});
}

TEST_CASE("machine watch: only the engine's GPUs are judged") {
    Scene scene;
    scene.proc.process(4711, 1, 4711, "train");
    scene.smi.say("gpus", row({.index = 0, .reasons = "0x0000000000000040"}) + row({.index = 1}));
    scene.smi.say("apps", app(4711, 0, "12000") + app(engine_process, 1, "20000"));
    CHECK(scene.found().empty());  // none is named, and the engine is on GPU 1
    const auto with = [&](const std::string& gpus) {
        scene.options.gpus = gpus;
        return ids(scene.found());
    };
    const Words both{"gpu_throttled", "gpu_shared"};
    CHECK(with("1").empty());
    CHECK(with("0") == both);
    CHECK(with("1,0") == both);
    CHECK(with("GPU-0a5") == both);
    CHECK(with("MIG-" + uuid(0) + "/1/0") == both);
    CHECK(with("GPU-1a5, 7, 0").empty());  // CUDA stops at the first that is none
    CHECK(scene.said.empty());
    CHECK(with("7,0").empty());
    CHECK(scene.said == Words{"the GPUs cannot be watched: nvidia-smi: it lists no GPU '7'"});

    scene.options.gpus = "";
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    CHECK(ids(scene.found()) == both);
    const std::size_t calls = scene.smi.calls("").size();
    for (const char* none : {"", "-1"}) {
        setenv("CUDA_VISIBLE_DEVICES", none, 1);
        CHECK(scene.watch().findings().empty());
    }
    CHECK(scene.smi.calls("").size() == calls);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("machine watch: where no process is told, memory in use before the start tells of others") {
    Scene scene;
    scene.options.before = {{0, uuid(0), 20480UL << 20UL, 81559UL << 20UL}};
    const auto findings = scene.found();
    REQUIRE(ids(findings) == Words{"gpu_shared"});
    CHECK(findings.front().left == "GPU 0: 20480 MiB in use before the engine started, nvidia-smi does not tell by whom");
    CHECK(findings.front().right == "at most 2048 MiB");
    scene.smi.say("apps", app(999'999, 0, "20000"));  // numbers that are the host's
    CHECK(ids(scene.found()) == Words{"gpu_shared"});
    scene.smi.say("apps", app(engine_process, 0, "20000"));  // told: what was there before has gone
    CHECK(scene.found().empty());
    scene.smi.say("apps", "");
    scene.options.before = {{0, uuid(0), 600UL << 20UL, 81559UL << 20UL}};
    CHECK(scene.found().empty());
}

TEST_CASE("machine watch: what a board does not tell is no finding") {
    for (const char* nothing : {"[N/A]", "[Not Supported]", "N/A", "[Unknown Error]"}) {
        Scene scene;
        scene.smi.say("gpus", "0, " + uuid(0) + ", " + nothing + ", " + nothing + ", " + nothing + ", " + nothing + ", " + nothing + ", " +
                                  nothing + "\n");
        scene.smi.say("apps", std::string(nothing) + ", " + nothing + ", " + nothing + "\n");
        INFO(nothing);
        CHECK(scene.found().empty());
        const Words last = scene.said;
        REQUIRE_FALSE(last.empty());
        CHECK(last.back() == "GPU 0 does not tell why its clocks are where they are");
        CHECK(GpuMemory("", scene.smi.program(), 30s).used().empty());
    }
}

TEST_CASE("machine watch: older drivers call the reasons by their older name") {
    Scene scene;
    scene.smi.say("old", "");
    scene.smi.say("gpus", row({.reasons = "0x0000000000000020"}));
    CHECK(ids(scene.found()) == Words{"gpu_throttled"});
    CHECK(scene.smi.calls(event_reasons).empty());
    CHECK(scene.smi.calls("clocks_throttle_reasons.active").size() >= 3);
    CHECK(scene.said.empty());
}

TEST_CASE("machine watch: an nvidia-smi that hangs is left alone after its time") {
    Scene scene;
    scene.options.nvidia_smi_within_seconds = 3;
    MachineWatch machine = scene.watch();
    REQUIRE(scene.smi.asked(2));
    scene.smi.say("hang", "");
    const auto begin = Clock::now();
    CHECK(machine.findings().empty());  // the last sample hangs, where the one before did not
    CHECK(seconds_since(begin) < 30);
    CHECK(scene.said == Words{"the GPUs cannot be watched: nvidia-smi: it did not answer in time"});
}

TEST_CASE("machine watch: a GPU that the driver loses meanwhile is found, one that it had lost before is said") {
    const std::string words =
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to recover this GPU";
    Scene scene;
    const auto lose = [&](const std::string& left) {
        fs::remove(fs::path(scene.smi.program()).parent_path() / "code");
        scene.smi.say("gpus", row({.index = 0}) + row({.index = 1}));
        MachineWatch machine = scene.watch();
        REQUIRE(scene.smi.asked(1));
        scene.smi.say("gpus", left);
        scene.smi.say("code", "9");
        REQUIRE(scene.smi.asked(1));
        return machine.findings();
    };
    scene.options.gpus = "1";
    const auto findings = lose(row({.index = 0}) + words + "\n");
    REQUIRE(ids(findings) == Words{"gpu_lost"});
    CHECK(findings.front().left == "nvidia-smi: " + words);
    CHECK(findings.front().right == "GPU 1 answers throughout");
    CHECK(scene.said.empty());
    CHECK(ids(lose("Unable to determine the device handle for GPU0000:BA:00.0: Unknown Error\n")) == Words{"gpu_lost"});
    CHECK(ids(lose("No devices were found\n")) == Words{"gpu_lost"});
    CHECK(scene.said.empty());

    scene.options.gpus = "0";
    CHECK(lose(row({.index = 0}) + words + "\n").empty());
    CHECK(scene.said == Words{"the GPUs cannot be watched: nvidia-smi: " + words});

    scene.said.clear();
    scene.smi.say("gpus", words + "\n");
    CHECK(scene.found().empty());
    CHECK(scene.said == Words{"the GPUs cannot be watched: nvidia-smi: " + words});
}

TEST_CASE("machine watch: nonsense is said and no finding, without an nvidia-smi nothing is asked") {
    Scene scene;
    for (const std::string& garbage : {std::string("\x01\xff,,,\n,,,,,,,\nNVIDIA-SMI has failed because it couldn't communicate\n"),
                                       std::string("1e99, a, b, c, d, e, f, g\n"), std::string(3'000'000, 'x')}) {
        scene.said.clear();
        MachineWatch machine = scene.watch();
        REQUIRE(scene.smi.asked(1));
        scene.smi.say("gpus", garbage);
        REQUIRE(scene.smi.asked(2));
        CHECK(machine.findings().empty());
        REQUIRE(scene.said.size() == 1);
        CHECK(scene.said.front().find("the GPUs cannot be watched: nvidia-smi: ") == 0);
        scene.smi.say("gpus", row({}));
    }
    Scene none;
    none.options.nvidia_smi = "no-such-nvidia-smi";
    CHECK(none.watch().findings().empty());
    CHECK(none.said.empty());
}

TEST_CASE("machine watch: time given to other virtual machines is found") {
    Scene scene;
    scene.options.nvidia_smi = "none";
    const auto after = [&](const FakeProc::Core& core) {
        scene.proc.cores({{1000, 1000, 50}, {1000, 1000, 50}});
        MachineWatch machine = scene.watch();
        scene.proc.cores({{1000 + core.user, 1000 + core.idle, 50 + core.stolen}, {1000, 1000 + core.user + core.idle + core.stolen, 50}});
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
            scene.proc.process(engine_process, getpid(), engine_process, "vllm serve", 70 + add.engine, 30 + add.ended_child);
            scene.proc.process(getpid(), 1, 1, "tests", 200 + add.self);
            scene.proc.process(other, 1, other, "cc1plus", 500 + add.other);
            const std::uint64_t busy = add.engine + add.ended_child + add.self + add.other;
            scene.proc.cores({{busy / 2, add.idle / 2}, {busy - busy / 2, add.idle - add.idle / 2}});
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
    CHECK(findings.front().cause == "other processes had cores that were needed here; most had cc1plus (12.0 s)");
    CHECK(after({.engine = 1500, .ended_child = 300, .self = 150, .other = 50}).empty());  // ours
    CHECK(after({.engine = 100, .other = 1600, .idle = 300}).empty());                     // a core was free at times
    CHECK(after({.engine = 40, .other = 100}).empty());                                    // 0.7 s
    CHECK(scene.said.empty());
}

TEST_CASE("machine watch: an engine pinned to cores is judged by these") {
    Scene scene;
    scene.options.nvidia_smi = "none";
    scene.options.cores = {1};
    const auto after = [&](std::uint64_t of_engine, std::uint64_t of_self, const std::vector<FakeProc::Core>& cores) {
        const auto now = [&](std::uint64_t one, std::uint64_t self, const std::vector<FakeProc::Core>& all) {
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
    CHECK(after(500, 500, {{1000, 0, 0}, {1000, 0, 0}}).empty());  // this process may run there too, as far as is known
    scene.proc.may_run_on(getpid(), "0,2-7");
    CHECK(after(500, 500, {{1000, 0, 0}, {1000, 0, 0}}) == Words{"cpu_shared"});
    scene.proc.may_run_on(getpid(), "0-3");
    CHECK(after(500, 500, {{1000, 0, 0}, {1000, 0, 0}}).empty());
    CHECK(scene.said.empty());
    scene.options.cores = {1, 7};
    CHECK(after(1000, 0, {{1000, 0, 0}, {1000, 0, 0}}).empty());
    CHECK(scene.said == Words{"the CPU cannot be watched: " + (scene.proc.path() / "stat").string() + " does not tell of cores 1, 7"});
}

TEST_CASE("machine watch: this machine as it is") {
    const Process spinner({.argv = {"sh", "-c", "sh -c 'while :; do :; done' & wait"}, .mark = "study-8"});
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
        CHECK(may_run_on("/proc", getpid(), {core}) == static_cast<bool>(CPU_ISSET(static_cast<std::size_t>(core), &allowed)));
}

TEST_CASE("gpu memory: it is waited for until it is free") {
    const FakeSmi smi;
    const GpuMemory memory("", smi.program(), 30s);
    smi.say("gpus", row({.index = 1, .used = "3"}) + row({.index = 0, .used = "600"}));
    const auto before = memory.used();
    REQUIRE(before.size() == 2);
    CHECK(before[0].index == 0);
    CHECK(before[0].uuid == uuid(0));
    CHECK(before[0].used_bytes == 600UL << 20UL);
    CHECK(before[0].total_bytes == 81559UL << 20UL);
    CHECK(before[1].used_bytes == 3UL << 20UL);
    CHECK(GpuMemory("1", smi.program(), 30s).used().size() == 1);

    for (const char* n : {"3", "4", "5"})
        smi.say(std::string("gpus.") + n, row({.index = 0, .used = "600"}) + row({.index = 1, .used = "516"}));
    smi.say("gpus.6", row({.index = 0, .used = "1112"}) + row({.index = 1, .used = "515"}));
    CHECK(memory.wait_until_free(before, 60s).empty());
    CHECK(smi.calls("query-gpu").size() == 6);
}

TEST_CASE("gpu memory: what does not go is said, and so is an nvidia-smi that does not answer") {
    const FakeSmi smi;
    const GpuMemory memory("", smi.program(), 30s);
    smi.say("gpus", row({.used = "512"}));
    const auto before = memory.used();
    smi.say("gpus", row({.used = "20480"}));
    const auto begin = Clock::now();
    CHECK(memory.wait_until_free(before, 300ms) ==
          "GPU 0: 20480 MiB of its memory are still in use after 0.3 s, 512 MiB were before the start\n");
    CHECK(seconds_since(begin) >= 0.3);
    CHECK(seconds_since(begin) < 30);

    smi.say("gpus", "Unable to determine the device handle for GPU0000:BA:00.0: Unknown Error\n");
    CHECK(memory.wait_until_free(before, 100s) ==
          "cannot tell whether the GPUs' memory is free: nvidia-smi: Unable to determine the device "
          "handle for GPU0000:BA:00.0: Unknown Error\n");
    CHECK(memory.used().empty());
    CHECK(memory.wait_until_free({}, 100s).empty());
    smi.say("hang", "");
    CHECK(GpuMemory("", smi.program(), 200ms).wait_until_free(before, 100s).find("did not answer in time") != std::string::npos);
    CHECK(GpuMemory("", "no-such-nvidia-smi").used().empty());
    CHECK(GpuMemory("", "no-such-nvidia-smi").wait_until_free(before, 100s).empty());
    CHECK(seconds_since(begin) < 60);
}
