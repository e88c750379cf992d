// SPDX-License-Identifier: Apache-2.0
#include "journal_schema.hpp"
#include "base/nearest.hpp"
#include "journal_snapshot.hpp"

#include "base/text.hpp"

#include <cctype>
#include <set>
#include <system_error>

namespace servetune {

const char* const journal_tables = R"(
CREATE TABLE study (name TEXT NOT NULL, created_by TEXT NOT NULL);
CREATE TABLE definitions (fingerprint TEXT NOT NULL, path TEXT NOT NULL, text TEXT NOT NULL, PRIMARY KEY (fingerprint, path));
CREATE TABLE events (
  sequence INTEGER PRIMARY KEY,
  trial INTEGER NOT NULL,
  event TEXT NOT NULL CHECK (event IN ('asked', 'started', 'told')),
  at REAL NOT NULL,
  body TEXT NOT NULL,
  study_fingerprint TEXT NOT NULL,
  tool_version TEXT NOT NULL,
  checksum TEXT NOT NULL);
CREATE UNIQUE INDEX once ON events (trial, event) WHERE event IN ('asked', 'told');
)";

const char* const journal_view = R"(
CREATE VIEW trials AS
  SELECT a.trial AS id, json_extract(a.body, '$.configuration') AS configuration, json_extract(a.body, '$.workload') AS workload,
         json_extract(a.body, '$.seed') AS seed, json_extract(a.body, '$.why') AS why, json_extract(t.body, '$.metrics') AS metrics,
         json_extract(t.body, '$.verdict') AS verdict, json_extract(t.body, '$.findings') AS findings,
         json_extract(t.body, '$.failure') AS failure, json_extract(t.body, '$.message') AS message, a.at AS asked_at,
         (SELECT max(at) FROM events s WHERE s.trial = a.trial AND s.event = 'started') AS started_at, t.at AS told_at
  FROM events a LEFT JOIN events t ON t.trial = a.trial AND t.event = 'told' WHERE a.event = 'asked';
)";

namespace {

using Statement = SqliteConnection::Statement;

/// Without blanks: SQLite keeps the text as it was written.
std::string squeezed(std::string_view text) {
    std::string result;
    std::copy_if(text.begin(), text.end(), std::back_inserter(result),
                 [](char c) { return std::isspace(static_cast<unsigned char>(c)) == 0; });
    return result;
}

/// (kind, name) -> the texts that it may have.
using Known = std::map<std::pair<std::string, std::string>, std::set<std::string>>;

Known known_things() {
    Known result{{{"index", "sqlite_autoindex_definitions_1"}, {""}}};
    std::string_view rest = journal_tables;
    const auto next = [&] {
        const auto end = rest.find(';');
        std::string text = squeezed(rest.substr(0, end));
        rest.remove_prefix(end + 1);
        return text;
    };
    result[{"table", "study"}] = {next()};
    result[{"table", "definitions"}] = {next()};
    result[{"table", "events"}] = {next()};
    result[{"index", "once"}] = {next()};
    rest = journal_view;
    result[{"view", "trials"}] = {next()};
    return result;
}

}  // namespace

std::vector<std::string> foreign_in_journal(SqliteConnection& connection) {
    static const Known known = known_things();
    std::vector<std::string> result;
    Statement rows(connection, "SELECT type, name, sql FROM sqlite_master");
    while (rows.step()) {
        const std::string kind = rows.text(0);
        const std::string name = rows.text(1);
        if (kind == "table" && (name == "sqlite_stat1" || name == "sqlite_stat4"))
            continue;  // of ANALYZE
        const auto found = known.find({kind, name});
        if (found != known.end() && found->second.contains(squeezed(rows.text(2)))) continue;
        result.push_back((found == known.end() ? "the " : "another ") + kind + " '" +
                         name.substr(0, 60) + "'");
    }
    return result;
}

bool has_real_tables(SqliteConnection& connection) {
    return connection.number(
               "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE "
               "TABLE%' AND name IN ('study', 'definitions', 'events')") == 3;  // no virtual one
}

void check_own_journal(SqliteConnection& connection, const std::filesystem::path& file) {
    const std::vector<std::string> foreign = foreign_in_journal(connection);
    if (foreign.empty()) return;
    throw IoError(
        "journal " + file.string() + " holds what servetune did not make: " + listed(foreign, 5) +
        "; drop it there, or let 'autotune status STUDY --rescue' make a journal without it");
}

