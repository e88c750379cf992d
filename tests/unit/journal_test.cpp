// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "servetune/base/error.hpp"
#include "servetune/io/json.hpp"
#include "servetune/io/sqlite_journal.hpp"

#include <sqlite3.h>

#include <unistd.h>

using namespace servetune;
using namespace servetune::test;

namespace {

const StudyIdentity identity{"study", {{"space.seqs", "integer 1..4"}, {"seed", "0"}, {"old", "x"}}, "0.1.0"};

void sql(const std::filesystem::path& file, const char* statement) {
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open(file.c_str(), &handle) == SQLITE_OK);
    CHECK(sqlite3_exec(handle, statement, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(handle);
}

int number(const std::filesystem::path& file, const char* query) {
    sqlite3* handle = nullptr;
    sqlite3_stmt* statement = nullptr;
    REQUIRE(sqlite3_open(file.c_str(), &handle) == SQLITE_OK);
    REQUIRE(sqlite3_prepare_v2(handle, query, -1, &statement, nullptr) == SQLITE_OK);
    REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
    const int result = sqlite3_column_int(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return result;
}

}  // namespace

TEST_CASE("a journal comes back as it was left") {
    const TemporaryFolder folder;
    {
        SqliteJournal journal = SqliteJournal::open(folder.path() / "new/deep", identity);
        journal.asked({0, Configuration({{"seqs", std::int64_t{2}}})});
        journal.started(0, 1.5);
    }
    SqliteJournal again = SqliteJournal::open(folder.path() / "new/deep", identity);
    REQUIRE(again.trials().size() == 1);
    CHECK(again.trials()[0].started_at == 1.5);
    again.told(0, Measurement{{{"x", {1}}}}, 2);
    CHECK(SqliteJournal::read(folder.path() / "new/deep").trials()[0].told());  // beside the writer
    CHECK(again.study_name() == "study");
}

TEST_CASE("a changed study is refused, says what changed, and can be accepted") {
    const TemporaryFolder folder;
    { SqliteJournal::open(folder.path(), identity); }
    StudyIdentity changed = identity;
    changed.definition = {{"space.seqs", "integer 1..8"}, {"seed", "0"}, {"objective", "minimize latency_mean_seconds"}};
    CHECK(message_of<UsageError>([&] { SqliteJournal::open(folder.path(), changed); }) ==
          "the study has changed since " + (folder.path() / "study.db").string() +
              " was written:"
              "\n  old: was 'x', is gone"
              "\n  space.seqs: was 'integer 1..4', is 'integer 1..8'"
              "\n  objective: is new: 'minimize latency_mean_seconds'"
              "\ngo on with --accept-changes (trials that still fit count), or choose another --directory");
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), changed, true);
        journal.asked({0, Configuration()});
    }
    CHECK_NOTHROW(SqliteJournal::open(folder.path(), changed));
    CHECK(message_of<UsageError>([&] { SqliteJournal::open(folder.path(), identity); }).find("was 'integer 1..8', is 'integer 1..4'") !=
          std::string::npos);
}

TEST_CASE("a journal that cannot be used is refused with the reason") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.db";
    CHECK(message_of<IoError>([&] { SqliteJournal::read(folder.path()); }) ==
          "there is no journal " + file.string() + "; has the study been run?");
    { SqliteJournal::open(folder.path(), identity); }
    {
        const SqliteJournal writer = SqliteJournal::open(folder.path(), identity);
        CHECK(message_of<IoError>([&] { SqliteJournal::open(folder.path(), identity); }) ==
              "another process is running this study (process " + std::to_string(getpid()) + " holds " +
                  (folder.path() / "study.lock").string() + "); wait for it, or choose another --directory");
    }
    sql(file, "PRAGMA user_version = 3");
    CHECK(message_of<IoError>([&] { SqliteJournal::open(folder.path(), identity); }) ==
          "journal " + file.string() + " has schema version 3, this program knows up to 2; use the newer program that wrote it");
    sql(file, "PRAGMA user_version = 1; PRAGMA application_id = 7");
    CHECK(message_of<IoError>([&] { SqliteJournal::open(folder.path(), identity); }) ==
          "journal " + file.string() + ": this is an SQLite file, but not a journal of servetune");
    const TemporaryFolder other;
    other.write("study.db", "this is no database, though it is long enough to have a header of a hundred bytes or more, is it not so?");
    CHECK(message_of<IoError>([&] { SqliteJournal::open(other.path(), identity); }) ==
          "journal " + (other.path() / "study.db").string() + ": file is not a database");
    CHECK(message_of<IoError>([&] { SqliteJournal::open(file / "below", identity); }) ==
          "cannot make the study's folder " + (file / "below").string() + ": Not a directory");
}

TEST_CASE("events that make no sense are reported, not skipped") {
    const TemporaryFolder folder;
    { SqliteJournal::open(folder.path(), identity).asked({0, Configuration()}); }
    sql(folder.path() / "study.db",
        "INSERT INTO events (trial, event, at, body, study_fingerprint, tool_version) VALUES (0, 'told', 1, '{\"metrics\":5}', '', '')");
    CHECK(message_of<IoError>([&] {
              SqliteJournal::read(folder.path());
          }).find("the 'told' event of trial 0 cannot be read: not an outcome") != std::string::npos);
}

