// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace servetune {

/// What a tuner tells its watchdog of one process.
struct WatchedGroup {
    std::array<char, 64>
        token{};    ///< the value of SERVETUNE_GROUP in its environment, ended by a NUL
    int group = 0;  ///< 0: not started yet
    std::uint64_t start_ticks = 0;  ///< of the leader, since boot; nothing of its is older
    bool ended = false;             ///< not to be watched any more
};

inline constexpr std::size_t most_watched_groups = 250;

/// The life of a watchdog's process, from its fork on: reads `WatchedGroup`s from the socket `from`
/// until the other end is closed, then ends what is still watched and exits. Calls only what is
/// safe after a fork in a program with threads: it asks for no memory and takes no lock.
[[noreturn]] void be_watchdog(int from, std::chrono::milliseconds stop_within);

}  // namespace servetune
