// SPDX-License-Identifier: Apache-2.0
// Several trials at once: who is asked when, neighbours that disturb each other, and what ends such
// a run.
#include "servetune/workers.hpp"
#include "servetune/simple_strategies.hpp"
#include "study/confirmation.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A part of a machine: how fast it is may depend on who else measures.
struct Machine {
    std::atomic<int> at_once{0};
    std::atomic<int> most_at_once{0};
    std::atomic<bool> overlapped{false};  ///< one evaluator was called twice at once
};

class PartOfMachine : public Evaluator {
public:
    using Rate = std::function<double(int at_once)>;
    PartOfMachine(Machine& machine, Rate rate) : machine_(machine), rate_(std::move(rate)) {}

    Outcome evaluate(const Configuration& configuration,
                     const EvaluationContext& context) override {
        if (++calls_ > 1) machine_.overlapped = true;  // one at a time
        const int at_once = ++machine_.at_once;
        int most = machine_.most_at_once;
        while (most < at_once && !machine_.most_at_once.compare_exchange_weak(most, at_once)) {
        }
        int neighbours = at_once;  // the most that were there meanwhile
        for (int i = 0; i < 10 && !context.stop.stop_requested(); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            neighbours = std::max<int>(neighbours, machine_.at_once);
        }
        const double rate = rate_(neighbours) * TuningTask().truth(configuration);
        --machine_.at_once;
        --calls_;
        ++measured;
        if (context.stop.stop_requested()) return Failure{FailureKind::cancelled, "stopped"};
        if (throws_at > 0 && measured == throws_at) throw IoError("the disk is full");
        if (TuningTask::fails(configuration) || std::isnan(rate))
            return Failure{FailureKind::out_of_memory, "no room"};
        return Measurement{{{metric, {rate}}}};
    }

    std::atomic<int> measured{0};
    int throws_at = 0;

private:
    Machine& machine_;
    Rate rate_;
    std::atomic<int> calls_{0};
};

struct Parallel {
    explicit Parallel(
        std::size_t workers, const PartOfMachine::Rate& rate = [](int) { return 1.0; }) {
        for (std::size_t i = 0; i < workers; ++i)
            parts.push_back(std::make_unique<PartOfMachine>(machine, rate));
    }
    Summary run(std::size_t trials, const std::stop_token& stop = {}) {
        std::vector<Evaluator*> evaluators;
        for (const auto& part : parts) evaluators.push_back(part.get());
        study = std::make_unique<Study>(problem, strategy, journal);
        return WorkersRun(*study, evaluators, Budget{.trials = trials}, nullptr,
                          [this](const std::string& line) { said += line + "\n"; })
            .run(stop);
    }

    Machine machine;
    std::vector<std::unique_ptr<PartOfMachine>> parts{};
    Problem problem{TuningTask::space(), {metric}, {Decision::Rule::published, 0.01, 0.01}};
    Random strategy{};
    MemoryJournal journal{};
    std::unique_ptr<Study> study{};
    std::string said{};
};

/// What an earlier process wrote.
void take_over(Parallel& parallel, const std::vector<Trial>& trials) {
    for (const Trial& trial : trials) {
        Trial asked = trial;
        asked.outcome = {};
        parallel.journal.asked(asked);
        parallel.journal.started(trial.id, 1);
        if (trial.told()) parallel.journal.told(trial.id, trial.outcome, 2);
    }
}

}  // namespace

TEST_CASE("workers: as many trials at once as there are evaluators, each told, none twice") {
    Parallel parallel(4);
    const Summary summary = parallel.run(40);
    CHECK(summary.reason == StopReason::trials_spent);
    CHECK(parallel.machine.most_at_once == 4);
    CHECK(parallel.study->told_in_search() == 40);
    CHECK(parallel.said.find("the figure of worker 1 changes by 0 % when the others run too, "
                             "within noise (3.6 %); 4 trials at once") == 0);
    int measured = 0;
    for (const auto& part : parallel.parts) {
        CHECK(part->measured >= 5);
        measured += part->measured;
    }
    CHECK(measured == 40);
    CHECK_FALSE(parallel.machine.overlapped);
    CHECK(summary.recommendation.best);
    for (const Trial& trial : parallel.journal.trials()) CHECK(trial.told());
}

