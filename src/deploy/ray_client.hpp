// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace servetune {

/// The process that stands for a job of Ray: `autotune launch-client ray`. Standard input brings
/// one line of JSON ({address, token, job}), then line feeds. Submits the
/// job, prints what it prints, and ends with its exit code. On TERM it asks the job to end and
/// waits for that. When the input ends, or is silent for too long, it ends the job and makes Ray
/// forget it.
int ray_client();

}  // namespace servetune
