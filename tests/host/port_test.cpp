// SPDX-License-Identifier: Apache-2.0
// Ports of another machine: rows within the range that a launcher allows.
#include "servetune/detail/host/port.hpp"
#include "servetune/error.hpp"
#include "support/test.hpp"

#include <memory>
#include <set>
#include <vector>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("ports: rows of a range are within it, whole, and nobody else's while they are held") {
    const std::pair<int, int> range{47'100, 47'109};
    {
        std::vector<std::unique_ptr<ReservedPorts>> singles;
        std::set<int> numbers;
        for (int i = 0; i < 10; ++i)
            CHECK(numbers
                      .insert(
                          singles.emplace_back(std::make_unique<ReservedPorts>(1, range))->first())
                      .second);
        CHECK(*numbers.begin() == range.first);
        CHECK(*numbers.rbegin() == range.second);
        CHECK(has(message_of<IoError>([&] { const ReservedPorts more(1, range); }),
                  "from 47100 to 47109; give more of them"));
        CHECK(has(message_of<IoError>([&] { const ReservedPort more(range); }),
                  "from 47100 to 47109"));
    }
    const ReservedPorts row(8, range);
    CHECK(row.first() >= range.first);
    CHECK(row.first() + 7 <= range.second);
    CHECK(has(message_of<IoError>([&] { const ReservedPorts more(4, range); }),
              "no 4 free ports in a row"));
    CHECK(has(message_of<IoError>([&] { const ReservedPorts more(11, range); }),
              "no 11 free ports in a row"));
    CHECK(ReservedPorts(0, range).first() == 0);
}
