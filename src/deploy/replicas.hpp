// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/deployment.hpp"
#include "servetune/detail/deploy/server.hpp"

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace servetune {

/// One engine, or several with the same flags on devices of their own, as one server. All start at
/// the same time; where one fails, all are ended, and the failure is that one's. The first one's
/// log is in the trial's folder, the others' in `replica-1`, `replica-2`, ... below it.
class Replicas : public Server {
public:
    using Render = std::function<Command(int port)>;

    /// One for each entry of `gpus`, at least one; an entry is as `DeployOptions::gpus`. `cores`:
    /// of each, in place of the options'; empty: the options'. Throws what Deployment throws, after
    /// all have ended.
    Replicas(const Engine& engine, const Render& render, const std::string& served_model, const DeployOptions& options,
             const std::vector<std::string>& gpus, const std::vector<std::vector<int>>& cores, const std::stop_token& stop);
    ~Replicas() override;
    Replicas(const Replicas&) = delete;
    Replicas& operator=(const Replicas&) = delete;

    [[nodiscard]] std::size_t count() const { return all_.size(); }
    /// Until the last one served, or the first failed.
    [[nodiscard]] const DeploymentStart& started() const { return started_; }
    [[nodiscard]] Endpoint endpoint() const override;
    [[nodiscard]] std::optional<Failure> died() const override;
    [[nodiscard]] std::optional<Failure> changed() const override;
    [[nodiscard]] std::optional<Failure> lost() const override;
    bool reset_cache() override;
    [[nodiscard]] std::vector<std::string> not_in_force() const override;
    [[nodiscard]] std::unique_ptr<MachineWatch> watch(MachineWatchOptions options) const override;
    /// Of the first that fails, else of the first.
    [[nodiscard]] std::vector<std::string> decisive() const;
    [[nodiscard]] std::string log_trouble() const;
    /// Ends all at the same time.
    Ended stop();

private:
    struct One;
    [[nodiscard]] std::optional<Failure> first_failure(const std::function<std::optional<Failure>(const Deployment&)>& of) const;
    std::vector<std::unique_ptr<One>> all_;
    DeploymentStart started_{};
    const std::string mark_;
    const std::vector<int> cores_;               ///< of all; empty: any
    const std::string gpus_;                     ///< of all
    const bool watched_;                         ///< they run on this machine
    std::vector<GpuMemoryUse> memory_before_{};  ///< of all, where there are several
};

}  // namespace servetune
