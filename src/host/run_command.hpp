// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace servetune {

/// How a short command ended.
struct RanCommand {
    enum class End { exited, out_of_time, too_much_output, given_up };
    End end = End::exited;
    int exit_code = 0;   ///< of `exited`; 128 + the signal that ended it
    std::string output;  ///< standard output and standard error as they came
};

/// Runs `argv` (its first word a file, never through a shell) with an empty standard input, in a
/// process group of its own that is killed when the command ends or a limit is reached, and when
/// this process dies. `give_up`: asked some fifty times a second, true ends it. Throws IoError when
/// it cannot be started.
RanCommand run_command(const std::vector<std::string>& argv, std::chrono::milliseconds time,
                       std::size_t output_bytes, const std::function<bool()>& give_up = {});

}  // namespace servetune
