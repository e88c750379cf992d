// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/catalogue.hpp"

#include <filesystem>

namespace servetune::test {

/// The search spaces that ship, in the source.
inline const std::filesystem::path search_spaces =
    std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces";
inline const Catalogue shipped_catalogue(search_spaces);

}  // namespace servetune::test
