// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"

#include <string>
#include <vector>

namespace autotune {

// What a study could use on this machine. Each looks and changes nothing; what cannot be found out
// is absent.

/// Whether an engine can be started here: its program is on the PATH and, of a Python module, the
/// package is there.
bool installed_here(const servetune::Engine& engine);

/// The models that a server lists. Empty: nobody answers within ten seconds, or it lists none.
std::vector<std::string> models_at(const std::string& url);

/// Whether a server answers there within two seconds, whatever it says.
bool anybody_answers(const std::string& url);

}  // namespace autotune
