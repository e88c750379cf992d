// SPDX-License-Identifier: Apache-2.0
#include "support/in_child.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "study/journal_event.hpp"

#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/json.hpp"

#include <sqlite3.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

using namespace servetune;
using namespace servetune::test;

namespace {

const StudyIdentity identity{
    "study", {{"space.seqs", "integer 1..4"}, {"seed", "0"}, {"old", "x"}}, "0.1.0"};

void sql(const fs::path& file, const char* statement) {
    sqlite3* handle = nullptr;
    REQUIRE(sqlite3_open(file.c_str(), &handle) == SQLITE_OK);
    CHECK(sqlite3_exec(handle, statement, nullptr, nullptr, nullptr) == SQLITE_OK);
    sqlite3_close(handle);
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

TEST_CASE("an integer beyond 64 bits is a real, never another integer") {
    const Configuration read = configuration_from_json(
        R"({"a": 18446744073709551615, "b": 9223372036854775807, "c": -1})");
    CHECK(*read.find("a") == Value(18446744073709551615.0));
    CHECK(*read.find("b") == Value(std::int64_t{9223372036854775807}));
    CHECK(*read.find("c") == Value(std::int64_t{-1}));
}

TEST_CASE("a changed study is refused, says what changed, and can be accepted") {
    const TemporaryFolder folder;
    { SqliteJournal::open(folder.path(), identity); }
    StudyIdentity changed = identity;
    changed.definition = {{"space.seqs", "integer 1..8"},
                          {"seed", "0"},
                          {"objective", "minimize latency_mean_seconds"}};
    CHECK(message_of<UsageError>([&] { SqliteJournal::open(folder.path(), changed); }) ==
          "the study has changed since " + (folder.path() / "study.db").string() +
              " was written:"
              "\n  old: was 'x', is gone"
              "\n  space.seqs: was 'integer 1..4', is 'integer 1..8'"
              "\n  objective: is new: 'minimize latency_mean_seconds'"
              "\ngo on with --accept-changes (trials that still fit count), or choose another "
              "--directory");
    // Fingerprints say nothing to a person.
    changed.definition["file.flags.seqs"] = "a55610933e78796d";
    StudyIdentity other = changed;
    other.definition["file.flags.seqs"] = "ebb502892887019c";
    const TemporaryFolder second;
    { SqliteJournal::open(second.path(), changed); }
    CHECK(has(message_of<UsageError>([&] { SqliteJournal::open(second.path(), other); }),
              "written:\n  file.flags.seqs: has changed\ngo on"));
    changed.definition.erase("file.flags.seqs");
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), changed, true);
        journal.asked({0, Configuration()});
    }
    CHECK_NOTHROW(SqliteJournal::open(folder.path(), changed));
    CHECK(has(message_of<UsageError>([&] { SqliteJournal::open(folder.path(), identity); }),
              "was 'integer 1..8', is 'integer 1..4'"));
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
              "another process is running this study (process " + std::to_string(getpid()) +
                  " holds " + (folder.path() / "study.lock").string() +
                  "); wait for it, or choose another --directory");
    }
    for (const int version :
         {SqliteJournal::schema_version - 1, SqliteJournal::schema_version + 1}) {
        sql(file, ("PRAGMA user_version = " + std::to_string(version)).c_str());
        const std::string message =
            message_of<IoError>([&] { SqliteJournal::open(folder.path(), identity); });
        CHECK(message.starts_with("journal " + file.string() + " has schema version " +
                                  std::to_string(version) + ", this program reads version " +
                                  std::to_string(SqliteJournal::schema_version) + ": "));
    }
    sql(file, "PRAGMA user_version = 1; PRAGMA application_id = 7");
    CHECK(message_of<IoError>([&] { SqliteJournal::open(folder.path(), identity); }) ==
          "journal " + file.string() + ": this is an SQLite file, but not a journal of servetune");
    const TemporaryFolder other;
    other.write("study.db",
                "this is no database, though it is long enough to have a header of a hundred bytes "
                "or more, is it not so?");
    CHECK(message_of<IoError>([&] { SqliteJournal::open(other.path(), identity); }) ==
          "journal " + (other.path() / "study.db").string() + ": file is not a database");
    CHECK(message_of<IoError>([&] { SqliteJournal::open(file / "below", identity); }) ==
          "cannot make the study's folder " + (file / "below").string() + ": Not a directory");
}

