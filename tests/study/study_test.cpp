// SPDX-License-Identifier: Apache-2.0
// A study by hand and by `run`: resuming after a crash, clocks, report workloads, what a journal
// must be able to read again.
#include "servetune/study.hpp"

#include "study/confirmation.hpp"
#include "support/test.hpp"

#include "servetune/error.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/staged.hpp"

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

using namespace servetune;
using namespace servetune::test;

namespace {

SearchSpace two_flags() {
    return SearchSpace({Parameter::integer("mode", 0, 1),
                        Parameter::choice("seqs", {std::int64_t{256}, std::int64_t{512}})});
}

Measurement rate_of(const Configuration& flags) {
    const bool mode = *flags.find("mode") == Value(std::int64_t{1});
    const bool seqs = *flags.find("seqs") == Value(std::int64_t{512});
    return Measurement{
        {{"total_tokens_per_second", {1000.0 + (mode ? 100 : 0) + (seqs ? 50 : 0)}}}};
}

class Measuring : public Evaluator {
public:
    explicit Measuring(std::function<void(const EvaluationContext&)> meanwhile =
                           [](const EvaluationContext&) {})
        : meanwhile_(std::move(meanwhile)) {}
    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        meanwhile_(context);
        return rate_of(configuration);
    }

private:
    std::function<void(const EvaluationContext&)> meanwhile_;
};

/// The loop of README.md and of Study's own header.
void loop_by_hand(Study& study) {
    while (const auto trial = study.ask()) study.tell(trial->id, rate_of(trial->configuration));
}

std::vector<std::string> configurations_of(const Journal& journal) {
    std::vector<std::string> result;
    for (const Trial& trial : journal.trials()) result.push_back(trial.configuration.text());
    return result;
}

const StudyIdentity hand_study{"study", {{"seed", "0"}}, "0.1.0"};

/// Texts as logs, programs and attackers write them.
std::string any_text(Rng& rng) {
    static const std::vector<std::string> parts{"",
                                                "out of memory",
                                                std::string(1, '\0'),
                                                "\xff\xfe",
                                                "\xc3",
                                                "\xed\xa0\x80",
                                                "\n",
                                                "\"\\",
                                                "\x1b[31m",
                                                "\xf0\x9f\x98\x80",
                                                "null",
                                                "{}",
                                                std::string(5000, 'x')};
    std::string text;
    for (std::size_t i = rng.index(4); i > 0; --i) text += parts[rng.index(parts.size())];
    return text;
}

double any_number(Rng& rng) {
    static const std::vector<double> numbers{0,
                                             -0.0,
                                             1,
                                             -1,
                                             0.1,
                                             1e308,
                                             -1e308,
                                             std::numeric_limits<double>::max(),
                                             5e-324,
                                             1e22,
                                             1e-22,
                                             1e16,
                                             3e15,
                                             812.5,
                                             std::numeric_limits<double>::quiet_NaN(),
                                             std::numeric_limits<double>::infinity(),
                                             -std::numeric_limits<double>::infinity()};
    const std::size_t which = rng.index(2 * numbers.size());
    return which < numbers.size() ? numbers[which] : std::exp(460 * (rng.uniform() - 0.5));
}

Outcome any_outcome(Rng& rng) {
    if (rng.index(3) == 0) {
        Failure failure{failure_kinds[rng.index(failure_kinds.size())].first, any_text(rng),
                        any_text(rng)};
        for (std::size_t i = rng.index(3); i > 0; --i) failure.log_lines.push_back(any_text(rng));
        return failure;
    }
    Measurement measurement;
    for (std::size_t i = rng.index(4); i > 0; --i) {
        Metric& metric =
            measurement.metrics[rng.index(3) == 0 ? any_text(rng) : "metric" + std::to_string(i)];
        metric.value = any_number(rng);
        if (rng.index(2) == 0) metric.standard_error = any_number(rng);
    }
    measurement.validity.verdict = verdicts[rng.index(verdicts.size())].first;
    for (std::size_t i = rng.index(3); i > 0; --i)
        measurement.validity.findings.push_back(
            {any_text(rng), any_text(rng), any_text(rng), any_text(rng)});
    return measurement;
}

}  // namespace

