// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace servetune {

/// A small process that ends what this program has started when this program dies first: by kill
/// -9, by a crash, by a second Ctrl-C. It then sends TERM to every process that it watches, and
/// KILL to those that are still there after `stop_within`. Without it the kernel tells only the
/// leader of each group; a wrapper script dies of that and its engine lives on.
///
/// It starts with the first process that is watched, in a session of its own, so that a terminal's
/// Ctrl-C does not reach it. It holds no file of this program open and ends with this program, or
/// with this object. Give one to all that start processes (`ProcessOptions::watchdog`). Any thread
/// may use it.
class Watchdog {
public:
    explicit Watchdog(std::chrono::milliseconds stop_within = std::chrono::seconds(20));
    ~Watchdog();  ///< ends its process; to be called when nothing is watched any more
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

    /// The id of its process; 0 while none has been needed.
    [[nodiscard]] int id() const;

    /// `Process` calls these three. `token`: the value of SERVETUNE_GROUP in the environment of the
    /// process that is about to start. Throws IoError where no watchdog can be started, UsageError
    /// where more than 250 processes are watched at once.
    void watch(const std::string& token);
    /// It runs: its group, and its start in clock ticks since boot.
    void started(const std::string& token, int group, std::uint64_t start_ticks) noexcept;
    /// Nothing of it is left.
    void ended(const std::string& token) noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace servetune
