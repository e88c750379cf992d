// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace servetune {

/// A process that this machine runs, as /proc has it.
struct RunningProcess {
    int id = 0;
    int parent = 0;
    int group = 0;
    std::uint64_t start_ticks = 0;  ///< since boot; with `id` the identity of a process
    bool dead = false;              ///< a zombie: it holds nothing but its id
};

// These three are safe after a fork in a process with threads: they ask for no memory.

/// Opens /proc/ID/NAME; none where the process has gone.
Descriptor open_of_process(int id, std::string_view name);
std::optional<RunningProcess> running_process(int id);
/// Signals it if it is still that process; nobody else who was given its id meanwhile.
void signal_process(const RunningProcess& process, int signal);

/// Throws IoError where /proc is not mounted, or is that of other process ids (another
/// namespace's): then nothing here can be found again.
void require_process_table();
/// Those of this process's user, itself left out.
std::vector<RunningProcess> own_processes();
/// Whether its environment, as it was given at its start, has exactly this `NAME=value`. It reads
/// as empty while execve makes the process a program (environ_read of fs/proc/base.c in Linux):
/// then waits, until `deadline`.
bool has_in_environment(int id, const std::string& name_and_value,
                        std::chrono::steady_clock::time_point deadline);
/// Its words, with blanks between.
std::string command_of(int id);

/// Processes that are to go, and how to wait for them.
struct Condemned {
    std::function<std::vector<RunningProcess>()> living;  ///< those of them that are left
    std::function<void(std::chrono::milliseconds)> wait =
        {};  ///< that long, or less where one has ended
    std::function<bool(const RunningProcess&)> heard =
        {};  ///< got the signal already, with its group
};
/// Signals each of them once and looks again, after 1 ms and then less and less often, until none
/// is left or `patience` is over: those left.
std::vector<RunningProcess> signal_until_gone(const Condemned& condemned, int signal,
                                              std::chrono::milliseconds patience);
/// TERM for those that hear it within `patience`, then KILL: those left.
std::vector<RunningProcess> end_all(const Condemned& condemned, std::chrono::milliseconds patience);

}  // namespace servetune
