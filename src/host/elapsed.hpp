// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/number_text.hpp"

#include <chrono>

namespace servetune {

/// On the steady clock.
inline double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace servetune
