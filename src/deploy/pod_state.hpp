// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/outcome.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace servetune {

/// What the status of a trial's pod says, as the API has it (`kubectl get pod -o json`): where it
/// is, and what the cluster knows of its end better than the engine's log.
struct PodState {
    enum class Phase {
        waits,  ///< for a node, its image, its volumes, its containers that come first
        runs,   ///< the engine's container does
        ended   ///< the engine's container, or the pod as a whole
    };
    Phase phase = Phase::waits;
    std::string why{};  ///< of waiting, in the words of the scheduler or the node
    /// What was done to it, or what it lacks; nothing: all is well, or the engine ended by itself
    /// and its log says why. Also while it runs: a pod that is being evicted is lost already.
    std::optional<Failure> failure{};
    /// Every trial would fail in the same way: the set-up is wrong, and the run is to stop with
    /// `failure`.
    bool hopeless = false;
    /// `failure` counts only once the state was the same for so long: a registry may answer again.
    double believed_after_seconds = 0;
    bool deleted = false;  ///< somebody has asked for its deletion
    std::string node{};
    std::string pod_ip{};
    std::string host_ip{};
    std::optional<int> exit_code{};  ///< of the engine
};

/// Which of the pods of an engine over several nodes; 0: the first, which answers requests, and the
/// only one of any other.
[[nodiscard]] std::int64_t index_of_pod(const nlohmann::json& pod);

/// `engine`: the name of the engine's container.
[[nodiscard]] PodState pod_state_of(const nlohmann::json& pod, const std::string& engine);

}  // namespace servetune
