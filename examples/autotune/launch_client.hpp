// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace autotune {

/// `autotune launch-client LAUNCHER`: the exit code once what it stands for has ended; nothing:
/// these are other words.
[[nodiscard]] std::optional<int> launch_client(std::span<const char* const> words);

}  // namespace autotune
