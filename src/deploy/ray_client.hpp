// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

namespace servetune {

/// The beginning of the client's own words on standard error.
inline constexpr std::string_view ray_client_says = "servetune: ray: ";
/// The client's own exit code where the job has none: its parent asks Ray why.
inline constexpr int ray_client_failed = 125;
/// A dashboard that is being restarted answers again within it.
inline constexpr std::chrono::seconds ray_patience{60};

/// The process that stands for a job of Ray: `autotune launch-client ray`. Standard input brings
/// one line of JSON ({address, token, job, unheard_within_seconds}), then line feeds. Submits the
/// job, prints what it prints, and ends with its exit code. On TERM it asks the job to end and
/// waits for that. When the input ends, or is silent for too long, it ends the job and makes Ray
/// forget it.
int ray_client();

}  // namespace servetune
