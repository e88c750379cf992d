// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"

namespace CLI {
class App;
}

namespace autotune {

/// The command `watch`, which fills `arguments`; both must outlive the parsing.
CLI::App* add_watch_command(CLI::App& app, WatchArguments& arguments);

}  // namespace autotune
