// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "servetune/budget.hpp"
#include "servetune/servetune.hpp"
#include "study/confirmation.hpp"
#include "study/verdict.hpp"
#include "support/tuning_task.hpp"

#include <functional>
#include <map>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A landscape given by a function.
class Landscape : public Evaluator {
public:
    explicit Landscape(
        std::function<Outcome(const Configuration&, const EvaluationContext&)> answer,
        bool noisy = false)
        : answer_(std::move(answer)), noisy_(noisy) {}
    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        ++evaluations;
        return answer_(configuration, context);
    }
    [[nodiscard]] bool replicates_inform() const override { return noisy_; }
    int evaluations = 0;

private:
    std::function<Outcome(const Configuration&, const EvaluationContext&)> answer_;
    bool noisy_;
};

Outcome tokens(double value) { return Measurement{{{"total_tokens_per_second", {value}}}}; }

/// The 9B study in small: each flag alone gains little or loses, tokens wins early, mode with seqs
/// wins in the end.
Outcome interacting(const Configuration& configuration, const EvaluationContext&) {
    const bool mode = number(configuration, "mode") == 1;
    const bool seqs = number(configuration, "seqs") == 512;
    const bool many = number(configuration, "tokens") == 32;
    if (mode && seqs && many) return tokens(983);
    if (mode && seqs) return tokens(1021);
    if (mode && many) return tokens(1012);
    return tokens(mode ? 997 : seqs ? 994 : 1000);
}

SearchSpace small_space() {
    return SearchSpace({Parameter::integer("mode", 0, 1),
                        Parameter::choice("seqs", {std::int64_t{256}, std::int64_t{512}}),
                        Parameter::choice("tokens", {std::int64_t{8}, std::int64_t{32}})});
}

std::vector<Stage> stages(bool carried) {
    const std::int64_t one = 1, s512 = 512, t32 = 32;
    return {{"tokens", {}, {{{"mode", one}, {"tokens", t32}}}, carried},
            {"seqs", {}, {{{"mode", one}, {"seqs", s512}}}, carried},
            {"all", {}, {{{"mode", one}, {"seqs", s512}, {"tokens", t32}}}, carried}};
}

}  // namespace

TEST_CASE("staged against a baseline finds what staged with incumbents fixes away") {
    Problem problem(small_space(), {}, {Decision::Rule::published, 0.005});
    for (const bool carried : {true, false}) {
        const Staged strategy({stages(carried)});
        MemoryJournal journal;
        Study study(problem, strategy, journal);
        Landscape landscape(interacting);
        const Summary summary = study.run(landscape);
        CHECK(summary.reason == StopReason::strategy_finished);
        CHECK(summary.message == "all 3 stages are done");
        CHECK(summary.recommendation.recommended.text() ==
              (carried ? "mode=1 seqs=256 tokens=32" : "mode=1 seqs=512 tokens=8"));
        CHECK(summary.recommendation.gain.value == Approx(carried ? 0.012 : 0.021));
    }
}

TEST_CASE("a stage's candidate that has no effect or breaks a rule is excluded with the reason") {
    Problem problem(
        SearchSpace({Parameter::choice("engine", {"vllm", "sglang"}),
                     Parameter::choice("backend", {"fa3", "triton"}).when("engine", {"sglang"}),
                     Parameter::integer("seqs", 1, 3)},
                    {require("seqs < 3", "no room")}),
        {}, {Decision::Rule::published});
    const Staged strategy({{{"backend", {"backend"}}, {"seqs", {"seqs"}}}});
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    Landscape landscape([](const Configuration& c, const EvaluationContext&) {
        return tokens(100 * number(c, "seqs"));
    });
    study.run(landscape);
    const Staged::Walk walk = strategy.walk(problem, study.trials());
    CHECK(walk.steps[0].candidates[1].excluded ==
          "'backend' = triton has no effect: 'backend' is inactive in engine=vllm seqs=1");
    CHECK(walk.steps[1].candidates[2].excluded == "it breaks the rule: require seqs < 3 (no room)");
    CHECK(study.recommendation().recommended.text() == "engine=vllm seqs=2");
}