TEST_CASE(
    "workers: neighbours that slow each other down are measured one at a time, and their figures "
    "do not count") {
    Parallel parallel(3, [](int at_once) { return at_once > 1 ? 0.8 : 1.0; });
    const Summary summary = parallel.run(12);
    CHECK(summary.reason == StopReason::trials_spent);
    CHECK(has(parallel.said,
              "changes by -20 % when the others run too, beyond noise (3.6 %); one "
              "trial at a time from here"));
    std::size_t not_counted = 0;
    for (const Trial& trial : parallel.study->trials()) {
        if (const Failure* failure = trial.failure())
            not_counted += failure->kind == FailureKind::infrastructure ? 1 : 0;
        else
            CHECK(trial.measurement()->metrics.at(metric).value ==
                  Approx(TuningTask().truth(trial.configuration)));
    }
    CHECK(not_counted == 3);
    CHECK(parallel.parts[1]->measured == 1);
    CHECK(summary.recommendation.default_passes);

    Parallel again(3, [](int at_once) {
        return at_once > 1 ? 0.8 : 1.0;
    });  // a study that goes on does not check again
    take_over(again, parallel.journal.trials());
    again.run(16);
    CHECK(again.parts[1]->measured == 0);
    CHECK(again.study->told_in_search() == 16);
}

TEST_CASE("workers: a goal at or below zero keeps them, and finds those that disturb each other") {
    for (const double sign : {0.0, -1.0}) {
        Parallel parallel(3, [&](int) { return sign; });
        (void)parallel.run(12);
        INFO(parallel.said);
        CHECK(has(parallel.said, "3 trials at once"));
        CHECK(parallel.machine.most_at_once == 3);
    }
    Parallel disturbed(3, [](int at_once) { return at_once > 1 ? -2.0 : -1.0; });
    (void)disturbed.run(12);
    INFO(disturbed.said);
    CHECK(has(disturbed.said, "one trial at a time from here"));
}

TEST_CASE("workers: one that differs from the others gets no further trial") {
    Parallel parallel(4);
    parallel.parts[2] = std::make_unique<PartOfMachine>(parallel.machine, [](int) { return 0.93; });
    CHECK(parallel.run(30).reason == StopReason::trials_spent);
    CHECK(has(parallel.said, "worker 3 differs from the others by -7 %: it gets no further trial"));
    CHECK(has(parallel.said, "within noise (3.6 %); 3 trials at once"));
    CHECK(parallel.parts[2]->measured == 1);
    CHECK(parallel.parts[3]->measured > 3);
}

TEST_CASE("workers: the first one may be the odd one, of two that differ the second is") {
    Parallel parallel(4);
    parallel.parts[0] = std::make_unique<PartOfMachine>(parallel.machine, [](int) { return 0.93; });
    CHECK(parallel.run(20).reason == StopReason::trials_spent);
    CHECK(has(parallel.said, "worker 1 differs from the others by -7 %"));
    CHECK(parallel.parts[0]->measured == 2);  // alone, and beside the others
    Parallel two(2);
    two.parts[1] = std::make_unique<PartOfMachine>(two.machine, [](int) { return 1.2; });
    CHECK(two.run(12).reason == StopReason::trials_spent);
    CHECK(has(two.said, "worker 2 differs from the others by 20 %"));
    CHECK(two.parts[1]->measured == 1);

    Parallel again(4);  // a study that goes on knows which
    again.parts[0] = std::make_unique<PartOfMachine>(again.machine, [](int) { return 0.93; });
    take_over(again, parallel.journal.trials());
    CHECK(again.run(30).reason == StopReason::trials_spent);
    CHECK(again.parts[0]->measured == 0);
    CHECK(again.machine.most_at_once == 3);
}

