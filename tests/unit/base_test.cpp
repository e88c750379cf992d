// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "servetune/base/fingerprint.hpp"
#include "servetune/base/nearest.hpp"
#include "servetune/base/rng.hpp"

#include <cmath>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("edit distance counts insertions, deletions, replacements and swaps") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("abc", "") == 3);
    CHECK(edit_distance("max_num_seq", "max_num_seqs") == 1);
    CHECK(edit_distance("form", "from") == 1);
    CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("nearest names come first and long lists are cut") {
    const std::vector<std::string> known{"quantization", "max_num_seqs", "block_size"};
    CHECK(nearest_first("max_seqs", known).front() == "max_num_seqs");
    CHECK(listed(known, 2) == "quantization, max_num_seqs, ... (1 more)");
}

TEST_CASE("fingerprints are the published FNV-1a values, for journals hold them") {
    CHECK(fingerprint_of("").text() == "cbf29ce484222325");
    CHECK(fingerprint_of("a").text() == "af63dc4c8601ec8c");
    CHECK(fingerprint_of("foobar").text() == "85944171f73967e8");
}

TEST_CASE("the same seed draws the same numbers on every compiler and Boost") {
    Rng rng(42);
    CHECK(rng.uniform() == Approx(0.755155532954779).epsilon(1e-12));
    CHECK(rng.index(1000) == 639);
    CHECK(derive_seed(1, 2) != derive_seed(2, 1));
    STATIC_REQUIRE(mix64(0) == 0xe220a8397b1dcdafULL);  // first output of SplitMix64 seeded with 0
}

TEST_CASE("draws have the distribution they claim") {
    Rng rng(7);
    double sum = 0;
    double squares = 0;
    constexpr int n = 20'000;
    for (int i = 0; i < n; ++i) {
        const double z = rng.normal();
        sum += z;
        squares += z * z;
    }
    CHECK(std::abs(sum / n) < 4 / std::sqrt(n));
    CHECK(std::abs(squares / n - 1) < 4 * std::sqrt(2.0 / n));
}
