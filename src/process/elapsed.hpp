// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace servetune {

/// On the steady clock.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// As a message says it: "12.3 s".
inline std::string seconds_text(double seconds) {
    std::string text(32, ' ');
    text.resize(static_cast<std::size_t>(std::snprintf(text.data(), text.size(), "%.3g s", seconds)));
    return text;
}

}  // namespace servetune
