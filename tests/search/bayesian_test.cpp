// SPDX-License-Identifier: Apache-2.0
// The optimizer as a whole: what it finds, what it never does, and what it bears.
#include "servetune/bayesian.hpp"
#include "search/model_cache.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/simple_strategies.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

using Answering = TuningTask::Answering;

SearchSpace engine_space() { return TuningTask::space(); }
double truth(const Configuration& configuration) { return TuningTask().truth(configuration); }
bool fails(const Configuration& configuration) { return TuningTask::fails(configuration); }
double best_of(const Problem& problem) { return TuningTask().best(problem); }

Answering noisy(double cv) {
    return [cv](const Configuration& configuration, Rng& rng) {
        return TuningTask().measured(configuration, cv, rng);
    };
}
std::vector<Trial> searched(const Problem& problem, const Strategy& strategy, std::size_t trials,
                            std::uint64_t seed, const Answering& answer) {
    return TuningTask::searched(problem, strategy, trials, seed, answer);
}

}  // namespace

TEST_CASE(
    "bayesian: margins are heeded while they were right of at least as many trials as wrong") {
    const auto entry = [](std::optional<double> margin, bool works) {
        ConfigurationEvidence result{engine_space().default_configuration(), {}, {}, 0, {}};
        result.works = works;
        if (works) result.means = {1};
        result.beliefs = {{std::nullopt, margin}};
        return result;
    };
    CHECK_FALSE(margins_hold({}));
    CHECK_FALSE(margins_hold({entry(std::nullopt, true), entry(0, false)}));  // nothing is known
    CHECK(margins_hold({entry(1, true)}));
    CHECK(margins_hold({entry(1, true), entry(-1, true)}));
    CHECK(margins_hold({entry(-2, false), entry(1, false)}));
    CHECK_FALSE(margins_hold({entry(-1, true)}));
    CHECK_FALSE(margins_hold({entry(1, true), entry(2, false), entry(3, false)}));
    ConfigurationEvidence pending = entry(-1, true);
    pending.means.clear();
    CHECK(margins_hold({pending}));  // not told yet
}

TEST_CASE("bayesian: an unsound measurement teaches no limit") {
    Objective objective{metric};
    objective.limits = {Limit::parse("wait <= 1")};
    Trial trial{0, engine_space().default_configuration()};
    trial.outcome = Measurement{{{metric, {100}}, {"wait", {3}}}, {Verdict::unsound, {{"server"}}}};
    Decision trusting;
    trusting.enforce_audit = false;
    for (const Decision& decision : {Decision{}, trusting}) {
        const Problem problem(engine_space(), objective, decision);
        const LevelGeometry geometry(problem.space);
        const std::vector<Trial> history{trial};
        const auto evidence = evidence_of(problem, problem.standings(history), geometry, {});
        CHECK(evidence.at(0).margins.at(0).has_value() == !decision.enforce_audit);
    }
}

TEST_CASE("bayesian: nothing is believed of a source before something it knows has been measured") {
    const Problem problem(engine_space(), {metric}, {});
    const LevelGeometry geometry(problem.space);
    ConfigurationEvidence entry{problem.space.default_configuration(),
                                geometry.encode(problem.space.default_configuration()),
                                {100.0},
                                1,
                                {}};
    entry.passes = entry.told = true;
    const std::vector<std::vector<PriorBelief>> known{
        {PriorBelief{std::log(3000.0), std::nullopt}}};
    for (const bool knows : {false, true}) {
        entry.beliefs = {knows ? PriorBelief{std::log(1000.0), std::nullopt} : PriorBelief{}};
        const FittedModels models(problem, {entry}, geometry, 0.03, 1);
        CHECK((models.columns(known)(0, 0) > 1) == knows);
        CHECK((models.columns(known)(0, 0) == 0) == !knows);
    }
}

