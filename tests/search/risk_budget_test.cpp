// SPDX-License-Identifier: Apache-2.0
// Failures cost trials: a share of them may be risked.
#include "servetune/bayesian.hpp"
#include "support/test.hpp"
#include "support/tuning_task.hpp"

#include <cmath>
#include <optional>
#include <set>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

/// ln P(works) of an ask by the models; nothing of others.
std::optional<double> log_works(const std::string& why) {
    const std::string words = "ln P(works) ";
    const std::size_t at = why.find(words);
    return at == std::string::npos ? std::nullopt
                                   : std::optional(std::stod(why.substr(at + words.size())));
}

struct Failing {
    std::size_t failed = 0;
    std::size_t risky =
        0;  ///< asked while the budget of risk was spent, with less than the careful chance
    std::size_t careful = 0;
};

/// Half of the numbers of sequences fail, for a reason that is no memory.
Failing risked(std::uint64_t seed) {
    const TuningTask task;
    const Problem problem(TuningTask::space(), {metric}, {});
    BayesianOptions options;
    options.trials = 40;
    options.seed = seed;
    const auto fails = [](const Configuration& c) {
        return number(c, "seqs") >= 512 &&
               (number(c, "tokens") >= 16384 || text_of(*c.find("backend")) == "flashinfer");
    };
    const auto history = TuningTask::searched(
        problem, Bayesian(options), 40, seed, [&](const Configuration& c, Rng& noise) {
            if (fails(c)) return Outcome(Failure{FailureKind::crashed_under_load, "no"});
            return Outcome(
                Measurement{{{metric, {task.truth(c) * std::exp(0.01 * noise.normal())}}}});
        });
    Failing result;
    std::size_t before = 0;
    std::set<Configuration> seen;
    for (const Trial& trial : history) {
        const bool spent = 8 * result.failed > before;
        const auto works = log_works(trial.why);
        const bool anew = seen.insert(trial.configuration).second;
        if (spent && works && anew) {
            ++result.careful;
            if (*works < std::log(0.7) - 0.01) ++result.risky;
        }
        before += anew ? 1 : 0;
        result.failed += anew && trial.failure() != nullptr ? 1 : 0;
    }
    return result;
}

}  // namespace

TEST_CASE("risk: once too many failed, only what probably works is tried") {
    std::size_t careful = 0;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const Failing one = risked(seed);
        CHECK(one.risky == 0);
        careful += one.careful;
    }
    CHECK(careful > 10);
}
