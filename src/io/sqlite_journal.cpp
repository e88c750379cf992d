// SPDX-License-Identifier: Apache-2.0
#include "servetune/io/sqlite_journal.hpp"

#include "servetune/base/error.hpp"
#include "servetune/io/json.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace servetune {
namespace {

namespace fs = std::filesystem;

// "servetun" read as ASCII would not fit 32 bits; these four letters mark the file in its header.
constexpr int application_id = 0x53545545;  // "STUE"

constexpr const char* tables = R"(
CREATE TABLE study (name TEXT NOT NULL, created_by TEXT NOT NULL);
CREATE TABLE definitions (fingerprint TEXT NOT NULL, path TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (fingerprint, path));
CREATE TABLE events (
  sequence INTEGER PRIMARY KEY,
  trial INTEGER NOT NULL,
  event TEXT NOT NULL CHECK (event IN ('asked', 'started', 'told')),
  at REAL NOT NULL,
  body TEXT NOT NULL,
  study_fingerprint TEXT NOT NULL,
  tool_version TEXT NOT NULL);
CREATE UNIQUE INDEX once ON events (trial, event) WHERE event IN ('asked', 'told');
)";

constexpr const char* view = R"(
CREATE VIEW trials AS
  SELECT a.trial AS id, json_extract(a.body, '$.configuration') AS configuration, json_extract(a.body, '$.workload') AS workload,
         json_extract(a.body, '$.seed') AS seed, json_extract(a.body, '$.why') AS why, json_extract(t.body, '$.metrics') AS metrics,
         json_extract(t.body, '$.verdict') AS verdict, json_extract(t.body, '$.findings') AS findings,
         json_extract(t.body, '$.failure') AS failure, json_extract(t.body, '$.message') AS message, a.at AS asked_at,
         (SELECT max(at) FROM events s WHERE s.trial = a.trial AND s.event = 'started') AS started_at, t.at AS told_at
  FROM events a LEFT JOIN events t ON t.trial = a.trial AND t.event = 'told' WHERE a.event = 'asked';
)";

}  // namespace

Fingerprint StudyIdentity::fingerprint() const {
    std::string bytes;
    for (const auto& [path, text] : definition)
        bytes += std::to_string(path.size()) + ":" + path + std::to_string(text.size()) + ":" + text;
    return fingerprint_of(bytes);
}

/// The connection, the lock and what was read: everything that ends with the journal.
namespace {

std::string changes_between(const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& after) {
    std::string changes;
    for (const auto& [path, text] : before) {
        const auto now = after.find(path);
        if (now == after.end()) changes += "\n  " + path + ": was '" + text + "', is gone";
        else if (now->second != text) changes += "\n  " + path + ": was '" + text + "', is '" + now->second + "'";
    }
    for (const auto& [path, text] : after)
        if (!before.contains(path)) changes += "\n  " + path + ": is new: '" + text + "'";
    return changes;
}

}  // namespace

class SqliteJournal::Database {
public:
    explicit Database(fs::path file) : file_(std::move(file)) {}
    ~Database() {
        sqlite3_close_v2(handle_);
        if (lock_ >= 0) ::close(lock_);
    }
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    /// A statement that is finalised with it; `step` is false at the end of the rows.
    class Statement {
    public:
        Statement(Database& database, const char* sql) : database_(database) {
            database.check(sqlite3_prepare_v2(database.handle_, sql, -1, &statement_, nullptr));
        }
        ~Statement() { sqlite3_finalize(statement_); }
        Statement(const Statement&) = delete;
        Statement& operator=(const Statement&) = delete;

