// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"
#include "servetune/detail/host/process.hpp"
#include "servetune/outcome.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

class Descriptor;

/// The parameter that chooses among several images, so that versions of an engine compete. It makes
/// no flag.
inline constexpr std::string_view image_parameter = "container.image";

/// What is to be started for a trial.
struct LaunchRequest {
    Command command{};  ///< the engine's; its files will lie in `folder`
    std::map<std::string, std::string> environment{};  ///< of the engine
    std::string image{};  ///< of a container; a launcher of processes does not look at it
    std::filesystem::path folder{};  ///< of the trial; absolute
    std::string mark{};              ///< of the study
    std::string gpus{};              ///< as in CUDA_VISIBLE_DEVICES; empty: none are named
    std::int64_t devices =
        0;  ///< how many it takes, for a launcher that gives them out; 0: not known
    std::vector<int> cores{};         ///< empty: any
    int port = 0;                     ///< that the engine listens on; 0: it does not
    double stop_within_seconds = 20;  ///< for the engine to end by itself once it was told
    std::vector<std::string>
        caches{};  ///< variables that name folders of compiled code (Engine::caches)
};

/// The process of this machine that stands for it.
struct Launch {
    std::vector<std::string> argv{};
    std::map<std::string, std::string> environment{};
    std::string
        name{};  ///< of what may outlive the process (a container, a job); empty: nothing does
    std::string image{};    ///< as the request has it
    std::string program{};  ///< of the engine, for messages
    std::string told{};  ///< what the process's standard input brings first (ProcessOptions::told)
    std::chrono::milliseconds beats{0};         ///< ProcessOptions::beats
    std::shared_ptr<const Descriptor> facts{};  ///< a file in memory: ProcessOptions::facts
};

/// Where what was launched is.
struct LaunchedAt {
    std::string waits{};  ///< why it has not begun yet, as a queue says it; empty: it has
    std::string host = "127.0.0.1";  ///< at which this machine reaches its port
    std::string inside{};  ///< at which other engines of the same study reach it; empty: as `host`
    Place place{};         ///< of a machine that a cluster chose
};

/// How the command of an engine becomes a process of this machine: as it is, or as the client of a
/// container, of a command on another machine or of a job. The process is the parent's to start and
/// to end (`Process`, `end_launched`); a launcher knows what is to be started, what an end means
/// beyond the engine's own words, and how to remove what outlives the process. What is not
/// overridden is that of a process of this machine. Every launcher runs
/// tests/contract/launcher_contract.hpp. Any thread may use it.
class Launcher {
public:
    virtual ~Launcher() = default;

