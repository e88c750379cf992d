// SPDX-License-Identifier: Apache-2.0
// The watch over the GPUs, and the wait until their memory is free: a script in nvidia-smi's place.
#include "support/test.hpp"

#include "servetune/detail/host/machine_watch.hpp"
#include "support/waiting.hpp"
#include "support/watched_machine.hpp"

#include <unistd.h>

#include <chrono>
#include <cstddef>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST_CASE("machine watch: a GPU of one's own at its power limit is undisturbed") {
    Scene scene;
    scene.smi.say("apps", app(engine_process, 0, "20000"));
    CHECK(scene.found().empty());
    CHECK(scene.said.empty());
    const Words gpus = scene.smi.calls("query-gpu");
    CHECK(gpus.front() ==
          "--query-gpu=index,uuid,memory.used,memory.total,clocks.sm,clocks.max.sm,temperature.gpu,"
          "power.draw," +
              event_reasons + " --format=csv,noheader,nounits");
    CHECK(scene.smi.calls("query-compute").front() ==
          "--query-compute-apps=pid,gpu_uuid,used_memory --format=csv,noheader,nounits");
}

TEST_CASE(
    "machine watch: samples are taken at the beginning and at the end, however far apart they "
    "are") {
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
    CHECK(left == "GPU 0: HW slowdown, HW thermal slowdown in " + std::to_string(samples - 1) +
                      " of " + std::to_string(samples) +
                      " samples, SM clock down to 810 of 1980 MHz, up to 91 C");
    CHECK(findings.front().right == "in at most 10 % of the samples");
    CHECK(has(findings.front().cause, "hot"));

    for (const char* reasons : {"0x0000000000000008", "0x0000000000000020", "0x0000000000000080"}) {
        Scene other;
        other.smi.say("gpus", row({.reasons = reasons}));
        INFO(reasons);
        CHECK(ids(other.found()) == Words{"gpu_throttled"});
    }
    for (const char* reasons : {"0x0000000000000000", "0x0000000000000001", "0x0000000000000002",
                                "0x0000000000000010", "0x0000000000000100"}) {
        Scene other;
        other.smi.say("gpus", row({.reasons = reasons}));
        INFO(reasons);
        CHECK(other.found().empty());
    }
}

TEST_CASE(
    "machine watch: a slowdown in one sample of many is none, nor one that is told while clocks "
    "change") {
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
    scene.smi.say("apps",
                  app(engine_process, 0, "20000") + app(4711, 0, "12000") + app(4712, 0, "300"));
    const auto findings = scene.found();
    REQUIRE(ids(findings) == Words{"gpu_shared"});
    CHECK(findings.front().left == "GPU 0: 12300 MiB held by train (a) (4711), notebook (4712)");
    CHECK(findings.front().right == "at most 256 MiB held by processes that are not the engine's");

    scene.smi.say("apps", app(engine_process, 0, "20000") + app(4711, 0, "30"));  // only looks
    CHECK(scene.found().empty());
    scene.smi.say("apps", app(engine_process, 0, "20000") + app(4711, 0, "[N/A]"));
    CHECK(scene.found().empty());
    scene.smi.say("apps", app(engine_process, 0, "20000") +
                              app(999'999, 0, "12000"));  // a number of another container
    CHECK(scene.found().empty());
}

TEST_CASE("machine watch: all that the engine has started is the engine's") {
    Scene scene;
    scene.proc.process(400'200, engine_process, engine_process, "worker");
    scene.proc.process(400'300, 1, engine_process, "orphan of the group");
    scene.proc.process(400'400, 400'200, 400'400, "left the group");
    scene.proc.process(400'500, 1, 400'500, "left all", 0, 0,
                       std::string("A=b\0SERVETUNE_STUDY=study-7\0", 27));
    scene.proc.process(400'600, 400'500, 400'600, "child of what left all");
    std::string apps;
    for (const int id : {getpid(), 400'200, 400'300, 400'400, 400'500, 400'600})
        apps += app(id, 0, "9000");
    scene.smi.say("apps", apps);
    CHECK(scene.found().empty());
    scene.proc.process(400'700, 1, 400'700, "of another study", 0, 0,
                       std::string("SERVETUNE_STUDY=study-70\0", 25));
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

TEST_CASE(
    "machine watch: where no process is told, memory in use before the start tells of others") {
    Scene scene;
    scene.options.before = {{0, uuid(0), 20480UL << 20UL, 81559UL << 20UL}};
    const auto findings = scene.found();
    REQUIRE(ids(findings) == Words{"gpu_shared"});
    CHECK(findings.front().left ==
          "GPU 0: 20480 MiB in use before the engine started, nvidia-smi does not tell by whom");
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
        scene.smi.say("gpus", "0, " + uuid(0) + ", " + nothing + ", " + nothing + ", " + nothing +
                                  ", " + nothing + ", " + nothing + ", " + nothing + ", " +
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

TEST_CASE(
    "machine watch: a GPU that the driver loses meanwhile is found, one that it had lost before is "
    "said") {
    const std::string words =
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the "
        "system to recover this GPU";
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
    CHECK(ids(lose("Unable to determine the device handle for GPU0000:BA:00.0: Unknown Error\n")) ==
          Words{"gpu_lost"});
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

TEST_CASE(
    "machine watch: nonsense is said and no finding, without an nvidia-smi nothing is asked") {
    Scene scene;
    for (const std::string& garbage :
         {std::string(
              "\x01\xff,,,\n,,,,,,,,\nNVIDIA-SMI has failed because it couldn't communicate\n"),
          std::string("1e99, a, b, c, d, e, f, g, h\n"), std::string(3'000'000, 'x')}) {
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
        smi.say(std::string("gpus.") + n,
                row({.index = 0, .used = "600"}) + row({.index = 1, .used = "516"}));
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
          "GPU 0: 20480 MiB of its memory are still in use after 0.3 s, 512 MiB were before the "
          "start\n");
    CHECK(seconds_since(begin) >= 0.3);
    CHECK(seconds_since(begin) < 30);

    smi.say("gpus", "Unable to determine the device handle for GPU0000:BA:00.0: Unknown Error\n");
    CHECK(
        memory.wait_until_free(before, 100s) ==
        "cannot tell whether the GPUs' memory is free: nvidia-smi: Unable to determine the device "
        "handle for GPU0000:BA:00.0: Unknown Error\n");
    CHECK(memory.used().empty());
    CHECK(memory.wait_until_free({}, 100s).empty());
    smi.say("hang", "");
    CHECK(has(GpuMemory("", smi.program(), 200ms).wait_until_free(before, 100s),
              "did not answer in time"));
    CHECK(GpuMemory("", "no-such-nvidia-smi").used().empty());
    CHECK(GpuMemory("", "no-such-nvidia-smi").wait_until_free(before, 100s).empty());
    CHECK(seconds_since(begin) < 60);
}
