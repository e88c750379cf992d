// SPDX-License-Identifier: Apache-2.0
#pragma once

// A made-up tuning job with two goals that pull apart: the configurations of TuningTask, of which
// those with many sequences and long steps serve more tokens a second and let the first token wait
// longer.

#include "search/hypervolume.hpp"
#include "servetune/recommendation.hpp"
#include "support/tuning_task.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace servetune::test {

/// The area under a staircase over its reference point.
inline double hypervolume(const Staircase& staircase, const Staircase::Point& reference) {
    double area = 0;
    double from = reference[0];
    for (const Staircase::Point& step : staircase.steps()) {
        area += (step[0] - from) * (step[1] - reference[1]);
        from = step[0];
    }
    return area;
}

struct TwoGoalTask {
    inline static const std::string rate = metric;
    inline static const std::string wait = "time_to_first_token_p99_seconds";

    static Objective objective() {
        return Objective(
            std::vector<Goal>{{rate, Direction::maximize}, {wait, Direction::minimize}});
    }

    static double rate_of(const Configuration& configuration) {
        return TuningTask().truth(configuration);
    }
    /// Seconds.
    static double wait_of(const Configuration& configuration) {
        const double seqs = std::log2(number(configuration, "seqs"));
        const double tokens = std::log2(number(configuration, "tokens"));
        const std::string backend = text_of(*configuration.find("backend"));
        const double by_backend = backend == "fa3"          ? 0
                                  : backend == "flashinfer" ? 0.15
                                  : backend == "triton"     ? -0.05
                                                            : 0.3;
        const double guesses = number(configuration, "guesses");
        return 0.4 * std::exp(by_backend + 0.15 * (seqs - 8) + 0.12 * std::abs(tokens - 12) +
                              (guesses > 0 ? 0.05 * guesses : 0));
    }
    static Outcome measured(const Configuration& configuration, double cv, Rng& rng) {
        if (TuningTask::fails(configuration)) return Failure{FailureKind::out_of_memory, "no room"};
        return Measurement{{{rate, {rate_of(configuration) * std::exp(cv * rng.normal())}},
                            {wait, {wait_of(configuration) * std::exp(cv * rng.normal())}}}};
    }
    static Staircase::Point point_of(const Configuration& configuration) {
        return {std::log(rate_of(configuration)), -std::log(wait_of(configuration))};
    }
    /// The area in logarithms that configurations truly have over a third of the best rate and
    /// thrice the shortest wait, as a share of that of the whole space.
    static double share_of_area(const Problem& problem, const std::vector<FrontPoint>& front) {
        std::vector<Staircase::Point> all;
        problem.feasible.for_each([&](const Configuration& configuration) {
            if (!TuningTask::fails(configuration)) all.push_back(point_of(configuration));
            return true;
        });
        Staircase::Point reference{all.front()};
        for (const Staircase::Point& point : all)
            for (std::size_t k = 0; k < 2; ++k) reference[k] = std::max(reference[k], point[k]);
        for (double& coordinate : reference) coordinate -= std::log(3);
        std::vector<Staircase::Point> found;
        for (const FrontPoint& point : front) found.push_back(point_of(point.configuration));
        return hypervolume(Staircase(found, reference), reference) /
               hypervolume(Staircase(all, reference), reference);
    }
};

}  // namespace servetune::test
