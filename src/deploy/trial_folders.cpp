// SPDX-License-Identifier: Apache-2.0
#include "trial_folders.hpp"

#include "servetune/value.hpp"

#include <system_error>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;

std::size_t bytes_in(const fs::path& folder) {
    std::size_t result = 0;
    std::error_code gone;
    for (fs::recursive_directory_iterator at(folder, gone), end; !gone && at != end;
         at.increment(gone)) {
        std::error_code unreadable;
        if (at->is_regular_file(unreadable)) {
            const auto size = at->file_size(unreadable);
            if (!unreadable) result += size;
        }
    }
    return result;
}

/// Whether it is a trial's, and no other folder with a number for a name. Engines of roles have
/// folders of their own in it.
bool has_trial_log(const fs::path& folder) {
    std::error_code unknown;
    if (fs::exists(folder / "engine.log", unknown) || fs::exists(folder / "command.log", unknown))
        return true;
    for (fs::directory_iterator at(folder, unknown), end; !unknown && at != end;
         at.increment(unknown)) {
        std::error_code unreadable;
        if (fs::exists(at->path() / "engine.log", unreadable)) return true;
    }
    return false;
}

}  // namespace

void TrialFolders::begin(const fs::path& folder, std::size_t all_bytes, std::size_t one_bytes) {
    const std::scoped_lock lock(mutex_);
    in_use_.insert(folder);
    std::map<std::int64_t, std::pair<fs::path, std::size_t>> over;
    std::size_t together = 0;
    std::error_code gone;
    for (fs::directory_iterator at(folder.parent_path(), gone), end; !gone && at != end;
         at.increment(gone)) {
        const auto number = integer_of(at->path().filename().string());
        if (!number || at->path() == folder) continue;
        const bool used = in_use_.contains(at->path());
        const auto* known = entry_in(bytes_, *number);
        const std::size_t bytes = !used && known != nullptr ? *known : bytes_in(at->path());
        together += bytes;
        if (used || !has_trial_log(at->path())) continue;
        bytes_[*number] = bytes;
        over[*number] = {at->path(), bytes};
    }
    const std::size_t room = all_bytes > one_bytes ? all_bytes - one_bytes : 0;
    for (const auto& [number, trial] : over) {
        if (together <= room) return;
        std::error_code stays;
        fs::remove_all(trial.first, stays);
        if (!stays) together -= trial.second;
    }
}

void TrialFolders::end(const fs::path& folder) {
    const std::scoped_lock lock(mutex_);
    in_use_.erase(folder);
}

}  // namespace servetune
