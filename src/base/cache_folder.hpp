// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>

namespace servetune {

/// The user's folder for what may be lost: `$SERVETUNE_CACHE`, else `$XDG_CACHE_HOME/servetune`,
/// else `~/.cache/servetune`. Empty if there is none of them.
inline std::filesystem::path cache_folder() {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
        return std::filesystem::path(value == nullptr ? "" : value);
    };
    if (const auto own = variable("SERVETUNE_CACHE"); !own.empty())
        return std::filesystem::absolute(own);
    // XDG Base Directory Specification 0.8: a relative path is to be ignored.
    if (const auto caches = variable("XDG_CACHE_HOME"); caches.is_absolute())
        return caches / "servetune";
    const auto home = variable("HOME");
    return home.is_absolute() ? home / ".cache/servetune" : std::filesystem::path();
}

}  // namespace servetune
