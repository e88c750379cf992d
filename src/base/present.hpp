// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace servetune {

/// The value of an optional that an earlier step has filled, though the compiler cannot see it.
/// Throws std::logic_error with the caller's file and line where it is empty: that is a fault of
/// the code, not of data. (clang 14 has no std::source_location.)
template <class T>
const T& present(const std::optional<T>& value, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
    if (!value)
        throw std::logic_error(std::string(file) + ":" + std::to_string(line) +
                               ": a value is missing");
    return *value;
}
template <class T>
T& present(std::optional<T>& value, const char* file = __builtin_FILE(),
           int line = __builtin_LINE()) {
    return const_cast<T&>(present(std::as_const(value), file, line));
}
template <class T>
T present(std::optional<T>&& value, const char* file = __builtin_FILE(),
          int line = __builtin_LINE()) {
    return std::move(present(value, file, line));
}

}  // namespace servetune
