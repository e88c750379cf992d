// SPDX-License-Identifier: Apache-2.0
#include "servetune/sqlite_journal.hpp"

#include "base/files.hpp"
#include "base/present.hpp"
#include "carved_events.hpp"
#include "journal_event.hpp"
#include "journal_schema.hpp"
#include "journal_snapshot.hpp"
#include "sqlite_connection.hpp"
#include "study_lock.hpp"

#include <sys/stat.h>

#include <system_error>

namespace servetune {
namespace {

namespace fs = std::filesystem;
using Statement = SqliteConnection::Statement;

/// Which file a path leads to; nothing: to none.
std::optional<std::array<std::uint64_t, 2>> inode_of(const fs::path& file) {
    struct stat there {};
    if (::stat(file.c_str(), &there) != 0) return std::nullopt;
    return std::array<std::uint64_t, 2>{there.st_dev, there.st_ino};
}

/// The columns of an event, `checksum` last, or `shown` in place of each name.
std::string columns(const std::string& shown = "") {
    std::string result;
    const JournalEvent none;
    JournalEvent::for_each_column(none, [&](const char* name, const auto&) {
        result += (shown.empty() ? name : shown) + ", ";
    });
    return result + (shown.empty() ? "checksum" : shown);
}

/// Calls `visit` with each event.
template <class Visit>
void for_each_event(SqliteConnection& connection, const Visit& visit) {
    Statement rows(connection, ("SELECT " + columns() + " FROM events ORDER BY sequence").c_str());
    while (rows.step()) {
        JournalEvent event;
        int column = 0;
        JournalEvent::for_each_column(
            event, [&](const char*, auto& member) { rows.get(column++, member); });
        rows.get(column, event.checksum);
        visit(std::move(event));
    }
}

}  // namespace

Fingerprint StudyIdentity::fingerprint() const { return fingerprint_of_definition(definition); }

/// What was read of a journal's file; with a connection and a lock where it is written.
class SqliteJournal::Database {
public:
    /// `named`: the file of the messages, where another one is made in its place.
    explicit Database(fs::path file, fs::path named = {})
        : file_(std::move(file)), named_(named.empty() ? file_ : std::move(named)) {}

    /// For writing. The folder is there.
    void open(const StudyIdentity& identity, bool accept_changes,
              std::function<void(const std::string&)> say) {
        if (const std::string kind = network_filesystem_of(file_.parent_path()); !kind.empty())
            throw IoError("the study's folder " + file_.parent_path().string() +
                          " is on a network filesystem (" + kind +
                          "), where a journal can be read but not written: SQLite's write-ahead "
                          "log works on one machine only; choose a --directory on a disk of this "
                          "machine, and copy the folder there to go on with its study");
        lock_ = std::make_unique<StudyLock>(file_.parent_path());
        if (inode_of(file_)) check_journal_file(file_);
        connection_ =
            std::make_unique<SqliteConnection>(file_, SqliteConnection::Access::write, file_);
        connection_->on_wait(std::move(say));
        version_ = checked_journal_version(*connection_, file_);
        connection_->run("PRAGMA journal_mode = WAL");
        connection_->run(
            // a told trial survives a power cut, not only the death of the process
            "PRAGMA synchronous = FULL");
        if (version_ == 0) create(identity);
        else {
            compare_definition(identity, accept_changes);
            load(*connection_);
        }
        fingerprint_ = identity.fingerprint().text();
        tool_version_ = identity.tool_version;
        own_definition_ = identity.definition;
        const auto files = own_files();
        for (std::size_t i = 0; i < files.size(); ++i) inodes_[i] = inode_of(files[i]);
        schema_cookie_ = connection_->number(schema_cookie);
    }

    void read() {
        read_snapshot(file_, [&](SqliteConnection& connection) {
            version_ = checked_journal_version(connection, file_);
            if (version_ == 0) throw IoError("journal " + file_.string() + " is empty");
            load(connection);
        });
    }

    /// Durable when it returns: one statement is one transaction.
    void append(std::uint64_t trial, const char* event, double at, const std::string& body) {
        if (const std::string why = displaced(); !why.empty()) throw IoError(why);
        lock_->keep();
        if (const std::uint64_t now = connection_->number(schema_cookie); now != schema_cookie_) {
            check_own_journal(*connection_, file_);
            schema_cookie_ = now;
        }
        insert({last_sequence_ + 1, trial, event, at, body, fingerprint_, tool_version_});
        definition_ = own_definition_;
    }

