// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/catalogue.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace autotune {

/// One thing that was looked at.
struct Checkup {
    enum class State { fine, worth_knowing, stops };

    std::string_view name;  ///< `GPUs`, `this folder`
    State state = State::fine;
    std::string found{};
    std::string remedy{};  ///< what to do; empty where there is nothing to do
};

// What a machine has for measuring on it, one function for each part. Each only looks: no network,
// no file is written. Nothing throws.

std::vector<Checkup> checkups_of_gpus();
std::vector<Checkup> checkups_of_engines(const servetune::Catalogue& catalogue);
/// `gpus`: there are some, which containers have to be given.
std::vector<Checkup> checkups_of_containers(bool gpus);
/// Processor, memory, open files, ports.
std::vector<Checkup> checkups_of_machine();
/// Where things are written and kept, and what the hub's models need.
std::vector<Checkup> checkups_of_folders(const servetune::Catalogue& catalogue);

}  // namespace autotune
