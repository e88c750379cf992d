// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/deploy/server.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/host/port.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/detail/load/load_generator.hpp"
#include "servetune/launcher.hpp"
#include "servetune/outcome.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

namespace servetune {

/// How an engine is started, and when it is given up.
struct DeployOptions {
    std::filesystem::path folder{};  ///< of the trial: `engine.log` and the engine's files
    std::map<std::string, std::string>
        environment{};  ///< the study's; replaces what engine and command say
    /// for our requests, as a bearer token; the engine has its own from its environment
    std::string api_key{};
    std::string mark{};        ///< of the study (`leftovers`)
    std::vector<int> cores{};  ///< the engine runs on these only; empty: any
    std::string gpus{};        ///< as in CUDA_VISIBLE_DEVICES; empty: as it is
    std::int64_t devices = 0;  ///< of the layout, for a launcher that gives out devices itself
    std::shared_ptr<const Launcher> launcher{};    ///< none: processes of this machine
    std::string image{};                           ///< of a launcher that has images
    std::optional<double> ready_within_seconds{};  ///< else the engine file's
    bool answers_alone =
        true;  ///< false: it answers no request by itself, so none is sent to see whether it serves
    double stop_within_seconds = 20;  ///< for TERM, then again for KILL
    /// an engine that printed why it fails and does not end by itself is ended after so long
    double failed_line_grace_seconds = 20;
    std::size_t log_bytes = 16UL << 20UL;  ///< of the log file at most
    /// ends the engine where this program dies first; none: only its leader is told
    std::shared_ptr<Watchdog> watchdog{};
    std::function<void(const std::string&)> waits{};  ///< is told why it waits in a queue
    /// asked for the GPUs' memory before the start and after the end, where it is there
    std::string nvidia_smi = "nvidia-smi";

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// How a deployment began.
struct DeploymentStart {
    double seconds = 0;                ///< until the first real answer, or the failure
    double queued_seconds = 0;         ///< before that, in the queue of a launcher that has one
    std::optional<Failure> failure{};  ///< with its log's decisive lines
    Place place{};                     ///< as the launcher says
};

/// An engine that was started for a trial. Its end is the end of the whole process group. `died`
/// and `decisive` may be asked from any thread, the rest from one.
class Deployment : public Server {
public:
    /// Starts `command` (rendered for `port`, which must outlive this) and waits until it serves:
    /// its ready path answers 200, its list of models holds the expected one, and, where it answers
    /// alone, a first completion comes back with a token. Asks with a back-off from 20 ms to 1 s. A
    /// failed start is not an exception: `started().failure` says why, and the engine is ended.
    /// `stop` is heard at any moment. Throws IoError where the machine is at fault (no such
    /// program, disk full), UsageError where the engine serves but does not accept our key (401,
    /// 403): then it is ended.
    Deployment(const Engine& engine, const Command& command, const std::string& served_model,
               const ReservedPort& port, DeployOptions options, const std::stop_token& stop = {});
    ~Deployment() override;
    Deployment(const Deployment&) = delete;
    Deployment& operator=(const Deployment&) = delete;

    [[nodiscard]] const DeploymentStart& started() const;
    [[nodiscard]] Endpoint endpoint() const override;
    /// Its address for other engines and their router.
    [[nodiscard]] std::string url_inside() const;
    [[nodiscard]] int process_id() const;
    /// Over its own GPUs and cores, whatever the options say of these.
    [[nodiscard]] std::unique_ptr<MachineWatch> watch(MachineWatchOptions options) const override;
    /// Whether the very process that was started still runs and still serves the expected model.
    [[nodiscard]] bool same_server() const;
    /// Why it is no more what it was, from its exit code and log; nothing while all is well, and
    /// after `stop`.
    [[nodiscard]] std::optional<Failure> died() const override;
    [[nodiscard]] std::optional<Failure> changed() const override;
    [[nodiscard]] std::optional<Failure> lost() const override;
    /// The lines of its log that decide, then the last ones: ten at most.
    [[nodiscard]] std::vector<std::string> decisive() const;
    /// Empties the engine's prefix cache, where it can (`between_runs`); false where it cannot.
    bool reset_cache() override;
    /// Lines of its log that say, though it serves, that something is not supported. A flag that it
    /// ignores, by its log or by what it tells of itself (api.server_info), is a failed start.
    [[nodiscard]] std::vector<std::string> not_in_force() const override;
    /// Why the log file ends early (disk full); empty while all is well.
    [[nodiscard]] std::string log_trouble() const;
    /// TERM, wait, KILL, wait until the port and the GPUs' memory are free. Reports what would not
    /// go. Again: says the same.
    Ended stop();

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace servetune
