// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/template.hpp"

namespace servetune {

// Files of src/handover/templates/: a file for each kind of artefact, parts of several, and what a
// record says of itself.
extern const EmbeddedFile shell_sh_in, slurm_sbatch_in, systemd_service_in, compose_yaml_in,
    kubernetes_yaml_in, head_in, exports_in, record_readme_in;

}  // namespace servetune
