// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "deployment_model.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// A file to write, and files that have to lie beside it.
struct Artefact {
    std::string name;  ///< `STUDY.service`, `compose.yaml`, ...
    std::string text;
    std::map<std::string, std::string> beside{};
    std::string left_out{};   ///< what the study has and the file lacks; a comment names it too
    bool executable = false;  ///< a script that is started by its name
};

/// What starts an engine elsewhere than at a terminal: `shell`, `systemd`, `compose`, ...
[[nodiscard]] std::vector<std::string> artefact_kinds();

/// A configuration of a study as a file of this kind, made from its template in
/// src/handover/templates/. Secrets of the study are in none: where one stood, the artefact takes
/// it from where it runs (an environment file, the caller's environment, a Kubernetes Secret). Of a
/// study whose engines run in containers, shell, systemd and Slurm start the container. Throws
/// UsageError without an image where one is needed, for what the format cannot carry (a line end in
/// a unit), and for a study without commands.
Artefact artefact_of(std::string_view kind, const StudySetup& setup,
                     const Configuration& configuration, const DeploymentOptions& options);

/// The same of what a configuration comes to.
Artefact artefact_of(std::string_view kind, const DeploymentModel& deployment);

}  // namespace servetune
