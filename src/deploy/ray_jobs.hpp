// SPDX-License-Identifier: Apache-2.0
#pragma once

// The jobs REST API of Ray's dashboard (docs.ray.io, "Ray Jobs REST API"; tried with Ray 2.60.0).

#include "servetune/detail/deploy/remote_launchers.hpp"
#include "servetune/detail/load/load_generator.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// A job as Ray tells of it.
struct RayJob {
    std::string id{};
    std::string status{};            ///< PENDING, RUNNING, STOPPED, SUCCEEDED, FAILED
    std::string message{};           ///< of Ray, of one line
    std::string error_type{};        ///< of FAILED, such as JOB_ENTRYPOINT_COMMAND_ERROR
    std::optional<int> exit_code{};  ///< of its entrypoint; 128 + signal
    std::string host{};              ///< of the node that it runs on; empty: not known yet
    std::string label{};             ///< of the study, as `ray_job_of` has it
    int port = 0;                    ///< that the engine listens on; 0: none
    double begun = 0;                ///< seconds since 1970
    double bound_seconds = 0;

    [[nodiscard]] bool is_there() const { return status == "PENDING" || status == "RUNNING"; }
};

/// An engine that its bound has ended by TERM is killed after so long.
inline constexpr int ray_kill_after_seconds = 20;

/// The body that submits an engine as the job `name` of the study with this label. Its entrypoint
/// is a line for /bin/sh in which every word is single-quoted. Files of the command lie in a folder
/// of the node's own, which goes with the engine. Throws UsageError for a word that no shell can
/// pass on, and for names of variables that are none.
nlohmann::json ray_job_of(const RayOptions& options, const LaunchRequest& request,
                          const std::string& name, const std::string& label);

/// The token that the options name; empty: none. Throws UsageError where it is not there.
std::string token_of(const RayOptions& options);

/// Every call throws IoError where nobody answers, and UsageError, which says what to do, where the
/// token is not taken.
class RayJobs {
public:
    /// `token`: empty: none is sent.
    RayJobs(const std::string& address, const std::string& token);

    /// The version of Ray, such as 2.60.0. Throws IoError where the server is no dashboard of Ray.
    [[nodiscard]] std::string version() const;
    /// `job`: a body of ours (`ray_job_of`). A job of that name that is there already is that one.
    void submit(const nlohmann::json& job) const;
    /// Nothing: Ray knows of no such job.
    [[nodiscard]] std::optional<RayJob> find(const std::string& id) const;
    /// Those of a study.
    [[nodiscard]] std::vector<RayJob> of_label(const std::string& label) const;
    /// All that the job has printed; nothing: it cannot be had now, or has more than 8 MiB.
    [[nodiscard]] std::optional<std::string> log(const std::string& id) const;
    /// Asks it to end: TERM, and KILL after the seconds that the job was submitted with.
    void stop(const std::string& id) const;
    /// Makes Ray forget a job that has ended.
    void forget(const std::string& id) const;
    /// What each living node has: resource -> amount.
    [[nodiscard]] std::vector<std::map<std::string, double>> nodes() const;
    /// Whether the node of this address lives, as Ray says. Nothing: Ray does not know it.
    [[nodiscard]] std::optional<bool> node_lives(const std::string& host) const;

private:
    Endpoint server_;
};

}  // namespace servetune