TEST_CASE(
    "bayesian: the start tries numbers near the default, not the far end of their scale, and "
    "nothing that takes more of the memory that "
    "ran out") {
    const SearchSpace space({Parameter::integer("seqs", 16, 4096, Scale::log2).growing_memory(),
                             Parameter::integer("step", 1, 40),
                             Parameter::choice("backend", {"a", "b", "c"})});
    REQUIRE(has(space.default_configuration().text(), "seqs=16"));
    const Problem problem(space, {metric}, {});
    const auto history = searched(problem, Bayesian(), 4, 1, [](const Configuration&, Rng&) {
        return Measurement{{{metric, {100}}}};
    });
    for (const Trial& trial : history) {
        CHECK(number(trial.configuration, "seqs") <= 256);
        CHECK(number(trial.configuration, "step") <= 14);
    }
    const auto crashed =
        searched(problem, Bayesian(), 4, 1, [](const Configuration&, Rng&) -> Outcome {
            return Failure{FailureKind::out_of_memory, "no room"};
        });
    for (std::size_t i = 1; i < crashed.size(); ++i) {
        const bool only_more = number(crashed[i].configuration, "step") == 1 &&
                               text_of(*crashed[i].configuration.find("backend")) == "a";
        CHECK_FALSE(only_more);
    }
}

TEST_CASE(
    "bayesian: an object that was asked about one problem is asked about an equal one, and about "
    "one that differs in its order only") {
    const auto spaces = [](bool ordered) {
        return SearchSpace({Parameter::choice("size", {"s", "m", "l", "xl"}, ordered),
                            Parameter::integer("n", 1, 9)});
    };
    const auto answer = [](const Configuration& configuration, Rng&) {
        return Measurement{{{metric, {100 + number(configuration, "n")}}}};
    };
    const Bayesian kept;
    for (const bool ordered : {true, true, false}) {
        const auto problem =
            std::make_unique<const Problem>(spaces(ordered), Objective{metric}, Decision{});
        const auto history = searched(*problem, kept, 8, 1, answer);
        const auto fresh = searched(*problem, Bayesian(), 8, 1, answer);
        for (std::size_t i = 0; i < fresh.size(); ++i)
            CHECK(history[i].configuration == fresh[i].configuration);
    }
}

TEST_CASE("bayesian: integers of tens of thousands of levels are searched") {
    const Problem problem(SearchSpace({Parameter::integer("tokens", 1024, 65536),
                                       Parameter::choice("backend", {"a", "b"})}),
                          {metric}, {});
    const auto history = TuningTask::studied(
        problem, Bayesian(), 30, 1, [](const Configuration& configuration, Rng&) {
            return Measurement{
                {{metric,
                  {1000 *
                   std::exp(-std::pow((number(configuration, "tokens") - 40000) / 30000, 2))}}}};
        });
    CHECK(number(recommend(problem, history).recommended, "tokens") == Approx(40000).margin(4000));
}

TEST_CASE(
    "bayesian: thirty noisy trials of which many would fail get within a few per cent of the "
    "best") {
    const Problem problem(engine_space(), {metric}, {});
    const double best = best_of(problem);
    std::vector<double> regrets;
    std::vector<double> of_random;
    std::vector<double> crashes;
    for (std::uint64_t seed = 0; seed < 9; ++seed) {
        const auto history = TuningTask::studied(problem, Bayesian(), 30, seed, noisy(0.01));
        const auto drawn = TuningTask::studied(problem, Random(), 30, seed, noisy(0.01));
        regrets.push_back(1 - truth(recommend(problem, history).recommended) / best);
        of_random.push_back(1 - truth(recommend(problem, drawn).recommended) / best);
        crashes.push_back(double(
            count_if(history, [](const Trial& trial) { return trial.failure() != nullptr; })));
    }
    INFO("random: " << median(of_random));
    CHECK(median(regrets) < 0.045);  // 0.030 and 0.027 in the mean, of 25 studies
    CHECK(median(regrets) < 0.5 * median(of_random));
    CHECK(median(crashes) <= 6);
}

