// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/deploy/remote_launchers.hpp"

#include <string>

namespace servetune {

/// Why no trial can run in the cluster now, for a person; empty: it can, as far as the API server
/// says. Looks for kubectl, the context, the login, the rights, and lets the API server judge the
/// manifest of a trial (`create --dry-run=server`). Starts nothing. Launcher::trouble.
[[nodiscard]] std::string kubernetes_trouble(const KubernetesOptions& options, const std::string& image);

}  // namespace servetune
