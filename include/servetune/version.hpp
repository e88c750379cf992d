// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace servetune {

/// Of the library and its programs, major.minor.patch. The only place that has it: CMake reads this
/// line.
inline constexpr std::string_view library_version = "0.1.0";

}  // namespace servetune