TEST_CASE("events that make no sense are reported, not skipped") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.db";
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), identity);
        journal.asked({0, Configuration()});
        journal.started(0, 1);
    }
    JournalEvent told{3, 0, "told", 1, R"({"metrics":5})", "", "", ""};
    const std::string insert = "INSERT INTO events VALUES (3, 0, 'told', 1, '" + told.body +
                               "', '', '', '" + told.right_checksum() + "')";
    sql(file, insert.c_str());
    CHECK(message_of<IoError>([&] { SqliteJournal::read(folder.path()); })
              .starts_with("journal " + file.string() +
                           ": the 'told' event of trial 0 cannot be read: not an outcome"));
}

TEST_CASE("an event that was changed, or is missing, is named, rescue keeps the others") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.db";
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), identity);
        for (std::uint64_t id = 0; id < 4; ++id) {
            journal.asked({id, Configuration({{"seqs", std::int64_t(id)}})});
            journal.started(id, 1);
            journal.told(id, Measurement{{{"x", {double(id)}}}}, 2);
        }
    }
    // Told of trial 1 is event 6.
    for (const char* change :
         {"body = replace(body, '1', '3')", "at = at + 1", "trial = 17", "study_fingerprint = 'a'",
          "tool_version = 'a'", "checksum = '0123456789abcdef'"}) {
        INFO(change);
        const TemporaryFolder copy;
        const auto changed = copy.path() / "study.db";
        fs::copy_file(file, changed);
        sql(changed, ("UPDATE events SET " + std::string(change) + " WHERE sequence = 6").c_str());
        CHECK(message_of<IoError>([&] { SqliteJournal::read(copy.path()); }) ==
              "journal " + changed.string() + " is damaged: event 6, 'told' of trial " +
                  (change == std::string("trial = 17") ? "17" : "1") +
                  ", does not match its checksum; 'autotune status STUDY --rescue' copies what can "
                  "still be read");
        CHECK(has(message_of<IoError>([&] { SqliteJournal::open(copy.path(), identity); }),
                  "event 6, 'told' of trial "));
        const RescuedJournal rescued = SqliteJournal::rescue(copy.path());
        CHECK(rescued.stopped_by.empty());
        REQUIRE(rescued.left_out.size() == 1);
        CHECK(has(rescued.left_out[0], "event 6, 'told' of trial "));
        REQUIRE(rescued.trials.size() == 4);
        for (const Trial& trial : rescued.trials) {
            CHECK(trial.told() == (trial.id != 1));
            if (trial.told()) CHECK(trial.measurement()->metrics.at("x").value == double(trial.id));
        }
        fs::rename(rescued.file, changed);
        CHECK(SqliteJournal::open(copy.path(), identity).trials().size() == 4);
    }
    {
        const TemporaryFolder copy;
        fs::copy_file(file, copy.path() / "study.db");
        sql(copy.path() / "study.db", "DELETE FROM events WHERE sequence = 5");
        CHECK(has(message_of<IoError>([&] { SqliteJournal::read(copy.path()); }),
                  " is damaged: event 5 is missing; "));
        CHECK(SqliteJournal::rescue(copy.path()).trials.size() == 4);
    }
    {  // an event that asked: its trial is lost, the trials after it have new numbers
        const TemporaryFolder copy;
        const auto changed = copy.path() / "study.db";
        fs::copy_file(file, changed);
        sql(changed, "UPDATE events SET body = replace(body, '1', '3') WHERE sequence = 4");
        const RescuedJournal rescued = SqliteJournal::rescue(copy.path());
        REQUIRE(rescued.left_out.size() == 5);
        CHECK(rescued.left_out[0] == "event 4, 'asked' of trial 1: it does not match its checksum");
        CHECK(rescued.left_out[2] ==
              "event 6, 'told' of trial 1: the event that asked for this trial is lost");
        CHECK(rescued.left_out[4] == "trial 3 is now trial 2");
        REQUIRE(rescued.trials.size() == 3);
        CHECK(rescued.trials[2].measurement()->metrics.at("x").value == 3);
        fs::rename(rescued.file, changed);
        CHECK(SqliteJournal::open(copy.path(), identity).trials().size() == 3);
    }
}

