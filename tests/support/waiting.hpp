// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace servetune::test {

inline double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Whether it does within a time that is long enough on any machine.
inline bool comes_true(const std::function<bool()>& what, double within_seconds = 30) {
    for (const auto begin = std::chrono::steady_clock::now(); seconds_since(begin) < within_seconds;
         std::this_thread::sleep_for(std::chrono::milliseconds(2)))
        if (what()) return true;
    return what();
}

}  // namespace servetune::test
