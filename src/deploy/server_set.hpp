// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/deployment.hpp"
#include "servetune/detail/deploy/server.hpp"
#include "servetune/detail/engine/composition.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace servetune {

/// One server of a configuration, and its part of the machine.
struct PlacedServer {
    std::string
        name{};  ///< its folder below the trial's, as `prefill-0`; empty: it is the trial's own
    std::string role{};        ///< of its group (ServerGroup)
    std::string gpus{};        ///< as DeployOptions::gpus
    std::int64_t devices = 0;  ///< as DeployOptions::devices
};

/// The servers of a configuration as one: those that take requests by themselves, or several groups
/// and the router in front of them. All start at the same time, the router once they serve; where
/// one fails, all are ended, the router first, and the failure is that one's, which is named where
/// it has a role. Each has its log in its own folder, the router in `router`.
class ServerSet : public Server {
public:
    struct Options {
        DeployOptions deploy{};            ///< their folder is the trial's
        std::string host = "127.0.0.1";    ///< on which clients are listened to
        std::string inside = "127.0.0.1";  ///< the same of servers behind a router
        int port = 0;  ///< of the router, or of the first server, the others behind it; 0: any
        std::vector<std::string> adds{};  ///< words that each engine has more
    };

    /// `servers`: of all groups of the configuration, in their order. The composition must outlive
    /// this. Throws what Deployment throws, after all have ended.
    ServerSet(const Composition& composition, const Configuration& configuration, std::string model,
              std::vector<PlacedServer> servers, Options options, const std::stop_token& stop);
    ~ServerSet() override;
    ServerSet(const ServerSet&) = delete;
    ServerSet& operator=(const ServerSet&) = delete;

    [[nodiscard]] std::size_t count() const { return servers_.size(); }  ///< without the router
    /// Whose weights its engines load: what the command's model is called.
    [[nodiscard]] std::string model() const;
    /// Until the last one served, or the first failed.
    [[nodiscard]] const DeploymentStart& started() const { return started_; }
    /// The router's where there is one, with the counters of the servers of the last group: they
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
    /// Ends the router, then all servers at the same time.
    Ended stop();

    /// Where clients reach it.
    [[nodiscard]] std::vector<std::string> addresses() const;
    /// Asks at each address for health and the list of models: what is wrong with the first that
    /// does not say it serves; empty: all do.
    [[nodiscard]] std::string why_silent(double answer_within_seconds,
                                         const std::stop_token& stop) const;
    /// How many ports it takes, from `Options::port` on.
    [[nodiscard]] static std::size_t ports_of(const std::vector<PlacedServer>& servers);

private:
    struct One;
    [[nodiscard]] bool has_router() const { return !servers_.front().role.empty(); }
    [[nodiscard]] Command command_of(const std::string& role, int port, int side_port) const;
    void start_servers(std::stop_source& given_up);
    void start_router(const std::stop_token& stop);
    void note_start(const One& one);
    [[nodiscard]] const One& deciding() const;
    [[nodiscard]] std::optional<Failure> first_failure(
        const std::function<std::optional<Failure>(const Deployment&)>& of) const;

    const Composition& composition_;
    const Configuration configuration_;
    const std::string model_;
    const std::vector<PlacedServer> servers_;
    const Options options_;
    const Engine& engine_;
    const Command sample_;            ///< of the first server, for a port chosen later
    const std::string served_model_;  ///< the name that clients ask for
    const bool on_this_machine_;
    std::vector<std::unique_ptr<One>> all_;  ///< the servers, then the router
    DeploymentStart started_{};
    std::vector<GpuMemoryUse> memory_before_{};  ///< of all, where there are several
};

}  // namespace servetune
