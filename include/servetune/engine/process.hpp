// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// What to start and where it writes.
struct ProcessOptions {
    std::vector<std::string> argv{};                   ///< the program, looked for in PATH, and its words; never a shell line
    std::map<std::string, std::string> environment{};  ///< added to this process's own, or replacing
    std::map<std::string, std::string> files{};        ///< name -> content, written into `folder` before it starts
    std::filesystem::path folder{};                    ///< its working directory, made when it is not there
    std::filesystem::path log{};                       ///< what it prints, standard output and error in one; empty: kept in memory only
    std::size_t log_bytes = 16UL << 20UL;              ///< of the log file at most: the first half and the last half are kept
    std::string mark{};                                ///< SERVETUNE_STUDY in its environment: who started it (`leftovers`)
    std::vector<int> cores{};                          ///< it and its children run on these only; empty: any
};

/// How a process group ended.
struct Ended {
    double seconds = 0;              ///< from the first signal until nothing of the group was left
    bool killed = false;             ///< it had to be, TERM was not enough
    std::optional<int> exit_code{};  ///< of the leader; 128 + signal
    std::vector<int> remaining{};    ///< of its processes that would not go
};

/// A program and everything that it starts: a process group of its own that does not outlive this object, nor (the leader) the thread that made
/// it. What it prints is read all the time, so that it never waits for us.
class Process {
public:
    /// Throws IoError where it cannot be started (no such program, no more processes) or its folder cannot be written.
    explicit Process(ProcessOptions options);
    ~Process();  ///< KILL for what is left
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    [[nodiscard]] int id() const;  ///< of the leader, and of the group
    /// Which process this is even when its id is given to another one: its start time in clock ticks since boot.
    [[nodiscard]] std::uint64_t start_ticks() const;
    [[nodiscard]] bool running() const;                  ///< the leader
    [[nodiscard]] std::optional<int> exit_code() const;  ///< once it has ended; 128 + signal
    /// The lines printed so far, the first and the last `most / 2` where there are more; a line has at most 4 KiB.
    [[nodiscard]] std::vector<std::string> lines(std::size_t most = 2000) const;
    [[nodiscard]] std::size_t printed_bytes() const;

    /// TERM to the group, after `patience` KILL to the group; waits for its end, `patience` at most after the KILL too. Again: does nothing.
    Ended end(std::chrono::milliseconds patience = std::chrono::seconds(20));

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// A process with our mark, alive.
struct Leftover {
    int id = 0;
    int group = 0;
    std::string command{};
};

/// Processes whose environment carries this mark: of a tuner that was killed. Only those that this user may see.
std::vector<Leftover> leftovers(const std::string& mark);
/// Ends their groups (TERM, then KILL); those that would not go.
std::vector<Leftover> end_leftovers(const std::string& mark, std::chrono::milliseconds patience = std::chrono::seconds(20));

}  // namespace servetune