TEST_CASE(
    "study: a figure of a size that cannot be meant is a failed trial, and the rest is concluded "
    "from") {
    const Problem problem(two_flags(), {}, {Decision::Rule::published, 0.005});
    const Exhaustive exhaustive;
    for (const double figure : {1e308, 1.1e100, 0.9e-100, 5e-324}) {
        MemoryJournal journal;
        Study study(problem, exhaustive, journal);
        std::size_t failed = 0;
        while (const auto trial = study.ask()) {
            const bool extreme = trial->id % 2 == 1;
            study.tell(trial->id, Measurement{{{"total_tokens_per_second",
                                                {extreme ? figure : 100.0 + double(trial->id)}}}});
            failed += study.trials()[trial->id].failure() != nullptr ? 1 : 0;
            if (extreme)
                CHECK(has(study.trials()[trial->id].failure()->message,
                          "figures are 0, or of a size between 1e-100 and 1e100"));
        }
        CHECK(failed == study.trials().size() / 2);
        const Recommendation result = study.recommendation();
        REQUIRE(result.best);
        CHECK(std::isfinite(result.gain.value));
        CHECK(result.gain.value < 1);
    }
}

TEST_CASE(
    "study by hand: a trial that was asked or started and never told is offered again, oldest "
    "first, before the strategy is asked") {
    const Problem problem(two_flags(), {}, {Decision::Rule::published, 0.005});
    const Staged staged({{{"mode", {"mode"}}, {"seqs", {"seqs"}}}});
    const Exhaustive exhaustive;
    for (const Strategy* strategy :
         {static_cast<const Strategy*>(&staged), static_cast<const Strategy*>(&exhaustive)}) {
        MemoryJournal whole;
        {
            Study study(problem, *strategy, whole, {7});
            loop_by_hand(study);
        }
        REQUIRE(whole.trials().size() >= 3);
        for (std::size_t cut = 0; cut < whole.trials().size(); ++cut)
            for (const bool was_started : {false, true}) {
                INFO(strategy->name()
                     << " interrupted in trial " << cut << (was_started ? ", started" : ", asked"));
                MemoryJournal journal;
                {
                    Study study(problem, *strategy, journal, {7});
                    for (std::size_t i = 0; i < cut; ++i) {
                        const auto trial = study.ask();
                        study.tell(trial->id, rate_of(trial->configuration));
                    }
                    const auto interrupted = study.ask();
                    REQUIRE(interrupted);
                    if (was_started) study.start(interrupted->id);
                }
                Study resumed(problem, *strategy, journal, {7});
                CHECK(resumed.in_hand() == 0);
                const auto again = resumed.ask();
                REQUIRE(again);
                CHECK(again->id == cut);
                CHECK(resumed.in_hand() == 1);
                resumed.tell(again->id, rate_of(again->configuration));
                loop_by_hand(resumed);
                CHECK(configurations_of(journal) == configurations_of(whole));
                CHECK(resumed.recommendation().default_passes);
                CHECK(resumed.recommendation().recommended.text() == "mode=1 seqs=512");
            }
    }
}

