// SPDX-License-Identifier: Apache-2.0
// A search that gains nothing: when it looks far away, how far, and when it does not.
#include "search/level_geometry.hpp"
#include "search/start_design.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/recommendation.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr std::size_t plateau_trials = 40;

SearchSpace four_scales() {
    std::vector<Parameter> parameters;
    for (const char* name : {"a", "b", "c", "d"})
        parameters.push_back(Parameter::integer(name, 1, 10));
    return SearchSpace(parameters);
}

bool looks_far(const Trial& trial) {
    return trial.why.starts_with("far from all that was tried: ");
}

std::vector<Trial> searched_plateau(const Problem& problem, const TuningTask::Answering& answer) {
    Bayesian::Options options;
    options.trials = plateau_trials;
    return TuningTask::searched(problem, Bayesian(options), plateau_trials, 1, answer);
}

Outcome flat_task(const Configuration& /*all*/, Rng& noise) {
    return Measurement{{{metric, {1000 * std::exp(0.005 * noise.normal())}}}};
}

/// Each new configuration is a tenth better than the one before.
TuningTask::Answering rising_task() {
    return [value = 1000.0](const Configuration& /*all*/, Rng& /*noise*/) mutable {
        return Measurement{{{metric, {value *= 1.1}}}};
    };
}

/// Flat but for a corner that is far from the default, where the model sees no slope to follow.
Outcome corner_task(const Configuration& configuration, Rng& noise) {
    const bool there = number(configuration, "a") >= 8 && number(configuration, "b") >= 8;
    return Measurement{{{metric, {(there ? 1500 : 1000) * std::exp(0.005 * noise.normal())}}}};
}

}  // namespace

TEST_CASE("plateau: where nothing gains, every other new configuration is far from all before it") {
    const Problem problem(four_scales(), {metric}, {});
    const std::vector<Trial> history = searched_plateau(problem, flat_task);
    REQUIRE(history.size() == plateau_trials);
    const LevelGeometry geometry(problem.space);
    std::vector<EncodedPoint> tried;
    std::vector<double> far;
    std::vector<double> near;
    for (const Trial& trial : history) {
        const EncodedPoint point = geometry.encode(trial.configuration);
        double nearest = 4;  // no more than 1 in each of the four
        for (const EncodedPoint& one : tried) {
            double distance = 0;
            for (std::size_t d = 0; d < geometry.dimensions(); ++d)
                distance += geometry.squared_distance(d, point, one);
            nearest = std::min(nearest, distance);
        }
        if (looks_far(trial)) far.push_back(nearest);
        else if (nearest > 0) near.push_back(nearest);
        tried.push_back(point);
    }
    CHECK(far.size() >= 3);
    CHECK(far.size() <= near.size());
    CHECK(median(far) > median(near));
    CHECK(std::none_of(history.begin(), history.begin() + 9,
                       looks_far));  // eight without a gain come first
    for (std::size_t i = 1; i < history.size(); ++i)
        CHECK_FALSE((looks_far(history[i - 1]) && looks_far(history[i])));
}

TEST_CASE("plateau: at most a quarter of the trials measure a configuration again") {
    const Problem problem(four_scales(), {metric}, {});
    const std::vector<Trial> history = searched_plateau(problem, flat_task);
    std::set<Configuration> distinct;
    for (const Trial& trial : history) distinct.insert(trial.configuration);
    const std::size_t repeats = history.size() - distinct.size();
    CHECK(repeats <= plateau_trials / 4);
    CHECK(repeats > 0);
}

TEST_CASE("plateau: a search that goes on gaining does not look far away") {
    const Problem problem(four_scales(), {metric}, {});
    const std::vector<Trial> gaining = searched_plateau(problem, rising_task());
    CHECK(none_of(gaining, looks_far));
}

TEST_CASE("plateau: what fails is no gain, and what is likely to fail is not looked at") {
    const Problem problem(four_scales(), {metric}, {});
    const std::vector<Trial> history =
        searched_plateau(problem, [](const Configuration& configuration, Rng& noise) -> Outcome {
            if (number(configuration, "a") > 5)
                return Failure{FailureKind::unsupported, "too many of a"};
            return flat_task(configuration, noise);
        });
    const auto far = count_if(history, looks_far);
    const auto failed = count_if(
        history, [](const Trial& trial) { return looks_far(trial) && trial.failure() != nullptr; });
    CHECK(far >= 4);
    CHECK(2 * failed < far);  // half of the space fails
}

TEST_CASE("plateau: a good corner far from the default is found") {
    const Problem problem(four_scales(), {metric}, {});
    const std::vector<Trial> history = searched_plateau(problem, corner_task);
    CHECK(number(*recommend(problem, history).best, "a") >= 8);
    CHECK(number(*recommend(problem, history).best, "b") >= 8);
}

TEST_CASE("plateau: asks beside others under way look at other places") {
    const Problem problem(four_scales(), {metric}, {});
    Bayesian::Options options;
    options.trials = 60;
    const Bayesian strategy(options);
    std::vector<Trial> history = TuningTask::searched(problem, strategy, 20, 1, flat_task);
    Rng draws(1);
    std::vector<Configuration> asked;
    for (int i = 0; i < 8; ++i) {
        const Answer answer = strategy.ask(problem, history, draws);
        const auto* proposal = std::get_if<Proposal>(&answer);
        REQUIRE(proposal != nullptr);
        Trial trial{history.size(), proposal->configuration};
        trial.why = proposal->why;
        if (looks_far(trial)) asked.push_back(trial.configuration);
        history.push_back(trial);
    }
    CHECK(asked.size() >= 2);
    sort(asked);
    CHECK(std::adjacent_find(asked.begin(), asked.end()) == asked.end());
}

TEST_CASE("plateau: of very many candidates a part is looked at") {
    const SearchSpace space({Parameter::integer("a", 1, 100), Parameter::integer("b", 1, 100)});
    const LevelGeometry geometry(space);
    CandidatePool pool(geometry);
    FeasibleSet(space).for_each([&](const Configuration& one) {
        pool.add(geometry, geometry.encode(one));
        return true;
    });
    REQUIRE(pool.size() == 10'000);
    const std::vector<EncodedPoint> tried{
        geometry.encode(space.completed({{"a", std::int64_t{1}}, {"b", std::int64_t{1}}}))};
    const std::vector<double> chances(pool.size(), 1.0);
    const auto of_all = pool.point(farthest(geometry, pool, tried, chances));
    CHECK(geometry.squared_distance(0, of_all, tried.front()) == Approx(1));
    CHECK(geometry.squared_distance(1, of_all, tried.front()) == Approx(1));
    const auto of_some = pool.point(farthest(geometry, pool, tried, chances, 0, 200));
    CHECK(geometry.squared_distance(0, of_some, tried.front()) +
              geometry.squared_distance(1, of_some, tried.front()) >
          1.4);
    CHECK(farthest(geometry, pool, tried, chances, 0, 200) ==
          farthest(geometry, pool, tried, chances, 0, 200));
}
