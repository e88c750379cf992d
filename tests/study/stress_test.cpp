// SPDX-License-Identifier: Apache-2.0
// What is to be recommended has to survive a stress first.
#include "servetune/simple_strategies.hpp"
#include "servetune/study.hpp"
#include "support/test.hpp"

#include <functional>

using namespace servetune;

namespace {

/// Of `level` 0, the default, to 3: higher is faster, and under stress some die.
struct StressedStudy : Evaluator {
    explicit StressedStudy(std::vector<std::int64_t> those_that_die, Budget budget = {.trials = 40},
                           bool ends_at_a_fall = false)
        : dying(std::move(those_that_die)), ends(ends_at_a_fall) {
        run(budget);
    }
    void run(const Budget& budget) {
        const Exhaustive strategy;
        StudyOptions options;
        options.now = options.steady = [this] { return now; };
        options.stress = true;
        stop = std::stop_source();
        Study study(problem, strategy, journal, options);
        summary = study.run(*this, budget, stop.get_token());
    }
    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        now += 10;
        const std::int64_t level = std::get<std::int64_t>(*configuration.find("level"));
        if (context.workload == stress_workload && contains(dying, level)) {
            if (ends) stop.request_stop();
            return Failure{FailureKind::crashed_under_load, "burst: died"};
        }
        return Measurement{{{"rate", {100 + 20.0 * double(level)}}}};
    }
    [[nodiscard]] std::int64_t recommended() const {
        return std::get<std::int64_t>(*summary.recommendation.recommended.find("level"));
    }
    /// The levels that were stressed, in order.
    [[nodiscard]] std::vector<std::int64_t> stressed() const {
        std::vector<std::int64_t> result;
        for (const Trial& trial : journal.trials())
            if (trial.purpose == Purpose::stress)
                result.push_back(std::get<std::int64_t>(*trial.configuration.find("level")));
        return result;
    }

    std::vector<std::int64_t> dying;
    bool ends;
    std::stop_source stop{};
    double now = 0;
    const Problem problem = Problem(SearchSpace({Parameter::integer("level", 0, 3)}), {"rate"},
                                    {.min_gain = 0.02, .noise_cv = 0.001});
    MemoryJournal journal{};
    Summary summary{};
};

using Levels = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("stress: what falls is not recommended, and the next that is confirmed is") {
    const StressedStudy sound({});
    CHECK(sound.recommended() == 3);
    CHECK(sound.stressed() == Levels{0, 3});
    const StressedStudy falls({3});
    CHECK(falls.recommended() == 2);
    CHECK(falls.summary.recommendation.conclusion == Conclusion::recommended);
    CHECK(falls.stressed() == Levels{0, 3, 2});
    // A budget that the search has spent: the next one is confirmed all the same.
    const StressedStudy spent({3}, {.trials = 10});
    CHECK(spent.recommended() == 2);
    const StressedStudy all({1, 2, 3});
    CHECK(all.recommended() == 0);
    CHECK(all.stressed() == Levels{0, 3, 2, 1});
}

TEST_CASE("stress: a study that ended at a fall goes on with the next one") {
    StressedStudy study({3}, {.trials = 10}, true);
    CHECK(study.stressed() == Levels{0, 3});
    study.run({.trials = 10});
    CHECK(study.recommended() == 2);
    const std::size_t all = study.journal.trials().size();
    study.run({.trials = 10});
    CHECK(study.journal.trials().size() == all);
}

TEST_CASE("stress: where the default falls too, nothing is refused for it") {
    const StressedStudy all({0, 3});
    CHECK(all.recommended() == 3);
    CHECK(all.stressed() == Levels{0, 3});
}

TEST_CASE("stress: the search leaves time for it, at most 15 % of a budget") {
    const StressedStudy timed({}, {.wall_clock_seconds = 400});
    CHECK(timed.stressed() == Levels{0, 3});
    CHECK(timed.recommended() == 3);
    CHECK(timed.now <= 400);
    for (const double seconds : {30.0, 60.0, 80.0, 120.0, 200.0})
        CHECK(StressedStudy({3}, {.wall_clock_seconds = seconds}).now <= seconds);
}
