// SPDX-License-Identifier: Apache-2.0
// Who may write a study where two machines see one folder. A machine is a process here whose flock
// reaches nobody else, and that has a boot id of its own.
#include "support/in_child.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/study_lock.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <functional>
#include <iostream>
#include <thread>

using namespace servetune;
using namespace servetune::test;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

const LockBeats quick{20ms, 1500ms};

LockHolder on(const std::string& host) {
    LockHolder self = LockHolder::here();
    self.host = host;
    self.boot = "boot of " + host;
    return self;
}

/// Whether flock succeeds from now on in this process without locking anything, as on a filesystem
/// whose locks end at the machine.
bool locks_reach_nobody() {
    sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_flock, 0, 1),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0),
                            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog program{4, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// What a start on another machine comes to: `has it`, or the reason why not.
std::string start_on(const std::string& host, const fs::path& folder,
                     const std::function<void()>& then = {}) {
    return in_child([&]() -> std::string {
        if (!locks_reach_nobody()) return "skipped: no system call can be refused here";
        std::string said;
        const StudyLock lock(
            folder, [&](const std::string& line) { said = line + "\n"; }, quick, on(host));
        if (then) then();
        return said + "has it";
    });
}

bool was_skipped(const std::string& said) {
    const bool skipped = said.starts_with("skipped");
    if (skipped) std::cout << said << "\n";
    return skipped;
}

/// A process on another machine that has the study until it is killed.
class HolderElsewhere {
public:
    HolderElsewhere(const std::string& host, const fs::path& folder) {
        child_ = fork();
        if (child_ == 0) {
            if (!locks_reach_nobody()) _exit(1);
            const StudyLock lock(folder, {}, quick, on(host));
            for (;;) pause();
        }
        id_ = child_;
        const fs::path file = folder / "study.lock";
        (void)comes_true(
            [&] { return fs::exists(file) && has(read_file(file), "host " + host + "\n"); });
    }
    ~HolderElsewhere() { end(); }
    void end() {
        if (child_ <= 0) return;
        signal(SIGKILL);
        waitpid(child_, nullptr, 0);
        child_ = 0;
    }
    void signal(int number) const { (void)::kill(child_, number); }
    [[nodiscard]] std::string id() const { return std::to_string(id_); }

private:
    pid_t child_ = 0;
    pid_t id_ = 0;
};

std::uint64_t beats_in(const fs::path& folder) {
    const auto holder = LockHolder::in(read_file(folder / "study.lock"));
    return holder ? holder->beats : 0;
}

}  // namespace

TEST_CASE("study lock: who holds it is written and read again, and nothing else is read as that") {
    LockHolder holder{"7", "node-2", "b", "s", 12, false};
    CHECK(holder.text() == "7\nhost node-2\nboot b\nstart s\nbeats 00000000000000000012\n");
    const auto again = LockHolder::in(holder.text());
    REQUIRE(again);
    CHECK(again->name() == "process 7 on node-2");
    CHECK(again->boot == "b");
    CHECK(again->start == "s");
    CHECK(again->beats == 12);
    CHECK_FALSE(again->ended);
    const std::size_t length = holder.text().size();
    holder.beats = ~std::uint64_t{0};
    holder.ended = true;
    CHECK(holder.text().size() == length);
    CHECK(LockHolder::in(holder.text())->ended);
    for (const std::string& other : {std::string(), std::string("7"), std::string("another file"),
                                     holder.text().substr(0, length - 22)})
        CHECK_FALSE(LockHolder::in(other));
    CHECK(LockHolder::here().start != LockHolder::here().start);
}

TEST_CASE("study lock: it beats, and says when it ended in order") {
    const TemporaryFolder folder;
    {
        const StudyLock lock(folder.path(), {}, quick);
        CHECK(comes_true([&] { return beats_in(folder.path()) >= 3; }));
        CHECK(has(read_file(folder.path() / "study.lock"), "\nbeats "));
    }
    CHECK(has(read_file(folder.path() / "study.lock"), "\nended "));
    const std::string next = start_on("b", folder.path());
    if (!was_skipped(next)) CHECK(next == "has it");  // without a wait
}

