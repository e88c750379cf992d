// SPDX-License-Identifier: Apache-2.0
// The power of an engine's GPUs while it is measured: scripts in the place of nvidia-smi and of
// other makers' tools.
#include "support/script.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "support/waiting.hpp"
#include "support/watched_machine.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <thread>
#include <variant>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

double monotonic_now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// The power since `begin`, or why it is not known.
std::string power_text(const MachineWatch& machine, double begin) {
    const auto power = machine.power(begin, monotonic_now());
    if (const auto* why = std::get_if<std::string>(&power)) return why->empty() ? "none" : *why;
    return std::to_string(std::lround(std::get<PowerUse>(power).mean_watts)) + " W, " +
           std::to_string(std::lround(std::get<PowerUse>(power).peak_watts)) + " W at most";
}

/// The same, once the samples cover enough of the time. On a busy machine answers come late, and as
/// unevenly as they come late: then of a second from now on, again and again.
std::string power_when_covered(const MachineWatch& machine, double begin) {
    std::string text = power_text(machine, begin);
    for (int second = 0; second < 60 && has(text, "wanted"); ++second) {
        begin = monotonic_now();
        std::this_thread::sleep_for(std::chrono::seconds(1));
        text = power_text(machine, begin);
    }
    return text;
}

/// What a watch of a dozen samples measures.
std::string measured_power(const Scene& scene) {
    const MachineWatch machine = scene.watch();
    const double begin = monotonic_now();
    REQUIRE(scene.smi.asked(12));
    return power_when_covered(machine, begin);
}

std::string many_rows(const std::vector<std::string>& watts) {
    std::string rows;
    for (const std::string& one : watts)
        rows += row(
            {.index = static_cast<int>(std::count(rows.begin(), rows.end(), '\n')), .watts = one});
    return rows;
}

/// A tool that prints these words.
std::string tool_that_says(const TemporaryFolder& folder, const std::string& name,
                           const std::string& words, const std::string& then = "") {
    folder.write("words", words);
    return script(
               folder,
               "cd " + folder.path().string() + "\necho \"$*\" >> calls\ncat words\n" + then + "\n",
               name)
        .string();
}

/// A scene without nvidia-smi, but with this tool.
struct ToolScene : Scene {
    ToolScene(std::string MachineWatchOptions::*tool, const std::string& program) {
        options.nvidia_smi = "no-such-nvidia-smi";
        options.*tool = program;
    }
};

std::size_t asked_tool(const TemporaryFolder& folder) {
    std::ifstream stream(folder.path() / "calls");
    return std::size_t(std::count(std::istreambuf_iterator<char>(stream), {}, '\n'));
}

/// What it measures while the tool is asked that often.
std::string measured_by_tool(const Scene& scene, const TemporaryFolder& folder,
                             std::size_t times = 8) {
    fs::remove(folder.path() / "calls");
    const MachineWatch machine = scene.watch();
    const double begin = monotonic_now();
    REQUIRE(comes_true([&] { return asked_tool(folder) >= times; }, 60));
    return power_when_covered(machine, begin);
}

}  // namespace

TEST_CASE("power: that of all of the engine's GPUs together, of no others") {
    Scene scene;
    scene.smi.say("gpus", many_rows({"300.25", "400.75", "71.50", "72.00"}));
    scene.smi.say("apps", app(engine_process, 0, "20000") + app(engine_process, 1, "20000"));
    CHECK(measured_power(scene) == "701 W, 701 W at most");
    CHECK(scene.smi.calls("power.draw").size() ==
          scene.smi.calls("query-gpu").size());  // no further question
    scene.options.gpus = "3,2";
    CHECK(measured_power(scene) == "144 W, 144 W at most");
    scene.options.gpus = "-1";
    CHECK(power_text(scene.watch(), 0) == "none");
    CHECK(why_no_power(scene.options) != "");
    scene.options.gpus = "";
    CHECK(why_no_power(scene.options) == "");
}

TEST_CASE("power: a sum that lacks a GPU is none, and what no GPU tells is not asked of anybody") {
    Scene scene;
    scene.options.gpus = "0,1";
    scene.smi.say("gpus", many_rows({"300.00", "[N/A]"}));
    CHECK(measured_power(scene) == "none");
    CHECK(why_no_power(scene.options) == "");  // one of them tells
    for (const char* nothing : {"[N/A]", "[Not Supported]", "[Unknown Error]"}) {
        scene.smi.say("gpus", many_rows({nothing, nothing}));
        CHECK(measured_power(scene) == "none");
        CHECK(why_no_power(scene.options) ==
              "nvidia-smi tells the power of no GPU that this study may use ([N/A])");
    }
    CHECK(scene.said.empty());
    scene.options.nvidia_smi = "no-such-nvidia-smi";
    CHECK(why_no_power(scene.options) ==
          "there is no nvidia-smi, amd-smi or tegrastats on the PATH");
}

