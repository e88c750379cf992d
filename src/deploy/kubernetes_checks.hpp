// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/deploy/remote_launchers.hpp"

#include <chrono>
#include <string>
#include <vector>

namespace servetune {

/// The options' way of requests to an engine; where they say none, that of this place.
[[nodiscard]] KubernetesReach reach_of(const KubernetesOptions& options);

/// Why no trial can run in the cluster now, for a person; empty: it can, as far as the API server
/// says. Looks for kubectl, the context, the login, the rights, and lets the API server judge the
/// manifest of a trial (`create --dry-run=server`), and its pod where pods may be created: quotas
/// and admission look at pods. Starts nothing. Launcher::trouble. `patience`: for a server that is
/// being restarted, which refuses for a moment what it will allow.
[[nodiscard]] std::string kubernetes_trouble(
    const KubernetesOptions& options, const std::string& image,
    std::chrono::milliseconds patience = std::chrono::seconds(10));

/// What is worth knowing before the first trial and stops none: that no node fits now (one may be
/// added), or what could not be looked at for want of rights. Asks the API server.
[[nodiscard]] std::vector<std::string> kubernetes_remarks(const KubernetesOptions& options);

}  // namespace servetune