    /// The same of a start, with what of its surroundings is to be kept; each environment is
    /// written once.
    void append_start(std::uint64_t trial, double at, const Definition& environment) {
        const std::string fingerprint =
            environment.empty() ? "" : fingerprint_of_definition(environment).text();
        if (fingerprint.empty() || environments_.contains(fingerprint))
            return append(trial, "started", at, started_body(fingerprint));
        const std::uint64_t before = last_sequence_;
        try {
            SqliteTransaction transaction(*connection_);
            insert_definition(fingerprint, environment);
            append(trial, "started", at, started_body(fingerprint));
            transaction.commit();
        } catch (const Error&) {
            last_sequence_ = before;
            throw;
        }
        environments_[fingerprint] = std::make_shared<const Definition>(environment);
    }

    /// Why its files are no longer those that were opened; empty: they are.
    [[nodiscard]] std::string displaced() const {
        const auto files = own_files();
        for (std::size_t i = 0; i < files.size(); ++i)
            if (inodes_[i] && inode_of(files[i]) != inodes_[i])
                return "journal " + file_.string() + ": " + files[i].string() +
                       " was removed, moved or replaced while the study ran, so nothing more can "
                       "be recorded; put back what was there and "
                       "run again, or choose another --directory";
        return "";
    }

    /// Makes this file from what is whole in a damaged one; what was left out, and why. `source`:
    /// null where SQLite cannot open it.
    std::vector<std::string> make_from(SqliteConnection* source, const fs::path& damaged,
                                       std::string& stopped_by);

    std::vector<Trial> trials_{};
    std::string name_{};
    Definition definition_{};  ///< of the last event
    KeptEnvironments environments_{};
    std::function<Definition()> environment_now_{};

private:
    [[nodiscard]] std::array<fs::path, 2> own_files() const {
        return {file_, file_.string() + "-wal"};
    }

    void make_tables() {
        connection_->run(journal_tables);
        connection_->run(journal_view);
        connection_->run("PRAGMA application_id = " + std::to_string(journal_application_id));
        connection_->run("PRAGMA user_version = " + std::to_string(schema_version));
        version_ = schema_version;
    }

    void create(const StudyIdentity& identity) {
        SqliteTransaction transaction(*connection_);
        make_tables();
        Statement(*connection_, "INSERT INTO study VALUES (?, ?)")
            .bind(identity.name)
            .bind(identity.tool_version)
            .step();
        insert_definition(identity);
        transaction.commit();
        name_ = identity.name;
        definition_ = identity.definition;
    }

    void insert_definition(const StudyIdentity& identity) {
        insert_definition(identity.fingerprint().text(), identity.definition);
        if (!identity.texts.empty())
            insert_definition(fingerprint_of_definition(identity.texts).text(), identity.texts);
    }

    void insert_definition(const std::string& fingerprint, const Definition& definition) {
        for (const auto& [path, text] : definition)
            Statement(*connection_, "INSERT OR REPLACE INTO definitions VALUES (?, ?, ?)")
                .bind(fingerprint)
                .bind(path)
                .bind(text)
                .step();
    }

    void compare_definition(const StudyIdentity& identity, bool accept_changes) {
        const std::string last = last_fingerprint(*connection_);
        const Definition before = definition_named(*connection_, last);
        const bool lost = before.empty() && !identity.definition.empty();  // `rescue` left it out
        if (last == identity.fingerprint().text() && !lost) return;
        if (lost && last != identity.fingerprint().text() && !accept_changes)
            throw UsageError("what the study was when " + file_.string() +
                             " was written is lost, so it is not known whether it has changed\ngo "
                             "on with --accept-changes (trials that "
                             "still fit count), or choose another --directory");
        const std::string changes = lost ? "" : changes_between(before, identity.definition);
        if (!accept_changes && !changes.empty())
            throw UsageError("the study has changed since " + file_.string() +
                             " was written:" + changes +
                             "\ngo on with --accept-changes (trials that still fit count), or "
                             "choose another --directory");
        SqliteTransaction transaction(*connection_);
        insert_definition(identity);
        transaction.commit();
    }

