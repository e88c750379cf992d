// SPDX-License-Identifier: Apache-2.0
#include "journal_definition.hpp"

#include "journal_schema.hpp"
#include "journal_snapshot.hpp"
#include "servetune/error.hpp"

#include <algorithm>

namespace servetune {

Fingerprint fingerprint_of_definition(const Definition& definition) {
    std::string bytes;
    for (const auto& [path, text] : definition)
        bytes +=
            std::to_string(path.size()) + ":" + path + std::to_string(text.size()) + ":" + text;
    return fingerprint_of(bytes);
}

bool is_never_compared(const std::string& path) {
    return path == machine_devices_path || path == study_texts_path || path == earlier_study_path ||
           path.starts_with(profile_paths);
}

std::string changes_between(const Definition& before, const Definition& after) {
    std::string changes;
    const auto later = [](const std::string& path) { return path.starts_with(of_later_versions); };
    const bool earlier_version = std::none_of(
        before.begin(), before.end(), [&](const auto& entry) { return later(entry.first); });
    const auto never_new = [](const std::string& path) {
        return path == machine_found_path || is_never_compared(path);
    };
    for (const auto& [path, text] : before) {
        const auto now = after.find(path);
        if (is_never_compared(path) || (path == machine_found_path && now == after.end())) continue;
        if (now == after.end()) changes += "\n  " + path + ": was '" + text + "', is gone";
        else if (now->second != text)
            changes += "\n  " + path + ": was '" + text + "', is '" + now->second + "'";
    }
    for (const auto& [path, text] : after)
        if (!before.contains(path) && !(earlier_version && later(path)) && !never_new(path))
            changes += "\n  " + path + ": is new: '" + text + "'";
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