        Statement& bind(const std::string& text) {
            database_.check(sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT));
            return *this;
        }
        Statement& bind(std::uint64_t number) {
            database_.check(sqlite3_bind_int64(statement_, ++bound_, static_cast<sqlite3_int64>(number)));
            return *this;
        }
        Statement& bind(double number) {
            database_.check(sqlite3_bind_double(statement_, ++bound_, number));
            return *this;
        }
        bool step() {
            const int code = sqlite3_step(statement_);
            if (code != SQLITE_ROW && code != SQLITE_DONE) database_.check(code);
            return code == SQLITE_ROW;
        }
        [[nodiscard]] std::string text(int column) const {
            const auto* bytes = sqlite3_column_text(statement_, column);
            return bytes == nullptr ? ""
                                    : std::string(reinterpret_cast<const char*>(bytes),
                                                  static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
        }
        [[nodiscard]] std::uint64_t integer(int column) const {
            return static_cast<std::uint64_t>(sqlite3_column_int64(statement_, column));
        }
        [[nodiscard]] double real(int column) const { return sqlite3_column_double(statement_, column); }

    private:
        Database& database_;
        sqlite3_stmt* statement_ = nullptr;
        int bound_ = 0;
    };

    void check(int code) const {
        if (code == SQLITE_OK) return;
        throw IoError("journal " + file_.string() + ": " + (handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(code)));
    }
    void run(const char* sql) { check(sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr)); }
    std::uint64_t number(const char* sql) {
        Statement statement(*this, sql);
        return statement.step() ? statement.integer(0) : 0;
    }

    void lock() {
        const fs::path path = file_.parent_path() / "study.lock";
        lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (lock_ < 0) throw IoError("cannot write " + path.string() + ": " + std::generic_category().message(errno));
        if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) {
            // Who has it, for the message below. A full disk is no reason to stop here: what is told will say so.
            const std::string self = std::to_string(::getpid());
            if (::ftruncate(lock_, 0) == 0) (void)!::pwrite(lock_, self.data(), self.size(), 0);
            return;
        }
        std::array<char, 32> holder{};
        const ssize_t got = ::pread(lock_, holder.data(), holder.size() - 1, 0);
        throw IoError("another process is running this study (" + (got > 0 ? "process " + std::string(holder.data()) : "it") + " holds " +
                      path.string() + "); wait for it, or choose another --directory");
    }

    void connect(bool writable) {
        const int flags = writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
        check(sqlite3_open_v2(file_.c_str(), &handle_, flags, nullptr));
        check(sqlite3_busy_timeout(handle_, 5000));
        const std::uint64_t present = number("SELECT count(*) FROM sqlite_master");
        const auto version = static_cast<int>(number("PRAGMA user_version"));
        if (present > 0 && static_cast<int>(number("PRAGMA application_id")) != application_id)
            throw IoError("journal " + file_.string() + ": this is an SQLite file, but not a journal of servetune");
        if (version > schema_version)
            throw IoError("journal " + file_.string() + " has schema version " + std::to_string(version) + ", this program knows up to " +
                          std::to_string(schema_version) + "; use the newer program that wrote it");
        is_new_ = present == 0;
        version_ = is_new_ ? schema_version : version;
        if (is_new_ && !writable) throw IoError("journal " + file_.string() + " is empty");
        if (!writable) return;
        run("PRAGMA journal_mode = WAL");
        run("PRAGMA synchronous = FULL");  // a told trial survives a power cut, not only the death of the process
    }

    void make_tables() {
        run(tables);
        run(view);
        run(("PRAGMA application_id = " + std::to_string(application_id)).c_str());
        run(("PRAGMA user_version = " + std::to_string(schema_version)).c_str());
    }

    /// To the newest schema, whole or not at all. Reading needs none of it: the events are the same in every version so far.
    void migrate() {
        if (version_ == schema_version) return;
        run("BEGIN IMMEDIATE");
        if (version_ < 2) {  // 2: the view has seed and findings
            run("DROP VIEW trials");
            run(view);
        }
        run(("PRAGMA user_version = " + std::to_string(schema_version)).c_str());
        run("COMMIT");
        version_ = schema_version;
    }

    void create(const StudyIdentity& identity) {
        run("BEGIN IMMEDIATE");
        make_tables();
        Statement(*this, "INSERT INTO study VALUES (?, ?)").bind(identity.name).bind(identity.tool_version).step();
        insert_definition(identity);
        run("COMMIT");
    }

    void insert_definition(const StudyIdentity& identity) {
        for (const auto& [path, text] : identity.definition)
            Statement(*this, "INSERT OR REPLACE INTO definitions VALUES (?, ?, ?)")
                .bind(identity.fingerprint().text())
                .bind(path)
                .bind(text)
                .step();
    }

    /// The definition of the last event, or the first one when there is no event: the one the study last ran under.
    std::string last_fingerprint() {
        Statement statement(*this,
                            "SELECT coalesce((SELECT study_fingerprint FROM events ORDER BY sequence DESC LIMIT 1), (SELECT fingerprint "
                            "FROM definitions ORDER BY rowid LIMIT 1), '')");
        return statement.step() ? statement.text(0) : "";
    }

    std::map<std::string, std::string> definition(const std::string& fingerprint) {
        std::map<std::string, std::string> result;
        Statement statement(*this, "SELECT path, text FROM definitions WHERE fingerprint = ?");
        statement.bind(fingerprint);
        while (statement.step()) result[statement.text(0)] = statement.text(1);
        return result;
    }

    void compare_definition(const StudyIdentity& identity, bool accept_changes) {
        const std::string last = last_fingerprint();
        if (last == identity.fingerprint().text()) return;
        const std::string changes = changes_between(definition(last), identity.definition);
        if (!accept_changes)
            throw UsageError("the study has changed since " + file_.string() + " was written:" + changes +
                             "\ngo on with --accept-changes (trials that still fit count), or choose another --directory");
        run("BEGIN IMMEDIATE");
        insert_definition(identity);
        run("COMMIT");
    }

    void append(std::uint64_t trial, const char* event, double at, const std::string& body) {
        // One statement is one transaction: durable when it returns.
        Statement(*this, "INSERT INTO events (trial, event, at, body, study_fingerprint, tool_version) VALUES (?, ?, ?, ?, ?, ?)")
            .bind(trial)
            .bind(event)
            .bind(at)
            .bind(body)
            .bind(fingerprint_)
            .bind(tool_version_)
            .step();
    }

    /// One event of the file into `trials_`.
    void apply(std::uint64_t id, const std::string& event, double at, const std::string& body) {
        try {
            if (event == "asked") {
                const auto object = nlohmann::json::parse(body);
                Trial trial{id, configuration_from_json(object.at("configuration").dump()), object.at("workload").get<std::string>(),
                            std::stoull(object.at("seed").get<std::string>()), object.at("why").get<std::string>()};
                trial.asked_at = at;
                check_asked(trials_, trial);
                trials_.push_back(std::move(trial));
                return;
            }
            check_open(trials_, id);
            if (event == "started") trials_[id].started_at = at;
            else {
                trials_[id].outcome = outcome_from_json(body);
                trials_[id].told_at = at;
            }
        } catch (const std::exception& error) {
            throw IoError("journal " + file_.string() + ": the '" + event + "' event of trial " + std::to_string(id) +
                          " cannot be read: " + error.what());
        }
    }

    void load() {
        Statement statement(*this, "SELECT trial, event, at, body FROM events ORDER BY sequence");
        while (statement.step()) apply(statement.integer(0), statement.text(1), statement.real(2), statement.text(3));
    }

    /// Copies rows of `damaged` for as long as they can be read and make sense; what stopped it, or nothing.
    std::string copy_readable(Database& damaged) {
        const auto as_far_as_possible = [](const auto& action) -> std::string {
            try {
                action();
                return "";
            } catch (const Error& error) {
                return error.what();
            }
        };
        run("BEGIN IMMEDIATE");
        make_tables();
        std::string stopped = as_far_as_possible([&] {
            Statement study(damaged, "SELECT name, created_by FROM study");
            if (study.step()) Statement(*this, "INSERT INTO study VALUES (?, ?)").bind(study.text(0)).bind(study.text(1)).step();
        });
        stopped += as_far_as_possible([&] {
            Statement rows(damaged, "SELECT fingerprint, path, text FROM definitions ORDER BY rowid");
            while (rows.step())
                Statement(*this, "INSERT INTO definitions VALUES (?, ?, ?)")
                    .bind(rows.text(0))
                    .bind(rows.text(1))
                    .bind(rows.text(2))
                    .step();
        });
        stopped += as_far_as_possible([&] {
            Statement rows(damaged, "SELECT trial, event, at, body, study_fingerprint, tool_version FROM events ORDER BY sequence");
            while (rows.step()) {
                apply(rows.integer(0), rows.text(1), rows.real(2), rows.text(3));
                fingerprint_ = rows.text(4);
                tool_version_ = rows.text(5);
                append(rows.integer(0), rows.text(1).c_str(), rows.real(2), rows.text(3));
            }
        });
        run("COMMIT");
        return stopped;
    }

    bool is_new_ = false;
    std::string fingerprint_;
    std::string tool_version_;
    std::vector<Trial> trials_;

