// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace servetune {

/// What a definition asks and how it measures, without names, the machine, what was known before
/// and what is never compared: two studies with the same are the same study.
[[nodiscard]] std::map<std::string, std::string> what_is_asked(
    std::map<std::string, std::string> definition);

/// A study that a cache holds.
struct CachedStudy {
    std::filesystem::path file;                     ///< its journal
    std::map<std::string, std::string> definition;  ///< SqliteJournal::definition_of
};

/// A folder with the journals of finished studies, one file each: any journal that is put there
/// counts. Several processes may use it at once.
class StudyCache {
public:
    /// The files that are left after one is added; the oldest go first. A journal of 13 trials has
    /// 84 KiB: the bytes are met by logs of failures only.
    struct Limits {
        std::size_t files = 100;
        std::uintmax_t bytes = 1ULL << 30U;
    };

    /// An empty folder holds nothing and keeps nothing.
    explicit StudyCache(std::filesystem::path folder) : StudyCache(std::move(folder), Limits{}) {}
    StudyCache(std::filesystem::path folder, Limits limits)
        : folder_(std::move(folder)), limits_(limits) {}
    /// `studies` in the user's cache (base/cache_folder.hpp); empty where there is none.
    static std::filesystem::path users();

    /// Whether it holds no file that may be a journal.
    [[nodiscard]] bool empty() const;
    /// All that it holds. `say` gets a line for each file that cannot be read.
    [[nodiscard]] std::vector<CachedStudy> studies(
        const std::function<void(const std::string&)>& say) const;

    /// Copies a study's journal into the folder, which is made (for the user alone) if it is not
    /// there; the file gets the folder's rights. It replaces that of an earlier run of the same
    /// study on the same machine, model and engine, unless that one has more than twice as many
    /// results: a short run does not take the place of a long one. Returns what was done, a line
    /// for a person. Throws IoError.
    std::string keep(const std::filesystem::path& study) const;

private:
    void make_folder() const;
    void drop_oldest(const std::filesystem::path& kept) const;

    std::filesystem::path folder_;
    Limits limits_;
};

}  // namespace servetune