TEST_CASE("a flipped bit anywhere in a journal never changes what is read") {
    const TemporaryFolder folder;
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), identity);
        for (std::uint64_t id = 0; id < 12; ++id) {
            journal.asked({id, Configuration({{"seqs", std::int64_t(id)}}), "", id,
                           "because of " + std::string(300, 'x')});
            journal.started(id, 1.5);
            journal.told(id, Measurement{{{"x", {double(id) + 0.125, 0.5}}}}, 2.25);
        }
    }
    const auto text_of = [](const SqliteJournal& journal) {
        std::string text;
        for (const Trial& trial : journal.trials())
            text += trial.configuration.text() + trial.why + std::to_string(trial.seed) +
                    json_of(*trial.outcome) + std::to_string(*trial.started_at) +
                    std::to_string(*trial.told_at) + "\n";
        for (const auto& [path, setting] : journal.definition()) text += path + setting;
        return text;
    };
    const std::string right = text_of(SqliteJournal::read(folder.path()));
    const std::string whole = read_file(folder.path() / "study.db");
    const TemporaryFolder copy;
    std::size_t found = 0;
    for (std::size_t at = 0; at < whole.size(); at += 31) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
        copy.write("study.db", damaged);
        std::string got = right;
        try {
            got = text_of(SqliteJournal::read(copy.path()));
        } catch (const IoError&) {
            ++found;
        }
        if (got != right) {
            INFO("byte " << at << ", bit " << at % 8);
            REQUIRE(got == right);
        }
    }
    CHECK(found > whole.size() / 31 / 4);  // the rest is free space, and the view for people
}

TEST_CASE("rescue finds the events that no page leads to any more, wherever the damage is") {
    const TemporaryFolder folder;
    constexpr std::uint64_t trials = 8;
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), identity);
        for (std::uint64_t id = 0; id < trials; ++id) {
            journal.asked({id, Configuration({{"seqs", std::int64_t(id)}}), "", id,
                           std::string(id == 5 ? 9000 : 900, 'x')});  // one on pages of its own
            journal.told(id, Measurement{{{"x", {double(id) + 0.5}}}}, 1);
        }
    }
    sql(folder.path() / "study.db", "PRAGMA wal_checkpoint(TRUNCATE)");
    const std::string whole = read_file(folder.path() / "study.db");
    const TemporaryFolder copy;
    std::size_t least = trials;
    for (std::size_t at = 0; at + 3000 < whole.size(); at += 1000) {
        INFO("byte " << at);
        std::string damaged = whole;
        damaged.replace(at, 3000, std::string(3000, '\x5a'));
        copy.write("study.db", damaged);
        RescuedJournal rescued;
        REQUIRE_NOTHROW(rescued = SqliteJournal::rescue(copy.path()));
        least = std::min(least, rescued.trials.size());
        for (const Trial& trial : rescued.trials) {
            const auto seqs = std::get<std::int64_t>(*trial.configuration.find("seqs"));
            if (trial.told())
                CHECK(trial.measurement()->metrics.at("x").value == double(seqs) + 0.5);
        }
        const SqliteJournal again = SqliteJournal::read(rescued.file);
        CHECK(again.trials().size() == rescued.trials.size());
    }
    CHECK(least >= trials - 4);  // those of 3000 bytes
}

