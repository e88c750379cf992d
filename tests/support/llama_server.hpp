// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/test.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace servetune::test {

/// The real llama-server: `$SERVETUNE_LLAMA_SERVER`, else where scripts/get-llama-server puts it.
/// Empty, and said so (ctest looks for this line to call the test skipped), when there is none.
inline std::string llama_server() {
    const char* given = std::getenv("SERVETUNE_LLAMA_SERVER");
    const std::filesystem::path file =
        given != nullptr ? std::filesystem::path(given) : std::filesystem::path(SERVETUNE_SOURCE) / "build/llama/llama-server";
    std::error_code error;
    if (std::filesystem::exists(file, error)) return file.string();
    WARN("skipped: there is no llama-server at " << file.string() << "; scripts/get-llama-server fetches one");
    return {};
}

}  // namespace servetune::test
