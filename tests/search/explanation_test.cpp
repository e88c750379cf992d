// SPDX-License-Identifier: Apache-2.0
// What a history says of parameters, and what was expected of a trial when it was asked.
#include "servetune/explanation.hpp"
#include "base/probability.hpp"
#include "search/insight.hpp"
#include "servetune/error.hpp"
#include "servetune/simple_strategies.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

struct Explained {
    TuningTask task{};
    Problem problem{TuningTask::space(), {metric}, {}};
    std::vector<Trial> trials;
    Bayesian bayesian{};
    Explanation explanation;

    explicit Explained(std::vector<Trial> history)
        : trials(std::move(history)), explanation(problem, trials, bayesian) {}
    static Explained searched(std::size_t trials) {
        const Problem problem(TuningTask::space(), {metric}, {});
        return Explained(TuningTask().searched(problem, Random(), trials, 7));
    }
};

}  // namespace

TEST_CASE("explain: of two levels that too few trials held together nothing is said") {
    const Explained all = Explained::searched(150);
    std::vector<Trial> apart;  // seqs and tokens are never changed together
    for (const Trial& trial : all.trials) {
        const auto changed = [&](const char* name) {
            return *trial.configuration.find(name) != all.problem.space.at(name).default_value;
        };
        if (changed("seqs") && changed("tokens")) continue;
        apart.push_back(trial);
        apart.back().id = apart.size() - 1;
    }
    const Explained explained(apart);
    const Effects effects = explained.explanation.effects();
    REQUIRE(effects.floor.enough());
    const auto has = [](const Trial& trial, const std::string& name, const Value& level) {
        const Value* value = trial.configuration.find(name);
        return trial.measurement() != nullptr && value != nullptr && *value == level;
    };
    for (const MainEffect& effect : effects.main) {
        std::set<Configuration> measured;
        for (const Trial& trial : apart)
            if (has(trial, effect.parameter, effect.level)) measured.insert(trial.configuration);
        CHECK(effect.measured == measured.size());
        if (measured.empty()) CHECK_FALSE(effect.known());
    }
    for (const PairEffect& pair : effects.pairs) {
        CHECK(pair.together >= least_together);
        if (pair.parameters != std::array<std::string, 2>{"seqs", "tokens"}) continue;
        const auto usual = [&](std::size_t k) {
            return pair.levels[k] == explained.problem.space.at(pair.parameters[k]).default_value;
        };
        CHECK((usual(0) || usual(1)));
    }
}

TEST_CASE(
    "explain: a real, or an integer of more levels than are shown, has the level that is nearest "
    "to it") {
    const Parameter share = Parameter::real("share", 0.5, 0.9);
    const Configuration near({{"share", 0.62}});
    CHECK(holds(near, {&share, Value(0.6), 5}));
    CHECK_FALSE(holds(near, {&share, Value(0.7), 5}));
    const Parameter blocks = Parameter::integer("blocks", 1, 65);
    const Configuration ten({{"blocks", std::int64_t{10}}});
    CHECK(holds(ten, {&blocks, Value(std::int64_t{9}), 9}));
    CHECK_FALSE(holds(ten, {&blocks, Value(std::int64_t{17}), 9}));
    CHECK_FALSE(holds(ten, {&blocks, Value(std::int64_t{9}), 100}));  // all are shown
    CHECK_FALSE(holds(Configuration(), {&blocks, Value(std::int64_t{9}), 9}));
}

TEST_CASE("explain: what was expected of a trial rests on what was told before it") {
    Explained explained = Explained::searched(30);
    const TrialExplanation last = explained.explanation.trial(29);
    REQUIRE(last.expected);
    CHECK(last.told_before == 29);
    CHECK(last.trial->why == "drawn at random");
    CHECK(last.expected->objective->low < last.expected->objective->value);
    CHECK(last.expected->objective->value < last.expected->objective->high);
    CHECK(last.expected->deviation * 2 * normal_95 ==
          Approx(last.expected->objective->high - last.expected->objective->low));
    CHECK_FALSE(last.expected->seconds);  // no trial was timed
    CHECK(last.expected->best.value() > 0);
    CHECK(last.expected->expected_gain.value() >= 0);
    CHECK(last.expected->chance_works <= 1);
    // The default is measured with 1 % noise: asked again it is known well.
    auto trials = explained.trials;
    trials.push_back({30, explained.problem.space.default_configuration()});
    const Explained again(trials);
    const Expectation known = again.explanation.trial(30).expected.value();
    CHECK(known.objective->value ==
          Approx(explained.task.truth(trials.front().configuration)).epsilon(0.05));
    CHECK(known.chance_works > 0.7);
    // What is told later does not matter: neither trials after it, nor those under way then.
    auto shorter = explained.trials;
    shorter.resize(20);
    const Explained then(shorter);
    CHECK(then.explanation.trial(19).expected->objective->value ==
          explained.explanation.trial(19).expected->objective->value);
    auto overlapping = shorter;
    for (std::size_t i = 0; i < overlapping.size(); ++i) {
        overlapping[i].asked_at = 100 + double(i);
        overlapping[i].told_at = overlapping[i].asked_at + 1.5;  // two at a time
    }
    for (Trial& trial : overlapping) trial.started_at = trial.asked_at;
    CHECK(Explained(overlapping).explanation.trial(19).told_before == 18);
    CHECK(Explained(overlapping).explanation.trial(19).expected->seconds.value() ==
          Approx(1.5).epsilon(0.02));

    CHECK_FALSE(explained.explanation.trial(0).expected);
    CHECK(message_of<UsageError>([&] { (void)explained.explanation.trial(99); }) ==
          "there is no trial 99 of the search; there are 30");
}

TEST_CASE(
    "explain: one that crashes is expected to where its like have crashed, and nothing measured "
    "explains nothing") {
    const Explained explained = Explained::searched(60);
    std::vector<double> crashed;
    std::vector<double> served;
    for (std::uint64_t id = 30; id < 60; ++id) {
        const TrialExplanation one = explained.explanation.trial(id);
        (one.measured ? served : crashed).push_back(one.expected.value().chance_works);
    }
    REQUIRE(!crashed.empty());
    REQUIRE(!served.empty());
    const auto mean = [](const std::vector<double>& values) {
        double sum = 0;
        for (const double value : values) sum += value;
        return sum / double(values.size());
    };
    CHECK(mean(crashed) < mean(served));

    const Explained nothing({Trial{0, explained.problem.space.default_configuration(), "", 0, "",
                                   Failure{FailureKind::hung, "no"}}});
    CHECK(nothing.explanation.effects().main.empty());
    CHECK_FALSE(nothing.explanation.floor().enough());
    auto asked = nothing.trials;
    asked.push_back({1, explained.trials[1].configuration});
    const Explained failed(asked);
    const Expectation unknown = failed.explanation.trial(1).expected.value();
    CHECK_FALSE(unknown.objective);  // no number was measured: none is expected
    CHECK(unknown.chance_works < 1);
    // Five parameters want seven numbers: with fewer an interval would be the prior's alone.
    auto few = explained.trials;
    while (Explained(few).explanation.floor().enough()) few.pop_back();
    CHECK(Explained(few).explanation.floor().measured == 6);
    CHECK(Explained(few).explanation.effects().main.empty());
}
