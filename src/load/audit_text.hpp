// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace servetune {

/// A figure as findings print it: whole numbers whole, others with two decimals or four digits.
std::string figure_shown(double value);

inline std::string milliseconds_shown(double seconds) {
    return figure_shown(seconds * 1e3) + " ms";
}

}  // namespace servetune
