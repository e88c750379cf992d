// SPDX-License-Identifier: Apache-2.0
// What keeps the memory of a large space small: rows of levels, and neighbours that are few.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "search/level_rows.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/search_space.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

SearchSpace whole_space(const char* engine) {
    SpaceDescription description{{shipped_catalogue.engine(std::string(engine))}};
    description.devices = DeviceLimit{1, true};
    const Composition composition(std::move(description));
    return SearchSpace(composition.parameters(), composition.constraints());
}

}  // namespace

TEST_CASE("level rows: configurations come back as they were, in their own order and none twice") {
    const SearchSpace space(
        {Parameter::choice("method", {"z", "none", "a"}),
         Parameter::integer("b", 1, 64, Scale::log2).or_unset(),
         Parameter::real("share", 0, 1).or_unset().when("method", {"z", "a"}),
         Parameter::boolean("on"), Parameter::integer("depth", 1, 4).when("method", {"a"}),
         Parameter::fixed("always", "here")},
        {require("b != 4")});
    const FeasibleSet feasible(space);
    Rng rng(3);
    std::set<Configuration> wanted;
    LevelRowSet rows(space);
    for (int i = 0; i < 3000; ++i) {
        const Configuration drawn = feasible.sample(rng);
        CHECK(rows.insert(drawn) == wanted.insert(drawn).second);
    }
    CHECK(rows.size() == wanted.size());
    std::vector<Configuration> found;
    rows.for_each([&](const Configuration& configuration) { found.push_back(configuration); });
    CHECK(found == std::vector<Configuration>(wanted.begin(), wanted.end()));
    // What the space does not have is always new and never kept.
    const Configuration foreign(std::vector<Configuration::Entry>{{"method", "other"}});
    CHECK(rows.insert(foreign));
    CHECK(rows.insert(foreign));
    CHECK(rows.size() == wanted.size());
}

TEST_CASE(
    "level rows: no flag is beside an even part of a long scale, and the part is beside no flag") {
    const Parameter threads = Parameter::integer("threads", 1, 1024).or_unset();
    const std::vector<std::size_t> beside = adjacent_levels(threads, 0);
    REQUIRE(beside.size() == 32);
    CHECK(beside.front() == 1);
    CHECK(beside.back() == 1024);
    for (std::size_t level = 1; level < threads.level_count(); ++level) {
        const std::vector<std::size_t> next = adjacent_levels(threads, level);
        CHECK((next.front() == 0) == std::binary_search(beside.begin(), beside.end(), level));
        for (const std::size_t other : next) {
            const std::vector<std::size_t> back = adjacent_levels(threads, other);
            CHECK(std::binary_search(back.begin(), back.end(), level));
        }
    }
    CHECK(adjacent_levels(Parameter::integer("known", 1, 1024).or_unset(Value(std::int64_t{500})),
                          0) == std::vector<std::size_t>{500});
    CHECK(adjacent_levels(Parameter::integer("few", 1, 8).or_unset(), 0).size() == 8);
    CHECK(adjacent_levels(Parameter::choice("backend", {"a", "b"}).or_unset(), 0).size() == 2);
}

TEST_CASE(
    "level rows: a place in the whole space of an engine has some hundred neighbours, not some ten "
    "thousand") {
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
        INFO(engine);
        const SearchSpace space = whole_space(engine);
        CHECK(neighbours(space, space.default_configuration()).size() < 1000);
    }
}