TEST_CASE(
    "study lock: another machine's process is seen by its beats, and taken over once it is dead") {
    const TemporaryFolder folder;
    HolderElsewhere first("a", folder.path());
    const std::string second = start_on("b", folder.path());
    if (was_skipped(second)) return;
    CHECK(second == "another process is running this study (process " + first.id() +
                        " on a goes on writing to " + (folder.path() / "study.lock").string() +
                        "); wait for it, or choose another --directory");
    first.end();
    CHECK(start_on("b", folder.path()) == "this study was run by process " + first.id() +
                                              " on a and did not end in order there; waiting for 1 "
                                              "s to see whether it still runs\nhas it");
    CHECK(start_on("a", folder.path()) == "has it");  // ended in order
}

TEST_CASE("study lock: after a kill on this machine nobody waits") {
    const TemporaryFolder folder;
    CHECK(in_child([&]() -> std::string {
              const StudyLock lock(folder.path(), {}, quick);
              kill(getpid(), SIGKILL);
              return "";
          }) == "ended by signal 9");
    std::string said;
    const StudyLock lock(folder.path(), [&](const std::string& line) { said = line; }, {5s, 1h});
    CHECK(said.empty());
}

TEST_CASE(
    "study lock: a paused process that comes back writes nothing, and leaves the other one its "
    "name") {
    const TemporaryFolder folder;
    HolderElsewhere first("a", folder.path());
    first.signal(SIGSTOP);
    const std::string took = start_on("b", folder.path(), [&] {
        first.signal(SIGCONT);
        std::this_thread::sleep_for(5 * quick.every);
        if (!has(read_file(folder.path() / "study.lock"), "\nhost b\n"))
            throw IoError("the paused process has written its name again");
    });
    if (was_skipped(took)) return;
    CHECK(took.ends_with("has it"));

    // The same in a journal, which asks before each event.
    const fs::path study = folder.path() / "study";
    SqliteJournal journal =
        SqliteJournal::open(study, {"study", {{"space.seqs", "integer 1..4"}}, "0.1.0"});
    journal.asked({0, Configuration()});
    const std::string ours = read_file(study / "study.lock");
    LockHolder other = on("b");
    other.process = "7";
    for (const bool ended : {false, true}) {
        other.ended = ended;
        write_file(study / "study.lock", other.text());
        CHECK(message_of<IoError>([&] { journal.started(0, 1); }) ==
              "this study was taken over by process 7 on b, as " + (study / "study.lock").string() +
                  " says: this process was silent for 30 s or more, so nothing more "
                  "is recorded here; wait for the other one, then run again");
    }
    CHECK(SqliteJournal::read(study).trials().front().unended_starts == 0);
}

TEST_CASE("study lock: of two starts at once one has it") {
    for (int round = 0; round < 5; ++round) {
        const TemporaryFolder folder;
        LockHolder dead = on("c");
        folder.write("study.lock", dead.text());
        // Each holds it until the other has tried too, and for a while, in which it would write;
        // the second one in a child of the first one's process.
        const auto start = [&](const std::string& host, int other) -> std::string {
            const auto has_tried = [&] { (void)!write(other, "x", 1); };
            try {
                StudyLock lock(folder.path(), {}, quick, on(host));
                has_tried();
                pollfd waiting{other, POLLIN, 0};
                (void)poll(&waiting, 1, 10'000);
                std::this_thread::sleep_for(5 * quick.every);
                lock.keep();
                return "has it";
            } catch (const IoError& error) {
                has_tried();
                return error.what();
            }
        };
        const std::string both = in_child([&]() -> std::string {
            if (!locks_reach_nobody()) return "skipped: no system call can be refused here";
            int ends[2], between[2];
            if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, between) != 0)
                return "skipped: no pipe can be made here";
            if (fork() == 0) {
                const std::string said = start("b", between[1]);
                (void)!write(ends[1], said.data(), said.size());
                _exit(0);
            }
            close(ends[1]);
            std::string said = start("a", between[0]) + "\n";
            char buffer[1024];
            for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
                said.append(buffer, static_cast<std::size_t>(got));
            return said;
        });
        if (was_skipped(both)) return;
        INFO(both);
        CHECK((both.starts_with("has it\n") != both.ends_with("\nhas it")));
    }
}
