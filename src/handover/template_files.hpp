// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/template.hpp"

namespace servetune {

// Files of src/handover/templates/: a file for each kind of artefact, and parts of several.
extern const EmbeddedFile shell_sh_in, slurm_sbatch_in, systemd_service_in, compose_yaml_in,
    kubernetes_yaml_in, head_in, exports_in;

}  // namespace servetune
