// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

#include <mutex>

namespace servetune {

/// The text files that a study is made of, as they were when they were first read: on the disk, or
/// those that its journal keeps. Facts that ship (engines, models, workloads and so on) are read
/// from the disk and not kept, as each installation has them; nor are texts over 1 MiB.
class StudySnapshot {
public:
    /// `shipped`: the folder of the facts that ship.
    StudySnapshot(StudyText text, const std::filesystem::path& shipped);

    /// Throws IoError.
    [[nodiscard]] std::string read(const std::filesystem::path& file);
    [[nodiscard]] bool has(const std::filesystem::path& file) const;
    /// Whether it is neither below the folder (links followed) of the variable SERVETUNE_ONLY_IN,
    /// nor shipped: `autotune mcp` holds the studies of its agents to one folder.
    [[nodiscard]] bool is_outside(const std::filesystem::path& file) const;
    /// Absolute path -> text of what was read, and under `study_of_texts` the study's path.
    [[nodiscard]] std::map<std::string, std::string> texts() const;
    /// A file in messages: one that a journal keeps stands below the journal.
    [[nodiscard]] std::string name_of(const std::string& file) const;
    /// Whether `${NAME}` without a value is shown as it is.
    [[nodiscard]] bool shows_unset_variables() const { return text_.shows_unset_variables; }

private:
    [[nodiscard]] bool ships(const std::string& path) const;

    StudyText text_;
    std::string shipped_;
    mutable std::mutex mutex_{};
    std::map<std::string, std::string> texts_;
};

using Snapshot = std::shared_ptr<StudySnapshot>;

/// The text of a file of a study; without a snapshot of the disk. Throws IoError.
[[nodiscard]] std::string read_text(const std::filesystem::path& file, const Snapshot& snapshot);
[[nodiscard]] bool text_exists(const std::filesystem::path& file, const Snapshot& snapshot);

}  // namespace servetune
