// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/host/devices.hpp"
#include "servetune/study_file.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace servetune {

/// A part of a word: text, or the value of a variable that is known only where the engine runs.
struct WordPiece {
    std::string text;  ///< of a variable: its name
    bool variable = false;
    friend bool operator==(const WordPiece&, const WordPiece&) = default;
};
using Word = std::vector<WordPiece>;

[[nodiscard]] inline bool has_variable(const Word& word) {
    return std::any_of(word.begin(), word.end(),
                       [](const WordPiece& piece) { return piece.variable; });
}

/// What a person chooses of a deployment; the study and its configuration say the rest.
struct DeploymentOptions {
    std::string host{};   ///< where it listens; empty: 127.0.0.1, in a container 0.0.0.0
    int port = 8000;      ///< vLLM's own
    std::string image{};  ///< of a container; empty: the study's
    std::optional<std::int64_t>
        gpus{};           ///< in place of those that the layout takes; 0: none are asked for
    std::string title{};  ///< a line of comment, such as the verdict
    /// copies of the engine, as the configuration was measured (`deploy: {replicas: fill}`)
    std::int64_t replicas = 1;
};

/// One kind of server of a deployment: what its process is given.
struct DeployedEngine {
    /// prefill-1, decode-1, router: of prefill and decode apart; empty: it does all by itself
    std::string role{};
    std::vector<Word> argv{};  ///< of the engine, or of the client of its container
    std::size_t launch_words =
        0;  ///< of argv, before the flags: program, model and address; 0 for a client's
    std::map<std::string, Word> environment{};
    std::map<std::string, std::string> files{};  ///< name, as it stands in argv -> content
    std::set<std::string> variables{};           ///< secrets that must be there: names of variables
    std::int64_t gpus = 0;
    std::vector<std::string>
        devices{};  ///< by number, where several engines of one machine share them out
    int port = 0;
    std::int64_t copies = 1;

    /// The words behind the launch: flags, and the study's own arguments.
    [[nodiscard]] std::vector<Word> flags() const {
        return {argv.begin() + static_cast<std::ptrdiff_t>(launch_words), argv.end()};
    }
};

/// What a configuration comes to, wherever it runs: all that the writers of artefacts know.
struct DeploymentModel {
    std::string name;     ///< the study's, as DNS takes it
    std::string title{};  ///< the verdict
    std::vector<std::string>
        to_change{};         ///< what a person may have to replace or add, a line each
    std::string left_out{};  ///< options of the study's container that whole containers lack
    std::string model{};     ///< a name on the hub, or a path; MODEL: the study names none
    std::vector<std::string> mounts{};  ///< models that are paths
    Word image{};                       ///< of a container; empty: nobody named one
    std::string ready_path{};
    double ready_within_seconds = 0;
    std::int64_t shm_bytes = 0;
    std::string device_resource = "nvidia.com/gpu";  ///< how a cluster calls a GPU
    std::string pod_template{};  ///< the user's (of the study's kubernetes settings); empty: none
    std::string engine{};        ///< its name, for messages
    PlatformStarts platforms{};
    /// One, with its `copies`; on a machine without a service that spreads requests one for each
    /// copy, with a port and devices of its own. Of prefill and decode apart each server, and last
    /// the router, which takes the requests: all for one machine, and they find each other there.
    std::vector<DeployedEngine> engines{};

    [[nodiscard]] const DeployedEngine& first() const { return engines.front(); }
    [[nodiscard]] bool has_roles() const { return !engines.front().role.empty(); }
    [[nodiscard]] std::int64_t copies() const {
        return engines.size() > 1 ? static_cast<std::int64_t>(engines.size())
                                  : engines.front().copies;
    }
};

/// Where the engine's process is started.
enum class StartedIn {
    shell,            ///< by a name that the PATH has; a study's container by its client
    service_manager,  ///< which does not search a person's PATH
    container,        ///< of an image, with all devices of a machine to share out
    cluster           ///< the same, with copies that are one like the other
};

/// Throws UsageError for a study that has no commands, and for a secret that no variable has in the
/// form that stands there.
[[nodiscard]] DeploymentModel deployment_of(const StudySetup& setup,
                                            const Configuration& configuration,
                                            const DeploymentOptions& options, StartedIn where);

}  // namespace servetune
