// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "deployment_model.hpp"

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace servetune {

/// What starts an engine elsewhere than at a terminal.
enum class ArtefactKind {
    shell,
    systemd,
    compose,
    slurm,
    kubernetes,
    llm_d,
    kserve,
    dynamo,
    rayservice,
    gpustack
};

inline constexpr std::array<std::pair<ArtefactKind, std::string_view>, 10> artefact_kinds{
    {{ArtefactKind::shell, "shell"},
     {ArtefactKind::systemd, "systemd"},
     {ArtefactKind::compose, "compose"},
     {ArtefactKind::slurm, "slurm"},
     {ArtefactKind::kubernetes, "kubernetes"},
     {ArtefactKind::llm_d, "llm-d"},
     {ArtefactKind::kserve, "kserve"},
     {ArtefactKind::dynamo, "dynamo"},
     {ArtefactKind::rayservice, "rayservice"},
     {ArtefactKind::gpustack, "gpustack"}}};

/// A file to write, and files that have to lie beside it.
struct Artefact {
    std::string name;  ///< `STUDY.service`, `compose.yaml`, ...
    std::string text;
    std::map<std::string, std::string> beside{};
    std::string
        left_out{};  ///< what the study has and the format does not take; a comment names it where there are comments
    bool executable = false;  ///< a script that is started by its name
};

/// A configuration of a study as that. Secrets of the study are in none: where one stood, the
/// artefact takes it from where it runs (an environment file, the caller's environment, a
/// Kubernetes Secret) and says so. Of a study whose engines run in containers, shell, systemd and
/// Slurm start the container. Throws UsageError without an image where one is needed, for what the
/// format or the platform cannot carry (such as a zero byte, a line end in a unit, an engine that
/// the platform does not run, or roles apart), and for a study that has no commands.
Artefact artefact_of(ArtefactKind kind, const StudySetup& setup, const Configuration& configuration,
                     const DeploymentOptions& options);

}  // namespace servetune