TEST_CASE(
    "study by hand: trials asked here stay with whoever asked, those of a dead process and the "
    "default beside a proposal are offered") {
    const Problem problem(two_flags(), {}, {});
    const Exhaustive strategy;
    MemoryJournal journal;
    double now = 1000;
    const Study::Options options{0, {}, [&] { return now; }};
    {
        Study study(problem, strategy, journal, options);
        CHECK(study.ask()->id == 0);
        CHECK(study.ask()->id == 1);  // two at once
        study.start(0);
        CHECK(study.in_hand() == 2);
    }
    now = 90'000;  // a day later
    Study study(problem, strategy, journal, options);
    const auto first = study.ask();
    CHECK(first->id == 0);
    CHECK(first->started_at == 90'000);  // started again: the day between is no part of the trial
    CHECK(study.ask()->id == 1);
    CHECK(study.ask()->id == 2);
    now += 10;
    study.tell(0, rate_of(first->configuration));
    CHECK(study.trials()[0].cost_seconds() == 10);
    CHECK(study.in_hand() == 2);
    CHECK(study.run(*std::make_unique<Measuring>()).reason ==
          StopReason::strategy_finished);  // `run` measures what is still open
    for (const Trial& trial : journal.trials()) CHECK(trial.told());

    MemoryJournal other;
    Study proposed(problem, strategy, other, options);
    const Trial own =
        proposed.propose(problem.space.completed({{"mode", std::int64_t{1}}}), "mine");
    CHECK(own.id == 1);
    CHECK(proposed.in_hand() == 1);
    CHECK(proposed.ask()->id == 0);
    CHECK(proposed.ask()->id == 2);
}

TEST_CASE("study by hand: an ask answers a trial, waiting or finished, within a budget") {
    Problem problem(two_flags(), {}, {});
    problem.replicates_inform = false;
    const Exhaustive strategy;
    MemoryJournal journal;
    double now = 0;
    Study study(problem, strategy, journal, {0, {}, [&] { return now; }});
    const Budget three{.trials = 3, .wall_clock_seconds = 100};
    std::vector<AskResult> open;
    for (int i = 0; i < 3; ++i) open.push_back(study.ask(three));
    for (const auto& asked : open) REQUIRE(asked);
    CHECK(study.ask(three).waiting());  // those under way would spend it
    study.tell(open[1]->id, rate_of(open[1]->configuration));
    CHECK(study.ask(three).waiting());
    study.tell(open[0]->id, rate_of(open[0]->configuration));
    study.tell(open[2]->id, rate_of(open[2]->configuration));
    const AskResult spent = study.ask(three);
    REQUIRE(spent.finished() != nullptr);
    CHECK(spent.trial() == nullptr);
    CHECK_FALSE(spent.waiting());
    CHECK(spent.finished()->reason == StopReason::trials_spent);
    now = 100;
    const AskResult late = study.ask({.trials = 4, .wall_clock_seconds = 100});
    REQUIRE(late.finished() != nullptr);
    CHECK(late.finished()->reason == StopReason::wall_clock_spent);
    const AskResult last = study.ask();
    REQUIRE(last);
    study.tell(last->id, rate_of(last->configuration));
    const AskResult done = study.ask();
    REQUIRE(done.finished() != nullptr);
    CHECK(done.finished()->reason == StopReason::strategy_finished);
    CHECK(done.finished()->why == "all 4 configurations are measured");
    CHECK_THROWS_AS(study.ask({.trials = 4, .wall_clock_seconds = -1}), UsageError);
}

TEST_CASE(
    "study by hand: trials that all fail alike end it where the budget says so, as in a run") {
    const Problem problem(two_flags(), {}, {});
    const Exhaustive strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    const Budget budget{.same_failures = 2};
    AskResult asked = study.ask(budget);
    std::size_t trials = 0;
    for (; asked.trial() != nullptr; asked = study.ask(budget), ++trials)
        study.tell(asked->id, Failure{FailureKind::crashed_under_load, "no such model"});
    CHECK(trials == 2);
    REQUIRE(asked.finished() != nullptr);
    CHECK(asked.finished()->reason == StopReason::nothing_starts);
    CHECK(asked.finished()->why ==
          "the first trials all failed the same way, crashed_under_load: no such model");
}

// A strategy must outlive a study: a temporary does not compile.
static_assert(std::is_constructible_v<Study, const Problem&, const Exhaustive&, MemoryJournal&>);
static_assert(std::is_constructible_v<Study, const Problem&, const Exhaustive&, MemoryJournal&,
                                      Study::Options>);
static_assert(!std::is_constructible_v<Study, const Problem&, Exhaustive, MemoryJournal&>);
static_assert(
    !std::is_constructible_v<Study, const Problem&, Exhaustive, MemoryJournal&, Study::Options>);

TEST_CASE("study by hand: an open trial whose configuration the space has lost is not offered") {
    const Problem before(SearchSpace({Parameter::integer("mode", 0, 3)}), {}, {});
    const Problem after(SearchSpace({Parameter::integer("mode", 0, 1)}), {}, {});
    const Exhaustive strategy;
    MemoryJournal journal;
    Study(before, strategy, journal)
        .propose(before.space.completed({{"mode", std::int64_t{3}}}), "gone soon");
    Study study(after, strategy, journal);
    CHECK(study.ask()->id == 0);
    CHECK(study.ask()->id == 2);
}

TEST_CASE("study: clocks are real by default, so that budgets of time work in a library") {
    const Problem problem(two_flags(), {}, {});
    const Exhaustive strategy;
    const double before =
        std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    const auto trial = study.ask();
    CHECK(trial->asked_at >= before - 1);
    study.start(trial->id);
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(20)) {
    }
    study.tell(trial->id, rate_of(trial->configuration));
    CHECK(study.trials()[0].cost_seconds() >= 0.02);
    Measuring evaluator;
    Budget past;
    past.until = before - 3600;
    CHECK(study.run(evaluator, past).reason == StopReason::deadline);
    Budget none;
    none.wall_clock_seconds = 0;
    CHECK(study.run(evaluator, none).reason == StopReason::wall_clock_spent);
    CHECK(journal.trials().size() == 1);
}

