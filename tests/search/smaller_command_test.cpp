// SPDX-License-Identifier: Apache-2.0
// The first of the last trials: the best command without the flags that seem to do nothing,
// measured itself.
#include "servetune/bayesian.hpp"
#include "servetune/budget.hpp"
#include "servetune/recommendation.hpp"
#include "study/confirmation.hpp"
#include "study/verdict.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <cmath>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

constexpr std::size_t trials_of_reduction = 30;

/// Seven flags, of which `backend` alone matters: `fast` is 30 % better.
SearchSpace mostly_idle_space() {
    std::vector<Parameter> parameters{Parameter::choice("backend", {"plain", "fast", "other"})};
    for (const char* name : {"b", "c", "d", "e", "f", "g"})
        parameters.push_back(Parameter::choice(name, {"0", "1", "2"}));
    return SearchSpace(parameters);
}

Outcome only_backend_matters(const Configuration& configuration, Rng& noise) {
    const double gain = text_of(*configuration.find("backend")) == "fast" ? 1.3 : 1;
    return Measurement{{{metric, {1000 * gain * std::exp(0.01 * noise.normal())}}}};
}

bool drops_settings(const Trial& trial) {
    return trial.why.starts_with("the best so far without what seems to do nothing: ");
}

std::vector<Trial> searched_to_reduce(const Problem& problem, std::uint64_t seed,
                                      const TuningTask::Answering& answer) {
    Bayesian::Options options;
    options.trials = trials_of_reduction;
    options.seed = seed;
    return TuningTask::studied(problem, Bayesian(options), trials_of_reduction, seed, answer);
}

}  // namespace

TEST_CASE(
    "smaller command: flags that do nothing are dropped, and what is left is measured before it is "
    "recommended") {
    const Problem problem(mostly_idle_space(), {metric}, {});
    std::vector<double> settings;
    std::ptrdiff_t proposed = 0;
    for (std::uint64_t seed = 1; seed <= 7; ++seed) {
        const std::vector<Trial> history = searched_to_reduce(problem, seed, only_backend_matters);
        const auto here = count_if(history, drops_settings);
        CHECK(here <= 1);
        proposed += here;
        for (std::size_t i = 0; i < history.size(); ++i)
            if (drops_settings(history[i]))
                CHECK(i + 2 >=
                      search_trials(problem, trials_of_reduction));  // once the search is over
        const Recommendation result = recommend(problem, history);
        CHECK(text_of(*result.recommended.find("backend")) == "fast");
        settings.push_back(double(settings_beyond_default(problem.space, result.recommended)));
    }
    CHECK(proposed >= 5);
    CHECK(median(settings) == 1);
}

TEST_CASE(
    "smaller command: a flag that matters is kept, and an engine that answers the same each time "
    "is asked as well") {
    Problem problem(mostly_idle_space(), {metric}, {});
    problem.replicates_inform = false;
    const std::vector<Trial> history =
        searched_to_reduce(problem, 1, [](const Configuration& configuration, Rng& /*noise*/) {
            double gain = text_of(*configuration.find("backend")) == "fast" ? 1.3 : 1;
            if (text_of(*configuration.find("c")) == "1") gain *= 1.1;
            return Measurement{{{metric, {1000 * gain}}}};
        });
    const Configuration best = recommend(problem, history).recommended;
    CHECK(text_of(*best.find("backend")) == "fast");
    CHECK(text_of(*best.find("c")) == "1");
    CHECK(settings_beyond_default(problem.space, best) == 2);
}

TEST_CASE(
    "smaller command: it is measured too before a search ends that is not worth another trial") {
    const Problem problem(mostly_idle_space(), {metric}, {});
    std::vector<double> settings;
    std::ptrdiff_t proposed = 0;
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Bayesian::Options options;
        options.trials = 60;
        options.serves_seconds = 7 * 86400;
        options.seed = seed;
        const std::vector<Trial> history =
            TuningTask::studied(problem, Bayesian(options), 60, seed, only_backend_matters,
                                [](const Configuration&) { return 600.0; });
        CHECK(history.size() < 60 - 6);  // it ended long before the last trials
        const auto here = count_if(history, drops_settings);
        CHECK(here <= 3);
        proposed += here;
        settings.push_back(double(
            settings_beyond_default(problem.space, recommend(problem, history).recommended)));
    }
    CHECK(proposed >= 3);
    CHECK(median(settings) <= 2);
}
