// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/host/devices.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// A GPU as nvidia-smi tells of it; what it does not tell ([N/A], [Not Supported]) is absent.
struct GpuState {
    int index = 0;
    std::string uuid{};
    std::optional<double> used_mib{}, total_mib{}, sm_mhz{}, max_sm_mhz{}, celsius{};
    std::optional<double>
        watts{};  ///< of the board; a GPU decides whether now or over the last second
    std::optional<std::uint64_t>
        reasons{};  ///< NVML's clocks event reasons: why its clocks are where they are
};

/// NVML, clocks event reasons: those that hold clocks down though there is work. `hw_slowdown`
/// alone is also told for a moment while clocks change (nvml.h: "may be also reported during PState
/// or clock change").
enum GpuSlowdown : std::uint64_t {
    hw_slowdown = 0x8,
    sw_thermal = 0x20,
    hw_thermal = 0x40,
    hw_power_brake = 0x80
};
/// Their names, of those that are set: `SW thermal slowdown`; empty: none is.
[[nodiscard]] std::string text_of_reasons(std::uint64_t reasons);

/// A process that computes on a GPU.
struct GpuProcess {
    int id = 0;
    std::string uuid{};
    std::optional<double> used_mib{};
};

/// Why nvidia-smi did not tell all.
struct SmiTrouble {
    enum class Kind { none, lost, out_of_time, failed };
    Kind kind = Kind::none;
    std::string words{};  ///< its own, or what happened to it
};

template <class Row>
struct SmiAnswer {
    std::vector<Row> rows{};
    SmiTrouble trouble{};  ///< beside rows, when it has lost one GPU of several
};

/// Asks nvidia-smi, never through a shell, within a time limit each. Throws nothing that nvidia-smi
/// is to blame for. One thread.
class NvidiaSmi {
public:
    NvidiaSmi(const std::string& program, std::chrono::milliseconds within);
    [[nodiscard]] bool present() const { return !file_.empty(); }
    SmiAnswer<GpuState> gpus();
    SmiAnswer<GpuProcess> processes();
    SmiAnswer<Device> devices();

private:
    std::filesystem::path file_;
    std::chrono::milliseconds within_;
    bool old_name_ = false;  ///< this driver calls event reasons throttle reasons
};

/// The GPUs that CUDA_VISIBLE_DEVICES names: `text`, else this process's own variable; nothing
/// where there is none: all.
std::optional<std::vector<std::string>> named_gpus(const std::string& text);
/// What is wrong with `text`, a list of GPUs of at least one; empty: nothing. CUDA ends such a list
/// at the first name that is none, and takes no device of one that has the same twice.
std::string wrong_with_gpu_list(const std::string& text);
/// Those of `gpus` that are named, by number, UUID or its beginning, as CUDA reads it: the first
/// name that is none ends the list.
std::vector<GpuState> only_named(const std::optional<std::vector<std::string>>& names,
                                 std::vector<GpuState> gpus);

}  // namespace servetune
