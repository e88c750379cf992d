// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/host/topology.hpp"
#include "servetune/study_file.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace servetune {

/// What starts an engine elsewhere than at a terminal.
enum class ArtefactKind { shell, systemd, compose, kubernetes, slurm };

inline constexpr std::array<std::pair<ArtefactKind, std::string_view>, 5> artefact_kinds{{{ArtefactKind::shell, "shell"},
                                                                                          {ArtefactKind::systemd, "systemd"},
                                                                                          {ArtefactKind::compose, "compose"},
                                                                                          {ArtefactKind::kubernetes, "kubernetes"},
                                                                                          {ArtefactKind::slurm, "slurm"}}};

struct ArtefactOptions {
    std::string host{};                  ///< where it listens; empty: 127.0.0.1, in compose and Kubernetes 0.0.0.0
    int port = 8000;                     ///< vLLM's own
    std::string image{};                 ///< of compose and Kubernetes; empty: the study's
    std::optional<std::int64_t> gpus{};  ///< in place of those that the layout takes; 0: none are asked for
    std::string title{};                 ///< a line of comment, such as the verdict
    std::int64_t replicas = 1;           ///< copies of the engine, as the configuration was measured (`deploy: {replicas: fill}`)
    DeviceTopology topology{};           ///< of the machine: engines get the devices that the trials' got (`groups_of_devices`)
};

/// A file to write, and files that have to lie beside it.
struct Artefact {
    std::string name;  ///< `STUDY.service`, `compose.yaml`, ...
    std::string text;
    std::map<std::string, std::string> beside{};
    std::string left_out{};   ///< options of the study's container that its format does not take; a comment names them
    bool executable = false;  ///< a script that is started by its name
};

/// A configuration of a study as that. Secrets of the study are in none: where one stood, the
/// artefact takes it from where it runs (an environment file, the caller's environment, a
/// Kubernetes Secret) and says so. Of a study whose engines run in containers, shell, systemd and
/// Slurm start the container. Throws UsageError without an image that compose or Kubernetes could
/// start, for a word that the format cannot hold (a zero byte, a line end in a unit), and for a
/// study that has no commands.
Artefact artefact_of(ArtefactKind kind, const StudySetup& setup, const Configuration& configuration, const ArtefactOptions& options);

}  // namespace servetune
