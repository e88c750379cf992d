// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "deploy/ray_client.hpp"
#include "servetune/error.hpp"

namespace autotune {

int launch_client(const std::string& of) {
    if (of == "ray") return servetune::ray_client();
    throw servetune::UsageError("launch-client: 'ray' wanted, got '" + of + "'; `autotune run` starts it, nobody else need");
}

}  // namespace autotune
