// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

namespace servetune {

/// What is in use of a GPU's memory, whoever uses it.
struct GpuMemoryUse {
    int index = 0;       ///< nvidia-smi's: in the order of the PCI bus
    std::string uuid{};  ///< GPU-...
    std::uint64_t used_bytes = 0;
    std::uint64_t total_bytes = 0;  ///< 0: not told
};

[[nodiscard]] std::string mib_text(std::uint64_t bytes);  ///< `20480 MiB`

/// The memory of the GPUs that an engine is started on: asked before its start, and waited for
/// after its end, for a driver frees the memory of a killed process only some time after the
/// process is gone; the next engine would find it taken and fail, or take less for its cache. One
/// thread at a time.
class GpuMemory {
public:
    /// Above what was in use before the start: 512 MiB. What comes and goes by itself stays below
    /// (a desktop's windows, a monitor's context), while an engine that has not gone holds its
    /// weights: the smallest model anybody serves, 0.5e9 parameters of 2 bytes, has 950 MiB.
    static constexpr std::uint64_t slack_bytes = 512UL << 20UL;

    /// `gpus`: as MachineWatchOptions::gpus. `nvidia_smi`: a file, or a name in PATH;
    /// `answers_within`: for each of its answers.
    explicit GpuMemory(std::string gpus = {}, std::string nvidia_smi = "nvidia-smi",
                       std::chrono::milliseconds answers_within = std::chrono::seconds(5));

    /// By index. Empty where nvidia-smi is not there or does not answer; GPUs that do not tell
    /// (memory shared with the CPU) are left out.
    [[nodiscard]] std::vector<GpuMemoryUse> used() const;

    /// Asks at once, after 50 ms and then less and less often (1 s), until no GPU has more than
    /// `slack_bytes` above `before` in use. What did not go within `patience`, a line a GPU: `GPU
    /// 0: 20480 MiB of its memory are still in use after 20 s, 512 MiB were before the start`; a
    /// line too where nvidia-smi does not answer any more. Empty when all went, and at once where
    /// `before` is empty.
    [[nodiscard]] std::string wait_until_free(const std::vector<GpuMemoryUse>& before,
                                              std::chrono::milliseconds patience) const;

private:
    std::string gpus_;
    std::string nvidia_smi_;
    std::chrono::milliseconds answers_within_;
};

/// What the GPUs of an engine draw together at one moment.
struct PowerSample {
    double at_seconds = 0;  ///< CLOCK_MONOTONIC
    double watts = 0;
};

/// What they drew during a load test.
struct PowerUse {
    double mean_watts = 0;            ///< over the time of the load test
    double peak_watts = 0;            ///< the largest sample
    double standard_error_watts = 0;  ///< of the mean, from sampling alone
    std::size_t samples = 0;
};

/// The power between two moments, from the samples between them; or why it is not known, for a
/// person.
///
/// The mean is weighted by time: a sample stands for the time that is nearer to it than to its
/// neighbours, at most 0.75 of the median distance of samples on either side, so that a gap is
/// filled by nobody. Where less than 80 % of the time is covered, or there are fewer than five
/// samples, there is no figure: four have no spread to speak of. Its standard error is s /
/// sqrt(n_eff), n_eff = n (1 - r) / (1 + r) for lag-1 correlation r >= 0 (AR(1); Law, "Simulation
/// Modeling and Analysis", 4.4), as of means of times. `samples` rise in time.
[[nodiscard]] std::variant<PowerUse, std::string> power_between(
    std::span<const PowerSample> samples, double begin_seconds, double end_seconds);

/// Adds `power_mean_watts` and `power_peak_watts` to the figures of one load test, and where it has
/// the rates also `joules_per_output_token` and `joules_per_total_token`: mean power / tokens a
/// second. Their relative standard errors are those of power and rate, taken to be independent.
void add_power(Metrics& metrics, const PowerUse& power);

/// The names of what it can add.
[[nodiscard]] std::vector<std::string> power_metrics();
/// Whether it is one of these, of a workload too (`name@workload`).
[[nodiscard]] bool is_power_metric(std::string_view metric);

/// What is watched and what disturbs. Shares are 0 to 1.
struct MachineWatchOptions {
    std::string nvidia_smi =
        "nvidia-smi";  ///< a file, or a name in PATH; where it is not there only the CPU is watched
    /// For an answer. A GPU that the driver has to wake first takes 1 to 3 s (NVIDIA, Driver
    /// Persistence, overview); one in use answers sooner.
    double nvidia_smi_within_seconds = 5;
    /// Between samples of the GPUs, each of which starts nvidia-smi twice: a load test of half a
    /// minute has 15, of which one is less than the share below. More often costs CPU that the
    /// measurement is to have.
    double every_seconds = 2;
    /// Asked for power, the first one that is there, where nvidia-smi is not; where it tells no
    /// power, tegrastats.
    std::string amd_smi = "amd-smi", tegrastats = "tegrastats";
    /// The engine's, as CUDA_VISIBLE_DEVICES has them: `0,1`, UUIDs or beginnings of them; `-1`:
    /// none. Empty: as this process's own CUDA_VISIBLE_DEVICES has them; without one, those on
    /// which a process of the engine is seen, or all where nvidia-smi tells of no process. Numbers
    /// are nvidia-smi's: on a machine with GPUs of several kinds they are CUDA's only under
    /// CUDA_DEVICE_ORDER=PCI_BUS_ID.
    std::string gpus{};
    std::vector<int> cores{};  ///< the engine is pinned to these; empty: all of the machine
    /// The GPUs' memory in use before the engine started (GpuMemory::used), for where nvidia-smi
    /// does not tell whose memory it is.
    std::vector<GpuMemoryUse> before{};