private:
    fs::path file_;
    sqlite3* handle_ = nullptr;
    int lock_ = -1;
    int version_ = 0;
};

SqliteJournal::SqliteJournal(std::unique_ptr<Database> database) : database_(std::move(database)) {}
SqliteJournal::SqliteJournal(SqliteJournal&&) noexcept = default;
SqliteJournal& SqliteJournal::operator=(SqliteJournal&&) noexcept = default;
SqliteJournal::~SqliteJournal() = default;

SqliteJournal SqliteJournal::open(const fs::path& folder, const StudyIdentity& identity, bool accept_changes) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw IoError("cannot make the study's folder " + folder.string() + ": " + error.message());
    auto database = std::make_unique<Database>(folder / "study.db");
    database->lock();
    database->connect(true);
    if (database->is_new_) database->create(identity);
    else {
        database->compare_definition(identity, accept_changes);
        database->migrate();
    }
    database->fingerprint_ = identity.fingerprint().text();
    database->tool_version_ = identity.tool_version;
    database->load();
    return SqliteJournal(std::move(database));
}

fs::path SqliteJournal::file_of(const fs::path& folder_or_file) {
    std::error_code not_there;
    return fs::is_regular_file(folder_or_file, not_there) ? folder_or_file : folder_or_file / "study.db";
}