TEST_CASE("bayesian: limits are learned, and what is recommended keeps them") {
    Objective objective{metric};
    objective.limits = {Limit::parse("time_to_first_token_p99_seconds <= 1")};
    const Problem problem(engine_space(), objective, {});
    const auto wait = [](const Configuration& configuration) {
        return number(configuration, "tokens") / 16384;
    };  // up to 16384 tokens
    const Bayesian strategy;
    const auto history = TuningTask::studied(
        problem, strategy, 30, 3, [&](const Configuration& configuration, Rng& rng) -> Outcome {
            if (fails(configuration)) return Failure{FailureKind::out_of_memory, "no room"};
            return Measurement{{{metric, {truth(configuration) * std::exp(0.01 * rng.normal())}},
                                {"time_to_first_token_p99_seconds",
                                 {wait(configuration) * std::exp(0.02 * rng.normal())}}}};
        });
    double best = 0;
    problem.feasible.for_each([&](const Configuration& configuration) {
        if (!fails(configuration) && wait(configuration) < 0.9)
            best = std::max(best, truth(configuration));
        return true;
    });
    const Recommendation result = recommend(problem, history);
    CHECK(wait(result.recommended) <= 1);
    CHECK(truth(result.recommended) > 0.92 * best);  // 21 of the 30 trials search
}

TEST_CASE(
    "bayesian: no configuration twice where that tells nothing, none that failed, and an end when "
    "all are measured") {
    Problem problem(
        SearchSpace({Parameter::choice("a", {"x", "y", "z"}), Parameter::integer("n", 1, 8)}),
        {metric}, {});
    problem.replicates_inform = false;
    const auto history = searched(
        problem, Bayesian(), 100, 1, [](const Configuration& configuration, Rng&) -> Outcome {
            if (configuration.fingerprint().bits % 3 == 0)
                return Failure{FailureKind::crashed_under_load, "gone"};
            return Measurement{{{metric, {100 + number(configuration, "n")}}}};
        });
    std::set<Configuration> seen;
    for (const Trial& trial : history) CHECK(seen.insert(trial.configuration).second);
    CHECK(history.size() == 24);
}

TEST_CASE("bayesian: what is hard to learn from is borne") {
    const Problem problem(engine_space(), {metric}, {});
    const auto constant = [](const Configuration&, Rng&) -> Outcome {
        return Measurement{{{metric, {1000}}}};
    };
    const auto all_fail = [](const Configuration&, Rng&) -> Outcome {
        return Failure{FailureKind::not_ready_in_time, "never"};
    };
    const auto wide = [](const Configuration& configuration, Rng&) -> Outcome {
        return Measurement{
            {{metric, {std::pow(10, -6 + 12 * std::log2(number(configuration, "tokens")) / 16)}}}};
    };
    const auto unsound = [](const Configuration&, Rng&) -> Outcome {
        return Measurement{{{metric, {1000}}}, {Verdict::unsound, {{"window", "", "", ""}}}};
    };
    for (const Answering& answer :
         {Answering(constant), Answering(all_fail), Answering(wide), Answering(unsound)})
        CHECK(searched(problem, Bayesian(), 16, 1, answer).size() == 16);
    const auto history = TuningTask::studied(problem, Bayesian(), 30, 2, constant);
    CHECK(recommend(problem, history).keep_default);
}

TEST_CASE(
    "bayesian: the same history gives the same answer, in any order of telling, from a fresh "
    "object, beside what is pending") {
    const Problem problem(engine_space(), {metric}, {});
    auto history = searched(problem, Bayesian(), 14, 5, noisy(0.02));
    Rng unused(1);
    const auto asked = [&](const Bayesian& strategy, const std::vector<Trial>& trials) {
        return std::get<Proposal>(strategy.ask(problem, trials, unused)).configuration;
    };
    const Bayesian used;
    const Configuration first = asked(used, history);
    CHECK(asked(used, history) == first);
    CHECK(asked(Bayesian(), history) == first);
    auto turned = history;
    std::reverse(turned.begin(), turned.end());
    CHECK(asked(Bayesian(), turned) == first);
    // What an ask keeps for the next one changes nothing.
    const auto asked_by_all = [&](const std::vector<Trial>& trials) {
        const Configuration next = asked(used, trials);
        CHECK(asked(Bayesian(), trials) == next);
        return next;
    };
    std::set<Configuration> pending;
    for (int i = 0; i < 4; ++i) {
        const Configuration next = asked_by_all(history);
        CHECK(pending.insert(next).second);
        history.push_back({history.size(), next});
    }
    auto told = history;
    told[15].outcome = Measurement{{{metric, {truth(told[15].configuration)}}}};
    (void)asked_by_all(told);
    (void)asked_by_all(history);  // as if it had not been
    auto fewer = history;
    fewer.erase(fewer.begin() + 15);
    (void)asked_by_all(fewer);
}

