// SPDX-License-Identifier: Apache-2.0
// `autotune doctor`: what this machine has for measuring on it, and what to do where that is not
// enough. It only looks: no network, no file is written.
#include "commands.hpp"
#include "machine_facts.hpp"
#include "output.hpp"
#include "templates.hpp"

#include "deploy/cached_models.hpp"
#include "deploy/launch_clients.hpp"
#include "engine/flag_facts.hpp"
#include "engine/launcher.hpp"
#include "host/environment.hpp"
#include "host/nvidia_smi.hpp"
#include "host/power_tool.hpp"
#include "host/process_table.hpp"
#include "host/run_command.hpp"
#include "host/start_program.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/host/devices.hpp"
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/detail/host/port.hpp"
#include "servetune/error.hpp"
#include "study/study_lock.hpp"

#include <sys/statvfs.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <system_error>

namespace autotune {

namespace {

constexpr double gib_bytes = 1UL << 30UL;
constexpr std::chrono::seconds client_patience(
    10);  // a GPU that the driver has to wake takes 1 to 3 s

enum class State { fine, worth_knowing, stops };
constexpr std::array<std::string_view, 3> state_words{"fine", "worth knowing", "stops you"};

/// What a check found.
struct Found {
    State state = State::fine;
    std::string what{};
    const char* remedy = nullptr;  ///< in place of the check's
};
using AllFound = std::vector<Found>;

AllFound fine(std::string what) { return {{State::fine, std::move(what)}}; }
AllFound worth_knowing(std::string what) { return {{State::worth_knowing, std::move(what)}}; }
AllFound stops(std::string what) { return {{State::stops, std::move(what)}}; }

/// Whether a display controller (class 03) of NVIDIA is plugged in: one that needs a driver.
bool has_card_of_nvidia() {
    std::error_code none;
    for (const auto& device : fs::directory_iterator("/sys/bus/pci/devices", none)) {
        std::string alias;
        std::ifstream(device.path() / "modalias") >> alias;
        if (alias.starts_with("pci:v000010DE") && alias.find("bc03") != alias.npos) return true;
    }
    return false;
}

AllFound gpus() {
    const NvidiaSmi smi{"nvidia-smi", client_patience};
    if (!smi.present()) {
        const MachineWatchOptions tools;
        auto tool = PowerTool::find({tools.amd_smi, tools.tegrastats});
        if (!tool && has_card_of_nvidia())
            return {{State::worth_knowing,
                     "a card of NVIDIA is plugged in, and no nvidia-smi is on the PATH",
                     "install its driver"}};
        if (!tool)
            return {{State::worth_knowing,
                     "none found: no nvidia-smi, amd-smi or tegrastats is on the PATH",
                     "nothing; here work `autotune demo`, `suggest`, `simulate` and `audit`, an "
                     "engine on the processor (`init --gpus 0`), and servers elsewhere (`attach`, "
                     "`bench`)"}};
        const auto told = tool->read(client_patience);
        if (!told || told->empty()) return stops(tool->name() + " lists none: " + tool->trouble());
        return fine(fmt::format("{} by {}", told->size(), tool->name()));
    }
    const FoundDevices found = find_devices("nvidia-smi", client_patience);
    if (found.all.empty()) return stops(found.trouble);
    if (found.visible.size() == found.all.size()) return fine(found.text());
    return worth_knowing(fmt::format("{} of {} are visible: CUDA_VISIBLE_DEVICES hides the others",
                                     found.visible.size(), found.all.size()));
}

/// Memory that is taken before an engine starts. The bounds are those by which a measurement would
/// be called disturbed.
AllFound gpu_use() {
    NvidiaSmi smi{"nvidia-smi", client_patience};
    if (!smi.present()) return {};
    const MachineWatchOptions bounds;
    std::map<std::string, std::pair<double, std::string>> others;
    for (const GpuProcess& process : smi.processes().rows) {
        auto& [mib, who] = others[process.uuid];
        mib += process.used_mib.value_or(0);
        const std::string command = command_of(process.id);
        who += fmt::format("{}{} ({})", who.empty() ? "" : ", ",
                           command.empty() ? "process" : command.substr(0, command.find(' ')),
                           process.id);
    }
    const SmiAnswer<GpuState> gpus = smi.gpus();
    if (gpus.trouble.kind != SmiTrouble::Kind::none)
        return stops("nvidia-smi: " + gpus.trouble.words);
    AllFound result;
    for (const GpuState& gpu : gpus.rows) {
        const auto& [mib, who] = others[gpu.uuid];
        const double used = gpu.used_mib.value_or(0);
        const bool by_somebody = mib > bounds.others_memory_mib;
        if (by_somebody || used > bounds.before_memory_mib)
            result.push_back(
                {State::worth_knowing,
                 fmt::format("GPU {}: {} MiB in use by {}", gpu.index,
                             fixed_text(by_somebody ? mib : used, 0),
                             by_somebody ? who : "somebody whom nvidia-smi does not show here")});
    }
    return result.empty() ? fine("no other process computes on them") : result;
}

AllFound engines() {
    AllFound result;
    const Catalogue catalogue = Catalogue::standard();
    std::string known;
    for (const Engine& engine : catalogue.engines()) {
        known += (known.empty() ? "" : ", ") + engine.name;
        if (!installed_here(engine)) continue;
        const std::string version = installed_version(engine.launch);
        if (version.empty())
            result.push_back({State::fine, engine.name + ", of an unknown version"});
        else if (const auto doubts = version_doubts(catalogue.root(), engine, version);
                 !doubts.empty())
            result.push_back({State::worth_knowing, doubts.front()});
        else result.push_back({State::fine, engine.name + " " + version});
    }
    return result.empty() ? worth_knowing("none is on the PATH of " + known) : result;
}

AllFound containers() {
    AllFound result;
    for (const std::string name : {"docker", "podman"}) {
        const fs::path program = find_program(name);
        if (program.empty()) continue;
        std::string why;
        try {
            const std::vector<std::string> words{program.string(), "ps", "--quiet"};
            const RanCommand command = run_command(words, client_patience, std::size_t{1} << 20U);
            if (command.end != RanCommand::End::exited || command.exit_code != 0)
                why = complaint_in(command);
        } catch (const IoError& error) {
            why = error.what();
        }
        if (why.empty()) result.push_back({State::fine, name + " answers"});
        else result.push_back({State::worth_knowing, name + " cannot run containers here: " + why});
    }
    return result.empty() ? fine("neither docker nor podman is here; only `container` needs them")
                          : result;
}

/// The load generator, the engine's HTTP server and its scheduler keep a core busy each; a fourth
/// for all others.
AllFound processor() {
    constexpr double enough = 4;
    const Environment facts = environment_now({.inherits = false});
    const auto fact = [&](const char* name) {
        const auto* found = entry_in(facts, name);
        return found == nullptr ? std::string() : *found;
    };
    const std::string cores = fact("cores"), limit = fact("cpu limit");
    const std::string found = processor_text() + ", of which this process may use " + cores +
                              (limit.empty() ? "" : " (control group: " + limit + ")");
    const auto number = [](const std::string& text) {
        return text.empty() ? enough : std::strtod(text.c_str(), nullptr);
    };
    if (std::min(number(cores), number(limit)) >= enough) return fine(found);
    return worth_knowing(found +
                         ": the load generator shares them with the engine, so results "
                         "may be suspect");
}

std::string gib_text(double bytes) { return fixed_text(bytes / gib_bytes, 1) + " GiB"; }

/// Docker gives 64 MiB (docker run, --shm-size); processes of several GPUs talk through it (NCCL,
/// environment variables, NCCL_SHM_DISABLE).
AllFound shared_memory() {
    struct statvfs disk {};
    if (statvfs("/dev/shm", &disk) != 0)
        return worth_knowing("is not there; engines on several GPUs need it");
    const double bytes = double(disk.f_blocks) * double(disk.f_frsize);
    if (bytes >= gib_bytes) return fine(gib_text(bytes));
    return worth_knowing(gib_text(bytes) + ": too little for an engine on several GPUs");
}

AllFound ports() {
    try {
        require_loopback();
        require_process_table();
        const ReservedPort port;
        return fine(fmt::format("127.0.0.1 takes connections, and {} is free for an engine",
                                port.number()));
    } catch (const IoError& error) {
        return stops(error.what());
    }
}

/// The folder, or the nearest one above it that is there.
fs::path nearest_there(fs::path folder) {
    std::error_code unknown;
    while (!folder.empty() && folder != folder.root_path() && !fs::is_directory(folder, unknown))
        folder = folder.parent_path();
    return folder.empty() ? fs::path("/") : folder;
}

/// Bytes that this user may still write there; as many as there can be where that is not told.
double free_bytes(const fs::path& folder) {
    struct statvfs disk {};
    if (statvfs(folder.c_str(), &disk) != 0) return std::numeric_limits<double>::max();
    return double(disk.f_bavail) * double(disk.f_frsize);
}

/// Why nothing can be written there; empty: it can.
std::string why_not_writable(const fs::path& folder) {
    return access(folder.c_str(), W_OK | X_OK) == 0 ? "" : std::generic_category().message(errno);
}

/// Where `run` writes journal, logs and report.
AllFound this_folder() {
    std::error_code unknown;
    const fs::path folder = fs::current_path(unknown);
    const double bytes = free_bytes(folder);
    const std::string found = folder.string() + ", " + gib_text(bytes) + " free";
    if (const std::string why = unknown ? unknown.message() : why_not_writable(folder);
        !why.empty())
        return stops(found + ": cannot be written: " + why);
    if (bytes < gib_bytes / 64) return stops(found + ": a study would not fit");
    // SQLite, "Write-Ahead Logging", 2.: all processes must be on one machine.
    if (const std::string shared = network_filesystem_of(folder); !shared.empty())
        return worth_knowing(found + ", on " + shared +
                             ": a journal can only be read on the machine that writes it");
    return fine(found);
}

AllFound model_cache() {
    constexpr double a_model = 20 * gib_bytes;  // 8e9 parameters of two bytes, and room
    const fs::path folder = hub_cache_folder();
    const double bytes = free_bytes(nearest_there(folder));
    const std::string found = folder.string() + ", " + gib_text(bytes) + " free";
    if (const std::string why = why_not_writable(nearest_there(folder)); !why.empty())
        return worth_knowing(found + "; it cannot be written (" + why + ")");
    if (bytes < a_model)
        return worth_knowing(found + ": less than a model of 8e9 parameters needs");
    AllFound result = fine(found);
    const Catalogue catalogue = Catalogue::standard();
    std::size_t read = 0;
    for (const CachedModel& model : cached_models({})) try {
            (void)catalogue.model_from_files(model.name);
            ++read;
        } catch (const Error& error) {
            result.push_back({State::worth_knowing, error.what(), "name a file with its facts"});
        }
    result.front().what +=
        fmt::format("; the figures of {} in it can be read", counted_text(read, "model"));
    return result;
}

/// Whether there is a token of the hub; its value is not read.
AllFound hub() {
    if (is_set("HF_HUB_OFFLINE"))
        return worth_knowing("HF_HUB_OFFLINE is set: no model is fetched");
    std::error_code none;
    if (is_set("HF_TOKEN") || fs::is_regular_file(hub_home_folder() / "token", none))
        return fine("there is a token: gated models work where its account has access");
    return worth_knowing("no token: gated models (Llama, Gemma) cannot be fetched");
}

/// What to do where something is not fine is in the template.
constexpr std::array<std::pair<const char*, AllFound (*)()>, 10> checks{{
    {"GPUs", gpus},
    {"GPU use", gpu_use},
    {"engine", engines},
    {"containers", containers},
    {"processor", processor},
    {"/dev/shm", shared_memory},
    {"ports", ports},
    {"this folder", this_folder},
    {"model cache", model_cache},
    {"hub", hub},
}};

}  // namespace

int doctor(bool json) {
    OrderedJson list = OrderedJson::array();
    std::size_t stopping = 0;
    for (const auto& [name, ask] : checks)
        for (const Found& found : ask()) {
            const std::string remedy(
                found.state == State::fine ? ""
                : found.remedy != nullptr
                    ? found.remedy
                    : trimmed(fill_template(remedies_txt_in.text, {{{name, "yes"}}})));
            const std::string_view word = state_words.at(std::size_t(found.state));
            stopping += found.state == State::stops ? 1 : 0;
            list.push_back({{"name", name},
                            {"state", word},
                            {"found", found.what},
                            {"do", remedy.empty() ? OrderedJson() : OrderedJson(remedy)}});
            if (!json)
                put(stdout, "{:13}  {}: {}{}\n", word, name, found.what,
                    remedy.empty() ? "" : "; do: " + remedy);
        }
    if (json) put_json(OrderedJson{{"stops", stopping}, {"checks", list}});
    else if (stopping == 0) put(stdout, "nothing stops you\n");
    else put(stdout, "{} stop{} you\n", counted_text(stopping, "thing"), stopping == 1 ? "s" : "");
    return stopping == 0 ? done : environment_error;
}

}  // namespace autotune