SqliteJournal SqliteJournal::read(const fs::path& folder_or_file) {
    const fs::path file = file_of(folder_or_file);
    std::error_code error;
    if (!fs::exists(file, error)) throw IoError("there is no journal " + file.string() + "; has the study been run?");
    auto database = std::make_unique<Database>(file);
    database->connect(false);
    database->load();
    return SqliteJournal(std::move(database));
}

RescuedJournal SqliteJournal::rescue(const fs::path& folder) {
    Database damaged(folder / "study.db");
    damaged.connect(false);
    const fs::path file = folder / "study.rescued.db";
    for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file.string() + suffix);
    Database fresh(file);
    fresh.connect(true);
    std::string stopped_by = fresh.copy_readable(damaged);
    return {fresh.trials_, file, std::move(stopped_by)};
}

void SqliteJournal::asked(const Trial& trial) {
    check_asked(database_->trials_, trial);
    nlohmann::ordered_json body;
    body["configuration"] = nlohmann::ordered_json::parse(json_of(trial.configuration));
    body["fingerprint"] = trial.configuration.fingerprint().text();
    body["workload"] = trial.workload;
    body["seed"] = std::to_string(trial.seed);  // 64 bits do not survive as a JSON number everywhere
    body["why"] = trial.why;
    database_->append(trial.id, "asked", trial.asked_at, body.dump());
    database_->trials_.push_back(trial);
}

void SqliteJournal::started(std::uint64_t id, double at) {
    check_open(database_->trials_, id);
    database_->append(id, "started", at, "{}");
    database_->trials_[id].started_at = at;
}

void SqliteJournal::told(std::uint64_t id, const ToldOutcome& outcome, double at) {
    check_open(database_->trials_, id);
    database_->append(id, "told", at, json_of(*outcome));
    database_->trials_[id].outcome = outcome;
    database_->trials_[id].told_at = at;
}

std::vector<Trial> SqliteJournal::trials() const { return database_->trials_; }

std::string SqliteJournal::study_name() const {
    Database::Statement statement(*database_, "SELECT name FROM study");
    return statement.step() ? statement.text(0) : "";
}

std::map<std::string, std::string> SqliteJournal::definition() const { return database_->definition(database_->last_fingerprint()); }

std::string SqliteJournal::changes_in(const std::map<std::string, std::string>& definition) const {
    return changes_between(this->definition(), definition);
}

}  // namespace servetune
