// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/gpu_memory.hpp"

#include "elapsed.hpp"
#include "nvidia_smi.hpp"

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

namespace servetune {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

std::uint64_t bytes_of(double mib) {
    return static_cast<std::uint64_t>(std::llround(std::max(mib, 0.0) * (1 << 20)));
}

std::vector<GpuMemoryUse> memory_of(const std::string& named, std::vector<GpuState> gpus) {
    std::vector<GpuMemoryUse> result;
    for (const GpuState& gpu : only_named(named_gpus(named), std::move(gpus)))
        if (gpu.used_mib)
            result.push_back({gpu.index, gpu.uuid, bytes_of(*gpu.used_mib),
                              bytes_of(gpu.total_mib.value_or(0))});
    std::sort(result.begin(), result.end(),
              [](const GpuMemoryUse& a, const GpuMemoryUse& b) { return a.index < b.index; });
    return result;
}

}  // namespace

std::string mib_text(std::uint64_t bytes) { return std::to_string(bytes >> 20U) + " MiB"; }

GpuMemory::GpuMemory(std::string gpus, std::string nvidia_smi,
                     std::chrono::milliseconds answers_within)
    : gpus_(std::move(gpus)), nvidia_smi_(std::move(nvidia_smi)), answers_within_(answers_within) {}

std::vector<GpuMemoryUse> GpuMemory::used() const {
    NvidiaSmi smi(nvidia_smi_, answers_within_);
    return smi.present() ? memory_of(gpus_, smi.gpus().rows) : std::vector<GpuMemoryUse>{};
}

std::string GpuMemory::wait_until_free(const std::vector<GpuMemoryUse>& before,
                                       std::chrono::milliseconds patience) const {
    if (before.empty()) return {};
    NvidiaSmi smi(nvidia_smi_, answers_within_);
    if (!smi.present()) return {};
    const auto deadline = Clock::now() + patience;
    for (std::chrono::milliseconds pause = 50ms;; pause = std::min(2 * pause, 1000ms)) {
        const auto answer = smi.gpus();
        if (answer.rows.empty())
            return "cannot tell whether the GPUs' memory is free: nvidia-smi: " +
                   answer.trouble.words + "\n";
        std::string report;
        for (const GpuMemoryUse& now : memory_of(gpus_, answer.rows))
            for (const GpuMemoryUse& then : before)
                if (then.uuid == now.uuid && now.used_bytes > then.used_bytes + slack_bytes)
                    report += "GPU " + std::to_string(now.index) + ": " + mib_text(now.used_bytes) +
                              " of its memory are still in use after " +
                              seconds_text(std::chrono::duration<double>(patience).count()) + ", " +
                              mib_text(then.used_bytes) + " were before the start\n";
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
        if (report.empty() || left <= 0ms) return report;
        std::this_thread::sleep_for(std::min(pause, left));
    }
}

}  // namespace servetune
