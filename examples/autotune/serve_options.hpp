// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"

namespace CLI {
class App;
}

namespace autotune {

/// The command `serve`, which fills `arguments`; both must outlive the parsing.
void add_serve_command(CLI::App& app, ServeArguments& arguments);

}  // namespace autotune
