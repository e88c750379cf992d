// SPDX-License-Identifier: Apache-2.0
// What keeps the memory of a large space small: levels in place of values, and few neighbours.
#include "support/observed_points.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "search/level_geometry.hpp"
#include "servetune/detail/engine/composition.hpp"
#include "servetune/feasible_set.hpp"
#include "servetune/search_space.hpp"

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

TEST_CASE("candidates: configurations come back from their levels as they were") {
    const SearchSpace space(
        {Parameter::choice("method", {"z", "none", "a"}),
         Parameter::integer("b", 1, 64, Scale::log2).or_unset(),
         Parameter::real("share", 0, 1).or_unset().when("method", {"z", "a"}),
         Parameter::integer("blocks", 1, 5000), Parameter::boolean("on"),
         Parameter::integer("depth", 1, 4).when("method", {"a"}),
         Parameter::fixed("always", "here"), Parameter::fixed("with", "a").when("method", {"a"})},
        {require("b != 4")});
    for (const SearchSpace& each : {space, mixed_space()}) {
        const LevelGeometry geometry(each);
        const FeasibleSet feasible(each);
        Rng rng(3);
        for (int i = 0; i < 3000; ++i) {
            const Configuration drawn = feasible.sample(rng);
            CHECK(geometry.decode(geometry.encode(drawn), geometry.numbers(drawn)) == drawn);
        }
    }
}

TEST_CASE(
    "candidates: no flag is beside an even part of a long scale, and the part is beside no flag") {
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
    "candidates: a place in the whole space of an engine has some hundred neighbours, not some ten "
    "thousand") {
    for (const char* engine : {"vllm", "sglang", "tensorrt-llm", "llama.cpp"}) {
        INFO(engine);
        const SearchSpace space = whole_space(engine);
        CHECK(neighbours(space, space.default_configuration()).size() < 1000);
    }
}
