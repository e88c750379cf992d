// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace autotune {

// What a study could use on this machine. Each looks and changes nothing; what cannot be found out
// is absent.

/// The file that a shell would run for this name; empty: there is none.
std::filesystem::path program_on_path(const std::string& name);

/// Whether an engine can be started here: its program is on the PATH and, of a Python module, the
/// package is there.
bool installed_here(const servetune::Engine& engine);

/// The names of the GPUs as nvidia-smi lists them, one for each; empty: none, or nvidia-smi does
/// not answer.
std::vector<std::string> gpus_here();

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
