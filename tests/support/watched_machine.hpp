// SPDX-License-Identifier: Apache-2.0
#pragma once

// A machine to watch: a script in nvidia-smi's place, a folder in /proc's, and an engine in them.

#include "servetune/detail/host/machine_watch.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace servetune::test {

using Words = std::vector<std::string>;

inline const std::string event_reasons = "clocks_event_reasons.active";

struct Gpu {
    int index = 0;
    std::string used = "20480";
    std::string reasons = "0x0000000000000004";  // its own power limit, as under any load
    std::string sm_mhz = "1755";
    std::string celsius = "64";
    std::string watts = "412.50";
};

inline std::string uuid(int index) {
    return "GPU-" + std::to_string(index) + "a571b1-79ee-1016-8ea3-c1fff3f1c1d2";
}

inline std::string row(const Gpu& gpu) {
    return std::to_string(gpu.index) + ", " + uuid(gpu.index) + ", " + gpu.used + ", 81559, " +
           gpu.sm_mhz + ", 1980, " + gpu.celsius + ", " + gpu.watts + ", " + gpu.reasons + "\n";
}

inline std::string app(int process, int gpu, const std::string& mib) {
    return std::to_string(process) + ", " + uuid(gpu) + ", " + mib + "\n";
}

/// What nvidia-smi answers: `gpus` and `apps`, for the n-th question about GPUs `gpus.n` where it
/// is there; with `old` it knows only the old field's name, with `hang` it never ends, with `code`
/// it ends with that where GPUs are asked for.
class FakeSmi {
public:
    FakeSmi() {
        folder_.write("nvidia-smi", "#!/bin/sh\ncd " + folder_.path().string() +
                                        "\n"
                                        "case \"$1\" in\n"
                                        "--query-gpu=*event_reasons*) [ -f old ] && {\n"
                                        "  echo 'Field \"clocks_event_reasons.active\" is not a "
                                        "valid field to query.'; exit 2; };;\n"
                                        "esac\n"
                                        "echo \"$*\" >> calls\n"
                                        "[ -f hang ] && exec sleep 100\n"
                                        "case \"$1\" in\n"
                                        "--query-gpu=*) n=$(grep -c query-gpu calls); if [ -f "
                                        "gpus.$n ]; then cat gpus.$n; else cat gpus; "
                                        "fi; [ -f code ] && exit $(cat code);;\n"
                                        "*) cat apps;;\n"
                                        "esac\n"
                                        "exit 0\n");
        std::filesystem::permissions(program(), std::filesystem::perms::owner_all);
        say("apps", "");
        say("gpus", row({}));
        unsetenv("CUDA_VISIBLE_DEVICES");
    }

    [[nodiscard]] std::string program() const { return (folder_.path() / "nvidia-smi").string(); }
    /// In one step: a question meanwhile reads the old words or the new ones.
    void say(const std::string& name, const std::string& words) const {
        folder_.write(name + ".new", words);
        std::filesystem::rename(folder_.path() / (name + ".new"), folder_.path() / name);
    }
    [[nodiscard]] Words calls(const std::string& with) const {
        std::ifstream stream(folder_.path() / "calls");
        Words result;
        for (std::string line; std::getline(stream, line);)
            if (has(line, with)) result.push_back(line);
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

    [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }
    void process(int id, int parent, int group, const std::string& name, std::uint64_t own = 0,
                 std::uint64_t children = 0, const std::string& environment = "") const {
        const std::string folder = std::to_string(id);
        std::filesystem::create_directories(folder_.path() / folder);
        const std::string half =
            std::to_string(own / 2) + " " + std::to_string(own - own / 2) + " ";
        folder_.write(folder + "/stat", folder + " (" + name + ") S " + std::to_string(parent) +
                                            " " + std::to_string(group) +
                                            " 1 0 -1 4194304 1 1 1 1 " + half +
                                            std::to_string(children) + " 0 20 0 1 0 " +
                                            std::to_string(1000 + id) + " 1 1\n");
        folder_.write(folder + "/environ", environment);
    }
    void may_run_on(int id, const std::string& cores) const {
        folder_.write(std::to_string(id) + "/status",
                      "Name:\tx\nCpus_allowed_list:\t" + cores + "\n");
    }
    struct Core {
        std::uint64_t user = 0, idle = 0, stolen = 0;
    };
    void cores(const std::vector<Core>& cores) const {
        Core all;
        std::string lines;
        const auto line = [](const std::string& name, const Core& core) {
            return name + " " + std::to_string(core.user) + " 0 0 " + std::to_string(core.idle) +
                   " 0 0 0 " + std::to_string(core.stolen) + " 0 0\n";
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

inline constexpr int engine_process =
    400'100;  // beyond any process number that is usual, so no fixture has this process's own

struct Scene {
    FakeSmi smi;
    FakeProc proc;
    Words said{};
    MachineWatchOptions options{};

    Scene() {
        options.nvidia_smi = smi.program();
        options.amd_smi = options.tegrastats = "no-such-tool";
        options.every_seconds = 0.01;
        options.nvidia_smi_within_seconds = 30;
        options.proc = proc.path();
        options.say = [this](const std::string& line) { said.push_back(line); };
        proc.cores({{0, 0, 0}});
        proc.process(engine_process, getpid(), engine_process, "vllm serve");
    }
    [[nodiscard]] MachineWatch watch() const {
        return MachineWatch({engine_process, "study-7"}, options);
    }
    /// What three samples and more find.
    std::vector<Finding> found() {
        MachineWatch machine({engine_process, "study-7"}, options);
        REQUIRE(smi.asked(3));
        return machine.findings();
    }
};

inline Words ids(const std::vector<Finding>& findings) {
    Words result;
    for (const Finding& one : findings) result.push_back(one.id);
    return result;
}

}  // namespace servetune::test
