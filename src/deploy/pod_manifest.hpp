// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/deploy/remote_launchers.hpp"
#include "servetune/launcher.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// Labels of every Job of ours and of its pod.
inline constexpr std::string_view managed_by_label =
    "app.kubernetes.io/managed-by";  ///< its value: `servetune`
inline constexpr std::string_view pod_study_label =
    "servetune/study";  ///< its value: the study's label
inline constexpr std::string_view pod_trial_label =
    "servetune/trial";  ///< its value: `trial_label`

/// The name of the engine's container in a template: `engine`, else its only one. Throws UsageError
/// where there is none such.
[[nodiscard]] std::string engine_container(const KubernetesOptions& options);

/// The variables that the template gives the engine by name, under `env`.
[[nodiscard]] std::vector<std::string> template_variables(const KubernetesOptions& options);

/// The images that a template and the options name, the first by default.
[[nodiscard]] std::vector<std::string> images_of(const KubernetesOptions& options);

/// What the pods of one trial have in common, its engines and their router: the trial's number,
/// from the folder that one of them was given.
[[nodiscard]] std::string trial_label(const std::filesystem::path& folder);

/// The annotation of all pods of an engine over several nodes that says the address of the first
/// one, whereupon each starts its part.
inline constexpr std::string_view pod_leader_annotation = "servetune/leader";

/// The Job of one engine or router of a trial, as `kubectl create -f -` takes it. `name`: its own;
/// `label`: of its study. The command's files travel in annotations of the pod, which a downward
/// API volume makes files again: nothing else is to be created and removed. Throws UsageError where a
/// file or word has no form in a manifest.
[[nodiscard]] nlohmann::json trial_job(const KubernetesOptions& options,
                                       const LaunchRequest& request, const std::string& name,
                                       const std::string& label);

}  // namespace servetune