TEST_CASE(
    "bayesian: beside what is under way, the best of the candidates that may be are the best of "
    "all") {
    const Problem problem(engine_space(), {metric}, {});
    const Candidates candidates(problem, {});
    const auto searched_for_long = searched(problem, Bayesian(), 24, 5, noisy(0.02));
    for (const std::size_t told : {3U, 8U, 24U}) {
        std::vector<Trial> history(searched_for_long.begin(),
                                   searched_for_long.begin() + std::ptrdiff_t(told));
        Rng rng(told);
        for (std::size_t i = 0; i < 6; ++i)
            history.push_back({told + i, problem.feasible.sample(rng)});
        const Standings standings = problem.standings(history);
        const std::vector<ConfigurationEvidence> evidence =
            evidence_of(problem, standings, candidates.geometry(), {});
        const auto models = fitted_models(problem, standings, evidence, candidates.geometry(), 0);
        const PendingAwareModel model(problem, models, evidence, standings.noises());
        REQUIRE(model.under_way() > 0);
        CHECK(model.scores({}, {}).empty());
        const CandidateRanking ranking(*models, candidates, 0.15);
        for (const bool explore : {false, true}) {
            const Eigen::VectorXf scores = ranking.scores(model, explore);
            for (const std::size_t most : {1U, 20U}) {
                INFO(told << " told, the best " << most << (explore ? " to explore" : ""));
                const std::vector<std::size_t> all = highest(scores, most);
                const std::vector<std::size_t> best = ranking.best(model, most, explore);
                REQUIRE(best.size() == all.size());
                for (std::size_t i = 0; i < best.size();
                     ++i)  // blocks of other sizes round otherwise
                    CHECK(scores(static_cast<Eigen::Index>(best[i])) ==
                          Approx(scores(static_cast<Eigen::Index>(all[i]))).margin(2e-3));
            }
        }
    }
}

TEST_CASE("bayesian: reals, and spaces too large to list, are searched around the best") {
    const Problem problem(SearchSpace({Parameter::real("x", 0, 1), Parameter::real("y", 0, 1),
                                       Parameter::choice("kind", {"a", "b"})}),
                          {metric}, {});
    const auto history = TuningTask::studied(
        problem, Bayesian(), 30, 1, [](const Configuration& configuration, Rng& rng) -> Outcome {
            const double x = number(configuration, "x") - 0.7;
            const double y = number(configuration, "y") - 0.2;
            return Measurement{
                {{metric,
                  {1000 * std::exp((text_of(*configuration.find("kind")) == "b" ? 0.1 : 0) - x * x -
                                   y * y + 0.005 * rng.normal())}}}};
        });
    const Recommendation result = recommend(problem, history);
    CHECK(text_of(*result.recommended.find("kind")) == "b");
    CHECK(std::abs(number(result.recommended, "x") - 0.7) < 0.2);
    CHECK(std::abs(number(result.recommended, "y") - 0.2) < 0.2);
}

TEST_CASE("bayesian: a belief that is right saves trials, one that is wrong does not mislead") {
    class Believed : public PriorMean {
    public:
        explicit Believed(double slope) : slope_(slope) {}
        [[nodiscard]] std::string name() const override { return "a cost model"; }
        [[nodiscard]] PriorBelief belief(const Configuration& configuration) const override {
            return {slope_ * std::log(truth(configuration)), fails(configuration) ? -1.0 : 1.0};
        }

    private:
        double slope_;
    };
    const Problem problem(engine_space(), {metric}, {});
    const double best = best_of(problem);
    const auto regret_after = [&](double slope, std::size_t trials) {
        std::vector<double> regrets;
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
            Bayesian::Options options;
            options.trials = trials;
            options.beliefs = Beliefs({std::make_shared<Believed>(slope)});
            const auto history = searched(problem, Bayesian(options), trials, seed, noisy(0.01));
            double found = 0;
            for (const Trial& trial : history)
                if (!fails(trial.configuration))
                    found = std::max(found, truth(trial.configuration));
            regrets.push_back(1 - found / best);
        }
        return median(regrets);
    };
    CHECK(regret_after(1, 6) < 0.01);
    CHECK(regret_after(-1, 30) < 0.05);
}
