// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

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

}  // namespace servetune
