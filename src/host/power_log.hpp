// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "power_tool.hpp"
#include "servetune/detail/host/power.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// The power of devices as it was told, and which of them are the engine's. From any thread.
class PowerLog {
public:
    /// What was told of devices at a moment; `ours`: those of the engine, as far as that is known
    /// by now.
    void add(std::chrono::steady_clock::time_point when, DeviceWatts told,
             std::set<std::string> ours) {
        const double at_seconds = std::chrono::duration<double>(when.time_since_epoch()).count();
        const std::scoped_lock lock(mutex_);
        ours_ = std::move(ours);
        rounds_.emplace_back(at_seconds, std::move(told));
    }

    /// The sums over the engine's devices, of the moments at which the power of each was told: a
    /// sum that lacks one would be too small.
    [[nodiscard]] std::vector<PowerSample> samples() const {
        const std::scoped_lock lock(mutex_);
        std::vector<PowerSample> result;
        if (ours_.empty()) return result;
        for (const auto& [at, told] : rounds_) {
            double sum = 0;
            const bool all = std::all_of(ours_.begin(), ours_.end(),
                                         [&, &devices = told](const std::string& device) {
                                             const auto found = devices.find(device);
                                             if (found == devices.end() || !found->second)
                                                 return false;
                                             sum += *found->second;
                                             return true;
                                         });
            if (all) result.push_back({at, sum});
        }
        return result;
    }

private:
    mutable std::mutex mutex_{};
    std::set<std::string> ours_{};
    std::vector<std::pair<double, DeviceWatts>> rounds_{};
};

}  // namespace servetune