    void insert(JournalEvent event) {
        event.at += 0.0;  // SQLite keeps no sign of zero
        Statement row(
            *connection_,
            ("INSERT INTO events (" + columns() + ") VALUES (" + columns("?") + ")").c_str());
        JournalEvent::for_each_column(event,
                                      [&](const char*, const auto& member) { row.bind(member); });
        row.bind(event.right_checksum()).step();
        if (connection_->changed() != 1)
            throw IoError("journal " + file_.string() + ": " + event.name() + " was not recorded");
        last_sequence_ = event.sequence;
    }

    [[noreturn]] void damaged(const std::string& what) const {
        throw IoError("journal " + file_.string() + " is damaged: " + what + rescue_remedy);
    }

    void load(SqliteConnection& connection) {
        trials_.clear();
        environments_.clear();
        last_sequence_ = 0;
        for_each_event(connection, [&](const JournalEvent& event) {
            if (event.sequence != last_sequence_ + 1)
                damaged("event " + std::to_string(last_sequence_ + 1) + " is missing");
            if (event.checksum != event.right_checksum())
                damaged(event.name() + ", does not match its checksum");
            if (const std::string kept = event.environment();
                !kept.empty() && !environments_.contains(kept)) {
                Definition environment = definition_named(connection, kept);
                if (fingerprint_of_definition(environment).text() != kept)
                    damaged("the environment of trial " + std::to_string(event.trial) +
                            " does not match its fingerprint " + kept);
                environments_[kept] = std::make_shared<const Definition>(std::move(environment));
            }
            try {
                event.apply(trials_, environments_);
            } catch (const IoError& error) {
                throw IoError("journal " + file_.string() + ": " + error.what());
            }
            last_sequence_ = event.sequence;
        });
        // Events that are not found at all, such as the last ones of a page, show in the structure
        // of the file only.
        if (const std::string found = connection.text("PRAGMA quick_check(1)"); found != "ok")
            damaged(found);
        name_ = connection.text("SELECT name FROM study");
        const std::string fingerprint = last_fingerprint(connection);
        definition_ = definition_named(connection, fingerprint);
        if (!definition_.empty() && fingerprint_of_definition(definition_).text() != fingerprint)
            damaged("the study's definition does not match its fingerprint " + fingerprint);
    }

