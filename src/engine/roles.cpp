// SPDX-License-Identifier: Apache-2.0
// Prefill and decode apart: the servers of a configuration, and their commands.
#include "servetune/detail/engine/composition.hpp"
#include "servetune/error.hpp"

namespace servetune {

std::vector<RoleOf> Composition::roles_of(const Configuration&) const { return {}; }

Command Composition::render(const Configuration& configuration, const LaunchTarget&, std::string_view role) const {
    throw SpaceError("the configuration " + configuration.text() + " has no role '" + std::string(role) + "'");
}

Command Composition::render_router(const Configuration& configuration, const LaunchTarget&,
                                   const std::map<std::string, std::vector<RoleServer>>&) const {
    throw SpaceError("the configuration " + configuration.text() + " has no roles, so no router");
}

}  // namespace servetune
