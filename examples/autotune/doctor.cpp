// SPDX-License-Identifier: Apache-2.0
// `autotune doctor`: what this machine has for measuring on it, and what to do where that is not
// enough. It only looks: no network, no file is written.
#include "commands.hpp"
#include "machine_facts.hpp"
#include "output.hpp"

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
#include "servetune/detail/host/machine_watch.hpp"
#include "servetune/detail/host/port.hpp"
#include "servetune/detail/host/topology.hpp"
#include "servetune/error.hpp"
#include "study/study_lock.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace autotune {

using namespace servetune;
namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

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
    std::string remedy{};  ///< in place of the check's
};
using AllFound = std::vector<Found>;

/// What several checks look at, asked once.
struct Machine {
    Catalogue catalogue = Catalogue::standard();
    Environment facts = environment_now({.inherits = false});
    NvidiaSmi smi{"nvidia-smi", client_patience};
    FoundDevices devices =
        smi.present() ? find_devices("nvidia-smi", client_patience) : FoundDevices{};
    SmiAnswer<GpuState> gpus = devices.all.empty() ? SmiAnswer<GpuState>{} : smi.gpus();
    SmiAnswer<GpuSettings> settings =
        devices.all.empty() ? SmiAnswer<GpuSettings>{} : smi.settings();

    [[nodiscard]] std::string fact(const std::string& name) const {
        const auto found = facts.find(name);
        return found == facts.end() ? "" : found->second;
    }
};

AllFound worth_knowing(std::string what, std::string remedy = "") {
    return {{State::worth_knowing, std::move(what), std::move(remedy)}};
}
AllFound fine(std::string what) { return {{State::fine, std::move(what)}}; }
AllFound stops(std::string what, std::string remedy = "") {
    return {{State::stops, std::move(what), std::move(remedy)}};
}

AllFound gpus(Machine& m) {
    if (!m.smi.present()) {
        const MachineWatchOptions tools;
        auto tool = PowerTool::find({tools.amd_smi, tools.rocm_smi, tools.tegrastats});
        if (!tool)
            return worth_knowing(
                "none found: no nvidia-smi, amd-smi, rocm-smi or tegrastats is on the PATH",
                "an engine can serve from the processor (`autotune init --gpus 0`) or on another "
                "machine (docs/guides/elsewhere.md)");
        const auto told = tool->read(client_patience);
        if (!told || told->empty()) return stops(tool->name() + " lists none: " + tool->trouble());
        return fine(fmt::format("{} by {}", told->size(), tool->name()));
    }
    const FoundDevices& found = m.devices;
    if (found.all.empty()) return stops(found.trouble);
    if (found.visible.size() == found.all.size()) return fine(found.text());
    return worth_knowing(fmt::format("{} of {} are visible: CUDA_VISIBLE_DEVICES hides the others",
                                     found.visible.size(), found.all.size()),
                         "unset it, or name them in the study: `deploy: {gpus: ...}`");
}

AllFound driver(Machine& m) {
    if (m.devices.all.empty() || m.devices.all.front().driver.empty()) return {};
    const std::string cuda = m.smi.cuda_version();
    return fine(m.devices.all.front().driver + (cuda.empty() ? "" : ", CUDA up to " + cuda));
}

AllFound gpu_state(Machine& m) {
    if (m.gpus.trouble.kind == SmiTrouble::Kind::none) return {};
    return stops("nvidia-smi: " + m.gpus.trouble.words);
}