    fs::path file_;
    fs::path named_;
    std::unique_ptr<StudyLock> lock_{};
    std::unique_ptr<SqliteConnection> connection_{};  ///< closed before the lock is given back
    static constexpr const char* schema_cookie =
        "PRAGMA schema_version";  ///< another one: somebody made or dropped something
    int version_ = 0;
    std::uint64_t schema_cookie_ = 0;
    std::uint64_t last_sequence_ = 0;
    std::string fingerprint_{};
    std::string tool_version_{};
    Definition own_definition_{};
    std::array<std::optional<std::array<std::uint64_t, 2>>, 2> inodes_{};  ///< of `own_files`
};

std::vector<std::string> SqliteJournal::Database::make_from(SqliteConnection* source,
                                                            const fs::path& damaged,
                                                            std::string& stopped_by) {
    // Only what reads the damaged file may fail without harm: a full disk is no damage of that
    // file.
    const auto as_far_as_readable = [&](const auto& reading) {
        if (source == nullptr) return;
        try {
            reading();
        } catch (const IoError& error) {
            stopped_by += (stopped_by.empty() ? "" : "; ") + std::string(error.what());
        }
    };
    std::optional<std::array<std::string, 2>> study;
    std::vector<std::array<std::string, 3>> definitions;
    std::map<std::uint64_t, JournalEvent> events;
    as_far_as_readable([&] {
        Statement row(*source, "SELECT name, created_by FROM study");
        if (row.step()) study = {row.text(0), row.text(1)};
    });
    as_far_as_readable([&] {
        Statement rows(*source, "SELECT fingerprint, path, text FROM definitions ORDER BY rowid");
        while (rows.step()) definitions.push_back({rows.text(0), rows.text(1), rows.text(2)});
    });
    as_far_as_readable([&] {
        for_each_event(
            *source, [&](JournalEvent event) { events.emplace(event.sequence, std::move(event)); });
    });
    const std::string structure = stopped_by.empty() ? source->text("PRAGMA quick_check(1)") : "ok";
    if (structure != "ok") {  // "*** in database main ***", then the first fault
        const auto line = structure.rfind('\n');
        stopped_by = "the file is damaged (SQLite: " +
                     structure.substr(line == std::string::npos ? 0 : line + 1) + ")";
    }

    if (!stopped_by.empty()) events.merge(carved_events(damaged));

    trials_.clear();
    last_sequence_ = 0;
    connection_ =
        std::make_unique<SqliteConnection>(file_, SqliteConnection::Access::write, named_);
    SqliteTransaction transaction(
        *connection_);  // no write-ahead log: this one file is whole when it is committed
    make_tables();
    if (study)
        Statement(*connection_, "INSERT INTO study VALUES (?, ?)")
            .bind((*study)[0])
            .bind((*study)[1])
            .step();

    std::map<std::string, Definition> named;  // definitions and environments
    for (const auto& [fingerprint, path, text] : definitions) named[fingerprint][path] = text;
    const auto is_whole = [&](const std::string& fingerprint) {
        const auto found = named.find(fingerprint);
        return found != named.end() &&
               fingerprint_of_definition(found->second).text() == fingerprint;
    };
    std::vector<std::string> left_out;
    if (source != nullptr)
        for (const std::string& foreign : foreign_in_journal(*source))
            left_out.push_back(foreign + ", which servetune did not make");
    for (const auto& [fingerprint, definition] : named)
        if (!is_whole(fingerprint))
            left_out.push_back("the definition or environment " + fingerprint +
                               ": it does not match its fingerprint");
    for (const auto& [fingerprint, path, text] : definitions)
        if (is_whole(fingerprint))
            Statement(*connection_, "INSERT INTO definitions VALUES (?, ?, ?)")
                .bind(fingerprint)
                .bind(path)
                .bind(text)
                .step();

    std::map<std::uint64_t, std::uint64_t> numbers;  // of the trials, which stay without a gap
    for (auto& [sequence, event] : events) {
        const std::string name = event.name();
        const std::uint64_t trial = event.trial;
        const auto known = numbers.find(trial);
        if (event.checksum != event.right_checksum())
            left_out.push_back(name + ": it does not match its checksum");
        else if (event.event != "asked" && known == numbers.end())
            left_out.push_back(name + ": the event that asked for this trial is lost");
        else {
            event.trial = event.event == "asked" ? trials_.size() : known->second;
            try {
                event.apply(trials_);
            } catch (const IoError& error) {
                left_out.push_back(name + ": " + error.what());
                continue;
            }
            if (event.event == "asked") numbers[trial] = event.trial;
            if (const std::string kept = event.environment(); !kept.empty() && !is_whole(kept)) {
                left_out.push_back(name + ": the environment that it started in is lost");
                event.body = started_body("");
            }
            event.sequence = last_sequence_ + 1;
            insert(event);
        }
    }
    transaction.commit();
    connection_.reset();
    for (const auto& [before, now] : numbers)
        if (before != now)
            left_out.push_back("trial " + std::to_string(before) + " is now trial " +
                               std::to_string(now));
    return left_out;
}

SqliteJournal::SqliteJournal(std::unique_ptr<Database> database) : database_(std::move(database)) {}
SqliteJournal::SqliteJournal(SqliteJournal&&) noexcept = default;
SqliteJournal& SqliteJournal::operator=(SqliteJournal&&) noexcept = default;
SqliteJournal::~SqliteJournal() = default;

SqliteJournal SqliteJournal::open(const fs::path& folder, const StudyIdentity& identity,
                                  bool accept_changes,
                                  std::function<void(const std::string&)> say) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        throw IoError("cannot make the study's folder " + folder.string() + ": " + error.message());
    auto database = std::make_unique<Database>(folder / "study.db");
    StudyIdentity kept = identity;
    if (!kept.texts.empty())
        kept.definition[study_texts_path] = fingerprint_of_definition(kept.texts).text();
    database->open(kept, accept_changes, std::move(say));
    return SqliteJournal(std::move(database));
}

fs::path SqliteJournal::file_of(const fs::path& folder_or_file) {
    std::error_code not_there;
    return fs::is_regular_file(folder_or_file, not_there) ? folder_or_file
                                                          : folder_or_file / "study.db";
}

std::map<std::string, std::string> SqliteJournal::definition_of(const fs::path& folder_or_file) {
    Definition result = last_definitions(file_of(folder_or_file)).first;
    result.erase(study_texts_path);
    return result;
}

