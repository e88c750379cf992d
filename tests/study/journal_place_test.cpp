// SPDX-License-Identifier: Apache-2.0
// A journal where it lies: read by those that may not write, written by one process, and what
// happens to its files meanwhile.
#include "support/in_child.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/study_lock.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstddef>
#include <functional>
#include <iostream>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

const StudyIdentity place_identity{"study", {{"space.seqs", "integer 1..4"}}, "0.1.0"};

/// A study's folder that everybody may read.
struct OpenFolder {
    OpenFolder() {
        fs::permissions(temporary.path(), static_cast<fs::perms>(0755));
        fs::create_directory(path);
    }
    TemporaryFolder temporary{};
    fs::path path = temporary.path() / "study";
};

std::set<std::string> names_in(const fs::path& folder) {
    std::set<std::string> result;
    for (const auto& entry : fs::directory_iterator(folder))
        result.insert(entry.path().filename().string());
    return result;
}

void ask_and_tell(SqliteJournal& journal, std::uint64_t id) {
    journal.asked({id, Configuration({{"seqs", std::int64_t(id)}})});
    journal.told(id, Measurement{{{"x", {1.5}}}}, 2);
}

/// How many trials somebody reads, or the message.
std::string count_as(const std::function<std::string()>& become, const fs::path& folder) {
    return in_child([&]() -> std::string {
        if (const std::string why = become(); !why.empty()) return why;
        const std::vector<Trial> trials = SqliteJournal::read(folder).trials();
        for (const Trial& trial : trials)
            if (trial.told() && trial.measurement()->metrics.at("x").value != 1.5)
                return "a wrong figure";
        return std::to_string(trials.size()) + " trials";
    });
}

std::string become_nobody() {
    return setgid(65534) == 0 && setuid(65534) == 0 ? ""
                                                    : "skipped: only root can become somebody else";
}

/// As on a read-only disk.
std::function<std::string()> with_read_only(const fs::path& folder) {
    return [folder]() -> std::string {
        const char* at = folder.c_str();
        const bool done =
            unshare(CLONE_NEWNS) == 0 &&
            mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
            mount(at, at, nullptr, MS_BIND, nullptr) == 0 &&
            mount(nullptr, at, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) == 0;
        return done ? "" : "skipped: this user may not mount";
    };
}

/// Reads it in each way; nothing in the folder changes.
void check_read_only(const fs::path& folder, const std::string& wanted) {
    const auto before = names_in(folder);
    for (const auto& become :
         {std::function<std::string()>([] { return ""; }),
          std::function<std::string()>(become_nobody), with_read_only(folder)}) {
        const std::string got = count_as(become, folder);
        if (got.starts_with("skipped")) std::cout << got << "\n";
        else CHECK(got == wanted);
        CHECK(names_in(folder) == before);
    }
}

}  // namespace

TEST_CASE("a journal is read without permission to write: ended, beside its writer, after a kill") {
    const OpenFolder folder;
    {
        SqliteJournal journal = SqliteJournal::open(folder.path, place_identity);
        ask_and_tell(journal, 0);
    }
    CHECK(names_in(folder.path) == std::set<std::string>{"study.db", "study.lock"});
    check_read_only(folder.path, "1 trials");

    // What a killed process leaves has everything in the write-ahead log.
    CHECK(in_child([&]() -> std::string {
              SqliteJournal journal = SqliteJournal::open(folder.path, place_identity);
              ask_and_tell(journal, 1);
              kill(getpid(), SIGKILL);
              return "";
          }) == "ended by signal 9");
    CHECK(names_in(folder.path) ==
          std::set<std::string>{"study.db", "study.db-shm", "study.db-wal", "study.lock"});
    check_read_only(folder.path, "2 trials");
    const OpenFolder copied;  // as a backup may have it
    for (const char* name : {"study.db", "study.db-wal"})
        fs::copy_file(folder.path / name, copied.path / name);
    check_read_only(copied.path, "2 trials");

    {
        SqliteJournal journal = SqliteJournal::open(folder.path, place_identity);
        ask_and_tell(journal, 2);
        journal.asked({3, Configuration()});
        journal.started(3, 1);
        check_read_only(folder.path, "4 trials");
        ask_and_tell(journal, 4);  // undisturbed
    }
    check_read_only(folder.path, "5 trials");

    fs::permissions(folder.path / "study.db", static_cast<fs::perms>(0600));
    const std::string closed = count_as(become_nobody, folder.path);
    if (!closed.starts_with("skipped"))
        CHECK(closed ==
              "cannot read journal " + (folder.path / "study.db").string() + ": Permission denied");
}

TEST_CASE("names with a meaning in addresses are names") {
    const TemporaryFolder folder;
    const fs::path odd = folder.path() / "100% #1?mode=rwc";
    {
        SqliteJournal journal = SqliteJournal::open(odd, place_identity);
        ask_and_tell(journal, 0);
        CHECK(SqliteJournal::read(odd).trials().size() == 1);
    }
    CHECK(SqliteJournal::read(odd).trials().size() == 1);
}

