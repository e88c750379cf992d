// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/recommendation.hpp"

#include <ostream>
#include <string>

namespace servetune {

/// Why an inconclusive study is so, in a few words.
std::string text_of(Doubt doubt);

/// A line for people: `backend = flashinfer, seqs = 512: +12.30 % over the default (95 %: +10.10 to
/// +14.60 %)`, or why the default is kept.
std::string text_of(const Recommendation& result);

inline std::ostream& operator<<(std::ostream& out, const Recommendation& result) {
    return out << text_of(result);
}

}  // namespace servetune
