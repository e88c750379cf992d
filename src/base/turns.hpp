// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/rng.hpp"

namespace servetune {

/// By how many places the order of `of` is turned, two or three that are measured in turn, in round
/// n: drawn from the seed for six rounds at a time. Of two the third round's order is the first's
/// reversed, and the second three rounds' are the first three's; of three each has each place once
/// in three rounds. So a load of the machine that comes back every two, three or four measurements
/// meets none of them three times.
inline std::size_t turn_of(std::uint64_t seed, std::size_t n, std::size_t of) {
    const std::uint64_t drawn = derive_seed(seed, n / 6);
    const std::size_t round = n % 3;
    const std::size_t half = n / 3 % 2;
    if (of == 2) return ((round == 1 ? drawn / 2 : drawn + round / 2) + half) % 2;
    return (drawn + round * (1 + (drawn / 4 + half) % 2)) % of;
}

}  // namespace servetune
