// SPDX-License-Identifier: Apache-2.0
// `seed:` of a study reaches every strategy that draws.
#include "search/start_design.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// What a study of this strategy and seed asks first; each trial is told a number of its own.
std::vector<Configuration> first_asks(const TemporaryFolder& folder, const std::string& strategy,
                                      const std::string& seed, std::size_t trials) {
    std::string text =
        "objective: {maximize: total_tokens_per_second}\nspace:\n  n: {int: {low: 1, high: 64}, "
        "default: 8}\n";
    for (const char name : {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'})
        text += std::string("  ") + name + ": {choice: [x, y]}\n";
    text += "strategy: " + strategy + "\n" + seed;
    const Catalogue catalogue(search_spaces);
    const StudySetup setup =
        set_up(load_study(folder.write("study.yaml", text), catalogue, "", MeasuredBy::outside),
               folder.path() / "out");
    std::vector<Configuration> result;
    for (const Trial& trial : TuningTask::searched(
             *setup.problem, *setup.strategy, trials, 1,
             [](const Configuration&configuration, Rng&) {
                 return Measurement{{{metric, {1000 + number(configuration, "n")}}}};
             }))
        result.push_back(trial.configuration);
    return result;
}

}  // namespace

TEST_CASE(
    "seed: bayesian and quasi_random ask otherwise for another seed, and the same for the same") {
    const TemporaryFolder folder;
    for (const std::string strategy : {"bayesian", "quasi_random"}) {
        INFO(strategy);
        std::vector<std::vector<Configuration>> of_seeds;
        for (const int seed : {1, 2, 3, 4, 5, 6})
            of_seeds.push_back(
                first_asks(folder, strategy, "seed: " + std::to_string(seed) + "\n", 5));
        CHECK(of_seeds.front() == first_asks(folder, strategy, "seed: 1\n", 5));
        CHECK(first_asks(folder, strategy, "", 5) == first_asks(folder, strategy, "seed: 0\n", 5));
        sort(of_seeds);
        const auto different = std::unique(of_seeds.begin(), of_seeds.end()) - of_seeds.begin();
        CHECK(different >= 4);  // of six; some may agree by chance
    }
}

TEST_CASE(
    "seed: of equals in a start, the first is the seed's, and without a seed it is the first there "
    "is") {
    std::vector<Parameter> flags;
    for (const char* name : {"a", "b", "c", "d", "e", "f"})
        flags.push_back(Parameter::choice(name, {"off", "on"}));
    const SearchSpace space(flags);
    const LevelGeometry geometry(space);
    const std::vector<EncodedPoint> tried{geometry.encode(space.default_configuration())};
    const std::vector<ConfigurationEvidence> evidence{
        {space.default_configuration(), tried.front(), {}, 0, {}}};
    const auto changed = [&](std::uint64_t seed) {
        return start_point(
                   space, geometry, evidence, 6, 6, [](const Configuration&) { return true; }, seed)
            ->text();
    };
    CHECK(changed(0) == "a=on b=off c=off d=off e=off f=off");
    std::set<std::string> seen;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) seen.insert(changed(seed));
    CHECK(seen.size() >= 4);

    CandidatePool pool(geometry);
    for (const char* name : {"a", "b", "c", "d", "e", "f"})
        pool.add(geometry, geometry.encode(space.completed({{name, Value("on")}})));
    CHECK(farthest(geometry, pool, tried, std::vector<double>(pool.size(), 1.0)) == 0);
    std::set<std::size_t> places;
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
        places.insert(farthest(geometry, pool, tried, std::vector<double>(pool.size(), 1.0), seed));
    CHECK(places.size() >= 4);
}
