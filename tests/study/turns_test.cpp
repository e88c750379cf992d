// SPDX-License-Identifier: Apache-2.0
#include "study/comparison.hpp"
#include "support/test.hpp"

#include <set>

using namespace servetune;

TEST_CASE("turns: a load that comes back meets none of two or three three times") {
    for (const std::size_t of : {2, 3}) {
        std::set<std::vector<std::size_t>> drawn;
        for (std::uint64_t seed = 0; seed < 60; ++seed)
            for (const std::size_t first : {0, 3, 6}) {
                const std::vector<std::size_t> turns{turn_of(seed, first, of),
                                                     turn_of(seed, first + 1, of),
                                                     turn_of(seed, first + 2, of)};
                CHECK(turns.front() != turns.back());
                if (of == 3) CHECK(std::set<std::size_t>(turns.begin(), turns.end()).size() == of);
                drawn.insert(turns);
                if (of == 2 && first == 0)  // the next three rounds are these reversed
                    for (std::size_t n = 0; n < 3; ++n)
                        CHECK(turn_of(seed, n, of) != turn_of(seed, n + 3, of));
            }
        CHECK(drawn.size() == (of == 2 ? 4 : 3));
    }
    CHECK(turn_of(1, 4, 1) == 0);
}