/// Memory that is taken before an engine starts. The bounds are those by which a measurement would
/// be called disturbed.
AllFound gpu_use(Machine& m) {
    if (m.devices.all.empty()) return {};
    const MachineWatchOptions bounds;
    std::map<std::string, std::pair<double, std::string>> others;
    for (const GpuProcess& process : m.smi.processes().rows) {
        auto& [mib, who] = others[process.uuid];
        mib += process.used_mib.value_or(0);
        const std::string command = command_of(process.id);
        who += fmt::format("{}{} ({})", who.empty() ? "" : ", ",
                           command.empty() ? "process" : command.substr(0, command.find(' ')),
                           process.id);
    }
    AllFound result;
    for (const GpuState& gpu : m.gpus.rows) {
        const auto& [mib, who] = others[gpu.uuid];
        const double used = gpu.used_mib.value_or(0);
        const bool by_somebody = mib > bounds.others_memory_mib;
        if (!by_somebody && used <= bounds.before_memory_mib) continue;
        result.push_back(
            {State::worth_knowing,
             fmt::format("GPU {}: {} MiB in use by {}", gpu.index,
                         fixed_text(by_somebody ? mib : used, 0),
                         by_somebody ? who : "somebody whom nvidia-smi does not show here")});
    }
    return result.empty() ? fine("no other process computes on them") : result;
}

AllFound clocks(Machine& m) {
    AllFound result;
    for (const GpuState& gpu : m.gpus.rows)
        if (const std::uint64_t held =
                gpu.reasons.value_or(0) & (sw_thermal | hw_thermal | hw_power_brake);
            held != 0)
            result.push_back(
                {State::worth_knowing,
                 fmt::format("GPU {} is held down now by {}{}", gpu.index, text_of_reasons(held),
                             gpu.celsius ? ", at " + fixed_text(*gpu.celsius, 0) + " C" : "")});
    return result;
}

AllFound power_limit(Machine& m) {
    AllFound result;
    for (const GpuSettings& gpu : m.settings.rows)
        if (gpu.watts_at_most && gpu.usual_watts_at_most &&
            *gpu.watts_at_most < *gpu.usual_watts_at_most) {
            const std::string delivered = fixed_text(*gpu.usual_watts_at_most, 0);
            result.push_back({State::worth_knowing,
                              fmt::format("GPU {}: {} W, {} W as delivered", gpu.index,
                                          fixed_text(*gpu.watts_at_most, 0), delivered),
                              fmt::format("unless that is meant: sudo nvidia-smi -i {} -pl {}",
                                          gpu.index, delivered)});
        }
    return result;
}

/// `GPU 0`, `GPUs 0, 1`: those whose settings are so; empty: none.
template <class Is>
std::string gpus_that(const Machine& m, const Is& is) {
    std::vector<int> found;
    for (const GpuSettings& gpu : m.settings.rows)
        if (is(gpu)) found.push_back(gpu.index);
    return found.empty()
               ? ""
               : fmt::format("GPU{} {}", found.size() == 1 ? "" : "s", fmt::join(found, ", "));
}

AllFound persistence(Machine& m) {
    const std::string off = gpus_that(
        m, [](const GpuSettings& gpu) { return gpu.persistence == std::optional(false); });
    if (off.empty()) return {};
    return worth_knowing("off on " + off +
                         ": the driver unloads between trials, and each start waits for it");
}

AllFound compute_mode(Machine& m) {
    const auto in_mode = [&](const char* mode) {
        return gpus_that(m, [mode](const GpuSettings& gpu) { return gpu.compute_mode == mode; });
    };
    if (const std::string shut = in_mode("Prohibited"); !shut.empty())
        return stops("Prohibited on " + shut + ": nothing can compute there");
    if (const std::string alone = in_mode("Exclusive_Process"); !alone.empty())
        return worth_knowing("Exclusive_Process on " + alone +
                             ": two processes cannot share a GPU, `weight_cache` needs that");
    return {};
}

