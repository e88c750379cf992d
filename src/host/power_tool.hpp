// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/host/machine_watch.hpp"

#include <chrono>
#include <mutex>
#include <set>

namespace servetune {

/// Watts by the name of a device; nothing where its tool does not tell.
using DeviceWatts = std::map<std::string, std::optional<double>>;

/// What `amd-smi metric --power --json` tells, by the GPU's number. Nothing for what is no such
/// answer.
[[nodiscard]] std::optional<DeviceWatts> read_amd_smi(const std::string& text);
/// What the last whole line of `tegrastats` tells of the module, as device `0`.
[[nodiscard]] std::optional<DeviceWatts> read_tegrastats(const std::string& text);

/// The programs that are asked for power where nvidia-smi tells none: files, or names in PATH.
struct PowerPrograms {
    std::string amd_smi{}, tegrastats{};
};

/// A program that tells the power of accelerators. Never started through a shell. One thread.
class PowerTool {
public:
    /// The first of them that is there.
    [[nodiscard]] static std::optional<PowerTool> find(const PowerPrograms& programs);

    [[nodiscard]] const std::string& name() const { return name_; }
    /// Of all devices now; nothing where it does not answer in that time: `trouble` says why.
    [[nodiscard]] std::optional<DeviceWatts> read(std::chrono::milliseconds within);
    [[nodiscard]] const std::string& trouble() const { return trouble_; }
    /// Whether it is a board with one device, which belongs to the engine whatever numbers are
    /// named.
    [[nodiscard]] bool one_device() const { return never_ends_; }

private:
    using Reader = std::optional<DeviceWatts> (*)(const std::string& text);
    PowerTool(std::string name, std::filesystem::path file, std::vector<std::string> words,
              Reader reader, bool never_ends)
        : name_(std::move(name)),
          file_(std::move(file)),
          words_(std::move(words)),
          reader_(reader),
          never_ends_(never_ends) {}

    std::string name_;
    std::filesystem::path file_;
    std::vector<std::string> words_;
    Reader reader_;
    bool never_ends_;  ///< it prints lines until it is killed
    std::string trouble_{};
};

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
            const bool all = all_of(ours_, [&, &devices = told](const std::string& device) {
                const auto* found = entry_in(devices, device);
                if (found == nullptr || !*found) return false;
                sum += **found;
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
