// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/deployment.hpp"
#include "servetune/detail/deploy/server.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace servetune {

/// One of the engines that are one server together.
struct ServerPart {
    std::string
        name{};  ///< its folder below the trial's, as `prefill-0`; empty: it is the trial's own
    std::string role{};        ///< empty: it answers requests by itself
    std::string gpus{};        ///< as DeployOptions::gpus
    std::int64_t devices = 0;  ///< as DeployOptions::devices
    std::vector<int> cores{};  ///< in place of the options', unless empty
    std::function<Command(int port, int side_port)> render{};  ///< `side_port`: 0 without a role
    int port = 0;  ///< that it listens on; 0: any that is free
};

/// The program that takes the requests for engines of several roles.
struct ServerRouter {
    std::string ready_path{};  ///< answers 200 once it serves
    std::function<Command(int port, int side_port,
                          const std::map<std::string, std::vector<RoleServer>>& servers)>
        render{};
    int port = 0;  ///< as of ServerPart
};

/// One engine, or several on devices of their own, as one server: copies with the same flags, or
/// engines of roles and a router in front of them. All engines start at the same time, the router
/// once they serve; where one fails, all are ended, the router first, and the failure is that
/// one's, which is named where it has a role. Each has its log in its own folder, the router in
/// `router`.
class Replicas : public Server {
public:
    /// At least one part; a router where they have roles, which come in the order in which a
    /// request passes them. Throws what Deployment throws, after all have ended.
    Replicas(const Engine& engine, std::vector<ServerPart> parts,
             const std::optional<ServerRouter>& router, const std::string& served_model,
             const DeployOptions& options, const std::stop_token& stop);
    ~Replicas() override;
    Replicas(const Replicas&) = delete;
    Replicas& operator=(const Replicas&) = delete;

    [[nodiscard]] std::size_t count() const { return parts_.size(); }  ///< of engines
    /// Until the last one served, or the first failed.
    [[nodiscard]] const DeploymentStart& started() const { return started_; }
    /// The router's where there is one, with the counters of the engines of the last role: they
    /// make the answers.
    [[nodiscard]] Endpoint endpoint() const override;
    [[nodiscard]] std::optional<Failure> died() const override;
    [[nodiscard]] std::optional<Failure> changed() const override;
    [[nodiscard]] std::optional<Failure> lost() const override;
    bool reset_cache() override;
    [[nodiscard]] std::vector<std::string> not_in_force() const override;
    [[nodiscard]] std::unique_ptr<MachineWatch> watch(MachineWatchOptions options) const override;
    /// Of the first that fails, else of the first.
    [[nodiscard]] std::vector<std::string> decisive() const;
    /// The folder of that one's log, below the trial's; empty: it is the trial's own.
    [[nodiscard]] std::string log_folder() const;
    [[nodiscard]] std::string log_trouble() const;
    /// Ends the router, then all engines at the same time.
    Ended stop();

private:
    struct One;
    void start_engines(const Engine& engine, const std::string& served_model,
                       const DeployOptions& options, std::stop_source& given_up);
    void start_router(const Engine& engine, const ServerRouter& router,
                      const std::string& served_model, const DeployOptions& options,
                      const std::stop_token& stop);
    void note_start(const One& one);
    [[nodiscard]] const One& deciding() const;
    [[nodiscard]] std::optional<Failure> first_failure(
        const std::function<std::optional<Failure>(const Deployment&)>& of) const;

    const std::vector<ServerPart> parts_;
    std::vector<std::unique_ptr<One>> all_;  ///< the engines, then the router
    DeploymentStart started_{};
    const std::string mark_;
    const std::vector<int> cores_;               ///< of all; empty: any
    const std::string gpus_;                     ///< of all
    const bool watched_;                         ///< they run on this machine
    std::vector<GpuMemoryUse> memory_before_{};  ///< of all, where there are several
};

}  // namespace servetune
