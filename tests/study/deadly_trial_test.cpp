// SPDX-License-Identifier: Apache-2.0
// A trial that kills the process which measures it, and what is no death: a stop, an error, an
// orderly end.
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/study.hpp"

#include <memory>
#include <stop_token>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A process that dies says no more that a trial was interrupted.
class DyingProcess : public MemoryJournal {
public:
    void interrupted(std::uint64_t id, double at) override {
        if (!dies) MemoryJournal::interrupted(id, at);
    }
    bool dies = true;
};

SearchSpace four_levels() { return SearchSpace({Parameter::integer("x", 0, 3)}); }

Measurement rate_at_level(const Configuration& configuration) {
    return Measurement{{{"total_tokens_per_second", {100 + configuration.number("x")}}}};
}

class LevelEvaluator : public Evaluator {
public:
    Outcome evaluate(const Configuration& configuration, const EvaluationContext&) override {
        if (throws) throw IoError("no disk");
        if (stop != nullptr) {
            stop->request_stop();
            return Failure{FailureKind::cancelled};
        }
        ++calls;
        return rate_at_level(configuration);
    }
    [[nodiscard]] bool replicates_inform() const override { return false; }

    bool throws = false;
    std::stop_source* stop = nullptr;
    int calls = 0;
};

class HeardTrials : public Observer {
public:
    void told(const Trial& trial, std::span<const Trial>) override { trials.push_back(trial.id); }
    std::vector<std::uint64_t> trials{};
};

const StudyIdentity deadly_identity{"study", {{"seed", "0"}}, "0.1.0"};

}  // namespace

TEST_CASE(
    "deadly trial: after the second death it is told as failed, by hand and by run, and the study "
    "goes on") {
    const Problem problem(four_levels(), {}, {});
    const Exhaustive strategy;
    for (const bool by_hand : {true, false}) {
        DyingProcess journal;
        for (int death = 0; death < 2; ++death) {
            Study study(problem, strategy, journal);
            CHECK(study.ask({.trials = 4})->id == 0);
            if (death == 0) study.start(0);  // the second time it is started by the ask
        }
        Study study(problem, strategy, journal);
        HeardTrials heard;
        if (by_hand) {
            CHECK(study.ask({.trials = 4})->id == 1);
        } else {
            LevelEvaluator evaluator;
            CHECK(study.run(evaluator, {.trials = 4}, {}, &heard).reason ==
                  StopReason::trials_spent);
            CHECK(heard.trials == std::vector<std::uint64_t>{0, 1, 2, 3});
            CHECK(evaluator.calls == 3);  // what was told as failed counts in the budget
        }
        const Failure* failure = study.trials().front().failure();
        REQUIRE(failure != nullptr);
        CHECK(failure->kind == FailureKind::other);
        CHECK(has(failure->message, "twice"));
        CHECK(study.trials().front().cost_seconds() < 1);
    }
}

TEST_CASE(
    "deadly trial: an orderly end, a stop and an error are no deaths, and the journal on disk "
    "knows them") {
    const Problem problem(four_levels(), {}, {});
    const Exhaustive strategy;
    const TemporaryFolder folder;
    for (int end = 0; end < 6; ++end) {
        SqliteJournal journal = SqliteJournal::open(folder.path(), deadly_identity);
        Study study(problem, strategy, journal);
        LevelEvaluator evaluator;
        std::stop_source stop;
        if (end % 3 == 0) CHECK(study.ask()->id == 0);
        if (end == 0) study.start(0);
        if (end % 3 == 1) {
            evaluator.throws = true;
            CHECK(study.run(evaluator).message == "no disk");
        }
        if (end % 3 == 2) {
            evaluator.stop = &stop;
            CHECK(study.run(evaluator, {}, stop.get_token()).reason == StopReason::stopped_by_user);
        }
    }
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), deadly_identity);
        CHECK(journal.trials().front().unended_starts == 0);
        journal.started(0, 5);  // by a process that dies now
    }
    SqliteJournal journal = SqliteJournal::open(folder.path(), deadly_identity);
    REQUIRE(journal.trials().size() == 1);
    CHECK_FALSE(journal.trials().front().told());
    CHECK(journal.trials().front().unended_starts == 1);
    Study study(problem, strategy, journal);
    CHECK(study.ask()->id == 0);
}

TEST_CASE("deadly trial: where trials are measured elsewhere, no death of this process is theirs") {
    const Problem problem(four_levels(), {}, {});
    const Exhaustive strategy;
    DyingProcess journal;
    for (int death = 0; death < 5; ++death) {
        Study study(problem, strategy, journal, {.measured_elsewhere = true});
        CHECK(study.ask()->id == 0);
        if (death == 0) study.start(0);
    }
    CHECK(journal.trials().front().unended_starts == 5);
    Study study(problem, strategy, journal, {.measured_elsewhere = true});
    LevelEvaluator evaluator;
    CHECK(study.run(evaluator, {.trials = 4}).reason == StopReason::trials_spent);
    for (const Trial& trial : study.trials()) CHECK(trial.measurement() != nullptr);
}

TEST_CASE("deadly trial: what a process asks and measures itself is never taken for a death") {
    const Problem problem(four_levels(), {}, {});
    const Exhaustive strategy;
    DyingProcess journal;
    {
        Study study(problem, strategy, journal);
        (void)study.ask();
        study.start(0);
    }
    Study study(problem, strategy, journal);
    CHECK(study.ask()->id == 0);  // started for the second time, here
    journal.dies = false;
    LevelEvaluator evaluator;
    CHECK(study.run(evaluator, {.trials = 4}).reason == StopReason::trials_spent);
    for (const Trial& trial : study.trials()) CHECK(trial.measurement() != nullptr);
}
