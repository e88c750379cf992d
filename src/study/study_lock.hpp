// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lock_holder.hpp"

#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace servetune {

/// How a holder shows other machines that it lives. The figures are those after which an engine
/// behind ssh ends (docs/decisions/010-other-machines.md).
struct LockBeats {
    std::chrono::milliseconds every = std::chrono::seconds(5);
    std::chrono::milliseconds silent_after =
        std::chrono::seconds(30);  ///< six beats missed: it is dead
};

/// The right to write a study, for one process at a time. The kernel releases it when the process
/// ends, however it ends.
///
/// Two locks (flock): `study.lock`, and the folder itself. The file can be removed while it is
/// locked and then protects nothing; the folder cannot. Filesystems that lock no folders have the
/// file only.
///
/// A lock may not reach to other machines, and a volume may have moved here from a machine that
/// died. So `study.lock` says who holds it (LockHolder) and counts beats. A start that finds the
/// name of another machine's process watches the beats by its own clock: they go on, and it is
/// refused; they do not for `silent_after`, and it takes over. Who was only paused finds the new
/// name before it writes again.
class StudyLock {
public:
    using Say = std::function<void(const std::string&)>;

    /// Throws IoError: another process has it, or the filesystem has no locks. `say` gets a line
    /// before a wait. `self`: who is said to hold it.
    explicit StudyLock(std::filesystem::path folder, const Say& say = {}, LockBeats beats = {},
                       LockHolder self = LockHolder::here());
    ~StudyLock();
    StudyLock(const StudyLock&) = delete;
    StudyLock& operator=(const StudyLock&) = delete;

    /// Locks `study.lock` again where somebody has removed or replaced it. Throws IoError when
    /// another process was faster, or has taken over: nothing may be written then.
    void keep();

private:
    void take_file();
    [[nodiscard]] bool holds_file() const;
    void wait_for_silence(const Say& say) const;
    void write_self();
    void beat(const std::stop_token& over);

    std::filesystem::path folder_;
    std::filesystem::path file_;
    LockBeats beats_;
    LockHolder self_;
    int folder_lock_ = -1;
    int file_lock_ = -1;
    std::mutex mutex_{};  ///< of `file_lock_` and `self_`
    std::jthread beating_{};
};

}  // namespace servetune