int journal_version(SqliteConnection& connection, const std::filesystem::path& file) {
    if (connection.number("SELECT count(*) FROM sqlite_master") == 0) return 0;
    if (static_cast<int>(connection.number("PRAGMA application_id")) != journal_application_id)
        throw IoError("journal " + file.string() +
                      ": this is an SQLite file, but not a journal of servetune");
    const auto version = static_cast<int>(connection.number("PRAGMA user_version"));
    if (version != SqliteJournal::schema_version)
        throw IoError("journal " + file.string() + " has schema version " +
                      std::to_string(version) + ", this program reads version " +
                      std::to_string(SqliteJournal::schema_version) +
                      ": use the program that wrote it, or begin anew in another --directory");
    return version;
}

int checked_journal_version(SqliteConnection& connection, const std::filesystem::path& file) {
    const int version = journal_version(connection, file);
    if (version != 0) check_own_journal(connection, file);
    return version;
}

void check_rescued_place(const std::filesystem::path& file) {
    namespace fs = std::filesystem;
    std::error_code error;
    const fs::file_status there = fs::symlink_status(file, error);
    const auto refuse = [&](const std::string& why) {
        throw IoError(file.string() + " " + why + "; move it away, then rescue again");
    };
    if (fs::exists(there) && !fs::is_regular_file(there)) refuse("is in the way");
    for (const char* suffix : {"-wal", "-journal"})
        if (fs::exists(fs::symlink_status(file.string() + suffix, error)))
            refuse("is in use: there is " + file.string() + suffix);
}

Fingerprint fingerprint_of_definition(const Definition& definition) {
    std::string bytes;
    for (const auto& [path, text] : definition)
        bytes +=
            std::to_string(path.size()) + ":" + path + std::to_string(text.size()) + ":" + text;
    return fingerprint_of(bytes);
}

bool is_never_compared(const std::string& path) {
    return path == machine_devices_path || path == study_texts_path ||
           path.starts_with(profile_paths);
}

std::string changes_between(const Definition& before, const Definition& after) {
    std::string changes;
    const auto add = [&](const std::string& change) { changes += "\n  " + printable_line(change); };
    const auto never_new = [](const std::string& path) {
        return path == machine_found_path || is_never_compared(path);
    };
    const auto is_fingerprint = [](const std::string& text) {
        return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == npos;
    };
    for (const auto& [path, text] : before) {
        const auto now = after.find(path);
        if (is_never_compared(path) || (path == machine_found_path && now == after.end())) continue;
        if (now == after.end()) add(path + ": was '" + text + "', is gone");
        else if (now->second != text)
            add(path + (is_fingerprint(text) ? std::string(": has changed")
                                             : ": was '" + text + "', is '" + now->second + "'"));
    }
    for (const auto& [path, text] : after)
        if (!before.contains(path) && !never_new(path)) add(path + ": is new: '" + text + "'");
    return changes;
}

std::string last_fingerprint(SqliteConnection& connection) {
    return connection.text(
        "SELECT coalesce((SELECT study_fingerprint FROM events ORDER BY sequence DESC LIMIT 1), "
        "(SELECT fingerprint "
        "FROM definitions ORDER BY rowid LIMIT 1), '')");
}

Definition definition_named(SqliteConnection& connection, const std::string& fingerprint) {
    Definition result;
    SqliteConnection::Statement rows(connection,
                                     "SELECT path, text FROM definitions WHERE fingerprint = ?");
    rows.bind(fingerprint);
    while (rows.step()) result[rows.text(0)] = rows.text(1);
    return result;
}

std::pair<Definition, Definition> last_definitions(const std::filesystem::path& file) {
    std::pair<Definition, Definition> result;
    read_snapshot(file, [&](SqliteConnection& connection) {
        if (checked_journal_version(connection, file) == 0)
            throw IoError("journal " + file.string() + " is empty");
        const auto whole = [&](const std::string& fingerprint, const char* what) {
            Definition found = definition_named(connection, fingerprint);
            if (!found.empty() && fingerprint_of_definition(found).text() != fingerprint)
                throw IoError("journal " + file.string() + " is damaged: " + what +
                              " not match its fingerprint " + fingerprint);
            return found;
        };
        result.first = whole(last_fingerprint(connection), "the study's definition does");
        if (const auto texts = result.first.find(study_texts_path); texts != result.first.end())
            result.second = whole(texts->second, "the study's texts do");
    });
    return result;
}

}  // namespace servetune
