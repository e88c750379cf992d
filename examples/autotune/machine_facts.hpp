// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <optional>
#include <string>
#include <vector>

namespace autotune {

// What a study could use on this machine. Each looks and changes nothing; what cannot be found out
// is absent.

/// Whether an engine can be started here: its program is on the PATH and, of a Python module, the
/// package is there.
bool installed_here(const servetune::Engine& engine);

/// A server that answers here.
struct ServerHere {
    std::string url;
    std::vector<std::string> models{};  ///< that it lists
};

/// The servers that list models at the ports of the loopback that servers take by themselves. Half
/// a second at most.
std::vector<ServerHere> servers_here();

/// The same of one address. Nothing: nobody answers in that time, or it lists none.
std::optional<ServerHere> server_at(const std::string& url, double within_seconds = 10);

/// Whether anybody accepts connections at this address (host and port of a URL).
bool anybody_listens(const std::string& url);

}  // namespace autotune
