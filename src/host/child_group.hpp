// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/descriptor.hpp"
#include "start_program.hpp"

#include <chrono>
#include <mutex>
#include <optional>

namespace servetune {

/// A child in a process group of its own. It is not waited for until this object ends or `reap` is
/// called: so long its id, and so the group's, is nobody else's. Any thread may ask.
class ChildGroup {
public:
    /// Starts it with both of its outputs into `output`, or the standard one into `answer` where
    /// that is a descriptor; returns once it runs. Throws IoError where it cannot.
    ChildGroup(const ChildProgram& program, int output, int answer = -1);
    ~ChildGroup();  ///< KILL for the group
    ChildGroup(const ChildGroup&) = delete;
    ChildGroup& operator=(const ChildGroup&) = delete;

    [[nodiscard]] int id() const { return id_; }
    [[nodiscard]] bool ended() const { return exit_code().has_value(); }
    [[nodiscard]] std::optional<int> exit_code()
        const;  ///< of the leader, once it has ended; 128 + signal
    /// Waits until the leader has ended; false when it has not in that time.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) const;
    void signal(int number) const;  ///< to the group, unless the leader is reaped
    void reap();                    ///< nothing where the leader has not ended

private:
    int id_ = -1;
    Descriptor
        handle_{};  ///< readable once the leader has ended; none where the kernel is older than 5.3
    mutable std::mutex mutex_{};
    std::optional<int> reaped_{};
};

}  // namespace servetune