TEST_CASE("workers: a check that was interrupted is made again, and its figures do not count") {
    Parallel whole(3);
    whole.run(4);  // alone, and three beside each other
    std::vector<Trial> trials = whole.journal.trials();
    REQUIRE(trials.size() == 4);
    trials[2].outcome = {};  // killed before these two were told
    trials[3].outcome = {};
    Parallel again(3);
    take_over(again, trials);
    CHECK(again.run(20).reason == StopReason::trials_spent);
    CHECK(again.study->trials()[2].failure() != nullptr);
    CHECK(has(again.said, "within noise"));
    for (std::size_t id = 4; id < 7; ++id)
        CHECK(again.study->trials()[id].configuration ==
              again.problem.space.default_configuration());
    CHECK(again.machine.most_at_once == 3);
}

TEST_CASE("workers: a check that came to nothing spends no budget, however often") {
    Parallel whole(3);
    whole.run(4);
    std::vector<Trial> trials = whole.journal.trials();
    REQUIRE(trials.size() == 4);
    for (std::size_t id = 1; id < 4; ++id) trials[id].outcome = {};  // killed in the check
    for (std::uint64_t id = 4; id < 9;
         ++id) {  // and twice more, the last time before the third was asked
        trials.push_back(trials[1 + (id - 1) % 3]);
        trials.back().id = id;
    }
    const auto measured_of = [](const Parallel& run) {  // what a configuration gave, or failed with
        std::size_t count = 0;
        for (const Trial& trial : run.study->trials())
            count +=
                trial.measurement() != nullptr || (trial.told() && teaches(trial.failure()->kind))
                    ? 1
                    : 0;
        return count;
    };
    Parallel again(3);
    take_over(again, trials);
    CHECK(again.run(20).reason == StopReason::trials_spent);
    CHECK(measured_of(again) == 20);
    CHECK(again.study->told_in_search() == 20);
    CHECK(search_history(again.problem, again.study->trials()).size() == 20);
    CHECK(again.machine.most_at_once == 3);
    Parallel fewer(2);  // the study goes on with fewer workers, or with one
    take_over(fewer, trials);
    CHECK(fewer.run(12).reason == StopReason::trials_spent);
    CHECK(measured_of(fewer) == 12);
    Parallel one(1);
    take_over(one, trials);
    CHECK(one.run(9).reason == StopReason::trials_spent);
    CHECK(measured_of(one) == 9);
    CHECK(one.parts[0]->measured == 8);
    Parallel disturbed(3, [](int at_once) {
        return at_once > 1 ? 0.8 : 1.0;
    });  // figures of a check that do not count
    CHECK(disturbed.run(12).reason == StopReason::trials_spent);
    CHECK(measured_of(disturbed) == 12);
    CHECK(disturbed.study->trials().size() == 15);
}

TEST_CASE(
    "workers: without a check there is one trial at a time: too few trials, or a default that "
    "gives no figure") {
    Parallel few(4);
    CHECK(few.run(4).reason == StopReason::trials_spent);
    CHECK(few.said.find("too few trials are left") == 0);
    CHECK(few.machine.most_at_once == 1);
    CHECK(few.study->told_in_search() == 4);
    Parallel failing(2, [first = true](int) mutable {
        return std::exchange(first, false) ? std::nan("") : 1.0;
    });
    CHECK(failing.run(9).reason == StopReason::trials_spent);
    CHECK(has(failing.said, "which gave no sound figure: one trial at a time"));
    CHECK(failing.machine.most_at_once == 1);
}

