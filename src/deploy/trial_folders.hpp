// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>

namespace servetune {

/// Makes room for the log of a trial that is about to begin: while the folders of the trials beside `folder` have more
/// than `all_bytes` less `one_bytes` together, the one that is oldest by its number goes. A failed trial's decisive
/// lines are in the journal, so what goes is the rest. Folders whose name is no number are somebody else's. What cannot
/// be removed stays. `known`: the bytes of folders looked at before; their trials are over, so that they are not looked
/// at again.
void keep_trials_within(const std::filesystem::path& folder, std::size_t all_bytes, std::size_t one_bytes,
                        std::map<std::int64_t, std::size_t>& known);

}  // namespace servetune
