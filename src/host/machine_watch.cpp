// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/machine_watch.hpp"

#include "base/waiting.hpp"
#include "cpu_use.hpp"
#include "nvidia_smi.hpp"
#include "power_tool.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "start_program.hpp"

#include <unistd.h>

#include <cmath>
#include <set>
#include <stop_token>
#include <thread>

namespace servetune {
namespace {

std::string with_unit(double value, const char* unit, int decimals = 0) {
    return fixed_text(value, decimals) + " " + unit;
}

std::string share_of_time(double share) { return percent_text(share, share < 0.1 ? 1 : 0); }

}  // namespace

/// What was seen of one GPU.
struct SeenGpu {
    int index = 0;
    std::size_t samples = 0;  ///< that told why its clocks are where they are
    std::size_t held_down = 0, perhaps_changing = 0;
    std::uint64_t held_by = 0;
    double lowest_sm_mhz = 0, max_sm_mhz = 0,
           highest_celsius = 0;  ///< while held down; 0: not told
    bool runs_ours = false;
    bool runs_known = false;  ///< a process that this machine's table has too
    double others_mib = 0;    ///< most at a time
    std::string others{};     ///< whose that was
    std::string lost{};       ///< how it was told

    [[nodiscard]] std::string name() const { return "GPU " + std::to_string(index); }

    void add(const GpuState& now) {
        if (!now.reasons) return;
        ++samples;
        const std::uint64_t held =
            *now.reasons & (hw_slowdown | sw_thermal | hw_thermal | hw_power_brake);
        if (held == 0) return;
        ++(held == hw_slowdown ? perhaps_changing : held_down);
        held_by |= held;
        if (now.sm_mhz && (lowest_sm_mhz == 0 || *now.sm_mhz < lowest_sm_mhz))
            lowest_sm_mhz = *now.sm_mhz;
        max_sm_mhz = std::max(max_sm_mhz, now.max_sm_mhz.value_or(0));
        highest_celsius = std::max(highest_celsius, now.celsius.value_or(0));
    }
};

struct MachineWatch::State {
    State(const WatchedProcesses& ours, MachineWatchOptions given)
        : options(std::move(given)),
          names(named_gpus(options.gpus)),
          smi(options.nvidia_smi,
              std::chrono::milliseconds(std::llround(options.nvidia_smi_within_seconds * 1000))),
          on_gpus(options.proc, ours.leader, ours.mark),
          at_begin(options.proc, ours.leader, ours.mark),
          cpu_begin(cpu_times(options.proc, options.cores)) {
        at_begin.look();
        at_end = at_begin;
        const bool no_gpu = names && (names->empty() || names->front() == "-1");
        if (no_gpu) return;
        if (!smi.present()) power_tool = PowerTool::find({options.amd_smi, options.tegrastats});
        if (smi.present() || power_tool)
            sampler = std::jthread([this](const std::stop_token& over) { run(over); });
    }

    void run(const std::stop_token& over);
    bool sample();
    bool look_at_gpus(std::vector<GpuState>& now);
    bool sample_power();
    void note_power(const std::vector<GpuState>& now);
    void look_for_others(const std::vector<GpuProcess>& processes);
    void stop();
    [[nodiscard]] bool is_ours(const SeenGpu& gpu) const {
        return names || gpu.runs_ours || !any_known;
    }
    void judge(const std::string& uuid, const SeenGpu& gpu, std::vector<Finding>& findings) const;
    void judge_cpu(std::vector<Finding>& findings) const;
    [[nodiscard]] std::string cores_text() const;

    const MachineWatchOptions options;
    const std::optional<std::vector<std::string>> names;

    // The sampler's, until it has ended.
    NvidiaSmi smi;
    OurProcesses on_gpus;
    std::map<std::string, SeenGpu> gpus{};  ///< by UUID
    bool any_known = false;  ///< nvidia-smi told of a process that is in this machine's table
    std::vector<std::string> notes{};                 ///< what could not be watched
    std::optional<PowerTool> power_tool{};            ///< where nvidia-smi tells no power
    bool power_looked_for = false;                    ///< nvidia-smi has answered once
    std::chrono::steady_clock::time_point told_at{};  ///< when it answered last

    PowerLog power{};  ///< anybody's

