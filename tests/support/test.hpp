// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2, version 2 or 3, and what many tests need.

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
using Catch::Approx;  // where version 2 puts it
#else
#include <catch2/catch.hpp>
#endif

#include "support/temporary_folder.hpp"

#include <string>
#include <string_view>

namespace servetune::test {

/// Built with a sanitizer: it answers SIGSEGV in its own way.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif
#else
inline constexpr bool sanitized = false;
#endif

/// The message of what `action` throws as an `Expected`; empty when it throws nothing.
template <class Expected, class Action>
std::string message_of(const Action& action) {
    try {
        action();
    } catch (const Expected& error) {
        return error.what();
    }
    return "";
}

[[nodiscard]] inline bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

/// `text` with its first `what` replaced.
inline std::string replaced(std::string text, const std::string& what, const std::string& with) {
    const auto at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), with);
}

}  // namespace servetune::test
