// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"
#include "support/waiting.hpp"

#include "servetune/detail/deploy/remote_launchers.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

namespace servetune::test {

/// What stands for an engine on Ray is our own program, which a test is not.
inline void put_program_into_path() {
    static const bool once = [] {
        const std::string path = std::filesystem::path(SERVETUNE_PROGRAM).parent_path().string() + ":" + std::getenv("PATH");
        return setenv("PATH", path.c_str(), 1) == 0;
    }();
    REQUIRE(once);
}

inline RayOptions on_ray(const std::string& address, const std::string& token = "") {
    put_program_into_path();
    RayOptions options;
    options.address = address;
    if (!token.empty()) {
        setenv("SERVETUNE_TEST_RAY_TOKEN", token.c_str(), 1);
        options.token_env = "SERVETUNE_TEST_RAY_TOKEN";
    }
    return options;
}

/// Where a job is, once it runs.
inline LaunchedAt placed(const Launcher& launcher, const Launch& launch) {
    LaunchedAt at{"not asked", ""};
    (void)comes_true([&] { return (at = launcher.place(launch)).waits.empty(); });
    return at;
}

/// The client of a launch, as a deployment starts it.
inline ProcessOptions client_of(const Launch& launch) {
    ProcessOptions options;
    options.argv = launch.argv;
    options.told = launch.told;
    options.beats = launch.beats;
    return options;
}

}  // namespace servetune::test
