// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace servetune {

/// ASCII letters in lower case, other bytes as they are.
inline std::string lower_case(std::string text) {
    for (char& c : text)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
}

}  // namespace servetune