TEST_CASE(
    "a doubtful gain that later stages build on is measured again, one of the last stage is left "
    "to the study") {
    const Problem problem(
        SearchSpace({Parameter::integer("flag", 0, 1), Parameter::integer("more", 0, 1)}), {},
        {Decision::Rule::significant, 0.005, 0.01});
    for (const bool last : {false, true}) {
        const Stage flag{"flag", {"flag"}};
        const Stage more{"more", {"more"}};
        const Staged strategy(last ? Staged::Options{{flag}, 4} : Staged::Options{{flag, more}, 4});
        std::vector<Trial> history{{0, problem.space.default_configuration()}};
        Rng unused(1);
        std::map<Configuration, int> times;
        for (;;) {
            // Errors of 0.5 %: the first look at the flag is lucky and at the default unlucky, the
            // second the other way round.
            const Configuration& asked = history.back().configuration;
            const double lucky =
                (times[asked]++ % 2 == 0) == (number(asked, "flag") == 1) ? 0.005 : -0.005;
            history.back().outcome = tokens(1000 * (1 + lucky));
            const Answer answer = strategy.ask(problem, history, unused);
            const auto* next = std::get_if<Proposal>(&answer);
            if (next == nullptr) break;
            history.push_back({history.size(), next->configuration});
        }
        CHECK(times[problem.space.default_configuration()] +
                  times[problem.space.completed({{"flag", std::int64_t{1}}})] ==
              (last ? 2 : 3));
    }
}

TEST_CASE("replicates of a table that always answers the same are never asked for") {
    Problem problem(SearchSpace({Parameter::integer("flag", 0, 1)}), {},
                    {Decision::Rule::significant, 0.005, 0.01});
    problem.replicates_inform = false;
    const Staged strategy(Staged::Options{{{"flag", {"flag"}}}});
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    Landscape landscape([](const Configuration& c, const EvaluationContext&) {
        return tokens(1000 + 20 * number(c, "flag"));
    });
    const Summary summary = study.run(landscape);
    CHECK(landscape.evaluations == 2);
    CHECK(summary.recommendation.keep_default);
    CHECK(summary.recommendation.gain.value == 0);
}

TEST_CASE("the recommended command is the smallest that keeps the gain") {
    Problem problem(small_space(), {}, {Decision::Rule::published, 0.01});
    const Exhaustive strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    // mode gains 20 %; seqs on top of it 0.5 %: not worth its flag.
    Landscape landscape([](const Configuration& c, const EvaluationContext&) {
        return tokens(1000 * (1 + 0.2 * number(c, "mode")) *
                      (number(c, "seqs") == 512 ? 1.005 : 1));
    });
    const Recommendation result = study.run(landscape).recommendation;
    CHECK(result.best->text() == "mode=1 seqs=512 tokens=8");
    CHECK(result.recommended.text() == "mode=1 seqs=256 tokens=8");
    CHECK(settings_beyond_default(problem.space, result.recommended) == 1);
    CHECK_FALSE(result.keep_default);
}

TEST_CASE(
    "when everything fails there is nothing to recommend, and when the default fails there is no "
    "gain") {
    Problem problem(small_space(), {}, {Decision::Rule::published});
    const Exhaustive strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    Landscape broken([](const Configuration&, const EvaluationContext&) {
        return Failure{FailureKind::out_of_memory, "no room"};
    });
    const Recommendation none = study.run(broken).recommendation;
    CHECK_FALSE(none.best.has_value());
    CHECK(none.keep_default);

    MemoryJournal other;
    Study second(problem, strategy, other);
    Landscape half([](const Configuration& c, const EvaluationContext&) -> Outcome {
        return number(c, "mode") == 1 ? tokens(500 + number(c, "seqs"))
                                      : Failure{FailureKind::unsupported, "not here"};
    });
    const Recommendation rescued = second.run(half).recommendation;
    CHECK_FALSE(rescued.default_passes);
    CHECK_FALSE(rescued.keep_default);
    CHECK(rescued.recommended.text() == "mode=1 seqs=512 tokens=8");
}