AllFound engines(Machine& m) {
    AllFound result;
    std::vector<std::string> known;
    const std::string compare =
        "`autotune validate STUDY` compares its --help with the flags that are known";
    for (const Engine& engine : m.catalogue.engines()) {
        known.push_back(engine.name);
        if (!installed_here(engine)) continue;
        const std::string version = installed_version(engine.launch);
        const std::string place = find_program(engine.launch.front()).string();
        if (version.empty() || version.find(" bytes of ") != std::string::npos)
            result.push_back(
                {State::fine, engine.name + " in " + place + ", of an unknown version", compare});
        else if (const auto doubts = version_doubts(m.catalogue.root(), engine, version);
                 !doubts.empty())
            result.push_back({State::worth_knowing, doubts.front(), compare});
        else {
            const auto facts = facts_for(m.catalogue.root(), engine.name, version);
            result.push_back(
                {State::fine,
                 fmt::format("{} {} in {}; {}", engine.name, version, place,
                             !facts ? "no flags of it are stored"
                             : facts->version == version
                                 ? "its flags are stored"
                                 : "the flags stored of " + facts->version + " count")});
        }
    }
    if (!result.empty()) return result;
    return worth_knowing(fmt::format("none is on the PATH of {}", fmt::join(known, ", ")));
}

/// What a client of containers says, and its exit code; 127 where it cannot be run.
std::pair<int, std::string> client_said(std::vector<std::string> argv) {
    try {
        const RanCommand command = run_command(argv, client_patience, std::size_t{1} << 20U);
        const bool ended = command.end == RanCommand::End::exited;
        return {ended ? command.exit_code : 127,
                command.exit_code == 0 && ended ? command.output : complaint_in(command)};
    } catch (const IoError& error) {
        return {127, error.what()};
    }
}

/// docker gets GPUs by a hook, podman by a list of devices (NVIDIA Container Toolkit, installation
/// guide).
Found gpus_of_containers(const std::string& name) {
    const fs::path tool = find_program("nvidia-ctk");
    if (tool.empty() && find_program("nvidia-container-runtime-hook").empty())
        return {State::worth_knowing,
                name +
                    " cannot give containers GPUs: NVIDIA's container "
                    "toolkit is not on the PATH",
                "install nvidia-container-toolkit"};
    if (name == "podman" &&
        client_said({tool.string(), "cdi", "list"}).second.find("nvidia.com/gpu=") ==
            std::string::npos)
        return {State::worth_knowing,
                name + " cannot give containers GPUs: nvidia-ctk lists no device",
                "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"};
    return {State::fine, name + " can give containers GPUs: NVIDIA's container toolkit is here"};
}

AllFound containers(Machine& m) {
    AllFound result;
    for (const std::string name : {"docker", "podman"}) {
        const fs::path program = find_program(name);
        if (program.empty()) continue;
        const auto [code, words] = client_said({program.string(), "ps", "--quiet"});
        if (code != 0) {
            const bool refused = words.find("permission denied") != std::string::npos;
            result.push_back({State::worth_knowing, name + " cannot run containers here: " + words,
                              refused ? "join the group that owns its socket (sudo usermod -aG " +
                                            name + " $USER, then log in again)"
                                      : ""});
            continue;
        }
        result.push_back({State::fine, name + " answers in " + program.string()});
        if (!m.devices.all.empty()) result.push_back(gpus_of_containers(name));
    }
    return result.empty() ? fine("neither docker nor podman is here; only `container` needs them")
                          : result;
}

/// The load generator, the engine's HTTP server and its scheduler keep a core busy each; a fourth
/// for all others.
AllFound processor(Machine& m) {
    constexpr double enough = 4;
    const std::string cores = m.fact("cores"), limit = m.fact("cpu limit");
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

AllFound governor(Machine& m) {
    const std::string how = m.fact("cpu governor");
    if (how.find("powersave") == std::string::npos && how.find("ondemand") == std::string::npos)
        return {};
    return worth_knowing(how + ": clocks rise only under load, which adds noise");
}

/// Bytes of a row of /proc/meminfo; 0: not told.
double memory_row(const std::string& name) {
    std::ifstream lines("/proc/meminfo");
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with(name + ":"))
            return std::strtod(line.c_str() + name.size() + 1, nullptr) * 1024;
    return 0;
}

std::string gib_text(double bytes) { return fixed_text(bytes / gib_bytes, 1) + " GiB"; }

