// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace servetune {

/// The kind of network or cluster filesystem, such as "NFS", that a folder is on; empty: it belongs
/// to this machine alone, or nobody knows. SQLite's write-ahead log needs memory that all processes
/// share, which two machines do not (https://www.sqlite.org/wal.html).
std::string network_filesystem_of(const std::filesystem::path& folder);

/// The same of `f_type` of statfs(2), and of the type in mountinfo, which tells apart what FUSE
/// serves (`fuse.sshfs`).
std::string network_filesystem_named(std::uint64_t f_type, const std::string& mounted_as);

/// The type of the mount of a device in the text of /proc/self/mountinfo; empty: there is none.
std::string mounted_as_in(const std::string& mountinfo, unsigned major, unsigned minor);

/// Who writes a study, as `study.lock` says it: for people, and for a start on another machine,
/// where neither this process nor its locks can be seen.
struct LockHolder {
    std::string process;  ///< its number
    std::string host;     ///< the machine's name, of a pod the pod's
    std::string boot;     ///< the machine's boot id; empty: it tells none
    std::string start;    ///< of this run: no other has the same
    std::uint64_t beats = 0;
    bool ended = false;  ///< in order: nothing is written any more

    /// This process, with a new `start`.
    [[nodiscard]] static LockHolder here();
    /// Nothing: an earlier version wrote it, or something else did.
    [[nodiscard]] static std::optional<LockHolder> in(const std::string& text);
    /// The process's number, then the others, each on a line. The same length for each beat, so
    /// that it is written in place.
    [[nodiscard]] std::string text() const;
    /// `process 7 on node-2`.
    [[nodiscard]] std::string name() const;
};

/// How a holder shows other machines that it lives. The figures are those after which an engine
/// behind ssh ends (docs/decisions/README.md).
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