std::map<std::string, std::string> SqliteJournal::texts_of(const fs::path& folder_or_file) {
    return last_definitions(file_of(folder_or_file)).second;
}

SqliteJournal SqliteJournal::read(const fs::path& folder_or_file) {
    auto database = std::make_unique<Database>(file_of(folder_or_file));
    database->read();
    return SqliteJournal(std::move(database));
}

RescuedJournal SqliteJournal::rescue(const fs::path& folder_or_file) {
    const fs::path damaged = file_of(folder_or_file);
    const fs::path folder = damaged.parent_path();
    RescuedJournal result;
    result.file = folder / (damaged.stem().string() + ".rescued.db");
    check_rescued_place(result.file);
    check_journal_file(damaged);
    if (fs::is_empty(damaged))
        throw IoError("journal " + damaged.string() + " is empty, so nothing of it can be rescued");
    std::optional<OwnFolder> place;
    bool opened = false;
    const auto make = [&](SqliteConnection* connection) {
        Database fresh(place.emplace(folder / "study.rescued-").path() / "study.db", result.file);
        result.left_out = fresh.make_from(connection, damaged, result.stopped_by);
        result.trials = std::move(fresh.trials_);
    };
    const auto read = [&](SqliteConnection& connection) {
        connection.being_rescued();
        const bool real = has_real_tables(connection);
        opened = true;
        if (journal_version(connection, damaged) == 0 || !real)
            throw IoError(
                "journal " + damaged.string() +
                ": its tables are not those of a journal, so nothing of it can be rescued");
        result.stopped_by.clear();
        make(&connection);
    };
    const std::size_t missing = missing_at_end(damaged);
    try {
        read_snapshot(damaged, read);
    } catch (const IoError& error) {
        if (opened) throw;
        result.stopped_by = error.what();
        make(nullptr);
        if (result.trials.empty()) throw;
    }
    if (missing > 0)
        result.stopped_by = "the file lacks its last " + std::to_string(missing) + " bytes" +
                            (result.stopped_by.empty() ? "" : "; " + result.stopped_by);
    std::error_code error;
    fs::rename(present(place).path() / "study.db", result.file, error);
    if (error) throw IoError("cannot write " + result.file.string() + ": " + error.message());
    return result;
}

void SqliteJournal::asked(const Trial& trial) {
    check_asked(database_->trials_, trial);
    database_->append(trial.id, "asked", trial.asked_at, asked_body(trial));
    database_->trials_.push_back(trial);
    database_->trials_.back().unended_starts = 0;
}

void SqliteJournal::started(std::uint64_t id, double at) {
    check_open(database_->trials_, id);
    const Definition environment =
        database_->environment_now_ ? database_->environment_now_() : Definition{};
    database_->append_start(id, at, environment);
    Trial& trial = database_->trials_[id];
    trial.started_at = at;
    ++trial.unended_starts;
    trial.environment =
        environment.empty()
            ? nullptr
            : database_->environments_.at(fingerprint_of_definition(environment).text());
}

void SqliteJournal::interrupted(std::uint64_t id, double at) {
    check_started(database_->trials_, id);
    database_->append(id, "started", at, interrupted_body());
    --database_->trials_[id].unended_starts;
}

void SqliteJournal::told(std::uint64_t id, const SharedOutcome& outcome, double at) {
    check_told(database_->trials_, id, outcome);
    database_->append(id, "told", at, told_body(*outcome));
    database_->trials_[id].outcome = outcome;
    database_->trials_[id].told_at = at;
}

std::vector<Trial> SqliteJournal::trials() const { return database_->trials_; }

void SqliteJournal::keep_environment(std::function<std::map<std::string, std::string>()> now) {
    database_->environment_now_ = std::move(now);
}

bool SqliteJournal::in_place() const { return database_->displaced().empty(); }

std::string SqliteJournal::study_name() const { return database_->name_; }

std::map<std::string, std::string> SqliteJournal::definition() const {
    Definition result = database_->definition_;
    result.erase(study_texts_path);
    return result;
}

std::string SqliteJournal::changes_in(const std::map<std::string, std::string>& definition) const {
    if (database_->definition_.empty() && !definition.empty())
        return "\n  what it was is lost: its definition was damaged";
    return changes_between(database_->definition_, definition);
}

}  // namespace servetune
