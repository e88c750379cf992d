// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "artefact.hpp"
#include "deployment_model.hpp"

#include <string>
#include <vector>

namespace servetune {

// A writer for each kind of artefact. All throw UsageError for what their format cannot carry.

Artefact shell_artefact(const DeploymentModel& deployment);
Artefact slurm_artefact(const DeploymentModel& deployment);
Artefact systemd_artefact(const DeploymentModel& deployment);
Artefact compose_artefact(const DeploymentModel& deployment);

/// A Deployment and a Service.
Artefact kubernetes_artefact(const DeploymentModel& deployment);
/// A patch of the Deployment `decode` of an llm-d guide, and its kustomization.
Artefact llm_d_artefact(const DeploymentModel& deployment);

/// An LLMInferenceService.
Artefact kserve_artefact(const DeploymentModel& deployment);
/// A DynamoGraphDeployment.
Artefact dynamo_artefact(const DeploymentModel& deployment);
/// A RayService that runs Ray Serve LLM.
Artefact rayservice_artefact(const DeploymentModel& deployment);
/// The body of a request that makes a model of GPUStack.
Artefact gpustack_artefact(const DeploymentModel& deployment);

/// A container of a pod, as YAML without indentation, and what its pod and its namespace need for
/// it.
struct PodText {
    std::string container;   ///< keys of the engine's container
    std::string containers;  ///< items: it, and those that the user's pod has beside it
    std::string volumes;     ///< items of the pod's list
    std::string pod;         ///< further keys of the pod: the grace, and what the user's pod says
    std::string
        config_map;  ///< a document, with the line between documents behind it; may be empty
    std::string what_needed;  ///< lines of comment: the Secret to make
};

/// How a writer's container differs from the others.
struct PodWish {
    std::string container = "engine";  ///< its name
    std::vector<Word> command{};       ///< the container's entry point
    std::vector<Word> args{};          ///< behind it
    std::string more_environment{};    ///< items of the list, before those of the engine
    /// Startup, readiness and liveness; `times`: of those that the container has from elsewhere.
    enum class Probes { none, times, own } probes = Probes::own;
    bool shm = true;  ///< /dev/shm of the deployment's size
};

/// The GPUs of one pod.
[[nodiscard]] std::int64_t gpus_of_pod(const DeploymentModel& deployment);

[[nodiscard]] PodText pod_text(const DeploymentModel& deployment, const PodWish& wish);

/// Flags of the engine, without those that only its own HTTP server has
/// (PlatformStarts::server_flags).
struct EngineFlags {
    std::vector<std::vector<Word>> kept{};  ///< a flag, with the words that are its values
    std::string left_out{};                 ///< the others, for a comment; no secrets
};
[[nodiscard]] EngineFlags engine_flags(const DeploymentModel& deployment);

}  // namespace servetune
