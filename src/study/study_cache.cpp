// SPDX-License-Identifier: Apache-2.0
#include "study_cache.hpp"

#include "base/files.hpp"
#include "journal_schema.hpp"
#include "journal_snapshot.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

namespace servetune {
namespace {

namespace fs = std::filesystem;

constexpr const char* journal_ending = ".db";

/// Results of the search in a journal; 0 where it cannot be read.
std::size_t results_in(const fs::path& file) {
    std::error_code unknown;
    if (!fs::exists(file, unknown)) return 0;
    try {
        const std::vector<Trial> trials = SqliteJournal::read(file).trials();
        return static_cast<std::size_t>(
            std::count_if(trials.begin(), trials.end(),
                          [](const Trial& trial) { return trial.told() && trial.of_search(); }));
    } catch (const Error&) {
        return 0;
    }
}

struct FileInCache {
    fs::path path;
    fs::file_time_type written;
    std::uintmax_t bytes = 0;
};

/// Regular files of the folder with this ending. Others may remove some meanwhile.
std::vector<FileInCache> files_in_cache(const fs::path& folder, const std::string& ending) {
    std::vector<FileInCache> result;
    std::error_code gone;
    for (fs::directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) {
        std::error_code unknown;
        if (at->path().extension() != ending || !at->is_regular_file(unknown)) continue;
        FileInCache one{at->path(), at->last_write_time(unknown), 0};
        if (!unknown) one.bytes = at->file_size(unknown);
        if (!unknown) result.push_back(std::move(one));
    }
    return result;
}

}  // namespace

std::map<std::string, std::string> what_is_asked(std::map<std::string, std::string> definition) {
    std::erase_if(definition, [](const auto& entry) {
        const std::string& path = entry.first;
        return path == "study" || path == "suggestions" || path.starts_with("knowledge[") ||
               path == machine_found_path || is_never_compared(path);
    });
    return definition;
}

fs::path StudyCache::users() {
    const fs::path folder = cache_folder();
    return folder.empty() ? folder : folder / "studies";
}

bool StudyCache::empty() const {
    return folder_.empty() || files_in_cache(folder_, journal_ending).empty();
}

std::vector<CachedStudy> StudyCache::studies(
    const std::function<void(const std::string&)>& say) const {
    std::vector<CachedStudy> result;
    if (folder_.empty()) return result;
    for (const FileInCache& file : files_in_cache(folder_, journal_ending)) try {
            result.push_back({file.path, SqliteJournal::definition_of(file.path)});
        } catch (const IoError& error) {
            std::error_code unknown;
            if (fs::exists(file.path, unknown))
                say(std::string("the cache's ") + error.what() + "; it is left out, remove it");
        }
    return result;
}

void StudyCache::make_folder() const {
    std::error_code error;
    if (!fs::create_directories(folder_, error) && !error) return;
    if (!error) fs::permissions(folder_, fs::perms::owner_all, error);
    if (error) throw IoError("cannot make the folder " + folder_.string() + ": " + error.message());
}

std::string StudyCache::keep(const fs::path& study) const {
    if (folder_.empty())
        throw IoError("none of SERVETUNE_CACHE, XDG_CACHE_HOME and HOME names a folder for it");
    make_folder();
    const Definition definition = SqliteJournal::definition_of(study);
    Definition key = what_is_asked(definition);
    for (const auto& [path, text] : definition)
        if (path.starts_with(profile_paths)) key[path] = text;
    const fs::path file = folder_ / (fingerprint_of_definition(key).text() + journal_ending);
    const std::size_t before = results_in(file);
    const std::size_t now = results_in(study);
    if (before > 2 * now)
        return "not kept for later runs: " + file.string() + " has " + std::to_string(before) +
               " results of this study, this run " + std::to_string(now);
    std::error_code unknown;
    std::string replaced;
    if (before > 0)
        replaced = ", in place of an earlier run's " + std::to_string(before) +
                   (before == 1 ? " result" : " results");
    else if (fs::exists(file, unknown)) replaced = ", in place of a file that cannot be read";
    struct stat folder {};
    constexpr mode_t reads_and_writes = 0666;
    copy_journal(study, file,
                 ::stat(folder_.c_str(), &folder) == 0 ? folder.st_mode & reads_and_writes : 0600);
    drop_oldest(file);
    return "kept for later runs" + replaced + ": " + file.string();
}

void StudyCache::drop_oldest(const fs::path& kept) const {
    std::error_code ignored;
    const auto now = fs::file_time_type::clock::now();
    constexpr std::chrono::hours longest_copy{1};  // an older part is of a process that was killed
    for (const FileInCache& part : files_in_cache(folder_, ".part"))
        if (now - part.written > longest_copy) fs::remove(part.path, ignored);
    std::vector<FileInCache> files = files_in_cache(folder_, journal_ending);
    std::sort(files.begin(), files.end(),
              [](const FileInCache& a, const FileInCache& b) { return a.written > b.written; });
    std::size_t count = 0;
    std::uintmax_t bytes = 0;
    for (const FileInCache& file : files) {
        ++count;
        bytes += file.bytes;
        if ((count > limits_.files || bytes > limits_.bytes) && file.path != kept)
            fs::remove(file.path, ignored);
    }
}

}  // namespace servetune
