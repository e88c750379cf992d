// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/deployed_study.hpp"
#include "support/test.hpp"
#include "support/waiting.hpp"

#include "base/files.hpp"

#include "servetune/detail/deploy/remote_launchers.hpp"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace servetune::test {

/// What stands for an engine on Ray is our own program, which a test is not.
inline void put_program_into_path() {
    static const bool once = [] {
        const std::string path = std::filesystem::path(SERVETUNE_PROGRAM).parent_path().string() +
                                 ":" + std::getenv("PATH");
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

/// A study of three configurations in jobs of this Ray. `ports`: 18200-18209. The token is where
/// `on_ray` has put it.
inline std::unique_ptr<DeployedStudy> study_on_ray(const std::string& address,
                                                   const std::string& ports, bool token,
                                                   const std::string& more = "") {
    DeployedStudy::Text text;
    text.deploy =
        "ray: {address: \"" + address + "\", " +
        (token ? "token_env: SERVETUNE_TEST_RAY_TOKEN, " : "") + "ports: " + ports +
        ", bound: 10min}, ready_within: 60s, stop_within: 4s, stall_timeout: 20s, trial_within: "
        "120s, warm_up: 1, environment: "
        "{SIMENGINE_OPTIONS: \"--start-scale 1000 --time-scale 12\", PATH: \"BIN:/usr/bin:/bin\", "
        "SERVETUNE_SEARCH_SPACES: \"" SERVETUNE_SOURCE "/search_spaces\"}" +
        more;
    text.more = "budget: {trials: 8}\n";
    auto study = std::make_unique<DeployedStudy>(text);
    std::string file = read_file(study->folder() / "study.yaml");
    file.replace(file.find("BIN:"), 3, (study->folder() / "bin").string());
    write_file(study->folder() / "study.yaml", file);
    return study;
}

}  // namespace servetune::test