    /// Of the samples with a slowdown. One in ten: shorter than that it moves a mean by less than 5
    /// %, as a slowdown is a clock of one half.
    double throttled_samples_at_most = 0.10;
    /// Of all other processes on a GPU together. What only looks at a GPU holds tens of MiB;
    /// whoever computes holds a context with its kernels, 300 MiB and more (306 MiB in
    /// pytorch/pytorch#7320, 320 and 1008 MiB in #28394).
    double others_memory_mib = 256;
    /// In use before the start, nobody knows by whom. A desktop's windows hold some hundred MiB,
    /// the driver's own reserve is counted by old drivers (517 MiB on an idle A10,
    /// mayooot/detect-gpu#3); a job with a model is above.
    double before_memory_mib = 2048;
    /// Of the time that the cores had work. Twice what separates runs on a machine of one's own
    /// (0.5 to 1 %).
    double stolen_at_most = 0.02;
    /// Cores at least that busy on the mean had moments without a free one for us; below, a
    /// scheduler finds one.
    double busy_at_least = 0.90;
    /// Of the time of all cores, spent with other processes: what runs on a CPU differs by as much
    /// from run to run (5 to 10 %) without them.
    double others_cpu_at_most = 0.05;
    /// Shorter measurements say nothing of the CPU: its times are counted in 1/100 s, and 5 % of
    /// less than a second is a handful of these.
    double cpu_judged_from_seconds = 1;

    std::filesystem::path proc = "/proc";  ///< another one in tests
    std::function<void(const std::string&)>
        say{};  ///< what could not be watched, a line each, from within `stop`

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// Which processes are ours, beside this one and its children: the engine's group, all that
/// descends from it, and all with its mark.
struct WatchedProcesses {
    int leader = 0;  ///< of the engine's process group (Deployment::process_id); 0: there is none
    std::string mark{};  ///< DeployOptions::mark; finds what has left the group and lost its parent
};

/// Looks at the machine while something is measured: a result that came from a throttled, shared or
/// lost GPU, or from cores that were with others, is not the configuration's. Begins when it is
/// made. GPUs are asked through nvidia-smi in a thread of its own, the CPU's times are taken at the
/// beginning and at the end. Nothing that nvidia-smi does throws. `stop` waits for the sample that
/// is under way and for the last one, two questions each; a question that is not answered in time
/// (and 4 s more where nvidia-smi cannot be killed) is the last one. docs/explanation/measuring.md
/// tells what a study does with findings.
class MachineWatch {
public:
    explicit MachineWatch(const WatchedProcesses& ours, MachineWatchOptions options = {});
    ~MachineWatch();
    MachineWatch(const MachineWatch&) = delete;
    MachineWatch& operator=(const MachineWatch&) = delete;

    /// Takes the last sample; the watch is over. Again: nothing.
    void stop();
    /// Stops. What disturbed; empty: nothing did, as far as it could be watched. Ids:
    /// - `gpu_throttled`: clocks held down by heat or by the supply of power (NVML's reasons 0x8,
    ///   0x20, 0x40, 0x80). Its own power limit (0x4) is not counted: under load most GPUs run at
    ///   it, and it is the same for every configuration.
    /// - `gpu_shared`: processes that are not ours hold memory of a GPU of ours.
    /// - `gpu_lost`: the driver has lost a GPU that it had before.
    /// - `cpu_stolen`: the hypervisor gave cores to others while they had work.
    /// - `cpu_shared`: hardly a core was free, and other processes had a notable part of them.
    std::vector<Finding> findings();
    /// What the engine's GPUs drew together between two moments of CLOCK_MONOTONIC, from the
    /// samples so far; or why that is not known, empty where nothing tells the power at all. At any
    /// time.
    [[nodiscard]] std::variant<PowerUse, std::string> power(double begin_seconds,
                                                            double end_seconds) const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Why a watch with these options would not measure power, found by asking once; empty: it would.
[[nodiscard]] std::string why_no_power(const MachineWatchOptions& options);

}  // namespace servetune
