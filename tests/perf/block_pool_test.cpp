// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "perf/block_pool.hpp"
#include "servetune/rng.hpp"

#include <map>
#include <vector>

using namespace servetune;

TEST_CASE("block pool: blocks are there once") {
    BlockPool pool(10, 1);
    CHECK(pool.available() == 10);
    CHECK(pool.take(7));
    CHECK_FALSE(pool.take(4));
    CHECK(pool.available() == 3);
    CHECK(pool.take(3));
    CHECK(pool.take(0));
    pool.give_back(10);
    CHECK(pool.available() == 10);
    CHECK(BlockPool(0, 1).available() == 0);
    CHECK_FALSE(BlockPool(0, 1).take(1));
}

TEST_CASE(
    "block pool: a named unit is found until its blocks are needed, the longest unused goes "
    "first") {
    BlockPool pool(6, 2);
    REQUIRE(pool.take(6));
    const auto a = pool.name(100);
    const auto b = pool.name(200);
    REQUIRE(a);
    REQUIRE(b);
    CHECK_FALSE(pool.name(100));  // somebody has it already
    pool.release(*b);
    pool.release(*a);
    pool.give_back(2);
    CHECK(pool.available() == 6);
    CHECK(pool.find(100) == a);
    REQUIRE(pool.take(1));  // of b, although blocks without a name are free: they came later
    CHECK_FALSE(pool.find(200));
    CHECK(pool.find(100) == a);
    pool.acquire(*a);
    CHECK(pool.in_use(*a));
    CHECK(pool.available() == 3);
    REQUIRE(pool.take(3));
    CHECK(pool.find(100) == a);  // in use, so nobody takes it
    pool.release(*a);
    REQUIRE(pool.take(1));
    CHECK_FALSE(pool.find(100));
    CHECK(pool.available() == 1);
}

TEST_CASE("block pool: what is used stays known when the rest is forgotten") {
    BlockPool pool(4, 1);
    REQUIRE(pool.take(2));
    const auto used = pool.name(1);
    const auto unused = pool.name(2);
    pool.release(*unused);
    pool.forget_unused();
    CHECK(pool.find(1) == used);
    CHECK_FALSE(pool.find(2));
    CHECK(pool.available() == 3);
    REQUIRE(pool.take(3));
    CHECK_FALSE(pool.take(1));
}

TEST_CASE(
    "block pool: whatever is taken, named, shared and given back, the counts agree with a ledger") {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Rng rng(seed);
        const auto unit_blocks = std::int64_t(1 + rng.index(4));
        const auto blocks = std::int64_t(rng.index(60));
        BlockPool pool(blocks, unit_blocks);
        std::int64_t unnamed = 0;
        std::map<BlockPool::Unit, int> users;
        for (int i = 0; i < 300; ++i) {
            const auto amount = std::int64_t(rng.index(8));
            switch (rng.index(6)) {
                case 0:
                case 1: {
                    const bool fits = amount <= pool.available();
                    REQUIRE(pool.take(amount) == fits);
                    unnamed += fits ? amount : 0;
                    break;
                }
                case 2:
                    pool.give_back(std::min(amount, unnamed));
                    unnamed -= std::min(amount, unnamed);
                    break;
                case 3:
                    if (unnamed < unit_blocks) break;
                    if (const auto unit = pool.name(rng.index(20))) {
                        users[*unit] = 1;
                        unnamed -= unit_blocks;
                    }
                    break;
                case 4:
                    if (const auto unit = pool.find(rng.index(20))) {
                        if (!pool.in_use(*unit) && pool.available() < unit_blocks)
                            FAIL("a unit whose blocks are not available");
                        pool.acquire(*unit);
                        ++users[*unit];
                    }
                    break;
                default:
                    if (users.empty()) break;
                    const auto one =
                        std::next(users.begin(), std::ptrdiff_t(rng.index(users.size())));
                    pool.release(one->first);
                    if (--one->second == 0) users.erase(one);
            }
            REQUIRE(pool.used() == unnamed + std::int64_t(users.size()) * unit_blocks);
            REQUIRE(pool.available() >= 0);
        }
    }
}
