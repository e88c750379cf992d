// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/template.hpp"

namespace servetune {

// Files of src/handover/templates/. Whole files of an artefact:
extern const EmbeddedFile shell_sh_in, slurm_sbatch_in, systemd_service_in, compose_yaml_in,
    kubernetes_yaml_in, llm_d_yaml_in, kustomization_yaml_in, kserve_yaml_in, dynamo_yaml_in,
    rayservice_yaml_in, gpustack_json_in, config_map_yaml_in;
// Parts of several:
extern const EmbeddedFile head_in, exports_in, needs_in, files_in, pod_in, image_in, engine_in,
    probes_in, engine_more_in, other_containers_in, volumes_in, left_out_in;
/// The tables of a storage of Optuna 3.0 to 3.1.
extern const EmbeddedFile optuna_sql;

}  // namespace servetune
