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

class Descriptor;

/// What to start and where it writes.
struct ProcessOptions {
    std::vector<std::string>
        argv{};  ///< the program, looked for in PATH, and its words; never a shell line
    /// Added to this process's own, or replacing. Of its own those whose names say that they hold a
    /// secret are left out (base/variable_name.hpp).
    std::map<std::string, std::string> environment{};
    /// name -> content, written into `folder` before it starts; an absolute name as it is
    std::map<std::string, std::string> files{};
    std::filesystem::path folder{};  ///< its working directory, made when it is not there
    std::filesystem::path input{};   ///< a file that is its standard input; empty: nothing comes
    /// Above 0: its standard input is a pipe that brings `told` and then a line feed every so
    /// often, until `hang_up` or this program's death, however it dies. For a client whose other
    /// end has to notice that nobody is here any more.
    std::chrono::milliseconds beats{0};
    std::string told{};
    std::shared_ptr<const Descriptor> facts{};  ///< becomes its descriptor 3; null: none
    std::filesystem::path
        log{};  ///< what it prints, standard output and error in one; empty: kept in memory only
    std::size_t log_bytes =
        16UL << 20UL;  ///< of the log file at most: the first half and the last half are kept
    /// Above 0: standard output does not go to log and `lines` but is kept in memory as the
    /// program's `answer`, its first bytes up to so many.
    std::size_t answer_bytes = 0;
    std::string mark{};        ///< SERVETUNE_STUDY in its environment: who started it (`leftovers`)
    std::vector<int> cores{};  ///< it and its children run on these only; empty: any
    /// Ends it and all that it has started where this program dies first; none: the kernel tells
    /// the leader, and nobody else.
    std::shared_ptr<Watchdog> watchdog{};

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const;
};

/// How a process group ended.
struct Ended {
    double seconds = 0;              ///< from the first signal until nothing of the group was left
    bool killed = false;             ///< it had to be, TERM was not enough
    std::optional<int> exit_code{};  ///< of the leader; 128 + signal
    std::vector<int> remaining{};    ///< of its processes that would not go
    std::string report{};  ///< for a person: what would not go; empty when nothing is left
};

/// A program and everything that it starts: a process group of its own that does not outlive this
/// object. When this process is killed the leader gets TERM, which is what an engine ends its own
/// children on; a watchdog ends what does not go by itself, and without one `leftovers` finds it.
/// What it prints is read all the time, by a thread that lives as long as it does, so that it never
/// waits for us. Any thread may ask; one ends it.
class Process {
public:
    /// Throws IoError where it cannot be started (no such program, no more processes, no /proc to
    /// find its children in) or its folder cannot be written.
    explicit Process(const ProcessOptions& options);
    ~Process();  ///< KILL for what is left
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    [[nodiscard]] int id() const;  ///< of the leader, and of the group
    /// Which process this is even when its id is given to another one: its start time in clock
    /// ticks since boot.
    [[nodiscard]] std::uint64_t start_ticks() const;
    [[nodiscard]] bool running() const;  ///< the leader
    [[nodiscard]] std::optional<int> exit_code()
        const;  ///< once it has ended; 128 + signal; 128 itself: lost, this process ignores SIGCHLD
    /// The lines printed so far, the first and the last `most / 2` where there are more; a line has
    /// at most 4 KiB.
    [[nodiscard]] std::vector<std::string> lines(std::size_t most = 2000) const;
    /// What was printed from byte `position` on and is still kept (the first MiB and the last);
    /// moves `position` to the end.
    [[nodiscard]] std::string printed_from(std::size_t& position) const;
    /// Its standard output so far, where that is kept apart; all of it once `end` has returned.
    /// `answer_printed` counts what is not kept too.
    [[nodiscard]] std::string answer() const;
    [[nodiscard]] std::size_t answer_printed() const;
    /// Why the log file ends early (disk full); empty while all is well. The process goes on, and
    /// so do `lines`.
    [[nodiscard]] std::string log_trouble() const;
    /// Waits until the leader has ended; false when it has not in that time.
    [[nodiscard]] bool wait(std::chrono::milliseconds time) const;

    /// The longest time between two beats (`beats`): far above them, this program was stopped or
    /// its machine slept, and who waits for beats has given up. 0 without `beats`.
    [[nodiscard]] std::chrono::nanoseconds longest_silence() const;
    /// Ends its standard input, where that is a pipe (`beats`).
    void hang_up();

    /// TERM to the group, after `patience` KILL to the group; waits for its end, `patience` at most
    /// after the KILL too. Those that left the group are ended with it. Again: says the same.
    Ended end(std::chrono::milliseconds patience = std::chrono::seconds(20));

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// KILL, at once, to every process group that this program has started and not ended. For the way
/// out of a program that cannot wait: a second Ctrl-C, a crash. It may be called from a signal
/// handler. What has left its group is the watchdog's.
void kill_started_groups() noexcept;

/// A process with our mark, alive.
struct Leftover {
    int id = 0;
    int group = 0;
    std::uint64_t start_ticks = 0;  ///< since boot
    std::string command{};
};

/// Processes of this user, this one left out, whose environment carries exactly this mark, those in
/// a group with one of them included: what a tuner that was killed left behind. To be asked before
/// the first process with this mark is started.
std::vector<Leftover> leftovers(const std::string& mark);
/// Ends them (TERM, then KILL); those that would not go.
std::vector<Leftover> end_leftovers(const std::string& mark,
                                    std::chrono::milliseconds patience = std::chrono::seconds(20));

}  // namespace servetune
