// SPDX-License-Identifier: Apache-2.0
// Who runs out of memory where another did: more of what takes memory, all else equal.
#include "search/model_cache.hpp"
#include "servetune/bayesian.hpp"
#include "servetune/feasible_set.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

ConfigurationEvidence that_ran_out(const LevelGeometry& geometry,
                                   const Configuration& configuration) {
    ConfigurationEvidence entry{configuration, geometry.encode(configuration), {}, 0, {}};
    entry.works = false;
    entry.ran_out = true;
    return entry;
}

/// By the values alone.
bool takes_as_much(const SearchSpace& space, const Configuration& one, const Configuration& other) {
    for (const Parameter& parameter : space.parameters()) {
        const Value* a = one.find(parameter.name);
        const Value* b = other.find(parameter.name);
        if (a == nullptr && b == nullptr) continue;
        if (a == nullptr || b == nullptr) return false;
        if (*a == *b) continue;
        if (!parameter.grows_memory) return false;
        const auto amount = [&](const Value& value) -> std::optional<double> {
            if (is_unset(value))
                return parameter.value_when_unset ? number_of(*parameter.value_when_unset)
                                                  : std::nullopt;
            if (const auto number = number_of(value)) return number;
            if (!parameter.ordered() || parameter.name == "mixed")
                return {};  // a word among numbers has no place
            return double(*parameter.level_of(value));
        };
        if (!amount(*a) || !amount(*b) || *amount(*a) < *amount(*b)) return false;
    }
    return true;
}

}  // namespace

TEST_CASE("ran out: more of what takes memory, all else equal, of every kind of parameter") {
    const SearchSpace space(
        {Parameter::integer("seqs", 16, 256, Scale::log2).or_unset(64).growing_memory(),
         Parameter::integer("tokens", 1, 2).or_unset().growing_memory(),
         Parameter::choice("numbers", {0.9, 0.7}).growing_memory(),
         Parameter::choice("sizes", {"small", "large"}, true).growing_memory(),
         Parameter::choice("kinds", {"a", "b"}).growing_memory(),
         Parameter::choice("mixed", {"auto", 5}, true).growing_memory(),
         Parameter::boolean("graphs"),
         Parameter::integer("captured", 1, 2).when("graphs", {true}).growing_memory()});
    const LevelGeometry geometry(space);
    const FeasibleSet feasible(space);
    std::vector<Configuration> all;
    CandidatePool pool(geometry);
    feasible.for_each([&](const Configuration& configuration) {
        all.push_back(configuration);
        pool.add(geometry, geometry.encode(configuration));
        return true;
    });
    std::size_t covered = 0;
    for (std::size_t o = 0; o < all.size(); o += 7) {
        const std::vector<bool> covers =
            OutOfMemoryRule(space, geometry, {that_ran_out(geometry, all[o])}).covers(pool);
        for (std::size_t i = 0; i < all.size(); ++i) {
            INFO(all[i].text() << " where ran out: " << all[o].text());
            REQUIRE(covers[i] == takes_as_much(space, all[i], all[o]));
            covered += covers[i] ? 1 : 0;
        }
    }
    CHECK(covered > 4 * all.size() / 7);  // itself and others

    const SearchSpace reals(
        {Parameter::real("share", 0, 1).growing_memory(), Parameter::real("other", 0, 1)});
    const LevelGeometry of_reals(reals);
    const auto point = [&](double share, double other) {
        return Configuration({{"share", share}, {"other", other}});
    };
    const OutOfMemoryRule ran_out(reals, of_reals, {that_ran_out(of_reals, point(0.5, 0.25))});
    const auto covers = [&](double share, double other) -> bool {
        return ran_out.covers({of_reals.encode(point(share, other))}).front();
    };
    CHECK(covers(0.5, 0.25));
    CHECK(covers(0.75, 0.25));
    CHECK_FALSE(covers(0.25, 0.25));
    CHECK_FALSE(covers(0.75, 0.5));
}

TEST_CASE(
    "ran out: one failure is enough for the optimizer to keep away, and only where memory was the "
    "cause") {
    const auto space_of = [](bool known) {
        Parameter seqs = Parameter::integer("seqs", 16, 4096, Scale::log2);
        if (known) seqs = std::move(seqs).growing_memory();
        return SearchSpace({std::move(seqs), Parameter::integer("step", 1, 40)});
    };
    const auto chance_of_more = [&](bool known, FailureKind kind) {
        const Problem problem(space_of(known), {metric}, {});
        std::vector<Trial> history;
        const auto tell = [&](std::int64_t seqs, std::int64_t step, Outcome outcome) {
            Trial trial{history.size(), Configuration({{"seqs", seqs}, {"step", step}})};
            trial.outcome = std::move(outcome);
            history.push_back(std::move(trial));
        };
        for (std::int64_t step = 1; step <= 6; ++step)
            tell(16, step, Measurement{{{metric, {100.0 + double(step)}}}});
        tell(1024, 30, Failure{kind, "gone"});
        const Candidates candidates(problem, {});
        const Standings standings = problem.standings(history);
        const PendingAwareModel model =
            learned_anew(problem, standings, candidates.geometry(), {}, 0);
        const Configuration more({{"seqs", std::int64_t{4096}}, {"step", std::int64_t{30}}});
        const EncodedPoint point = candidates.geometry().encode(more);
        std::size_t at = 0;
        while (candidates.pool().point(at) != point) ++at;
        const auto told =
            fitted_models(problem, standings, model.evidence(), candidates.geometry(), 0);
        const bool behind_all = CandidateRanking(*told, candidates, 0.05)
                                    .scores(model, false)(static_cast<Eigen::Index>(at)) < -500;
        CHECK(behind_all == (known && kind == FailureKind::out_of_memory));
        return model.scores({point}, {{}}).front().log_works;
    };
    CHECK(chance_of_more(true, FailureKind::out_of_memory) ==
          Approx(std::log(OutOfMemoryRule::chance)));
    CHECK(chance_of_more(false, FailureKind::out_of_memory) > std::log(0.1));
    CHECK(chance_of_more(true, FailureKind::crashed_under_load) > std::log(0.1));
}
