// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// What a target defines: reads any bytes and returns 0. Whatever else happens (another exception,
/// a property that does not hold, a sanitizer's report, a leak, a hang) is a finding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace servetune::fuzz {

inline std::string_view text_of_input(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// Whether `action` ended without an error; the library's own errors are how it refuses an input.
template <class Action>
bool accepted(const Action& action) {
    try {
        action();
    } catch (const Error&) {
        return false;
    }
    return true;
}

/// A property of every input. A false one ends the process, as a crash does, so that the fuzzer
/// keeps the input.
inline void must_hold(bool property, const char* what) {
    if (property) return;
    std::fprintf(stderr, "property does not hold: %s\n", what);
    std::abort();
}

}  // namespace servetune::fuzz
