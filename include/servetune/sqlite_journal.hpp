// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/journal.hpp"

#include <filesystem>
#include <functional>

namespace servetune {

/// How paths of a definition begin that say what the study's files say.
inline const std::string file_paths = "file.";

/// Paths of a definition: the machine that the study's engines start on, in words and in full
/// (`json_of` of FoundDevices). The first is compared where both definitions have it, the second
/// never: another device of the same kind is the same machine.
inline const std::string machine_found_path = "machine.found";
inline const std::string machine_devices_path = "machine.devices";

/// Path of a definition in a journal: the fingerprint of the study's texts, never compared.
inline const std::string study_texts_path = "study.texts";

/// How paths of a definition begin that say of which case its results are (`profile.machine`,
/// `profile.model`, `profile.engine`, `profile.version`), never compared.
inline const std::string profile_paths = "profile.";

/// What a journal belongs to.
struct StudyIdentity {
    std::string name;
    std::map<std::string, std::string> definition;  ///< StudySetup::definition()
    std::string tool_version;
    /// StudySetup::texts(): the files of the study, from which it can be read where it has none.
    /// Another text is no change of the study: what it comes to is in the definition.
    std::map<std::string, std::string> texts{};

    [[nodiscard]] Fingerprint fingerprint() const;
};

/// What could still be read of a damaged journal.
struct RescuedJournal {
    std::vector<Trial> trials;
    std::filesystem::path file;  ///< a whole journal with exactly these trials
    std::string stopped_by;      ///< the damage that hides all events after it; empty: none does
    /// single events that were damaged, trials that have another number without them
    std::vector<std::string> left_out;
};

/// The journal of a study in `FOLDER/study.db` (SQLite, write-ahead log, one durable transaction
/// per event). The format, and what it promises to other tools, is in
/// docs/reference/journal-format.md. One process writes at a time (a lock that dies with it); any
/// number may read, also those that may not write. Each event has a checksum: damage is an error,
/// never another figure. Not thread safe.
class SqliteJournal : public Journal {
public:
    /// Opens for writing; makes the folder and the journal when they are not there. Throws IoError:
    /// an unwritable folder, another process at work, a file that is no journal, is damaged, or is
    /// of a newer schema. Throws UsageError when the journal belongs to a different definition,
    /// saying what changed, unless `accept_changes`, which records the new one. Each call that
    /// records something throws IoError when the journal's files have been removed, moved or
    /// replaced since, or hold what this class did not make (a trigger, a view). Where another
    /// process holds SQLite's lock each call waits for up to ten minutes; `say` gets a line then.
    static SqliteJournal open(const std::filesystem::path& folder, const StudyIdentity& identity,
                              bool accept_changes = false,
                              std::function<void(const std::string&)> say = {});
    /// What is recorded now, read beside a running writer: a study's folder, or a journal's file
    /// under any name. Changes nothing there and needs no permission to write. Throws IoError.
    static SqliteJournal read(const std::filesystem::path& folder_or_file);
    /// What the study in a journal last ran under, as `definition()` of `read`, without its trials.
    /// Throws IoError.
    static std::map<std::string, std::string> definition_of(
        const std::filesystem::path& folder_or_file);
    /// The texts of that study (StudyIdentity::texts); empty: the journal is of a version that kept
    /// none. Throws IoError.
    static std::map<std::string, std::string> texts_of(const std::filesystem::path& folder_or_file);
    /// The journal that `read` opens.
    static std::filesystem::path file_of(const std::filesystem::path& folder_or_file);

    /// Copies what is whole in a damaged `NAME.db` to `NAME.rescued.db` beside it, which can take
    /// its place. Events in a damaged page are lost, and a trial that a lost event told is
    /// measured again. A definition that does not match its fingerprint, and what others put there,
    /// is left out. An earlier rescued journal is replaced once the new one is whole. Throws
    /// IoError when no event can be read, or the new file cannot be written.
    static RescuedJournal rescue(const std::filesystem::path& folder_or_file);

    SqliteJournal(SqliteJournal&&) noexcept;
    SqliteJournal& operator=(SqliteJournal&&) noexcept;
    ~SqliteJournal() override;

    void asked(const Trial& trial) override;
    void started(std::uint64_t id, double at) override;
    void interrupted(std::uint64_t id, double at) override;
    void told(std::uint64_t id, const SharedOutcome& outcome, double at) override;
    [[nodiscard]] std::vector<Trial> trials() const override;

    /// From now on each trial that starts is kept with what this gives then (Trial::environment).
    /// UTF-8, no secrets.
    void keep_environment(std::function<std::map<std::string, std::string>()> now);

    /// Whether the files that were opened for writing are still where they were.
    [[nodiscard]] bool in_place() const;
    /// Of the study it belongs to.
    [[nodiscard]] std::string study_name() const;
    /// What that study last ran under (StudySetup::definition()).
    [[nodiscard]] std::map<std::string, std::string> definition() const;
    /// How another definition differs from that, a line each after a line break; empty: in nothing.
    [[nodiscard]] std::string changes_in(
        const std::map<std::string, std::string>& definition) const;

    static constexpr int schema_version = 4;

private:
    class Database;
    explicit SqliteJournal(std::unique_ptr<Database> database);
    std::unique_ptr<Database> database_;
};

}  // namespace servetune
