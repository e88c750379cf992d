// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace servetune {

/// The text files that a study is made of: absolute path -> text, and under `study_of_texts` the
/// path of the study itself.
using Texts = std::map<std::string, std::string>;
inline const std::string study_of_texts = "study";

/// A journal keeps the texts of its study. They are read under the journal's path, as if it were
/// the root of a file system: `/runs/study.db/home/me/study.yaml`. No such file exists on a disk.
enum class UnsetVariable {
    stays,  ///< `${NAME}` is shown as it is: the study is only read
    fails,  ///< as in a file: the study is to measure
};

/// Makes the texts of a journal readable in this process, and returns the path of its study.
/// `journal`: an absolute path. Safe from several threads.
std::filesystem::path keep_texts(const std::filesystem::path& journal, Texts texts,
                                 UnsetVariable unset);

/// Whether `file` stands below a journal, and variables that are not set stay in its text.
[[nodiscard]] bool keeps_unset_variables(const std::filesystem::path& file);
/// Whether `file` stands below a journal.
[[nodiscard]] bool is_kept_text(const std::filesystem::path& file);

/// The text of a file on a disk or below a journal. Throws IoError.
[[nodiscard]] std::string read_text(const std::filesystem::path& file);
[[nodiscard]] bool text_exists(const std::filesystem::path& file);
/// The path that a file below a journal had on the disk it came from; any other path as it is.
[[nodiscard]] std::filesystem::path on_disk(const std::filesystem::path& file);
/// `name` as a file in `folder` calls it: absolute paths stay below the journal of `folder`.
[[nodiscard]] std::filesystem::path beside(const std::filesystem::path& folder,
                                           const std::filesystem::path& name);

/// Notes each text that this thread reads while it lives, but the facts below `shipped` (engines,
/// models, workloads and so on), which each installation has, and texts over 1 MiB. Several may
/// live at once, one within the other.
class NoteTexts {
public:
    NoteTexts(Texts& into, std::filesystem::path shipped);
    ~NoteTexts();
    NoteTexts(const NoteTexts&) = delete;
    NoteTexts& operator=(const NoteTexts&) = delete;

private:
    friend std::string read_text(const std::filesystem::path& file);
    void note(const std::string& path, const std::string& text) const;

    Texts& into_;
    std::filesystem::path shipped_;
    NoteTexts* around_;
};

}  // namespace servetune