TEST_CASE(
    "a default that was measured as often unsoundly as soundly is kept, and so is one beside "
    "failures that were not its own") {
    Problem problem(SearchSpace({Parameter::choice("mode", {"a", "b"})}), {}, {});
    problem.replicates_inform = false;
    const std::string rate = problem.objective.leading().metric;
    const auto result = [&](const std::vector<Outcome>& of_default, double of_b) {
        std::vector<Trial> history;
        const auto add = [&](const Configuration& configuration, const Outcome& outcome) {
            history.push_back({history.size(), configuration});
            history.back().outcome = outcome;
        };
        for (const Outcome& outcome : of_default)
            add(problem.space.default_configuration(), outcome);
        add(problem.space.completed({{"mode", "b"}}), Measurement{{{rate, {of_b}}}});
        return recommend(problem, history);
    };
    const Measurement sound{{{rate, {100}}}};
    Measurement unsound = sound;
    unsound.validity.verdict = Verdict::unsound;
    const Failure disk{FailureKind::infrastructure, "disk full"};
    const Recommendation kept = result({sound, sound, disk}, 60);
    CHECK(kept.default_passes);
    CHECK(kept.keep_default);
    CHECK(result({sound, sound, unsound}, 60).keep_default);
    const Recommendation undecided = result({sound, unsound}, 200);
    CHECK(undecided.default_unsound);
    CHECK(undecided.recommended == problem.space.default_configuration());
    CHECK(result({disk}, 200).default_unsound);
    CHECK_FALSE(result({sound, Failure{FailureKind::hung, ""}}, 60).default_unsound);
}

TEST_CASE("a study that is cut short after any number of trials ends as one that is not") {
    Problem problem(small_space(), {}, {Decision::Rule::published, 0.005});
    const Staged staged({stages(false)});
    const Random random;
    for (const Strategy* strategy :
         {static_cast<const Strategy*>(&staged), static_cast<const Strategy*>(&random)}) {
        Landscape landscape(interacting);
        MemoryJournal whole;
        Study(problem, *strategy, whole, {17}).run(landscape);
        for (std::size_t cut = 0; cut < whole.trials().size(); ++cut) {
            MemoryJournal journal;
            Study(problem, *strategy, journal, {17}).run(landscape, {cut});
            journal.started(Study(problem, *strategy, journal, {17}).ask()->id,
                            0);  // died while this one ran
            Study(problem, *strategy, journal, {17}).run(landscape);
            const std::vector<Trial> trials = journal.trials();
            REQUIRE(trials.size() == whole.trials().size());
            for (std::size_t i = 0; i < trials.size(); ++i) {
                CHECK(trials[i].configuration == whole.trials()[i].configuration);
                CHECK(trials[i].seed == whole.trials()[i].seed);
                CHECK(trials[i].outcome == whole.trials()[i].outcome);
            }
        }
    }
}

TEST_CASE("a study by hand: ids, pairing of seeds, wrong use") {
    Problem problem(small_space(), {}, {});
    const Exhaustive strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    const auto first = study.ask();
    const auto second = study.ask();
    REQUIRE(first.trial() != nullptr);
    REQUIRE(second.trial() != nullptr);
    CHECK(first->configuration == problem.space.default_configuration());
    CHECK(first->seed == second->seed);  // both are the first measurement of their configuration
    CHECK(message_of<UsageError>([&] { study.tell(9, tokens(1)); }) ==
          "there is no trial 9: 2 were asked");
    study.tell(first->id, tokens(1));
    CHECK(message_of<UsageError>([&] { study.tell(first->id, tokens(1)); }) ==
          "trial 0 is already told");
    study.tell(second->id, Measurement{{{"total_tokens_per_second", {std::nan("")}}}});
    CHECK(study.trials()[1].failure()->kind == FailureKind::invalid_result);
    CHECK(study.trials()[1].failure()->message ==
          "metric 'total_tokens_per_second' is not a number");
}

