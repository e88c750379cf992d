// SPDX-License-Identifier: Apache-2.0
// The cache of finished studies, as a folder of journals.
#include "support/in_child.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/journal_snapshot.hpp"
#include "study/study_cache.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

/// The folder of a study with so many results, on a machine.
fs::path study_with_results(const fs::path& folder, std::size_t results,
                            const std::string& machine = "1 x A",
                            const std::string& levels = "integer 1..4") {
    const StudyIdentity made_of{"s",
                                {{"space.seqs", levels},
                                 {"profile.machine", machine},
                                 {"earlier", "x"},
                                 {"machine.devices", "[]"}},
                                "0.1.0",
                                {{"study", "/s"}}};
    SqliteJournal journal = SqliteJournal::open(folder, made_of);
    for (std::uint64_t id = 0; id < results; ++id) {
        journal.asked({id, Configuration({{"seqs", static_cast<std::int64_t>(id)}})});
        journal.started(id, 1);
        journal.told(id, Measurement{{{"x", {1.5}}}}, 2);
    }
    return folder;
}

fs::path place_said(const std::string& said) {
    CHECK(said.starts_with("kept for later runs"));
    return said.substr(said.find(": ") + 2);
}

const std::function<void(const std::string&)> nothing_said = [](const std::string& line) {
    FAIL_CHECK(line);
};

mode_t mode_of_file(const fs::path& file) {
    struct stat there {};
    REQUIRE(stat(file.c_str(), &there) == 0);
    return there.st_mode & 0777U;
}

std::size_t files_in_folder(const fs::path& folder) {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// A variable of this process, put back at the end.
class CacheVariable {
public:
    CacheVariable(const char* name, const char* value) : name_(name) {
        if (const char* before = std::getenv(name)) before_ = before;
        if (value == nullptr) unsetenv(name);
        else setenv(name, value, 1);
    }
    ~CacheVariable() {
        if (before_) setenv(name_, before_->c_str(), 1);
        else unsetenv(name_);
    }
    CacheVariable(const CacheVariable&) = delete;
    CacheVariable& operator=(const CacheVariable&) = delete;

private:
    const char* name_;
    std::optional<std::string> before_{};
};

}  // namespace

TEST_CASE("cache folder: its own variable, then XDG's, then the home, then none") {
    const CacheVariable home("HOME", "/home/somebody");
    const CacheVariable caches("XDG_CACHE_HOME", "/caches");
    {
        const CacheVariable own("SERVETUNE_CACHE", "/own");
        CHECK(cache_folder() == "/own");
    }
    const CacheVariable own("SERVETUNE_CACHE", nullptr);
    CHECK(cache_folder() == "/caches/servetune");
    const CacheVariable relative("XDG_CACHE_HOME", "caches");
    CHECK(cache_folder() == "/home/somebody/.cache/servetune");
    CHECK(StudyCache::users() == "/home/somebody/.cache/servetune/studies");
    const CacheVariable nowhere("HOME", "");
    CHECK(cache_folder().empty());
    CHECK(StudyCache::users().empty());
}

TEST_CASE(
    "study cache: what is kept is a whole journal, for the user alone, under the study's key") {
    const TemporaryFolder folder;
    const StudyCache cache(folder.path() / "deep/studies");
    CHECK(cache.empty());
    CHECK(cache.studies(nothing_said).empty());
    const fs::path study = study_with_results(folder.path() / "a", 3);
    const fs::path kept = place_said(cache.keep(study));
    CHECK(kept.parent_path() == folder.path() / "deep/studies");
    CHECK(mode_of_file(kept.parent_path()) == 0700);
    CHECK(mode_of_file(kept) == 0600);
    CHECK(files_in_folder(kept.parent_path()) == 1);
    CHECK(SqliteJournal::read(kept).trials().size() == 3);
    CHECK(SqliteJournal::texts_of(kept).at("study") == "/s");
    REQUIRE(cache.studies(nothing_said).size() == 1);
    CHECK(cache.studies(nothing_said)[0].definition.at("profile.machine") == "1 x A");
    // Beside a running writer, whose journal has a write-ahead log.
    const SqliteJournal writer =
        SqliteJournal::open(study, {"s", SqliteJournal::definition_of(study), "0.1.0"});
    CHECK(place_said(cache.keep(study)) == kept);
    // Another machine or another question is another file, a later run of the same is the same one.
    CHECK(place_said(cache.keep(study_with_results(folder.path() / "b", 3, "2 x A"))) != kept);
    CHECK(place_said(cache.keep(
              study_with_results(folder.path() / "c", 3, "1 x A", "integer 1..8"))) != kept);
    CHECK(place_said(cache.keep(study_with_results(folder.path() / "d", 2))) == kept);
    CHECK(SqliteJournal::read(kept).trials().size() == 2);
    CHECK(files_in_folder(kept.parent_path()) == 3);
}

TEST_CASE("study cache: a short run does not take the place of a long one") {
    const TemporaryFolder folder;
    const StudyCache cache(folder.path() / "studies");
    const fs::path kept = place_said(cache.keep(study_with_results(folder.path() / "long", 7)));
    CHECK(cache.keep(study_with_results(folder.path() / "short", 3)) ==
          "not kept for later runs: " + kept.string() + " has 7 results of this study, this run 3");
    CHECK(SqliteJournal::read(kept).trials().size() == 7);
    CHECK(place_said(cache.keep(study_with_results(folder.path() / "half", 4))) == kept);
    CHECK(SqliteJournal::read(kept).trials().size() == 4);
    write_file(kept, "damaged");  // what cannot be read is in nobody's way
    CHECK(place_said(cache.keep(folder.path() / "short")) == kept);
    CHECK(SqliteJournal::read(kept).trials().size() == 3);
}

