// SPDX-License-Identifier: Apache-2.0
// A journal in which others have put something, whose definition is damaged, or which another
// process has locked.
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/journal_event.hpp"
#include "study/json.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <thread>

using namespace servetune;
using namespace servetune::test;

namespace {

const StudyIdentity owner{
    "study", {{"space.seqs", "integer 1..4"}, {"machine", "one of engine, fp8"}}, "0.1.0"};
constexpr std::uint64_t kept_trials = 6;

/// A connection of somebody else.
class Shell {
public:
    explicit Shell(const fs::path& file) {
        REQUIRE(sqlite3_open(file.c_str(), &handle_) == SQLITE_OK);
    }
    ~Shell() { sqlite3_close(handle_); }
    Shell(const Shell&) = delete;
    Shell& operator=(const Shell&) = delete;
    void run(const std::string& statement) {
        INFO(statement);
        CHECK(sqlite3_exec(handle_, statement.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
    }
    /// The event that ended a trial.
    JournalEvent told(std::uint64_t trial) {
        const std::string query =
            "select sequence, at, study_fingerprint, tool_version from events where event = 'told' "
            "and trial = " +
            std::to_string(trial);
        sqlite3_stmt* rows = nullptr;
        REQUIRE(sqlite3_prepare_v2(handle_, query.c_str(), -1, &rows, nullptr) == SQLITE_OK);
        REQUIRE(sqlite3_step(rows) == SQLITE_ROW);
        const auto text = [&](int column) {
            return std::string(reinterpret_cast<const char*>(sqlite3_column_text(rows, column)));
        };
        JournalEvent event{std::uint64_t(sqlite3_column_int64(rows, 0)),
                           trial,
                           "told",
                           sqlite3_column_double(rows, 1),
                           "",
                           text(2),
                           text(3),
                           ""};
        sqlite3_finalize(rows);
        return event;
    }

private:
    sqlite3* handle_ = nullptr;
};

void tell_one(SqliteJournal& journal, std::uint64_t id) {
    journal.asked({id, Configuration({{"seqs", std::int64_t(id)}})});
    journal.started(id, 1);
    journal.told(id, Measurement{{{"x", {double(id) + 1}}}}, 2);
}

/// `FOLDER/study.db` with six trials.
fs::path make_journal(const TemporaryFolder& folder) {
    SqliteJournal journal = SqliteJournal::open(folder.path(), owner);
    for (std::uint64_t id = 0; id < kept_trials; ++id) tell_one(journal, id);
    return folder.path() / "study.db";
}

const std::string endless =
    " as with recursive r(n) as (select 1 union all select n + 1 from r) select n ";

}  // namespace

TEST_CASE("foreign journal: what others put there is named and refused, and rescue leaves it out") {
    const std::vector<std::pair<std::string, std::string>> attacks{
        {"create trigger t before insert on events begin select raise(ignore); end",
         "the trigger 't'"},
        {"create trigger t after insert on events begin delete from events where sequence < 5; end",
         "the trigger 't'"},
        {"create trigger t after insert on definitions begin update definitions set text = 'x'; "
         "end",
         "the trigger 't'"},
        {"create view more" + endless + "from r", "the view 'more'"},
        {"create table more (a)", "the table 'more'"},
        {"create index more on events (hex(body))", "the index 'more'"},
        {"alter table events add column more text", "another table 'events'"},
        {"alter table events add column more text generated always as (hex(zeroblob(1000000))) "
         "virtual",
         "another table 'events'"},
        {"drop view trials; create view trials" + endless + "id from r", "another view 'trials'"},
        {"drop index once; create unique index once on events (trial, event, at)",
         "another index 'once'"}};
    for (const auto& [attack, named] : attacks) {
        INFO(attack);
        const TemporaryFolder folder;
        const fs::path file = make_journal(folder);
        Shell(file).run(attack);
        const std::string wanted =
            "journal " + file.string() + " holds what servetune did not make: " + named +
            "; drop it there, or let 'autotune status STUDY --rescue' make a journal without it";
        CHECK(message_of<IoError>([&] { (void)SqliteJournal::read(folder.path()); }) == wanted);
        CHECK(message_of<IoError>([&] { (void)SqliteJournal::open(folder.path(), owner); }) ==
              wanted);
        CHECK(message_of<IoError>([&] { (void)SqliteJournal::definition_of(folder.path()); }) ==
              wanted);
        const RescuedJournal rescued = SqliteJournal::rescue(folder.path());
        CHECK(rescued.trials.size() == kept_trials);
        CHECK(rescued.left_out ==
              std::vector<std::string>{named + ", which servetune did not make"});
        CHECK(SqliteJournal::read(rescued.file).trials().size() == kept_trials);
    }
    const TemporaryFolder folder;  // what ANALYZE makes is nobody's
    Shell(make_journal(folder)).run("analyze");
    CHECK(SqliteJournal::open(folder.path(), owner).trials().size() == kept_trials);
}

TEST_CASE("foreign journal: a view in the place of a table is never asked") {
    for (const std::string& attack :
         {"alter table events rename to e2; create view events" + endless +
              "sequence, 0 trial, 'asked' event, 1.0 at, '{}' body, 'x' study_fingerprint, 'y' "
              "tool_version, 'z' checksum from r",
          "alter table study rename to s2; create view study" + endless +
              "|| '' name, 'y' created_by from r",
          std::string("alter table study rename to s2; create view study as select "
                      "hex(zeroblob(400000000)) name, 'y' created_by"),
          std::string("alter table definitions rename to d2; create view definitions as select 'a' "
                      "fingerprint, 'b' path, 'c' text")}) {
        INFO(attack);
        const TemporaryFolder folder;
        Shell(make_journal(folder)).run(attack);
        CHECK(has(message_of<IoError>([&] { (void)SqliteJournal::read(folder.path()); }),
                  " holds what servetune did not make: "));
        CHECK(has(message_of<IoError>([&] { (void)SqliteJournal::open(folder.path(), owner); }),
                  "the view '"));
        CHECK(has(message_of<IoError>([&] { (void)SqliteJournal::rescue(folder.path()); }),
                  "nothing of it can be rescued"));
        CHECK_FALSE(fs::exists(folder.path() / "study.rescued.db"));
    }
}

TEST_CASE("foreign journal: a trigger that comes while the study runs loses no trial in silence") {
    const TemporaryFolder folder;
    const fs::path file = make_journal(folder);
    SqliteJournal journal = SqliteJournal::open(folder.path(), owner);
    journal.asked({kept_trials, Configuration()});
    Shell(file).run("create trigger t before insert on events begin select raise(ignore); end");
    CHECK(has(message_of<IoError>([&] { journal.started(kept_trials, 1); }), "the trigger 't'"));
    Shell(file).run("drop trigger t");
    CHECK_NOTHROW(journal.started(kept_trials, 1));
}

TEST_CASE(
    "rescue: a definition that does not match its fingerprint is left out and said, once and for "
    "all") {
    const TemporaryFolder folder;
    const fs::path file = make_journal(folder);
    Shell(file).run("update definitions set text = replace(text, 'engine', 'dngine')");
    CHECK(has(message_of<IoError>([&] { (void)SqliteJournal::read(folder.path()); }),
              "does not match its fingerprint"));
    const RescuedJournal rescued = SqliteJournal::rescue(folder.path());
    CHECK(rescued.trials.size() == kept_trials);
    fs::copy_file(file, folder.path() / "copy.db");
    CHECK(SqliteJournal::rescue(folder.path() / "copy.db").file ==
          folder.path() / "copy.rescued.db");
    CHECK(rescued.left_out ==
          std::vector<std::string>{"the definition or environment " + owner.fingerprint().text() +
                                   ": it does not match its fingerprint"});
    fs::rename(rescued.file, file);
    CHECK(SqliteJournal::read(folder.path()).trials().size() == kept_trials);
    CHECK(SqliteJournal::definition_of(folder.path()).empty());
    CHECK(SqliteJournal::read(folder.path()).changes_in(owner.definition) ==
          "\n  what it was is lost: its definition was damaged");
    StudyIdentity other = owner;
    other.definition["seed"] = "1";
    CHECK(has(message_of<UsageError>([&] { (void)SqliteJournal::open(folder.path(), other); }),
              "is lost, so it is not known whether"));
    {
        SqliteJournal journal = SqliteJournal::open(
            folder.path(), owner);  // it is the study of these events: known again
        CHECK(journal.trials().size() == kept_trials);
        tell_one(journal, kept_trials);
    }
    CHECK(SqliteJournal::definition_of(folder.path()) == owner.definition);
    CHECK(SqliteJournal::read(folder.path()).trials().size() == kept_trials + 1);
    CHECK(has(message_of<UsageError>([&] { (void)SqliteJournal::open(folder.path(), other); }),
              "seed: is new: '1'"));

    const TemporaryFolder second;  // the environment of a trial
    {
        SqliteJournal journal = SqliteJournal::open(second.path(), owner);
        journal.keep_environment([] {
            return std::map<std::string, std::string>{{"governor", "powersave"}};
        });
        tell_one(journal, 0);
    }
    Shell(second.path() / "study.db")
        .run("update definitions set text = 'performance' where path = 'governor'");
    const RescuedJournal again = SqliteJournal::rescue(second.path());
    CHECK(again.trials.size() == 1);
    REQUIRE(again.left_out.size() == 2);
    CHECK(has(again.left_out[0], "does not match its fingerprint"));
    CHECK(has(again.left_out[1], "the environment that it started in is lost"));
    CHECK(SqliteJournal::read(again.file).trials().size() == 1);
    CHECK(SqliteJournal::read(again.file).definition() == owner.definition);
}

TEST_CASE("rescue: replaces an earlier rescued journal, and nothing else") {
    const TemporaryFolder folder;
    (void)make_journal(folder);
    const fs::path place = folder.path() / "study.rescued.db";
    CHECK(SqliteJournal::rescue(folder.path()).trials.size() == kept_trials);
    CHECK(SqliteJournal::rescue(folder.path()).trials.size() == kept_trials);
    fs::remove(place);
    const auto refused = [&] {
        return message_of<IoError>([&] { (void)SqliteJournal::rescue(folder.path()); });
    };
    REQUIRE(mkfifo(place.c_str(), 0600) == 0);
    CHECK(has(refused(), "is in the way"));
    CHECK(fs::is_fifo(place));
    fs::remove(place);
    fs::create_directory(place);
    CHECK(has(refused(), "is in the way"));
    CHECK(fs::is_directory(place));
    fs::remove(place);
    folder.write("study.rescued.db-wal", "of a shell that has it open");
    CHECK(has(refused(), "is in use"));
    CHECK(read_file(folder.path() / "study.rescued.db-wal") == "of a shell that has it open");
    for (const auto& entry : fs::directory_iterator(folder.path()))
        CHECK_FALSE(entry.is_directory());  // nothing half made
}

TEST_CASE("journal: a lock that another process holds is waited for, and said") {
    const TemporaryFolder folder;
    const fs::path file = make_journal(folder);
    std::vector<std::string> said;
    SqliteJournal journal = SqliteJournal::open(
        folder.path(), owner, false, [&](const std::string& line) { said.push_back(line); });
    std::atomic<bool> held{false};
    std::jthread other([&] {
        Shell shell(file);
        shell.run("begin immediate");
        held = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(800));
        shell.run("rollback");
    });
    while (!held) std::this_thread::yield();
    tell_one(journal, kept_trials);
    other.join();
    CHECK(said ==
          std::vector<std::string>{"journal " + file.string() +
                                   ": another process holds its lock; waiting for up to 600 s"});
    CHECK(journal.trials().back().told());
}

TEST_CASE("journal: numbers that no program told are not believed") {
    const auto told = [](const std::string& metric) {
        return "{\"metrics\":{\"x\":{" + metric + "}},\"verdict\":\"sound\",\"findings\":[]}";
    };
    for (const char* wrong : {"0", "-3", "9223372036854775808", "18446744073709551615", "1e3",
                              "2.5", "\"3\"", "null"}) {
        INFO(wrong);
        CHECK(has(message_of<ParseError>([&] {
                      (void)outcome_from_json(
                          told("\"value\":1,\"replicates\":" + std::string(wrong)));
                  }),
                  "metric 'x': replicates from 1 to 1000000 wanted, got "));
    }
    CHECK(std::get<Measurement>(
              outcome_from_json(told("\"value\":1,\"standard_error\":0.1,\"replicates\":3")))
              .metrics.at("x")
              .replicates == 3);
    // The same of an event whose checksum fits it: whoever can write the file can make one.
    for (const char* wrong : {"\"value\":1,\"standard_error\":-1", "\"value\":1e200",
                              "\"value\":1,\"standard_error\":1e200",
                              "\"value\":1,\"replicates\":0", "\"value\":{\"a\":{}}"}) {
        INFO(wrong);
        const TemporaryFolder folder;
        const fs::path file = make_journal(folder);
        Shell shell(file);
        JournalEvent event = shell.told(3);
        event.body = told(wrong);
        shell.run("update events set body = '" + event.body + "', checksum = '" +
                  event.right_checksum() + "' where trial = 3 and event = 'told'");
        CHECK(has(message_of<IoError>([&] { (void)SqliteJournal::read(folder.path()); }),
                  "the 'told' event of trial 3 cannot be read"));
        const std::vector<Trial> rescued = SqliteJournal::rescue(folder.path()).trials;
        REQUIRE(rescued.size() == kept_trials);
        CHECK_FALSE(rescued[3].told());  // it is measured again
    }
}
