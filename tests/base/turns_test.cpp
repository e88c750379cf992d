// SPDX-License-Identifier: Apache-2.0
#include "base/turns.hpp"
#include "support/test.hpp"

#include <set>
#include <vector>

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
            }
        CHECK(drawn.size() == (of == 2 ? 4 : 6));
    }
    CHECK(turn_of(1, 4, 1) == 0);
}