TEST_CASE("a run ends by trials, by the clock, by the user, by an evaluator that cannot go on") {
    Problem problem(small_space(), {}, {});
    const Exhaustive strategy;
    Landscape landscape(interacting);
    {
        MemoryJournal journal;
        CHECK(Study(problem, strategy, journal).run(landscape, {3}).reason ==
              StopReason::trials_spent);
        CHECK(journal.trials().size() == 3);
    }
    {
        MemoryJournal journal;
        double now = 0;
        Study study(problem, strategy, journal, {0, {}, [&] { return now += 10; }});
        CHECK(study.run(landscape, {100, 100}).reason == StopReason::wall_clock_spent);
        CHECK(journal.trials().size() < 8);
    }
    {
        MemoryJournal journal;
        std::stop_source stop;
        Landscape stopping([&](const Configuration&, const EvaluationContext& context) -> Outcome {
            if (context.trial == 2) stop.request_stop();
            return context.stop.stop_requested()
                       ? Outcome(Failure{FailureKind::cancelled, "stopped"})
                       : tokens(1);
        });
        CHECK(Study(problem, strategy, journal).run(stopping, {}, stop.get_token()).reason ==
              StopReason::stopped_by_user);
        CHECK(journal.trials().size() == 3);
        CHECK_FALSE(journal.trials()[2].told());
    }
    {
        MemoryJournal journal;
        Landscape dying([](const Configuration&, const EvaluationContext& context) -> Outcome {
            if (context.trial == 1) throw IoError("the disk is full");
            return tokens(1);
        });
        const Summary summary = Study(problem, strategy, journal).run(dying);
        CHECK(summary.reason == StopReason::error);
        CHECK(summary.message == "the disk is full");
        CHECK_FALSE(journal.trials()[1].told());
    }
}

TEST_CASE("a run whose proposal cannot be checked ends with an error, not an exception") {
    // Constraints on reals are checked only for configurations that are proposed: this one throws
    // for mode=auto.
    const SearchSpace space(
        {Parameter::real("share", 0, 1), Parameter::choice("mode", {std::int64_t{1}, "auto"})},
        {require("share * mode >= 0")});
    const Problem problem(space, {}, {});
    struct Once : Strategy {
        Answer ask(const Problem&, std::span<const Trial>, Rng&) const override {
            return Proposal{Configuration({{"share", 0.75}, {"mode", "auto"}}), "tries it"};
        }
        [[nodiscard]] std::string name() const override { return "once"; }
    } strategy;
    MemoryJournal journal;
    Landscape landscape([](const Configuration&, const EvaluationContext&) { return tokens(1); });
    Summary summary;
    CHECK_NOTHROW(summary = Study(problem, strategy, journal).run(landscape));
    CHECK(summary.reason == StopReason::error);
    CHECK(summary.message == "'share * mode >= 0': a number wanted, got 'auto'");
    CHECK(journal.trials().size() == 1);  // the default; the proposal was never a trial
}

TEST_CASE("a run ends before a deadline that its next trial would pass") {
    Problem problem(small_space(), {}, {});
    const Exhaustive strategy;
    Landscape landscape(interacting);
    MemoryJournal journal;
    double now = 1000;
    Landscape slow([&](const Configuration&, const EvaluationContext&) -> Outcome {
        now += 100;
        return tokens(1);
    });
    Study study(problem, strategy, journal, {0, {}, [&] { return now; }});
    Budget budget;
    budget.until = 1350;  // three trials of 100 s, not a fourth
    CHECK(study.run(slow, budget).reason == StopReason::deadline);
    CHECK(journal.trials().size() == 3);
    CHECK(now == 1300);
}

