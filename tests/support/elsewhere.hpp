// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/waiting.hpp"

#include "servetune/launcher.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace servetune::test {

/// A launcher that ships, with these settings, each "KEY VALUE".
inline WrappedOptions launching(const std::string& name, const std::vector<std::string>& settings) {
    WrappedOptions result{name, {SERVETUNE_SOURCE "/launchers/" + name}};
    for (const std::string& setting : settings) result.lines.emplace_back("set", setting);
    return result;
}
inline std::shared_ptr<const Launcher> launcher_with(const std::string& name,
                                                     const std::vector<std::string>& settings) {
    return wrapped_launcher(launching(name, settings));
}

/// Where it is, once it runs.
inline LaunchedAt placed(const Launcher& launcher, const Launch& launch) {
    LaunchedAt at{"not asked", ""};
    (void)comes_true([&] { return (at = launcher.place(launch)).waits.empty(); });
    return at;
}

}  // namespace servetune::test