TEST_CASE(
    "study: a deadline and a wall-clock budget hold for report workloads too, and are the reason "
    "that a run gives") {
    const Problem problem(two_flags(), {}, {Decision::Rule::published, 0.005});
    const Exhaustive strategy;
    double now = 0;
    Measuring evaluator([&](const EvaluationContext&) { now += 100; });
    const Study::Options options{0, {"long", "short"}, [&] { return now; }};
    const auto reported = [](const Journal& journal) {
        std::vector<std::string> result;
        for (const Trial& trial : journal.trials())
            if (!trial.of_search()) result.push_back(trial.workload);
        return result;
    };
    for (const bool deadline : {true, false}) {
        now = 0;
        Budget budget;
        if (deadline) budget.until = 500;  // four trials of the search and one more
        else budget.wall_clock_seconds = 500;
        MemoryJournal journal;
        Study study(problem, strategy, journal, options);
        const Summary summary = study.run(evaluator, budget);
        CHECK(summary.reason == (deadline ? StopReason::deadline : StopReason::wall_clock_spent));
        CHECK(reported(journal) == std::vector<std::string>{"long"});
        CHECK(summary.recommendation.recommended.text() == "mode=1 seqs=512");
        // The next run, with time, measures the rest.
        CHECK(study.run(evaluator).reason == StopReason::strategy_finished);
        CHECK(reported(journal) == std::vector<std::string>{"long", "long", "short", "short"});
    }
}

TEST_CASE("study: a standard error that is no number, or negative, makes the result invalid") {
    const Problem problem(two_flags(), {}, {});
    const Exhaustive strategy;
    for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0}) {
        MemoryJournal journal;
        Study study(problem, strategy, journal);
        study.tell(study.ask()->id, Measurement{{{"total_tokens_per_second", {100, wrong}}}});
        REQUIRE(study.trials()[0].failure() != nullptr);
        CHECK(study.trials()[0].failure()->kind == FailureKind::invalid_result);
        CHECK(study.trials()[0].failure()->message.starts_with(
            "the standard error of metric 'total_tokens_per_second' is "));
    }
    MemoryJournal direct;
    direct.asked({0, problem.space.default_configuration()});
    CHECK(message_of<UsageError>([&] {
              direct.told(0, Measurement{{{"x", {std::nan("")}}}}, 1);
          }) == "trial 0 cannot be told: metric 'x' is not a number");
    CHECK(message_of<UsageError>([&] { direct.told(0, SharedOutcome(), 1); }) ==
          "trial 0 is told without an outcome");
    CHECK_FALSE(direct.trials()[0].told());
}