    [[nodiscard]] virtual std::string name()
        const = 0;  ///< as studies name it: local, podman, docker, or a launcher of theirs
    [[nodiscard]] virtual bool in_containers() const { return false; }
    /// Whether the engine runs on this machine, so that its GPUs, cores and processes are those
    /// that we see.
    [[nodiscard]] virtual bool on_this_machine() const { return true; }
    /// Whether it gives out devices itself, by their number (LaunchRequest::devices).
    [[nodiscard]] virtual bool gives_out_devices() const { return false; }
    /// The address that the engine is to listen on.
    [[nodiscard]] virtual std::string listen_address() const { return "127.0.0.1"; }
    /// The first and the last port that an engine may listen on; {0, 0}: any.
    [[nodiscard]] virtual std::pair<int, int> ports() const { return {0, 0}; }
    /// Images that it may start, the first by default; empty: it knows none.
    [[nodiscard]] virtual std::vector<std::string> images() const { return {}; }
    /// What of its settings cannot be, for a person; empty: nothing. Asks nobody elsewhere.
    [[nodiscard]] virtual std::string wrong_settings() const { return {}; }
    /// Why nothing can be launched here now, for a person: a program that is missing, a daemon that
    /// is gone, an image that is not there. Empty: it can.
    [[nodiscard]] virtual std::string trouble(const std::string& /*image*/) const { return {}; }
    /// What `trouble` noticed last that stops no trial, for a person.
    [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
    /// What an image is at this moment, so that a later one of the same name is seen to be another:
    /// its id and digests. Empty where that cannot be said, and for a launcher without images.
    [[nodiscard]] virtual std::string pinned(const std::string& /*image*/) const { return {}; }

    /// The process for it. Starts nothing. Throws IoError as `trouble` says.
    [[nodiscard]] virtual Launch launch(const LaunchRequest& request) const = 0;
    /// Where it is; asked until it waits no more. Throws IoError where nobody answers.
    [[nodiscard]] virtual LaunchedAt place(const Launch& /*launch*/) const { return {}; }
    /// Asks it to end by itself, where the TERM that the process gets would not reach the engine.
    /// False: it would.
    virtual bool ask_to_end(const Launch& /*launch*/, Process& /*process*/) const { return false; }
    /// Why nobody answers though the process is still there, where that is not the engine's fault:
    /// its machine is gone, or keeps it from running. Nothing: the launcher knows of nothing.
    [[nodiscard]] virtual std::optional<Failure> lost(const Launch& /*launch*/) const {
        return std::nullopt;
    }
    /// Why it ended, where the launcher knows better than the engine's log; nothing: it does not.
    /// To be asked before `remove`. `lines`: what was printed.
    [[nodiscard]] virtual std::optional<Failure> ended(
        const Launch& /*launch*/, int /*exit_code*/,
        const std::vector<std::string>& /*lines*/) const {
        return std::nullopt;
    }
    /// Removes what outlives the process, whatever state it is in. What would not go, for a person;
    /// empty: nothing is left.
    virtual std::string remove(const Launch& /*launch*/) const { return {}; }

    /// What a killed tuner has left of this study beside processes (`servetune::leftovers` finds
    /// these), a line each. Throws IoError where nobody answers.
    [[nodiscard]] virtual std::vector<std::string> leftovers(const std::string& /*mark*/) const {
        return {};
    }
    /// Removes them; those that would not go.
    virtual std::vector<std::string> end_leftovers(const std::string& /*mark*/) const { return {}; }

    /// The command for a person who serves the engine in the same way. Of `environment` only the
    /// names.
    [[nodiscard]] virtual Command shown(const LaunchRequest& request) const {
        return request.command;
    }
};

/// Ends the process, and before it what it stands for, where that has to be asked by itself.
/// `patience`: for each of being asked, TERM and KILL. What could not be asked is in the report.
Ended end_launched(const Launcher& launcher, const Launch& launch, Process& process,
                   std::chrono::milliseconds patience);

/// Which client runs the containers; their options differ.
enum class ContainerKind { podman, docker };

/// Containers of one engine, on the host's network: its port is the one that was reserved for it.
struct ContainerOptions {
    ContainerKind kind = ContainerKind::podman;
    std::vector<std::string> program{};  ///< and its global options; empty: `podman` or `docker`
    std::vector<std::string>
        images{};  ///< at least one; several: versions that compete, the first is the default
    std::vector<std::string> volumes{};  ///< SOURCE:TARGET or SOURCE:TARGET:ro, absolute paths
    std::vector<std::string>
        models{};  ///< files and folders that are mounted read-only where they are
    std::vector<std::string> options{};  ///< further words of `run`, before the image
    std::int64_t shm_bytes =
        32L << 30L;  ///< /dev/shm, where ranks meet (SGLang's guide: 32g); a bound, not a share
    std::int64_t memory_bytes = 0;  ///< of the container at most; 0: no bound

    /// What cannot be in these options, for a person; empty: nothing. A name that would be read as
    /// an option is refused.
    [[nodiscard]] std::string why_invalid() const;
};

/// Engines that a program starts and stands for, wherever they run: ssh, a job of a cluster.
/// docs/reference/your-own-program.md is its contract.
struct WrappedOptions {
    std::string name{};                  ///< as studies name it
    std::vector<std::string> program{};  ///< and its words, before the verb
    /// What each request begins with: `set`, "KEY VALUE" for each setting of the study, ...
    std::vector<std::pair<std::string, std::string>> lines{};

    /// All values of a setting.
    [[nodiscard]] std::vector<std::string> setting(std::string_view key) const;
};

/// Processes of this machine.
[[nodiscard]] std::shared_ptr<const Launcher> local_launcher();
/// Containers by `podman run` or `docker run`. Throws UsageError where the options cannot be.
[[nodiscard]] std::shared_ptr<const Launcher> container_launcher(ContainerOptions options);
/// Throws UsageError where there is no program.
[[nodiscard]] std::shared_ptr<const Launcher> wrapped_launcher(WrappedOptions options);

}  // namespace servetune