TEST_CASE(
    "a wall clock that jumps an hour, either way, spends no budget and makes no trial longer") {
    Problem problem(small_space(), {}, {});
    problem.replicates_inform = false;
    const Exhaustive strategy;
    for (const double jump : {-3600.0, 3600.0}) {
        INFO("jump " << jump);
        double wall = 1'700'000'000;
        double steady = 5;
        Landscape jumping([&](const Configuration&, const EvaluationContext& context) -> Outcome {
            wall += 100 + (context.trial == 1 ? jump : 0);  // in the middle of the second trial
            steady += 100;
            return tokens(1);
        });
        {
            MemoryJournal journal;
            Study study(problem, strategy, journal,
                        {0, {}, [&] { return wall; }, [&] { return steady; }});
            CHECK(study.run(jumping, {100, 350}).reason == StopReason::wall_clock_spent);
            REQUIRE(journal.trials().size() == 3);  // a fourth would end after 400 s
            for (const Trial& trial : journal.trials()) CHECK(trial.cost_seconds() == 100);
        }
        // A deadline is a time of day: what counts is what the clock says then, and a trial's
        // length is still 100 s.
        wall = 1'700'000'000;
        MemoryJournal journal;
        Budget budget;
        budget.until = wall + jump + 450;
        Study study(problem, strategy, journal,
                    {0, {}, [&] { return wall; }, [&] { return steady; }});
        if (jump < 0) {  // already over by the clock as it is now
            CHECK(study.run(jumping, budget).reason == StopReason::deadline);
            CHECK(journal.trials().empty());
            budget.until =
                wall + 250;  // the default and one more; during that one the clock goes back
        }
        CHECK(study.run(jumping, budget).reason ==
              (jump < 0 ? StopReason::strategy_finished : StopReason::deadline));
        CHECK(journal.trials().size() == (jump < 0 ? std::size_t(problem.feasible.size()) : 4));
    }
}

TEST_CASE(
    "a run whose first three trials all fail the same way ends and says how, one that is run again "
    "tries again") {
    Problem problem(small_space(), {}, {});
    const Exhaustive strategy;
    MemoryJournal journal;
    bool broken = true;
    Landscape landscape([&](const Configuration&, const EvaluationContext&) -> Outcome {
        return broken ? Outcome(Failure{FailureKind::out_of_memory, "CUDA out of memory"})
                      : tokens(1);
    });
    Budget budget;
    budget.same_failures = 3;
    const Summary first = Study(problem, strategy, journal).run(landscape, budget);
    CHECK(first.reason == StopReason::nothing_starts);
    CHECK(first.message ==
          "the first trials all failed the same way, out_of_memory: CUDA out of memory");
    CHECK(journal.trials().size() == 3);
    broken = false;
    CHECK(Study(problem, strategy, journal).run(landscape, budget).reason ==
          StopReason::strategy_finished);

    MemoryJournal other;
    Landscape mixed([&](const Configuration&, const EvaluationContext& context) -> Outcome {
        return Failure{context.trial == 1 ? FailureKind::hung : FailureKind::out_of_memory, "no"};
    });
    CHECK(Study(problem, strategy, other).run(mixed, budget).reason ==
          StopReason::strategy_finished);
}

TEST_CASE("report workloads are measured for the default and the recommendation only") {
    Problem problem(small_space(), {}, {Decision::Rule::published, 0.005});
    const Staged strategy({stages(false)});
    MemoryJournal journal;
    Study study(problem, strategy, journal, {0, {"long"}});
    Landscape landscape(interacting);
    study.run(landscape);
    std::vector<std::string> reported;
    for (const Trial& trial : journal.trials())
        if (trial.workload == "long") reported.push_back(trial.configuration.text());
    CHECK(reported ==
          std::vector<std::string>{"mode=0 seqs=256 tokens=8", "mode=1 seqs=512 tokens=8"});
    study.run(landscape);
    CHECK(journal.trials().size() == 6);
}

TEST_CASE("an infeasible default is refused: it is always trial 0") {
    CHECK(message_of<SpaceError>([] {
              Problem(SearchSpace({Parameter::integer("n", 1, 4)}, {require("n > 2", "so it is")}),
                      {}, {});
          }) ==
          "the default configuration (n=1) is not feasible: it breaks the rule: require n > 2 (so "
          "it is)");
}
