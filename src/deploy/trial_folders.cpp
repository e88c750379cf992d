// SPDX-License-Identifier: Apache-2.0
#include "trial_folders.hpp"

#include "servetune/space/value.hpp"

#include <system_error>
#include <utility>

namespace servetune {
namespace {

namespace fs = std::filesystem;

std::size_t bytes_in(const fs::path& folder) {
    std::size_t result = 0;
    std::error_code gone;
    for (fs::recursive_directory_iterator at(folder, gone), end; !gone && at != end; at.increment(gone)) {
        std::error_code unreadable;
        if (at->is_regular_file(unreadable)) {
            const auto size = at->file_size(unreadable);
            if (!unreadable) result += size;
        }
    }
    return result;
}

}  // namespace

void keep_trials_within(const fs::path& folder, std::size_t all_bytes, std::size_t one_bytes, std::map<std::int64_t, std::size_t>& known) {
    std::map<std::int64_t, std::pair<fs::path, std::size_t>> trials;
    std::size_t together = 0;
    std::error_code gone;
    for (fs::directory_iterator at(folder.parent_path(), gone), end; !gone && at != end; at.increment(gone)) {
        const auto number = integer_of(at->path().filename().string());
        if (!number || at->path() == folder) continue;
        const auto seen = known.find(*number);
        const std::size_t bytes = seen != known.end() ? seen->second : bytes_in(at->path());
        known[*number] = bytes;
        trials[*number] = {at->path(), bytes};
        together += bytes;
    }
    const std::size_t room = all_bytes > one_bytes ? all_bytes - one_bytes : 0;
    for (const auto& [number, trial] : trials) {
        if (together <= room) return;
        std::error_code stays;
        fs::remove_all(trial.first, stays);
        if (!stays) together -= trial.second;
    }
}

}  // namespace servetune