TEST_CASE("study cache: a file that cannot be read is left out, with a line") {
    const TemporaryFolder folder;
    const StudyCache cache(folder.path() / "studies");
    const fs::path kept = place_said(cache.keep(study_with_results(folder.path() / "a", 2)));
    write_file(kept.parent_path() / "other.db", std::string(5000, 'x'));
    write_file(kept.parent_path() / "half.db.abcdef.part", "left by kill -9");
    std::vector<std::string> said;
    const auto found = cache.studies([&](const std::string& line) { said.push_back(line); });
    REQUIRE(found.size() == 1);
    CHECK(found[0].file == kept);
    REQUIRE(said.size() == 1);
    CHECK(has(said[0], "other.db"));
    CHECK(has(said[0], "; it is left out"));
}

TEST_CASE("study cache: the oldest files go, and parts that somebody left") {
    const TemporaryFolder folder;
    const fs::path studies = folder.path() / "studies";
    const StudyCache cache(studies, {3, 1U << 30U});
    const auto age = [](const fs::path& file, int hours) {
        fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(hours));
    };
    std::vector<fs::path> kept;
    for (int i = 0; i < 3; ++i) {
        kept.push_back(place_said(cache.keep(
            study_with_results(folder.path() / std::to_string(i), 2, std::to_string(i)))));
        age(kept.back(), 10 - i);
    }
    write_file(studies / "old.db.aaaaaa.part", "x");
    age(studies / "old.db.aaaaaa.part", 2);
    write_file(studies / "new.db.bbbbbb.part", "x");
    write_file(studies / "notes.txt", "mine");
    place_said(cache.keep(study_with_results(folder.path() / "3", 2, "3")));
    CHECK_FALSE(fs::exists(kept[0]));
    CHECK(fs::exists(kept[1]));
    CHECK_FALSE(fs::exists(studies / "old.db.aaaaaa.part"));
    CHECK(fs::exists(studies / "new.db.bbbbbb.part"));  // of a process that is at it
    CHECK(fs::exists(studies / "notes.txt"));
    // By size: what was just kept stays, however large it is.
    const fs::path last = place_said(
        StudyCache(studies, {100, 1}).keep(study_with_results(folder.path() / "4", 2, "4")));
    CHECK(fs::exists(last));
    CHECK_FALSE(fs::exists(kept[2]));
}

TEST_CASE(
    "study cache: a full disk, a folder that cannot be made and no home are errors that leave "
    "nothing") {
    const TemporaryFolder folder;
    const fs::path studies = folder.path() / "studies";
    const fs::path study = study_with_results(folder.path() / "a", 30);
    const StudyCache cache(studies);
    const std::string full = in_child([&] {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{8192, 8192};
        setrlimit(RLIMIT_FSIZE, &limit);
        return cache.keep(study);
    });
    INFO(full);
    CHECK_FALSE(has(full, "kept for later runs"));
    CHECK(files_in_folder(studies) == 0);
    write_file(folder.path() / "file", "x");
    CHECK(has(
        message_of<IoError>([&] { (void)StudyCache(folder.path() / "file/studies").keep(study); }),
        "cannot make the folder"));
    CHECK(
        has(message_of<IoError>([&] { (void)StudyCache("").keep(study); }), "HOME names a folder"));
}

TEST_CASE("study cache: several processes keep the same study at once, one whole file is left") {
    const TemporaryFolder folder;
    const StudyCache cache(folder.path() / "studies");
    const fs::path study = study_with_results(folder.path() / "a", 20);
    std::vector<std::thread> threads;
    std::vector<std::string> said(4);
    threads.reserve(said.size());
    for (std::string& mine : said)
        threads.emplace_back([&] {
            for (int i = 0; i < 5; ++i) mine = cache.keep(study);
        });
    for (std::thread& thread : threads) thread.join();
    for (const std::string& mine : said) CHECK(mine == said.front());
    CHECK(files_in_folder(folder.path() / "studies") == 1);
    CHECK(SqliteJournal::read(place_said(said.front())).trials().size() == 20);
}

TEST_CASE("journal copy: what was there stays until the copy is whole") {
    const TemporaryFolder folder;
    const fs::path target = folder.write("to.db", "before");
    CHECK_FALSE(message_of<IoError>([&] {
                    copy_journal(folder.path() / "nothing", target, 0600);
                }).empty());
    folder.write("other.db", "no journal at all");
    CHECK_FALSE(message_of<IoError>([&] {
                    copy_journal(folder.path() / "other.db", target, 0600);
                }).empty());
    CHECK(read_file(target) == "before");
    copy_journal(study_with_results(folder.path() / "a", 2), target, 0640);
    CHECK(SqliteJournal::read(target).trials().size() == 2);
    CHECK(mode_of_file(target) == 0640);
    copy_journal(target, folder.path() / "again.db", 0600);  // a file as well as a folder
    CHECK(SqliteJournal::read(folder.path() / "again.db").trials().size() == 2);
    CHECK(files_in_folder(folder.path()) == 4);
}
