// SPDX-License-Identifier: Apache-2.0
// What further trials would bring, against what they brought.
#include "servetune/explanation.hpp"
#include "servetune/simple_strategies.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <algorithm>
#include <iostream>

using namespace servetune;
using namespace servetune::test;

namespace {

struct SearchedJob {
    SearchedJob(std::size_t trials, std::uint64_t seed, double cv = 0.01)
        : history(TuningTask().searched(problem, Random(), trials, seed, cv)),
          outlook(problem, history, bayesian) {}

    Problem problem{TuningTask::space(), {metric}, {}};
    Bayesian bayesian{};
    std::vector<Trial> history;
    Explanation outlook;
};

/// What a search has found by its trial `count`: the configuration with the best figure.
Configuration looks_best(const std::vector<Trial>& history, std::size_t count) {
    const Trial* best = nullptr;
    const auto value = [](const Trial& one) {
        return one.measurement() == nullptr ? 0 : one.measurement()->metrics.at(metric).value;
    };
    for (std::size_t i = 0; i < std::min(count, history.size()); ++i)
        if (best == nullptr || value(history[i]) > value(*best)) best = &history[i];
    return best->configuration;
}

struct Calibration {
    double predicted = 0, real = 0;
    std::size_t inside = 0, worth = 0;
    double chance = 0;
};

/// Of studies with `before` trials what further ones are predicted to bring, and what they bring:
/// the true figure of what looks best then and now.
Calibration calibrated(std::size_t studies, std::size_t before, std::size_t further) {
    constexpr double least = 0.01;
    const TuningTask task;
    const Problem problem(TuningTask::space(), {metric}, {});
    Calibration result;
    for (std::size_t seed = 1; seed <= studies; ++seed) {
        const Bayesian bayesian{};
        const auto history = task.searched(problem, bayesian, before + further, seed);
        const std::vector<Trial> first(history.begin(), history.begin() + std::ptrdiff_t(before));
        const Explanation outlook(problem, first, bayesian);
        const Configuration then = looks_best(history, before);
        const FurtherGain gain = outlook.further(then, further, least);
        const double real =
            task.truth(looks_best(history, before + further)) / task.truth(then) - 1;
        result.predicted += gain.gain.value / double(studies);
        result.real += real / double(studies);
        constexpr double rounding = 1e-3;
        result.inside +=
            real >= gain.gain.low - rounding && real <= gain.gain.high + rounding ? 1 : 0;
        result.chance += gain.chance_changed / double(studies);
        result.worth += real >= least ? 1 : 0;
    }
    std::cout << before << " + " << further << " trials, " << studies << " studies: predicted "
              << result.predicted << ", real " << result.real << ", inside " << result.inside
              << ", chance " << result.chance << ", worth " << result.worth << "\n";
    return result;
}

}  // namespace

TEST_CASE("outlook: more trials bring no less, and where all was tried they bring nothing") {
    const SearchedJob job(20, 3);
    const Configuration best = looks_best(job.history, job.history.size());
    const FurtherGain one = job.outlook.further(best, 1, 0.01);
    const FurtherGain ten = job.outlook.further(best, 10, 0.01);
    constexpr double drawing = 0.005;  // a thousand worlds
    CHECK(one.gain.value >= -drawing);
    CHECK(ten.gain.value >= one.gain.value - drawing);
    CHECK(ten.chance_changed >= one.chance_changed - 0.05);
    CHECK(ten.gain.low <= ten.gain.value);
    CHECK(ten.gain.value <= ten.gain.high);
    CHECK(ten.gain.value == job.outlook.further(best, 10, 0.01).gain.value);  // the same every time
    CHECK(job.outlook.further(best, 0, 0.01).gain.value == 0);

    const Problem small(SearchSpace({Parameter::choice("mode", {"slow", "fast"})}), {metric}, {});
    const Bayesian bayesian{};
    std::vector<Trial> all;
    for (const char* mode : {"slow", "fast", "slow"}) {
        all.push_back({all.size(), small.space.completed({{"mode", mode}})});
        all.back().outcome = Measurement{
            {{metric, {mode == std::string("fast") ? 110.0 : 100.0 + double(all.size())}}}};
    }
    const Explanation nothing(small, all, bayesian);
    CHECK_FALSE(nothing.floor().enough());  // two configurations, three needed
    const SearchedJob few(3, 3);
    CHECK_FALSE(few.outlook.floor().enough());
}

TEST_CASE("outlook: what further trials are said to bring is about what they bring", "[.long]") {
    for (const auto& [before, further] : {std::pair<std::size_t, std::size_t>{15, 10}, {30, 10}}) {
        const Calibration found = calibrated(20, before, further);
        INFO(before << " + " << further);
        CHECK(found.inside >= 16);
        CHECK(found.predicted <= 3 * found.real + 0.01);
        CHECK(found.real <= 3 * found.predicted + 0.01);
    }
}