TEST_CASE(
    "study: whatever tell accepts, the journal reads again, whatever it refuses leaves the trial "
    "open") {
    const Problem problem(two_flags(), {}, {});
    const Exhaustive strategy;
    Rng rng(20261122);
    std::size_t accepted = 0;
    std::size_t refused = 0;
    for (int round = 0; round < 20; ++round) {
        const TemporaryFolder folder;
        std::vector<Trial> kept;
        {
            SqliteJournal journal = SqliteJournal::open(folder.path(), hand_study);
            Study study(problem, strategy, journal);
            for (int i = 0; i < 30; ++i) {
                const std::uint64_t id =
                    study.propose(problem.space.default_configuration(), any_text(rng)).id;
                try {
                    study.tell(id, any_outcome(rng));
                    ++accepted;
                } catch (const UsageError& error) {
                    CHECK((has(error.what(), "is not UTF-8") || has(error.what(), "is missing")));
                    CHECK_FALSE(study.trials()[id].told());
                    study.tell(id, Failure{FailureKind::invalid_result, error.what()});
                    ++refused;
                }
            }
            kept = study.trials();
        }
        const std::vector<Trial> read = SqliteJournal::open(folder.path(), hand_study).trials();
        REQUIRE(read.size() == kept.size());
        for (std::size_t i = 0; i < read.size(); ++i) {
            REQUIRE(read[i].told());
            REQUIRE((read[i].failure() != nullptr) == (kept[i].failure() != nullptr));
            if (read[i].failure() != nullptr)
                CHECK(read[i].failure()->kind == kept[i].failure()->kind);
            else {
                CHECK(read[i].measurement()->metrics ==
                      kept[i].measurement()->metrics);  // every bit of every number, every name
                CHECK(read[i].measurement()->validity.verdict ==
                      kept[i].measurement()->validity.verdict);
                CHECK(read[i].measurement()->validity.findings.size() ==
                      kept[i].measurement()->validity.findings.size());
            }
        }
    }
    CHECK(accepted > 350);
    CHECK(refused > 5);
}

TEST_CASE(
    "study: what tells configurations apart must be UTF-8, else the journal refuses it and stays "
    "whole") {
    const Problem problem(SearchSpace({Parameter::choice("path", {"\xff", "\xfe"})}), {}, {});
    const Exhaustive strategy;
    const TemporaryFolder folder;
    {
        SqliteJournal journal = SqliteJournal::open(folder.path(), hand_study);
        Study study(problem, strategy, journal);
        CHECK(message_of<UsageError>([&] {
                  (void)study.ask();
              }).starts_with("the value of 'path' is not UTF-8: "));
        CHECK(message_of<UsageError>([&] {
                  journal.asked({0, Configuration(), "work\xff"});
              }).starts_with("the workload of trial 0 is not UTF-8: "));
    }
    CHECK(SqliteJournal::open(folder.path(), hand_study).trials().empty());
}

TEST_CASE(
    "study: a configuration that is measured for the first time is told the best figure so far, a "
    "replicate is not") {
    Problem problem(two_flags(), {"total_tokens_per_second"}, {});
    problem.replicates_inform = false;
    MemoryJournal journal;
    const Exhaustive strategy;
    std::vector<double> to_beat;  // 0: nothing
    Measuring evaluator([&](const EvaluationContext& context) {
        to_beat.push_back(context.to_beat ? context.to_beat->value : 0);
    });
    Study study(problem, strategy, journal);
    (void)study.run(evaluator);
    REQUIRE(to_beat.size() == 4);
    CHECK(to_beat.front() == 0);  // the default
    for (std::size_t i = 1; i < 4; ++i) CHECK(to_beat[i] >= 1000);
    CHECK(to_beat[3] >= to_beat[1]);
    (void)study.propose(study.trials()[1].configuration, "again");
    (void)study.run(evaluator);
    REQUIRE(to_beat.size() == 5);
    CHECK(to_beat.back() == 0);
}

