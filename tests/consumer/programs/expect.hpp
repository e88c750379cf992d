// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <sstream>
#include <string>

inline int wrong = 0;  ///< what `main` returns

/// The parts, one after the other. (g++ 12 takes a sum of texts for overlapping ones at -O3: GCC
/// bug 105651.)
template <class... Parts>
std::string text(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
}

/// Says what does not hold.
inline void expect(bool holds, const std::string& what) {
    if (holds) return;
    ++wrong;
    std::printf("WRONG: %s\n", what.c_str());
}

/// Whether `action` throws an `Expected` whose message has all of these parts.
template <class Expected, class Action, class... Parts>
bool throws(const Action& action, const Parts&... parts) {
    try {
        action();
    } catch (const Expected& error) {
        const std::string message = error.what();
        return ((message.find(parts) != std::string::npos) && ...);
    }
    return false;
}