    OurProcesses at_begin, at_end{at_begin};
    std::optional<CpuTimes> cpu_begin, cpu_end{};
    bool stopped = false;
    std::jthread sampler{};  // last: ends before what it uses
};

void MachineWatch::State::run(const std::stop_token& over) {
    using Seconds = std::chrono::duration<double>;
    bool asks_smi = smi.present();
    for (bool last = false; !last;) {
        last = over.stop_requested();
        Seconds pause(std::max(options.every_seconds, 0.01));
        if (asks_smi) asks_smi = sample();
        const auto begin = std::chrono::steady_clock::now();
        if (power_tool && !sample_power()) power_tool.reset();
        // AMD's are programs in Python that compute all the while: at most a fifth of a core for
        // them.
        if (power_tool && !power_tool->one_device())
            pause = std::max(pause, 4 * Seconds(std::chrono::steady_clock::now() - begin));
        if (!asks_smi && !power_tool) return;
        if (!last) (void)wait_or_stop(pause, over);
    }
}

/// False: there is no use in asking again. Numbers in `names` are the tool's own.
bool MachineWatch::State::sample_power() {
    auto told = power_tool->read(
        std::chrono::milliseconds(std::llround(options.nvidia_smi_within_seconds * 1000)));
    const auto now = std::chrono::steady_clock::now();
    if (!told) {
        notes.push_back("the power cannot be measured: " + power_tool->name() + ": " +
                        power_tool->trouble());
        return false;
    }
    std::set<std::string> ours;
    if (names && !power_tool->one_device()) ours.insert(names->begin(), names->end());
    else
        for (const auto& [device, watts] : *told) ours.insert(device);
    power.add(now, std::move(*told), std::move(ours));
    return true;
}

/// Once it is known which GPUs are the engine's. Boards whose nvidia-smi tells no power may have
/// another tool.
void MachineWatch::State::note_power(const std::vector<GpuState>& now) {
    DeviceWatts told;
    for (const GpuState& one : now) told[one.uuid] = one.watts;
    const bool any = any_of(told, [](const auto& one) { return one.second.has_value(); });
    if (!std::exchange(power_looked_for, true) && !any)
        power_tool = PowerTool::find({"", options.tegrastats});
    if (power_tool) return;
    std::set<std::string> ours;
    for (const auto& [uuid, gpu] : gpus)
        if (is_ours(gpu)) ours.insert(uuid);
    power.add(told_at, std::move(told), std::move(ours));
}

/// False: there is no use in asking again.
bool MachineWatch::State::sample() {
    std::vector<GpuState> now;
    const bool again = look_at_gpus(now);
    if (!now.empty()) note_power(now);
    return again;
}

bool MachineWatch::State::look_at_gpus(std::vector<GpuState>& now) {
    const auto note = [&](const SmiTrouble& trouble) {
        const std::string line = "the GPUs cannot be watched: nvidia-smi: " + trouble.words;
        if (!contains(notes, line)) notes.push_back(line);
        // A driver that hangs leaves one more process that cannot be killed each time it is asked.
        return trouble.kind != SmiTrouble::Kind::out_of_time;
    };
    on_gpus.look();  // before and after: who comes or goes meanwhile is known all the same
    const auto states = smi.gpus();
    told_at = std::chrono::steady_clock::now();
    if (states.rows.empty() && states.trouble.kind != SmiTrouble::Kind::lost)
        return note(states.trouble);
    now = only_named(names, states.rows);
    bool loses = false;
    for (auto& [uuid, gpu] : gpus) {
        const bool there =
            any_of(states.rows, [&id = uuid](const GpuState& one) { return one.uuid == id; });
        if (!there && gpu.lost.empty())
            gpu.lost = states.trouble.words.empty() ? "nvidia-smi lists it no more"
                                                    : "nvidia-smi: " + states.trouble.words;
        loses = loses || !there;
    }
    if (states.trouble.kind == SmiTrouble::Kind::lost && !loses) (void)note(states.trouble);
    else if (now.empty() && gpus.empty())
        (void)note(
            {SmiTrouble::Kind::failed,
             "it lists no GPU '" + names.value_or(std::vector<std::string>{""}).front() + "'"});
    for (const GpuState& one : now) {
        SeenGpu& gpu = gpus[one.uuid];
        gpu.index = one.index;
        gpu.add(one);
    }
    if (now.empty()) return true;
    const auto processes = smi.processes();
    const bool told = states.trouble.kind != SmiTrouble::Kind::none;  // of the same trouble already
    if (processes.trouble.kind == SmiTrouble::Kind::out_of_time ||
        (processes.trouble.kind != SmiTrouble::Kind::none && !told))
        if (!note(processes.trouble)) return false;
    on_gpus.look();
    look_for_others(processes.rows);
    return true;
}

/// A process that our table lacks is no evidence: in a container the driver may tell the host's
/// numbers, our engine's among them.
void MachineWatch::State::look_for_others(const std::vector<GpuProcess>& processes) {
    std::map<std::string, std::pair<double, std::string>> others;
    for (const GpuProcess& process : processes) {
        auto* gpu = entry_in(gpus, process.uuid);
        if (!on_gpus.seen(process.id)) continue;
        any_known = true;
        if (gpu == nullptr) continue;
        gpu->runs_known = true;
        if (on_gpus.ours(process.id)) gpu->runs_ours = true;
        else if (process.used_mib) {
            auto& [mib, who] = others[process.uuid];
            mib += *process.used_mib;
            who += (who.empty() ? "" : ", ") + on_gpus.name(process.id) + " (" +
                   std::to_string(process.id) + ")";
        }
    }
    for (const auto& [uuid, use] : others)
        if (SeenGpu& gpu = gpus[uuid]; use.first > gpu.others_mib)
            std::tie(gpu.others_mib, gpu.others) = use;
}

void MachineWatch::State::stop() {
    if (std::exchange(stopped, true)) return;
    cpu_end = cpu_times(options.proc, options.cores);
    at_end.look();
    sampler.request_stop();
    if (sampler.joinable()) sampler.join();
    if (!cpu_begin || !cpu_end)
        notes.push_back("the CPU cannot be watched: " + (options.proc / "stat").string() +
                        " does not tell of " + cores_text());
    for (const auto& [uuid, gpu] : gpus)
        if (is_ours(gpu) && gpu.samples == 0)
            notes.push_back(gpu.name() + " does not tell why its clocks are where they are");
    if (options.say)
        for (const std::string& line : notes) options.say(line);
}

std::string MachineWatch::State::cores_text() const {
    if (options.cores.empty()) return "the cores";
    std::string text = options.cores.size() == 1 ? "core" : "cores";
    for (const int core : options.cores)
        text += (core == options.cores.front() ? " " : ", ") + std::to_string(core);
    return text;
}

void MachineWatch::State::judge(const std::string& uuid, const SeenGpu& gpu,
                                std::vector<Finding>& findings) const {
    if (!gpu.lost.empty())
        findings.push_back({"gpu_lost", gpu.lost, gpu.name() + " answers throughout",
                            "the driver has lost the GPU; the kernel's log (dmesg, NVRM Xid) says "
                            "why, often a reboot is needed"});
    const std::size_t held = gpu.held_down + gpu.perhaps_changing;
    const bool more_than_a_change = gpu.held_down > 0 || gpu.perhaps_changing > 1;
    if (more_than_a_change &&
        double(held) > options.throttled_samples_at_most * double(gpu.samples)) {
        std::string seen = gpu.name() + ": " + text_of_reasons(gpu.held_by) + " in " +
                           std::to_string(held) + " of " + std::to_string(gpu.samples) +
                           (gpu.samples == 1 ? " sample" : " samples");
        if (gpu.lowest_sm_mhz > 0 && gpu.max_sm_mhz > 0)
            seen += ", SM clock down to " + with_unit(gpu.lowest_sm_mhz, "of") + " " +
                    with_unit(gpu.max_sm_mhz, "MHz");
        if (gpu.highest_celsius > 0) seen += ", up to " + with_unit(gpu.highest_celsius, "C");
        findings.push_back(
            {"gpu_throttled", std::move(seen),
             "in at most " + share_of_time(options.throttled_samples_at_most) + " of the samples",
             (gpu.held_by & (sw_thermal | hw_thermal)) != 0
                 ? "the GPU got too hot: see to its cooling, or set a lower power limit for all "
                   "trials"
                 : "the supply of power held the GPU back, or it got too hot: see to both, or set "
                   "a lower power limit for all trials"});
    }
    if (gpu.others_mib > options.others_memory_mib)
        findings.push_back(
            {"gpu_shared",
             gpu.name() + ": " + with_unit(gpu.others_mib, "MiB") + " held by " + gpu.others,
             "at most " + with_unit(options.others_memory_mib, "MiB") +
                 " held by processes that are not the engine's",
             "somebody else computes on this GPU"});
    for (const GpuMemoryUse& use : options.before) {
        const double mib = double(use.used_bytes) / (1 << 20);
        if (use.uuid == uuid && !gpu.runs_known && mib > options.before_memory_mib)
            findings.push_back(
                {"gpu_shared",
                 gpu.name() + ": " + with_unit(mib, "MiB") +
                     " in use before the engine started, nvidia-smi does not tell by whom",
                 "at most " + with_unit(options.before_memory_mib, "MiB"),
                 "somebody else computes on this GPU, outside of this container perhaps"});
    }
}

void MachineWatch::State::judge_cpu(std::vector<Finding>& findings) const {
    if (!cpu_begin || !cpu_end) return;
    const auto ticks =
        [&](std::uint64_t CpuTimes::*part) {  // the kernel lets idle go back a little at times
            return double(std::max(*cpu_end.*part, *cpu_begin.*part) - *cpu_begin.*part);
        };
    const double busy = ticks(&CpuTimes::busy);
    const double stolen = ticks(&CpuTimes::stolen);
    const double all = busy + stolen + ticks(&CpuTimes::idle);
    const auto hertz = double(sysconf(_SC_CLK_TCK));
    if (all < options.cpu_judged_from_seconds * hertz * double(cpu_end->cores)) return;

    constexpr double counted_ticks = 5;  // fewer are the counting's own error
    if (stolen >= counted_ticks && stolen > options.stolen_at_most * (busy + stolen))
        findings.push_back({"cpu_stolen",
                            share_of_time(stolen / (busy + stolen)) + " of the time that " +
                                cores_text() + " had work was given away",
                            "at most " + share_of_time(options.stolen_at_most),
                            "the hypervisor runs other machines on the same cores"});
    const bool with_self =
        options.cores.empty() || may_run_on(options.proc, getpid(), options.cores);
    const std::uint64_t had = at_begin.ticks(with_self);
    const double own = double(std::max(at_end.ticks(with_self), had) - had);
    const double others = std::max(busy - own, 0.0) / all;
    const double used = (busy + stolen) / all;
    if (used < options.busy_at_least || others <= options.others_cpu_at_most) return;
    std::string who;
    const auto greediest = at_end.greediest(at_begin);
    for (std::size_t i = 0; i < std::min<std::size_t>(greediest.size(), 3); ++i)
        who += (i == 0 ? "; most had " : ", ") + greediest[i].first + " (" +
               with_unit(double(greediest[i].second) / hertz, "s", 1) + ")";
    findings.push_back({"cpu_shared",
                        cores_text() + " " + share_of_time(used) + " busy, " +
                            share_of_time(others) + " of their time with other processes",
                        "below " + share_of_time(options.busy_at_least) + " busy, or at most " +
                            share_of_time(options.others_cpu_at_most) + " with others",
                        "other processes had cores that were needed here" + who});
}

MachineWatch::MachineWatch(const WatchedProcesses& ours, MachineWatchOptions options)
    : state_((check_options("the watch over the machine", options.why_invalid()),
              std::make_unique<State>(ours, std::move(options)))) {}
MachineWatch::~MachineWatch() = default;

void MachineWatch::stop() { state_->stop(); }

std::variant<PowerUse, std::string> MachineWatch::power(double begin_seconds,
                                                        double end_seconds) const {
    const std::vector<PowerSample> samples = state_->power.samples();
    if (samples.empty()) return std::string();
    return power_between(samples, begin_seconds, end_seconds);
}

std::string why_no_power(const MachineWatchOptions& options) {
    const auto within =
        std::chrono::milliseconds(std::llround(options.nvidia_smi_within_seconds * 1000));
    NvidiaSmi smi(options.nvidia_smi, within);
    std::string why = "there is no nvidia-smi, amd-smi or tegrastats on the PATH";
    auto tool = PowerTool::find({smi.present() ? "" : options.amd_smi, options.tegrastats});
    if (smi.present()) {
        const auto states = smi.gpus();
        const std::vector<GpuState> ours = only_named(named_gpus(options.gpus), states.rows);
        if (any_of(ours, [](const GpuState& gpu) { return gpu.watts.has_value(); })) return {};
        why = "nvidia-smi " + (states.trouble.words.empty()
                                   ? "tells the power of no GPU that this study may use ([N/A])"
                                   : "says: " + states.trouble.words);
    }
    if (!tool) return why;
    const auto told = tool->read(within);
    const bool any = told && any_of(*told, [](const auto& one) { return one.second.has_value(); });
    if (any) return {};
    return (smi.present() ? why + "; " : "") + tool->name() + " tells no power" +
           (told ? "" : ": " + tool->trouble());
}

std::vector<Finding> MachineWatch::findings() {
    State& state = *state_;
    state.stop();
    std::vector<Finding> result;
    for (const auto& [uuid, gpu] : state.gpus)
        if (state.is_ours(gpu)) state.judge(uuid, gpu, result);
    state.judge_cpu(result);
    return result;
}

std::string MachineWatchOptions::why_invalid() const {
    OptionCheck check;
    check.seconds("nvidia_smi_within_seconds", nvidia_smi_within_seconds)
        .seconds("every_seconds", every_seconds);
    check_cores(check, cores);
    return check.text();
}

}  // namespace servetune