TEST_CASE("a damaged page: reported, and the readable beginning is rescued") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.db";
    constexpr std::uint64_t trials = 200;
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), identity);
        for (std::uint64_t id = 0; id < trials; ++id) {
            journal.asked({id, Configuration({{"seqs", std::int64_t(id)}})});
            journal.told(id, Measurement{{{"x", {double(id)}}}}, 1);
        }
    }
    sql(file, "PRAGMA wal_checkpoint(TRUNCATE)");
    const auto size = fs::file_size(file);
    REQUIRE(size > 60'000);
    {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekp(static_cast<std::streamoff>(size / 2 / 4096 * 4096));
        stream << std::string(4096, '\x5a');
    }
    const std::string remedy = "; 'autotune status STUDY --rescue' copies what can still be read";
    const std::string why = message_of<IoError>([&] { SqliteJournal::read(folder.path()); });
    CHECK(why.starts_with("journal " + file.string() + ": "));
    CHECK(why.ends_with(remedy));
    {
        const TemporaryFolder cut;
        fs::copy_file(file, cut.path() / "study.db");
        fs::resize_file(cut.path() / "study.db", size / 2);
        CHECK(message_of<IoError>([&] { SqliteJournal::read(cut.path()); }).ends_with(remedy));
        CHECK_FALSE(has(SqliteJournal::rescue(cut.path()).stopped_by, "--rescue"));
        CHECK(message_of<IoError>([&] {
                  SqliteJournal::open(cut.path(), identity);
              }).ends_with(remedy));
    }
    const RescuedJournal rescued = SqliteJournal::rescue(folder.path());
    CHECK_FALSE(rescued.stopped_by.empty());
    CHECK_FALSE(has(rescued.stopped_by, "--rescue"));
    CHECK(rescued.trials.size() > trials - 40);  // behind the page, too
    CHECK(rescued.trials.size() < trials);
    for (const Trial& trial : rescued.trials)
        if (trial.told())
            CHECK(Value(std::int64_t(trial.measurement()->metrics.at("x").value)) ==
                  *trial.configuration.find("seqs"));
    CHECK(rescued.stopped_by.starts_with("journal " + file.string() +
                                         ": "));  // the damaged file, not the rescued one
    CHECK(in_child([&]() -> std::string {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{8192, 8192};
              setrlimit(RLIMIT_FSIZE, &limit);
              return "rescued, " + SqliteJournal::rescue(folder.path()).stopped_by;
          })
              .starts_with("journal " + (folder.path() / "study.rescued.db").string() +
                           ": "));  // a full disk is no damage
    CHECK(SqliteJournal::rescue(folder.path()).trials.size() == rescued.trials.size());
    fs::rename(rescued.file, file);
    for (const char* suffix : {"-wal", "-shm"}) fs::remove(file.string() + suffix);
    SqliteJournal again = SqliteJournal::open(folder.path(), identity);
    CHECK(again.trials().size() == rescued.trials.size());
    again.asked({rescued.trials.size(), Configuration()});
}

TEST_CASE("a folder that cannot be written is said at once, and a journal in it can be read") {
    const TemporaryFolder folder;
    { SqliteJournal::open(folder.path(), identity).asked({0, Configuration()}); }
    // Permissions do not bind every user, a folder in the place of the lock does.
    fs::remove(folder.path() / "study.lock");
    fs::create_directory(folder.path() / "study.lock");
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
    REQUIRE(sqlite3_prepare_v2(handle,
                               "SELECT json_extract(metrics, '$.total_tokens_per_second.value'), "
                               "configuration FROM trials",
                               -1, &statement, nullptr) == SQLITE_OK);
    REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
    CHECK(sqlite3_column_double(statement, 0) == 10426.27);
    CHECK(std::string(reinterpret_cast<const char*>(sqlite3_column_text(statement, 1))) ==
          "{\"seqs\":2}");
    sqlite3_finalize(statement);
    sqlite3_close(handle);
}

TEST_CASE("configurations and outcomes survive JSON, bytes that are no UTF-8 do not stop a study") {
    const Configuration configuration(
        {{"a", Unset{}}, {"b", 1.0}, {"c", std::int64_t{1}}, {"d", 0.1}});
    CHECK(configuration_from_json(json_of(configuration)) == configuration);
    CHECK(json_of(configuration) == R"({"a":null,"b":1.0,"c":1,"d":0.1})");
    CHECK(message_of<ParseError>([] { (void)configuration_from_json("[1]"); }) ==
          "a configuration is a JSON object, got '[1]'");
    const Outcome broken =
        outcome_from_json(json_of(Outcome(Failure{FailureKind::hung, "log \xff\xfe end"})));
    CHECK(has(std::get<Failure>(broken).message, "end"));
}
