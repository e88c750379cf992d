// SPDX-License-Identifier: Apache-2.0
#include "journal_snapshot.hpp"
#include "base/files.hpp"
#include "journal_schema.hpp"
#include "servetune/sqlite_journal.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <optional>
#include <system_error>
#include <tuple>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// What changes with a file's content: device, inode, bytes, seconds and nanoseconds.
using FileStamp = std::tuple<dev_t, ino_t, off_t, std::int64_t, std::int64_t>;

std::optional<FileStamp> stamp_of(const fs::path& file) {
    struct stat there {};
    if (::stat(file.c_str(), &there) != 0) return std::nullopt;
    return FileStamp(there.st_dev, there.st_ino, there.st_size, there.st_mtim.tv_sec,
                     there.st_mtim.tv_nsec);
}

/// Of the journal's file, of the write-ahead log, and of the rollback journal of one that is being
/// made.
using JournalStamps = std::array<std::optional<FileStamp>, 3>;

fs::path beside(const fs::path& file, const char* suffix) { return file.string() + suffix; }

JournalStamps stamps_of(const fs::path& file) {
    return {stamp_of(file), stamp_of(beside(file, "-wal")), stamp_of(beside(file, "-journal"))};
}

/// A copy in a folder of its own, which goes with it.
class CopiedJournal {
public:
    explicit CopiedJournal(const fs::path& file)
        : folder_(temporary_files() / "servetune-journal-") {
        for (const char* suffix : {"", "-wal"}) {
            std::error_code error;
            fs::copy_file(beside(file, suffix), beside(this->file(), suffix), error);
            if (error)
                throw IoError("cannot copy " + beside(file, suffix).string() + " to " +
                              folder_.path().string() + ": " + error.message());
        }
    }
    [[nodiscard]] fs::path file() const { return folder_.path() / "study.db"; }

private:
    OwnFolder folder_;
};

using ReadJournal = std::function<void(SqliteConnection&)>;

void read_with(const fs::path& file, SqliteConnection::Access access, const fs::path& named,
               const ReadJournal& read) {
    SqliteConnection connection(file, access, named);
    read(connection);
}

/// Whether SQLite can read it where it lies, beside the process that writes.
bool readable_in_place(const fs::path& file) {
    try {
        read_with(file, SqliteConnection::Access::read, file, [](SqliteConnection& connection) {
            (void)connection.number("SELECT count(*) FROM sqlite_master");
        });
        return true;
    } catch (const IoError&) {
        return false;
    }
}

}  // namespace

void check_journal_file(const fs::path& file) {
    struct stat there {};
    const bool is_there = ::stat(file.c_str(), &there) == 0;
    if (!is_there && (errno == ENOENT || errno == ENOTDIR))
        throw IoError("there is no journal " + file.string() + "; has the study been run?");
    const bool readable =
        is_there && (!S_ISREG(there.st_mode) || ::access(file.c_str(), R_OK) == 0);
    if (!readable || !S_ISREG(there.st_mode))
        throw IoError(
            "cannot read journal " + file.string() + ": " +
            (readable ? "it is not a regular file" : std::generic_category().message(errno)));
}

void read_snapshot(const fs::path& file, const ReadJournal& read) {
    check_journal_file(file);
    constexpr int most_tries = 20;
    for (int i = 1;; ++i) {
        const JournalStamps before = stamps_of(file);
        const auto &log = before[1], &old_log = before[2];
        const bool all_in_database = (!log || std::get<2>(*log) == 0) && !old_log;
        // SQLite reads beside a writer by way of the file `-shm`; it would make one, and in a
        // folder that it cannot write it cannot.
        if (!all_in_database && (old_log || stamp_of(beside(file, "-shm"))) &&
            readable_in_place(file))
            return read_with(file, SqliteConnection::Access::read, file, read);
        try {
            if (all_in_database)
                read_with(file, SqliteConnection::Access::read_unchanged, file, read);
            else {
                const CopiedJournal copy(file);
                read_with(copy.file(), SqliteConnection::Access::read, file, read);
            }
            if (stamps_of(file) == before || i == most_tries) return;
        } catch (const IoError&) {
            if (stamps_of(file) == before || i == most_tries) throw;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

void copy_journal(const fs::path& from, const fs::path& to, mode_t mode) {
    const fs::path journal = SqliteJournal::file_of(from);
    OutputFile copy(to);
    read_snapshot(journal, [&](SqliteConnection& connection) {
        if (checked_journal_version(connection, journal) == 0)
            throw IoError("journal " + journal.string() + " is empty");
        fs::resize_file(copy.written(), 0);  // of what an earlier call has put there
        SqliteConnection::Statement(connection, "VACUUM INTO ?")
            .bind(copy.written().string())
            .step();
    });
    (void)SqliteJournal::read(copy.written());
    fs::permissions(copy.written(), static_cast<fs::perms>(mode));
    copy.commit();
}

}  // namespace servetune
