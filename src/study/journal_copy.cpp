// SPDX-License-Identifier: Apache-2.0
#include "journal_copy.hpp"

#include "journal_schema.hpp"
#include "journal_snapshot.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// An empty file beside another one, which goes again unless it takes the other's place.
class PartOfCopy {
public:
    PartOfCopy(fs::path target, mode_t mode) : target_(fs::absolute(target)) {
        constexpr std::string_view ending = ".part";
        std::string pattern = target_.string() + ".XXXXXX" + std::string(ending);
        descriptor_ = ::mkstemps(pattern.data(), static_cast<int>(ending.size()));
        if (descriptor_ < 0) fail();
        file_ = pattern;
        (void)::fchmod(descriptor_, mode);
    }
    ~PartOfCopy() {
        ::close(descriptor_);
        if (!placed_) ::unlink(file_.c_str());
    }
    PartOfCopy(const PartOfCopy&) = delete;
    PartOfCopy& operator=(const PartOfCopy&) = delete;

    [[nodiscard]] const fs::path& file() const { return file_; }
    void empty() const {
        if (::ftruncate(descriptor_, 0) != 0) fail();
    }
    void put_in_place() {
        if (::fsync(descriptor_) != 0 || ::rename(file_.c_str(), target_.c_str()) != 0) fail();
        placed_ = true;
    }

private:
    [[noreturn]] void fail() const {
        throw IoError("cannot write " + target_.string() + ": " +
                      std::generic_category().message(errno));
    }

    fs::path target_;
    fs::path file_{};
    int descriptor_ = -1;
    bool placed_ = false;
};

}  // namespace

void copy_journal(const fs::path& from, const fs::path& to, mode_t mode) {
    const fs::path journal = SqliteJournal::file_of(from);
    PartOfCopy part(to, mode);
    read_snapshot(journal, [&](SqliteConnection& connection) {
        if (checked_journal_version(connection, journal) == 0)
            throw IoError("journal " + journal.string() + " is empty");
        part.empty();  // of what an earlier call has put there
        SqliteConnection::Statement(connection, "VACUUM INTO ?").bind(part.file().string()).step();
    });
    (void)SqliteJournal::read(part.file());
    part.put_in_place();
}

}  // namespace servetune
