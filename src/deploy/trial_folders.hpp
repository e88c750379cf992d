// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

namespace servetune {

/// The folders of a study's trials, for all evaluators that measure it at once.
class TrialFolders {
public:
    /// `folder` is in use from now on. Makes room for the log of its trial: while the folders of
    /// other trials have more than `all_bytes` less `one_bytes` together, the one that is oldest by
    /// its number goes, unless it is in use. A failed trial's decisive lines are in the journal, so
    /// what goes is the rest. Folders whose name is no number are somebody else's. What cannot be
    /// removed stays.
    void begin(const std::filesystem::path& folder, std::size_t all_bytes, std::size_t one_bytes);
    /// The trial in `folder` is over.
    void end(const std::filesystem::path& folder);

private:
    std::mutex mutex_{};
    std::map<std::int64_t, std::size_t>
        bytes_{};  ///< of trials that are over: they are not looked at again
    std::set<std::filesystem::path> in_use_{};
};

}  // namespace servetune
