// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace servetune::test {

/// The studies of published measurements that ship, in the source.
inline const std::filesystem::path published =
    std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces/published";

}  // namespace servetune::test
