// SPDX-License-Identifier: Apache-2.0
// Studies on a machine that changes its speed: what they conclude, beside what is true.
#include "servetune/bayesian.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/study.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <cmath>
#include <functional>
#include <iostream>
#include <memory>
#include <numbers>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr std::size_t drift_trials = 40;

using Truth = std::function<double(const Configuration&)>;
/// Trial, seed -> ln of the machine's speed.
using Speed = std::function<double(std::size_t, std::uint64_t)>;

const Truth nothing_better = [](const Configuration&) { return 5000.0; };
const Truth some_better = [](const Configuration& configuration) {
    return TuningTask().truth(configuration);
};

double share_of(std::size_t trial) { return double(trial) / (drift_trials - 1); }
const std::vector<std::pair<std::string, Speed>> speeds{
    {"no drift", [](std::size_t, std::uint64_t) { return 0.0; }},
    {"a trend of -10 %", [](std::size_t trial, std::uint64_t) { return -0.105 * share_of(trial); }},
    {"a step of -10 %",
     [](std::size_t trial, std::uint64_t seed) {
         return trial < 5 + derive_seed(seed, 7) % (drift_trials - 10) ? 0.0 : -0.105;
     }},
    {"a step of +10 %",
     [](std::size_t trial, std::uint64_t seed) {
         return trial < 5 + derive_seed(seed, 7) % (drift_trials - 10) ? 0.0 : 0.095;
     }},
    {"a wave of 10 %",
     [](std::size_t trial, std::uint64_t seed) {
         return 0.05 * std::sin(2 * std::numbers::pi *
                                (share_of(trial) * 1.5 + double(derive_seed(seed, 8) % 100) / 100));
     }},
};

struct Tally {
    std::size_t recommended = 0, kept = 0, inconclusive = 0;
    std::size_t wrong = 0;    ///< recommended, and truly worse than the default by more than 1 %
    std::size_t none = 0;     ///< recommended, and truly not better at all
    std::size_t covered = 0;  ///< recommended, and the true gain lies in the stated interval
};

Tally conclusions_of(const std::string& strategy, const Truth& truth, const Speed& speed, double cv,
                     std::size_t seeds) {
    const Problem problem(TuningTask::space(), {metric}, {Decision::Rule::significant, 0.01, cv});
    const double base = truth(problem.space.default_configuration());
    Tally tally;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        std::unique_ptr<Strategy> searcher = std::make_unique<Random>();
        if (strategy == "bayesian") {
            BayesianOptions options;
            options.trials = drift_trials;
            options.seed = seed;
            searcher = std::make_unique<Bayesian>(options);
        }
        MemoryJournal journal;
        Study::Options options{seed};
        options.default_again_every = 10;
        Study study(problem, *searcher, journal, options);
        Rng noise(derive_seed(seed, 1));
        const Budget budget{.trials = drift_trials};
        while (const auto trial = study.ask(budget)) {
            study.start(trial->id);
            const double draw = noise.normal();
            if (TuningTask::fails(trial->configuration))
                study.tell(trial->id, Failure{FailureKind::out_of_memory, "no room"});
            else
                study.tell(trial->id,
                           Measurement{{{metric,
                                         {truth(trial->configuration) *
                                          std::exp(cv * draw + speed(trial->id, seed))}}}});
        }
        const Recommendation result = study.recommendation();
        tally.kept += result.conclusion == Conclusion::keep_default ? 1 : 0;
        tally.inconclusive += result.conclusion == Conclusion::inconclusive ? 1 : 0;
        if (result.conclusion != Conclusion::recommended) continue;
        const double gain = truth(result.recommended) / base - 1;
        ++tally.recommended;
        tally.wrong += gain < -0.01 ? 1 : 0;
        tally.none += gain <= 1e-9 ? 1 : 0;
        tally.covered += gain >= result.gain.low && gain <= result.gain.high ? 1 : 0;
    }
    return tally;
}

}  // namespace

TEST_CASE("a machine that drifts makes no gain where there is none", "[decision]") {
    for (const auto& [name, speed] : speeds) {
        INFO(name);
        const Tally random = conclusions_of("random", nothing_better, speed, 0.01, 60);
        CHECK(random.none <= 4);  // P(more | 2 %) = 0.8 %
        const Tally bayesian = conclusions_of("bayesian", nothing_better, speed, 0.01, 10);
        CHECK(bayesian.none <= 1);
    }
}

TEST_CASE("on a machine that drifts a real gain is still found", "[decision]") {
    for (const auto& [name, speed] : speeds) {
        INFO(name);
        const Tally tally = conclusions_of("bayesian", some_better, speed, 0.01, 10);
        CHECK(tally.wrong == 0);
        CHECK(tally.recommended + tally.inconclusive >= 8);
    }
}

TEST_CASE("200 studies of each noise and drift", "[.long]") {
    std::cout << "| strategy | better configurations | noise | machine | recommended | default "
                 "kept | inconclusive | no gain | worse by 1 % | "
                 "gain in its interval |\n|---|---|---:|---|---:|---:|---:|---:|---:|---:|\n";
    for (const std::string strategy : {"bayesian", "random"})
        for (const bool better : {false, true})
            for (const double cv : {0.01, 0.03, 0.1})
                for (const auto& [name, speed] : speeds) {
                    const Tally tally = conclusions_of(
                        strategy, better ? some_better : nothing_better, speed, cv, 200);
                    std::cout << "| " << strategy << " | " << (better ? "some" : "none") << " | "
                              << cv * 100 << " % | " << name << " | " << tally.recommended << " | "
                              << tally.kept << " | " << tally.inconclusive << " | " << tally.none
                              << " | " << tally.wrong << " | " << tally.covered << " |"
                              << std::endl;
                    CHECK(tally.wrong < 4);
                    CHECK(tally.none <= 8);  // P(more | 2 %) = 2 %
                }
}