TEST_CASE("a damaged page: reported, and the readable beginning is rescued") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.db";
    constexpr std::uint64_t trials = 200;
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), identity);
        for (std::uint64_t id = 0; id < trials; ++id) {
            journal.asked({id, Configuration({{"seqs", static_cast<std::int64_t>(id)}})});
            journal.told(id, Measurement{{{"x", {static_cast<double>(id)}}}}, 1);
        }
    }
    sql(file, "PRAGMA wal_checkpoint(TRUNCATE)");
    const auto size = std::filesystem::file_size(file);
    REQUIRE(size > 60'000);
    {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(static_cast<std::streamoff>(size / 2 / 4096 * 4096));
        stream << std::string(4096, '\x5a');
    }
    CHECK(message_of<IoError>([&] { SqliteJournal::read(folder.path()); }).starts_with("journal " + file.string() + ": "));
    const RescuedJournal rescued = SqliteJournal::rescue(folder.path());
    CHECK_FALSE(rescued.stopped_by.empty());
    CHECK(rescued.trials.size() > 20);
    CHECK(rescued.trials.size() < trials);
    for (const Trial& trial : rescued.trials)
        if (trial.told()) CHECK(trial.measurement()->metrics.at("x").value == static_cast<double>(trial.id));
    std::filesystem::rename(rescued.file, file);
    for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(file.string() + suffix);
    SqliteJournal again = SqliteJournal::open(folder.path(), identity);
    CHECK(again.trials().size() == rescued.trials.size());
    again.asked({rescued.trials.size(), Configuration()});
}

TEST_CASE("a journal of schema version 1 that was kept can be read by every later program") {
    const TemporaryFolder folder;
    std::filesystem::copy_file(std::filesystem::path(SERVETUNE_SOURCE) / "tests/regress/journal-v1.db", folder.path() / "study.db");
    const std::vector<Trial> trials = SqliteJournal::read(folder.path()).trials();
    REQUIRE(trials.size() == 15);
    CHECK(trials[3].configuration.text() == "engine=sglang quantization=fp8 sglang.attention_backend=engine");
    CHECK(trials[3].measurement()->metrics.at("total_tokens_per_second").value == 10426.27);
    CHECK(trials[14].workload == "very_long_prompt");
    CHECK(number(folder.path() / "study.db", "PRAGMA user_version") == 1);  // reading changes nothing

    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), identity, true);
        CHECK(journal.trials().size() == 15);
        journal.asked({15, Configuration()});
    }
    CHECK(number(folder.path() / "study.db", "PRAGMA user_version") == SqliteJournal::schema_version);
    CHECK(number(folder.path() / "study.db", "SELECT count(findings) FROM trials WHERE seed IS NOT NULL") == 15);
    CHECK(SqliteJournal::open(folder.path(), identity).trials().size() == 16);
}

TEST_CASE("a folder that cannot be written is said at once, and a journal in it can be read") {
    const TemporaryFolder folder;
    { SqliteJournal::open(folder.path(), identity).asked({0, Configuration()}); }
    // Permissions do not bind every user, a folder in the place of the lock does.
    std::filesystem::remove(folder.path() / "study.lock");
    std::filesystem::create_directory(folder.path() / "study.lock");
    CHECK(message_of<IoError>([&] { SqliteJournal::open(folder.path(), identity); }) ==
          "cannot write " + (folder.path() / "study.lock").string() + ": Is a directory");
    CHECK(SqliteJournal::read(folder.path()).trials().size() == 1);
    CHECK(message_of<IoError>([&] {
              SqliteJournal::open(folder.write("file", "x") / "deep", identity);
          }).starts_with("cannot make the study's folder "));
}

TEST_CASE("the view for people shows one row a trial") {
    const TemporaryFolder folder;
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), identity);
        journal.asked({0, Configuration({{"seqs", std::int64_t{2}}})});
        journal.told(0, Measurement{{{"total_tokens_per_second", {10426.27}}}}, 2);
    }
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open((folder.path() / "study.db").c_str(), &handle) == SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    REQUIRE(sqlite3_prepare_v2(handle, "SELECT json_extract(metrics, '$.total_tokens_per_second.value'), configuration FROM trials", -1,
                               &statement, nullptr) == SQLITE_OK);
    REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
    CHECK(sqlite3_column_double(statement, 0) == 10426.27);
    CHECK(std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, 1))) == "{\"seqs\":2}");
    sqlite3_finalize(statement);
    sqlite3_close(handle);
}

TEST_CASE("configurations and outcomes survive JSON; bytes that are no UTF-8 do not stop a study") {
    const Configuration configuration({{"a", Unset{}}, {"b", 1.0}, {"c", std::int64_t{1}}, {"d", 0.1}});
    CHECK(configuration_from_json(json_of(configuration)) == configuration);
    CHECK(json_of(configuration) == R"({"a":null,"b":1.0,"c":1,"d":0.1})");
    CHECK(message_of<ParseError>([] { (void)configuration_from_json("[1]"); }) == "a configuration is a JSON object, got '[1]'");
    const Outcome broken = outcome_from_json(json_of(Outcome(Failure{FailureKind::hung, "log \xff\xfe end"})));
    CHECK(std::get<Failure>(broken).message.find("end") != std::string::npos);
}
