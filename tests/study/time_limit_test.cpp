// SPDX-License-Identifier: Apache-2.0
// A limit of time is one that the run ends within.
#include "study/confirmation.hpp"

#include "servetune/simple_strategies.hpp"
#include "servetune/study.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

TEST_CASE("study: a limit of time is kept, and what a confirmation takes is kept of it") {
    const Problem problem(SearchSpace({Parameter::integer("mode", 0, 200)}),
                          {"total_tokens_per_second"}, {});
    const Exhaustive strategy;
    for (const bool deadline : {false, true})
        for (const double limit : {240.0, 2000.0, 3000.0, 3100.0}) {
            INFO(limit);
            double now = 0;
            MemoryJournal journal;
            Study study(problem, strategy, journal, {0, {}, [&] { return now; }});
            Budget budget{.trials = 1000};
            (deadline ? budget.until : budget.wall_clock_seconds) = limit;
            budget.first_trial_seconds = 150;
            while (const auto trial = study.ask(budget)) {
                study.start(trial->id);
                now += trial->id == 0 ? 150 : 100;
                study.tell(
                    trial->id,
                    Measurement{{{"total_tokens_per_second", {1000.0 + double(trial->id % 7)}}}});
            }
            CHECK(now <= limit);
            const std::vector<Trial>& trials = study.trials();
            // At least one whole round, of what the search found to be worth it.
            if (limit >= 2000) CHECK(count_if(trials, confirms) >= 2);
            else CHECK(trials.size() == 1);
        }
    // Nothing is started that is expected to last longer than there is time for.
    MemoryJournal journal;
    Study study(problem, strategy, journal, {0, {}, [] { return 0.0; }});
    const AskResult none =
        study.ask({.trials = 1000, .wall_clock_seconds = 100, .first_trial_seconds = 150});
    REQUIRE(none.finished() != nullptr);
    CHECK(none.finished()->reason == StopReason::wall_clock_spent);
    CHECK(journal.trials().empty());
}
