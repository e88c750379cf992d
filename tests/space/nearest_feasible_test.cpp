// SPDX-License-Identifier: Apache-2.0
#include "space/nearest_feasible.hpp"

#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

std::int64_t whole_of(const Configuration& one, const char* name) {
    return std::get<std::int64_t>(*one.find(name));
}

}  // namespace

TEST_CASE("nearest feasible: one change before two, and of one change the smallest") {
    const SearchSpace space({Parameter::integer("tokens", 1, 100'000).with_default(8192),
                             Parameter::integer("seqs", 1, 4096).with_default(256),
                             Parameter::choice("mode", {"a", "b"})},
                            {require("tokens >= 4 * seqs")});
    const Configuration asked =
        space.completed({{"tokens", std::int64_t{8192}}, {"seqs", std::int64_t{3000}}});
    REQUIRE_FALSE(space.feasible(asked));
    const NearestFeasible nearest(space);
    const auto kept = nearest.to(asked, {"seqs"});
    REQUIRE(kept);
    CHECK(kept->changed == std::vector<std::string>{"tokens"});
    CHECK(whole_of(kept->configuration, "tokens") ==
          12000);  // 4 x 3000, though 64 of 100 000 levels were tried
    CHECK(whole_of(kept->configuration, "seqs") == 3000);
    const auto any = nearest.to(asked, {});
    REQUIRE(any);
    CHECK(any->changed.size() == 1);
    CHECK(space.feasible(any->configuration));
    CHECK(whole_of(any->configuration, "tokens") ==
          12000);  // 3.8 % of its range; seqs would change by 23 %
    CHECK_FALSE(nearest.to(asked, {"seqs", "tokens"}));
}

TEST_CASE("nearest feasible: rules that want two changes") {
    const SearchSpace space(
        {Parameter::choice("mode", {"a", "b"}), Parameter::choice("cache", {"on", "off"}),
         Parameter::choice("graph", {"on", "off"})},
        {require("mode != 'b' or cache == 'off'"), require("cache == 'on' or graph == 'off'")});
    const auto found = NearestFeasible(space).to(space.completed({{"mode", "b"}}), {"mode"});
    REQUIRE(found);
    CHECK(found->changed == std::vector<std::string>{"cache", "graph"});
    CHECK(space.feasible(found->configuration));
}
