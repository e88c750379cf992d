// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/sqlite_journal.hpp"

#include <algorithm>
#include <map>
#include <string>

namespace servetune {

/// path -> text (StudySetup::definition), or name -> text of an environment.
using Definition = std::map<std::string, std::string>;

inline Fingerprint fingerprint_of_definition(const Definition& definition) {
    std::string bytes;
    for (const auto& [path, text] : definition)
        bytes += std::to_string(path.size()) + ":" + path + std::to_string(text.size()) + ":" + text;
    return fingerprint_of(bytes);
}

/// A line each after a line break; empty: nothing that counts differs.
inline std::string changes_between(const Definition& before, const Definition& after) {
    std::string changes;
    const auto later = [](const std::string& path) { return path.starts_with(of_later_versions); };
    const bool earlier_version = std::none_of(before.begin(), before.end(), [&](const auto& entry) { return later(entry.first); });
    const auto of_machine = [](const std::string& path) { return path == machine_devices_path || path == machine_found_path; };
    for (const auto& [path, text] : before) {
        const auto now = after.find(path);
        if (path == machine_devices_path || (path == machine_found_path && now == after.end())) continue;
        if (now == after.end()) changes += "\n  " + path + ": was '" + text + "', is gone";
        else if (now->second != text) changes += "\n  " + path + ": was '" + text + "', is '" + now->second + "'";
    }
    for (const auto& [path, text] : after)
        if (!before.contains(path) && !(earlier_version && later(path)) && !of_machine(path))
            changes += "\n  " + path + ": is new: '" + text + "'";
    return changes;
}

}  // namespace servetune