AllFound memory(Machine& m) {
    constexpr double little = 8 * gib_bytes;  // a Python engine takes some before the weights
    const std::string limit = m.fact("memory limit");
    double allowed = memory_row("MemAvailable");
    const std::string found = gib_text(allowed) + " of " + gib_text(memory_row("MemTotal")) +
                              " available" +
                              (limit.empty() ? "" : " (control group: " + limit + ")");
    if (!limit.empty())
        allowed = std::min(allowed, std::strtod(limit.c_str(), nullptr) * (1 << 20));
    if (allowed >= little) return fine(found);
    return worth_knowing(found + ": little for an engine that loads weights through it");
}

/// Docker gives 64 MiB (docker run, --shm-size); processes of several GPUs talk through it (NCCL,
/// environment variables, NCCL_SHM_DISABLE).
AllFound shared_memory(Machine& /*m*/) {
    struct statvfs disk {};
    if (statvfs("/dev/shm", &disk) != 0)
        return worth_knowing("is not there; engines on several GPUs need it",
                             "mount a tmpfs on /dev/shm");
    const double bytes = static_cast<double>(disk.f_blocks) * static_cast<double>(disk.f_frsize);
    if (bytes >= gib_bytes) return fine(gib_text(bytes));
    return worth_knowing(gib_text(bytes) + ": too little for an engine on several GPUs");
}

AllFound open_files(Machine& /*m*/) {
    constexpr rlim_t enough = 4096;  // the largest load of a shipped workload has 1000 in flight
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);  // the load generator raises the soft limit by itself
    const std::string found = limit.rlim_max == RLIM_INFINITY
                                  ? "any number"
                                  : "at most " + std::to_string(limit.rlim_max);
    if (limit.rlim_max >= enough) return fine(found);
    return worth_knowing(found + ": each request in flight takes one, here and in the engine");
}

AllFound ports(Machine& /*m*/) {
    try {
        require_loopback();
        const ReservedPort port;
        return fine(fmt::format("127.0.0.1 takes connections, and {} is free for an engine",
                                port.number()));
    } catch (const IoError& error) {
        return stops(error.what());
    }
}

