// SPDX-License-Identifier: Apache-2.0
#pragma once

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
};
using Word = std::vector<WordPiece>;

[[nodiscard]] inline bool has_variable(const Word& word) {
    return any_of(word, [](const WordPiece& piece) { return piece.variable; });
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

/// What a configuration comes to, wherever it runs: all that the writers of artefacts know.
struct DeploymentModel {
    std::string name;     ///< the study's, as DNS takes it
    std::string title{};  ///< the verdict
    std::vector<std::string>
        to_change{};         ///< what a person may have to replace or add, a line each
    std::string left_out{};  ///< what the study's container or pod has and the artefact lacks
    std::string model{};     ///< a name on the hub, or a path; MODEL: the study names none
    std::vector<std::string> mounts{};  ///< models that are paths
    Word image{};                       ///< of a container; empty: nobody named one
    std::string ready_path{};
    double ready_within_seconds = 0;
    std::int64_t shm_bytes = 0;
    std::string device_resource = "nvidia.com/gpu";  ///< how a cluster calls a GPU
    std::vector<Word> argv{};  ///< of the engine, or of the client of its container
    std::size_t launch_words =
        0;  ///< of argv, before the flags: program, model and address; 0 for a client's
    std::map<std::string, Word> environment{};
    std::map<std::string, std::string> files{};  ///< name, as it stands in argv -> content
    std::set<std::string> variables{};           ///< secrets that must be there: names of variables
    std::int64_t gpus = 0;
    int port = 0;
    std::int64_t copies = 1;

    /// The words behind the launch: flags, and the study's own arguments.
    [[nodiscard]] std::vector<Word> flags() const {
        return {argv.begin() + std::ptrdiff_t(launch_words), argv.end()};
    }
};

/// Where the engine's process is started.
enum class StartedIn {
    shell,            ///< by a name that the PATH has; a study's container by its client
    service_manager,  ///< which does not search a person's PATH
    container,        ///< of an image
    cluster           ///< the same, in as many copies as were measured
};

/// Throws UsageError for a study that has no commands, for a configuration that runs prefill and
/// decode apart, and for a secret that no variable has in the form that stands there.
[[nodiscard]] DeploymentModel deployment_of(const StudySetup& setup,
                                            const Configuration& configuration,
                                            const DeploymentOptions& options, StartedIn where);

}  // namespace servetune
