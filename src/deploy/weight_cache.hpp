// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/host/process.hpp"

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace servetune {

/// The daemons of an engine's weight cache, so that its next start maps the weights and reads no
/// checkpoint. One runs on each set of devices, for as long as configurations come that take the
/// same checkpoint with the same flags that weights depend on. It is started anew when one of these
/// changes, or a file of the checkpoint: engines compare what kind of weights a daemon holds, not
/// which (vllm-project/vllm issue 59647).
class WeightCache {
public:
    struct Options {
        std::filesystem::path folder{};                    ///< for their logs, N.log; absolute
        std::map<std::string, std::string> environment{};  ///< of the study
        std::string mark{};                                ///< of the study (`leftovers`)
        std::vector<int> cores{};                          ///< empty: any
        std::shared_ptr<Watchdog> watchdog{};
        double stop_within_seconds = 20;
        std::size_t log_bytes = 16UL << 20UL;  ///< of each daemon
        std::string nvidia_smi = "nvidia-smi";
    };

    explicit WeightCache(Options options);
    ~WeightCache();  ///< ends all
    WeightCache(const WeightCache&) = delete;
    WeightCache& operator=(const WeightCache&) = delete;

    /// Daemons that hold this configuration's weights, one on each entry of `gpus` (as
    /// DeployOptions::gpus); those that hold others end first. Nothing: this start is to load them
    /// itself, why is in `why_not`, and no daemon runs. Throws as `release`.
    std::optional<WeightCacheCommands> hold(const Composition& composition,
                                            const Configuration& configuration,
                                            const std::string& model,
                                            const std::vector<std::string>& gpus,
                                            const std::stop_token& stop);
    /// Ends all daemons, so that an engine that loads its weights itself has the devices to itself.
    /// Throws IoError where one would not go, or the devices' memory stays in use: no engine can be
    /// measured then.
    void release();
    /// Whether every daemon that was held last still runs.
    [[nodiscard]] bool alive() const;
    /// What was held last is not held again: an engine that took it was not what it is without.
    void give_up(const std::string& why);

    [[nodiscard]] const std::string& why_not() const { return why_not_; }

private:
    struct Daemon;
    [[nodiscard]] std::string why_not_ready(const std::vector<std::string>& gpus,
                                            const WeightCacheCommands& commands,
                                            const std::stop_token& stop);
    [[nodiscard]] std::string wait_until_ready(Daemon& daemon, const WeightCacheCommands& commands,
                                               const std::stop_token& stop) const;
    void start(const std::string& gpus, const std::string& key, const Command& command);
    void end(const std::set<std::string>& devices);
    [[nodiscard]] const std::filesystem::path& sockets();

    Options options_;
    std::filesystem::path sockets_{};                         ///< made when it is first needed
    std::map<std::string, std::unique_ptr<Daemon>> daemons_;  ///< by their devices
    std::map<std::string, std::string> refused_{};            ///< by what they would hold: why not
    std::string held_{};  ///< what was held last, without devices
    std::string why_not_{};
};

}  // namespace servetune