TEST_CASE(
    "workers: an evaluator that cannot go on ends the run, and what the others measured is kept") {
    Parallel parallel(3);
    parallel.parts[1]->throws_at = 4;
    const Summary summary = parallel.run(60);
    CHECK(summary.reason == StopReason::error);
    CHECK(summary.message == "the disk is full");
    CHECK(parallel.study->told_in_search() >= 6);
    CHECK(parallel.study->told_in_search() < 30);
    std::size_t open = 0;
    for (const Trial& trial : parallel.journal.trials()) open += trial.told() ? 0 : 1;
    CHECK(open >= 1);
    CHECK(open <= 3);
}

TEST_CASE("workers: a user who stops leaves open trials, which the next run takes up") {
    Parallel parallel(4);
    std::stop_source user;
    std::jthread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(70));
        user.request_stop();
    });
    CHECK(parallel.run(5000, user.get_token()).reason == StopReason::stopped_by_user);
    later.join();
    std::size_t open = 0;
    for (const Trial& trial : parallel.journal.trials()) open += trial.told() ? 0 : 1;
    CHECK(open > 0);
    const std::size_t told = parallel.study->told_in_search();
    CHECK(parallel.run(told + open).reason == StopReason::trials_spent);
    for (const Trial& trial : parallel.journal.trials()) CHECK(trial.told());
}

TEST_CASE(
    "workers: what was under way when a process died is measured alone, so that only the deadly "
    "one dies again") {
    Parallel before(4);
    REQUIRE(before.run(30).reason == StopReason::trials_spent);
    std::vector<Trial> trials = before.journal.trials();
    const std::size_t first_open = trials.size() - 3;
    for (std::size_t i = first_open; i < trials.size(); ++i) trials[i].outcome = {};
    Parallel after(4);
    take_over(after, trials);
    REQUIRE(after.run(40).reason == StopReason::trials_spent);
    const std::vector<Trial> ended = after.journal.trials();
    for (std::size_t i = first_open; i < trials.size(); ++i) {
        REQUIRE(ended[i].measurement() != nullptr);
        for (std::size_t j = first_open; j < ended.size(); ++j)
            CHECK((i == j || *ended[j].told_at <= *ended[i].started_at ||
                   *ended[i].told_at <= *ended[j].started_at));
    }
    CHECK(after.machine.most_at_once == 4);  // and then again together
}

TEST_CASE("workers: one evaluator is a run as any other, a budget that cannot be is an error") {
    Parallel one(1);
    CHECK(one.run(9).reason == StopReason::trials_spent);
    CHECK(one.said.empty());
    CHECK(one.machine.most_at_once == 1);
    Parallel parallel(2);
    std::vector<Evaluator*> evaluators{parallel.parts[0].get(), parallel.parts[1].get()};
    Study study(parallel.problem, parallel.strategy, parallel.journal);
    CHECK(WorkersRun(study, evaluators, Budget{.wall_clock_seconds = -1}).run().reason ==
          StopReason::error);
}

TEST_CASE("workers: what looks best is confirmed by one of them, one trial at a time") {
    Parallel parallel(3);
    Problem problem(TuningTask::space(), {metric}, {});
    std::vector<Evaluator*> evaluators;
    for (const auto& part : parallel.parts) evaluators.push_back(part.get());
    Study study(problem, parallel.strategy, parallel.journal, {.seed = 6});
    const Summary summary = WorkersRun(study, evaluators, Budget{.trials = 40}).run();
    CHECK(summary.recommendation.conclusion == Conclusion::recommended);
    const std::vector<Trial>& trials = study.trials();
    const auto first = find_if(trials, confirms);
    REQUIRE(first != trials.end());
    CHECK(trials.end() - first >= 2);  // one round proves a large gain
    for (auto at = first; at != trials.end(); ++at) {
        CHECK(confirms(*at));
        for (auto before = trials.begin(); before != at; ++before)
            CHECK(before->told_at <= at->started_at);
    }
}