TEST_CASE("without its lock file a study still has one writer, which locks it again") {
    const TemporaryFolder folder;
    const fs::path lock = folder.path() / "study.lock";
    SqliteJournal journal = SqliteJournal::open(folder.path(), place_identity);
    for (const char* content : {"", "another file"}) {
        fs::remove(lock);
        if (*content != '\0') folder.write("study.lock", content);
        CHECK(message_of<IoError>([&] { SqliteJournal::open(folder.path(), place_identity); }) ==
              "another process is running this study (it holds " + folder.path().string() +
                  "); wait for it, or choose another --directory");
        ask_and_tell(journal, journal.trials().size());
        CHECK(read_file(lock).starts_with(std::to_string(getpid()) + "\n"));
        CHECK(has(message_of<IoError>([&] { SqliteJournal::open(folder.path(), place_identity); }),
                  "(process " + std::to_string(getpid()) + " holds " + lock.string() + ")"));
    }
    // Somebody else has the new one, as on a filesystem that locks no folders: then one of the two
    // must end.
    fs::remove(lock);
    const int other = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    REQUIRE(flock(other, LOCK_EX | LOCK_NB) == 0);
    CHECK(message_of<IoError>([&] {
              ask_and_tell(journal, 2);
          }).starts_with("another process is running this study (it holds " + lock.string()));
    close(other);
    CHECK(SqliteJournal::read(folder.path()).trials().size() == 2);
}

TEST_CASE(
    "a journal that is removed, moved or replaced in mid-run records nothing more, and says so") {
    const TemporaryFolder folder;
    const fs::path study = folder.path() / "study";
    const fs::path away = folder.path() / "away";
    const auto refused = [&](SqliteJournal& journal, const fs::path& file) {
        CHECK_FALSE(journal.in_place());
        CHECK(message_of<IoError>([&] { ask_and_tell(journal, 1); }) ==
              "journal " + (study / "study.db").string() + ": " + file.string() +
                  " was removed, moved or replaced while the study ran, so nothing more can be "
                  "recorded; put back what was there and run "
                  "again, or choose another --directory");
        CHECK(journal.trials().size() == 1);
    };
    {
        SqliteJournal journal = SqliteJournal::open(study, place_identity);
        ask_and_tell(journal, 0);
        CHECK(journal.in_place());
        fs::rename(study, away);
        refused(journal, study / "study.db");
        {  // a second run in its place is not disturbed by the end of the first
            SqliteJournal second = SqliteJournal::open(study, place_identity);
            ask_and_tell(second, 0);
            refused(journal, study / "study.db");
            journal = SqliteJournal::read(away);
            CHECK(journal.trials().size() == 1);
            ask_and_tell(second, 1);
        }
        CHECK(SqliteJournal::read(study).trials().size() == 2);
        fs::remove_all(study);
        fs::rename(away, study);
    }
    {
        SqliteJournal journal = SqliteJournal::open(study, place_identity);
        REQUIRE(journal.trials().size() == 1);
        const fs::path log = study / "study.db-wal";
        fs::rename(log, away);
        refused(journal, log);
        fs::rename(away, log);
        CHECK(journal.in_place());
        fs::copy_file(study / "study.db", away);
        fs::rename(away, study / "study.db");
        refused(journal, study / "study.db");
    }
    {
        SqliteJournal journal = SqliteJournal::open(study, place_identity);
        fs::remove_all(study);
        refused(journal, study / "study.db");
    }
}

TEST_CASE("a network's filesystem is known by the kernel's number") {
    CHECK(network_filesystem_named(0x6969) == "NFS");
    CHECK(network_filesystem_named(0xFF534D42) == "CIFS");
    CHECK(network_filesystem_named(0x0BD00BD0) == "Lustre");
    CHECK(network_filesystem_named(0xEF53).empty());      // ext4
    CHECK(network_filesystem_named(0x01021994).empty());  // tmpfs
    CHECK(network_filesystem_of(TemporaryFolder().path()).empty());
}

TEST_CASE("what is no regular file is neither a lock nor a journal") {
    const TemporaryFolder folder;
    const fs::path lock = folder.path() / "study.lock";
    const fs::path victim = folder.write("victim", "dear");
    fs::create_symlink(victim, lock);
    CHECK(message_of<IoError>([&] { SqliteJournal::open(folder.path(), place_identity); }) ==
          "cannot lock " + lock.string() + ": it is a symbolic link; remove it");
    CHECK(read_file(victim) == "dear");
    fs::remove(lock);
    REQUIRE(mkfifo(lock.c_str(), 0600) == 0);
    CHECK(message_of<IoError>([&] { SqliteJournal::open(folder.path(), place_identity); }) ==
          "cannot lock " + lock.string() + ": it is not a regular file; remove it");
    fs::remove(lock);
    const fs::path file = folder.path() / "study.db";
    REQUIRE(mkfifo(file.c_str(), 0600) == 0);
    const std::string wanted =
        "cannot read journal " + file.string() + ": it is not a regular file";
    CHECK(message_of<IoError>([&] { SqliteJournal::read(folder.path()); }) == wanted);
    CHECK(message_of<IoError>([&] { SqliteJournal::open(folder.path(), place_identity); }) ==
          wanted);
}

TEST_CASE("a filesystem without locks is no other process") {
    const TemporaryFolder folder;
    const std::string got = in_child([&]() -> std::string {
        // The kernel answers ENOLCK to every flock of this child.
        sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_flock, 0, 1),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOLCK),
                                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
        sock_fprog program{4, filter};
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
            return "skipped: no system call can be refused here";
        SqliteJournal::open(folder.path(), place_identity);
        return "opened";
    });
    if (got.starts_with("skipped")) std::cout << got << "\n";
    else
        CHECK(got == "cannot lock " + (folder.path() / "study.lock").string() +
                         ": flock says 'No locks available'; a study needs a filesystem with "
                         "locks: choose another --directory on "
                         "a disk of this machine");
}