AllFound process_table(Machine& /*m*/) {
    try {
        require_process_table();
        return {};
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
    return static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
}

/// Why nothing can be written there; empty: it can.
std::string why_not_writable(const fs::path& folder) {
    return access(folder.c_str(), W_OK | X_OK) == 0 ? "" : std::generic_category().message(errno);
}

/// Where `run` writes journal, logs and report.
AllFound this_folder(Machine& /*m*/) {
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
    if (bytes < gib_bytes) return worth_knowing(found + ": the logs of a long study may not fit");
    return fine(found);
}

AllFound temporary_files(Machine& /*m*/) {
    std::error_code trouble;
    const fs::path folder = fs::temp_directory_path(trouble);
    const std::string why = trouble ? trouble.message() : why_not_writable(folder);
    if (why.empty()) return fine(folder.string() + ", " + gib_text(free_bytes(folder)) + " free");
    return worth_knowing("cannot be written (" + why +
                         "): journals that may not be written cannot be read");
}

AllFound model_cache(Machine& m) {
    constexpr double a_model = 20 * gib_bytes;  // 8e9 parameters of two bytes, and room
    const fs::path folder = hub_cache_folder();
    const double bytes = free_bytes(nearest_there(folder));
    std::vector<std::string> files;
    for (const Engine& engine : m.catalogue.engines())
        files.insert(files.end(), engine.model_files.begin(), engine.model_files.end());
    const std::string found =
        fmt::format("{}, {} free, {} here and in other caches", folder.string(), gib_text(bytes),
                    counted_text(cached_models(files).size(), "model"));
    if (const std::string why = why_not_writable(nearest_there(folder)); !why.empty())
        return worth_knowing(found + "; it cannot be written (" + why + ")");
    if (bytes < a_model)
        return worth_knowing(found + ": less than a model of 8e9 parameters needs");
    return fine(found);
}

/// Whether there is a token of the hub; its value is not read.
AllFound hub(Machine& /*m*/) {
    const auto is_set = [](const char* name) {
        const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
        return value != nullptr && *value != '\0';
    };
    for (const char* offline : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"})
        if (is_set(offline))
            return worth_knowing(std::string(offline) + " is set: engines fetch no model",
                                 "unset it to fetch models");
    std::string where;
    for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
        if (where.empty() && is_set(name)) where = name;
    const char* named = std::getenv("HF_TOKEN_PATH");  // NOLINT(concurrency-mt-unsafe)
    const fs::path file = named != nullptr ? fs::path(named) : hub_home_folder() / "token";
    std::error_code none;
    if (where.empty() && fs::is_regular_file(file, none)) where = file.string();
    if (where.empty())
        return worth_knowing(
            "no token: gated models (Llama, Gemma) cannot be fetched; the hub was not asked");
    return fine("a token in " + where +
                ": gated models work where its account has access; the hub was not asked");
}

struct Check {
    const char* name;
    AllFound (*ask)(Machine&);
    const char* remedy;  ///< where something is not fine
};
constexpr std::array<Check, 22> checks{{
    {"GPUs", gpus, "mend the driver until it lists them; a reboot helps after an upgrade"},
    {"driver", driver, ""},
    {"GPU state", gpu_state,
     "the kernel's log says why (dmesg, NVRM Xid); often a reboot is needed"},
    {"GPU use", gpu_use,
     "end it, or measure on other GPUs: `deploy: {gpus: ...}`; results beside it are disturbed"},
    {"clocks", clocks, "see to its cooling and its supply of power"},
    {"power limit", power_limit, ""},
    {"persistence", persistence, "sudo nvidia-smi -pm 1"},
    {"compute mode", compute_mode, "sudo nvidia-smi -c 0"},
    {"engine", engines,
     "install one or activate its environment; or use an image (`container`) or a server that "
     "runs (`attach`)"},
    {"containers", containers, "start its service, or do without `container` in studies"},
    {"processor", processor, "load-test from another machine (`attach`), or with less load"},
    {"cpu governor", governor, "sudo cpupower frequency-set -g performance"},
    {"memory", memory, "end other programs, or raise the container's limit"},
    {"/dev/shm", shared_memory, "start this container with --shm-size=8g or --ipc=host"},
    {"open files", open_files,
     "raise it (ulimit -Hn, limits.conf, --ulimit nofile=65536 of a container)"},
    {"ports", ports, "give this container a network of its own with a loopback, or --network=host"},
    {"/proc", process_table, "mount it: engines are found and ended by it"},
    {"this folder", this_folder, "go to a folder of a local disk, or give one with --directory"},
    {"temporary files", temporary_files, "set TMPDIR to a folder that can be written"},
    {"model cache", model_cache, "set HF_HOME to a folder of a large disk that can be written"},
    {"hub", hub, "hf auth login, or set HF_TOKEN"},
}};

}  // namespace

int doctor(bool json) {
    Machine machine;
    OrderedJson list = OrderedJson::array();
    std::size_t stopping = 0;
    for (const Check& check : checks)
        for (const Found& found : check.ask(machine)) {
            const std::string remedy = !found.remedy.empty()        ? found.remedy
                                       : found.state == State::fine ? ""
                                                                    : check.remedy;
            const std::string_view word = state_words.at(static_cast<std::size_t>(found.state));
            stopping += found.state == State::stops ? 1 : 0;
            list.push_back({{"name", check.name},
                            {"state", word},
                            {"found", found.what},
                            {"do", remedy.empty() ? OrderedJson() : OrderedJson(remedy)}});
            if (!json)
                put(stdout, "{:13}  {}: {}{}\n", word, check.name, found.what,
                    remedy.empty() ? "" : "; do: " + remedy);
        }
    if (json) put_json(OrderedJson{{"stops", stopping}, {"checks", list}});
    else if (stopping == 0) put(stdout, "nothing stops you\n");
    else put(stdout, "{} stop{} you\n", counted_text(stopping, "thing"), stopping == 1 ? "s" : "");
    return stopping == 0 ? done : environment_error;
}

}  // namespace autotune