TEST_CASE(
    "power: an nvidia-smi or a GPU that dies meanwhile leaves no figure of the whole, but one of "
    "the time before") {
    for (const bool dies : {true, false}) {
        Scene scene;
        scene.options.gpus = "0,1";
        scene.smi.say("gpus", many_rows({"250.00", "350.00"}));
        const MachineWatch machine = scene.watch();
        const double begin = monotonic_now();
        REQUIRE(scene.smi.asked(12));
        CHECK(power_when_covered(machine, begin) == "600 W, 600 W at most");
        const double died = monotonic_now();
        scene.smi.say(
            "gpus",
            dies
                ? ""
                : many_rows({"250.00"}) +
                      "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.\n");
        if (dies) scene.smi.say("code", "255");
        REQUIRE(scene.smi.asked(30));
        const auto power = machine.power(begin, died);
        REQUIRE(std::holds_alternative<PowerUse>(power));
        CHECK(std::get<PowerUse>(power).mean_watts == Approx(600));
        CHECK(has(power_text(machine, begin), " % of it, 80 % wanted"));
        CHECK(power_text(machine, monotonic_now()).find("0 samples of the power") == 0);
    }
}

TEST_CASE(
    "power: AMD's tools are asked where there is no nvidia-smi, and number GPUs by themselves") {
    const TemporaryFolder folder;
    const std::string two = R"([{"gpu": 0, "power": {"socket_power": {"value": 512, "unit": "W"}}},
{"gpu": 1, "power": {"socket_power": {"value": 131, "unit": "W"}}}])";
    ToolScene amd(&MachineWatchOptions::amd_smi, tool_that_says(folder, "amd-smi", two));
    CHECK(measured_by_tool(amd, folder) == "643 W, 643 W at most");
    CHECK(read_file(folder.path() / "calls").starts_with("metric --power --json\n"));
    amd.options.gpus = "0";
    CHECK(measured_by_tool(amd, folder) == "512 W, 512 W at most");
    for (const char* others : {"0,1,2", "GPU-0a5"}) {
        amd.options.gpus = others;
        CHECK(measured_by_tool(amd, folder) == "none");
    }
    CHECK(amd.smi.calls("").empty());
    amd.options.nvidia_smi = amd.smi.program();  // whose GPUs are NVIDIA's
    amd.options.gpus = "";
    CHECK(measured_power(amd) == "413 W, 413 W at most");
}

TEST_CASE("power: a tool that fails is said once and left alone") {
    const TemporaryFolder folder;
    for (const char* words : {"ERROR: no amdgpu driver\n", "[]", ""}) {
        INFO(words);
        ToolScene scene(&MachineWatchOptions::amd_smi,
                        tool_that_says(folder, "amd-smi", words, "exit 3"));
        fs::remove(folder.path() / "calls");
        MachineWatch machine = scene.watch();
        REQUIRE(comes_true([&] { return asked_tool(folder) >= 1; }));
        machine.stop();
        CHECK(power_text(machine, 0) == "none");
        CHECK(asked_tool(folder) == 1);
        REQUIRE(scene.said.size() == 1);
        CHECK(scene.said.front().find("the power cannot be measured: amd-smi: ") == 0);
        CHECK(why_no_power(scene.options).find("amd-smi tells no power: ") == 0);
    }
}

TEST_CASE(
    "power: on a Jetson, whose nvidia-smi tells none, tegrastats tells that of the module, and is "
    "ended each time") {
    const TemporaryFolder folder;
    Scene scene;
    scene.smi.say("gpus", many_rows({"[N/A]"}));
    scene.options.tegrastats = tool_that_says(
        folder, "tegrastats",
        "RAM 4208/125773MB VDD_IN 12800mW/11500mW VDD_SOC 1200mW/1200mW\nRAM 42", "exec sleep 100");
    CHECK(why_no_power(scene.options) == "");
    CHECK(measured_by_tool(scene, folder) == "13 W, 13 W at most");
    CHECK(read_file(folder.path() / "calls").starts_with("--interval 200\n"));
    CHECK(scene.said.empty());
}
