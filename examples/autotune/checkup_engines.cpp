// SPDX-License-Identifier: Apache-2.0
#include "checkup.hpp"
#include "machine_facts.hpp"

#include "deploy/launch_clients.hpp"
#include "engine/flag_facts.hpp"
#include "engine/installed_version.hpp"
#include "host/run_command.hpp"
#include "servetune/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace autotune {

using namespace servetune;
using State = Checkup::State;

namespace {

/// `installed_version` gives this of a program that no package tells the version of.
bool is_stamp(const std::string& version) {
    return version.find(" bytes of ") != std::string::npos;
}

Checkup installed_engine(const Engine& engine, const Catalogue& catalogue) {
    const std::string version = installed_version(engine.launch);
    const std::string place = program_on_path(engine.launch.front()).string();
    if (version.empty() || is_stamp(version))
        return {"engine", State::fine,
                fmt::format("{} in {}, of an unknown version{}", engine.name, place,
                            version.empty() ? "" : " (" + version + ")"),
                "`autotune validate STUDY` compares its --help with the flags that are known"};
    if (const auto doubts = version_doubts(catalogue.root(), engine, version); !doubts.empty())
        return {"engine", State::worth_knowing, doubts.front(),
                "`autotune validate STUDY` compares its --help with the flags that are known"};
    const auto facts = facts_for(catalogue.root(), engine.name, version);
    const std::string known = !facts ? "no flags of it are stored"
                              : facts->version == version
                                  ? "its flags are stored"
                                  : "the flags stored of " + facts->version + " count";
    return {"engine", State::fine,
            fmt::format("{} {} in {}; {}", engine.name, version, place, known)};
}

/// What a client of containers says, and its exit code; 127 where it cannot be run.
std::pair<int, std::string> client_said(const std::filesystem::path& program,
                                        const std::vector<std::string>& words) {
    std::vector<std::string> argv{program.string()};
    argv.insert(argv.end(), words.begin(), words.end());
    constexpr std::chrono::seconds patience(10);
    constexpr std::size_t output_bytes = 1UL << 20UL;
    try {
        const RanCommand command = run_command(argv, patience, output_bytes);
        const bool ended = command.end == RanCommand::End::exited;
        return {ended ? command.exit_code : 127,
                command.exit_code == 0 && ended ? command.output : complaint_in(command)};
    } catch (const IoError& error) {
        return {127, error.what()};
    }
}

/// Whether this user may run containers with one of the programs.
Checkup container_client(const std::string& name, const std::filesystem::path& program) {
    const auto [code, words] = client_said(program, {"ps", "--quiet"});
    if (code == 0) return {"containers", State::fine, name + " answers in " + program.string()};
    const bool refused = words.find("permission denied") != std::string::npos;
    return {"containers", State::worth_knowing, name + " cannot run containers here: " + words,
            refused ? "join the group that owns its socket (sudo usermod -aG " + name +
                          " $USER, then log in again)"
                    : "start its service, or do without `container` in studies"};
}

/// Whether containers can be given GPUs by it: docker by a hook, podman by a list of devices
/// (NVIDIA Container Toolkit, installation guide).
Checkup gpus_of_containers(const std::string& name) {
    const std::filesystem::path tool = program_on_path("nvidia-ctk");
    const bool hook = !program_on_path("nvidia-container-runtime-hook").empty();
    if (tool.empty() && !hook)
        return {
            "containers", State::worth_knowing,
            name + " cannot give containers GPUs: NVIDIA's container toolkit is not on the PATH",
            "install nvidia-container-toolkit"};
    const bool lists =
        name == "docker" ||
        client_said(tool, {"cdi", "list"}).second.find("nvidia.com/gpu=") != std::string::npos;
    if (lists)
        return {"containers", State::fine,
                name + " can give containers GPUs: NVIDIA's container toolkit is here"};
    return {"containers", State::worth_knowing,
            name + " cannot give containers GPUs: nvidia-ctk lists no device",
            "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"};
}

}  // namespace

std::vector<Checkup> checkups_of_engines(const Catalogue& catalogue) {
    std::vector<Checkup> result;
    std::vector<std::string> known;
    for (const Engine& engine : catalogue.engines()) {
        known.push_back(engine.name);
        if (installed_here(engine)) result.push_back(installed_engine(engine, catalogue));
    }
    if (result.empty())
        result.push_back({"engine", State::worth_knowing,
                          fmt::format("none is on the PATH of {}", fmt::join(known, ", ")),
                          "install one or activate its environment; or use an image (`container`) "
                          "or a server that runs (`attach`)"});
    return result;
}

std::vector<Checkup> checkups_of_containers(bool gpus) {
    std::vector<Checkup> result;
    for (const std::string name : {"docker", "podman"}) {
        const std::filesystem::path program = program_on_path(name);
        if (program.empty()) continue;
        result.push_back(container_client(name, program));
        if (gpus && result.back().state == State::fine) result.push_back(gpus_of_containers(name));
    }
    if (result.empty())
        result.push_back({"containers", State::fine,
                          "neither docker nor podman is here; only `container` needs them"});
    return result;
}

}  // namespace autotune