namespace {

/// Weights come from a cache at a first measurement, as with `weight_cache`; what is measured with
/// them may be wrong.
class WithCachedWeights : public Evaluator {
public:
    explicit WithCachedWeights(double flattery, bool cold_fails = false)
        : flattery_(flattery), cold_fails_(cold_fails) {}
    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        const bool cached = context.trial > 0 && !context.again;
        if (!cached && context.trial > 0 && cold_fails_)
            return Failure{FailureKind::other, "ended"};
        Measurement result = rate_of(configuration);
        result.metrics[std::string(weight_cache_metric)] = {cached ? 1.0 : 0.0};
        if (cached) result.metrics.at("total_tokens_per_second").value *= flattery_;
        return result;
    }

private:
    double flattery_;
    bool cold_fails_;
};

struct ConfirmedStudy {
    explicit ConfirmedStudy(double flattery, bool cold_fails = false, std::size_t most = 100,
                            Decision::Rule decided_by = Decision::Rule::significant)
        : problem(two_flags(), {"total_tokens_per_second"},
                  {.rule = decided_by, .min_gain = 0.02, .noise_cv = 0.001}) {
        WithCachedWeights evaluator(flattery, cold_fails);
        const Exhaustive strategy;
        Study study(problem, strategy, journal);
        summary = study.run(evaluator, {.trials = most});
    }
    const Problem problem;
    MemoryJournal journal{};
    Summary summary{};
};

}  // namespace

TEST_CASE(
    "study: what was measured with cached weights only is confirmed from a cold start, and that "
    "figure counts") {
    const ConfirmedStudy honest(1);
    REQUIRE(honest.journal.trials().size() == 4 + 3 * 2);  // of few figures none is exact
    CHECK(honest.journal.trials()[4].purpose == Purpose::confirm);
    CHECK(honest.summary.recommendation.conclusion == Conclusion::recommended);
    CHECK(honest.summary.recommendation.gain.value == Approx(0.15).epsilon(0.01));
    // As published studies decide, nothing is measured again but that.
    const ConfirmedStudy published(1, false, 100, Decision::Rule::published);
    REQUIRE(published.journal.trials().size() == 5);
    CHECK(published.journal.trials().back().why == "confirmed from a cold start");
    CHECK(published.summary.recommendation.gain.value == Approx(0.15).epsilon(0.01));
    // All three look better than the default by a quarter and more, which only the cache makes
    // them.
    const ConfirmedStudy flattered(1.2);
    CHECK(flattered.summary.recommendation.conclusion == Conclusion::recommended);
    CHECK(flattered.summary.recommendation.gain.value == Approx(0.15).epsilon(0.01));
}

TEST_CASE(
    "study: what only fails from cold starts is not recommended, and neither is what nobody could "
    "confirm") {
    const ConfirmedStudy failing(1, true);
    CHECK(failing.summary.recommendation.recommended ==
          failing.problem.space.default_configuration());
    CHECK(failing.journal.trials().size() <= 4 + 2 * 3);  // each once, beside the default

    WithCachedWeights evaluator(1);
    const Problem problem(two_flags(), {"total_tokens_per_second"},
                          {.min_gain = 0.02, .noise_cv = 0.001});
    MemoryJournal journal;
    double now = 0;
    StudyOptions options;
    options.now = options.steady = [&now] { return now += 1; };
    const Exhaustive strategy;
    Study study(problem, strategy, journal, options);
    const Summary summary = study.run(evaluator, {.wall_clock_seconds = 20});
    CHECK(summary.reason == StopReason::wall_clock_spent);
    CHECK(summary.recommendation.conclusion == Conclusion::inconclusive);
    CHECK(summary.recommendation.doubt == InconclusiveReason::not_confirmed);
}
