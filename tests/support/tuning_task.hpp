// SPDX-License-Identifier: Apache-2.0
#pragma once

// A made-up tuning job with a known best: 1344 configurations of five parameters, one conditional;
// 96 need too much memory and fail.

#include "servetune/strategy.hpp"
#include "servetune/study.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

namespace servetune::test {

inline const std::string metric = "total_tokens_per_second";

/// A parameter's number; 0 where it is inactive.
[[nodiscard]] inline double number(const Configuration& configuration, const char* name) {
    const Value* value = configuration.find(name);
    return value == nullptr ? 0 : number_of(*value).value_or(0);
}

[[nodiscard]] inline double median(std::vector<double> values) {
    sort(values);
    return values[values.size() / 2];
}

class TuningTask {
public:
    /// `shift` moves the best number of sequences, in doublings.
    explicit TuningTask(double shift = 0) : shift_(shift) {}

    static SearchSpace space() {
        return SearchSpace(
            {Parameter::choice("backend", {"fa3", "flashinfer", "triton", "torch"}),
             Parameter::integer("seqs", 32, 1024, Scale::log2).with_default(256),
             Parameter::integer("tokens", 1024, 65536, Scale::log2).with_default(8192),
             Parameter::choice("method", {"none", "ngram"}),
             Parameter::integer("guesses", 1, 7).when("method", {"ngram"})});
    }

    /// Tokens a second.
    [[nodiscard]] double truth(const Configuration& configuration) const {
        const double seqs = std::log2(number(configuration, "seqs")) - shift_;
        const double tokens = std::log2(number(configuration, "tokens")) - shift_;
        const std::string backend = text_of(*configuration.find("backend"));
        const double by_backend = backend == "fa3"          ? 0
                                  : backend == "flashinfer" ? 0.12
                                  : backend == "triton"     ? -0.1
                                                            : -0.4;
        const double guesses = number(configuration, "guesses");
        return 5000 * std::exp(by_backend - 0.04 * std::pow(seqs - 9, 2) -
                               0.03 * std::pow(tokens - seqs - 5, 2) +
                               (guesses > 0 ? 0.06 - 0.015 * std::pow(guesses - 3, 2) : 0));
    }
    [[nodiscard]] static bool fails(const Configuration& configuration) {
        return std::log2(number(configuration, "seqs")) +
                   std::log2(number(configuration, "tokens")) >
               24;
    }
    [[nodiscard]] Outcome measured(const Configuration& configuration, double cv, Rng& rng) const {
        if (fails(configuration)) return Failure{FailureKind::out_of_memory, "no room"};
        return Measurement{{{metric, {truth(configuration) * std::exp(cv * rng.normal())}}}};
    }
    [[nodiscard]] double best(const Problem& problem) const {
        double result = 0;
        problem.feasible.for_each([&](const Configuration& configuration) {
            if (!fails(configuration)) result = std::max(result, truth(configuration));
            return true;
        });
        return result;
    }

    /// The trials of a study by `strategy`, the default first.
    [[nodiscard]] std::vector<Trial> searched(const Problem& problem, const Strategy& strategy,
                                              std::size_t trials, std::uint64_t seed,
                                              double cv = 0.01) const {
        return searched(problem, strategy, trials, seed,
                        [&](const Configuration& configuration, Rng& noise) {
                            return measured(configuration, cv, noise);
                        });
    }
    /// The same where something else answers.
    using Answering = std::function<Outcome(const Configuration&, Rng&)>;
    using Timing = std::function<double(const Configuration&)>;
    [[nodiscard]] static std::vector<Trial> searched(const Problem& problem,
                                                     const Strategy& strategy, std::size_t trials,
                                                     std::uint64_t seed, const Answering& answer,
                                                     const Timing& seconds = {}) {
        Rng noise(derive_seed(seed, 1));
        Rng draws(derive_seed(seed, 2));
        std::vector<Trial> history;
        while (history.size() < trials) {
            Trial trial{history.size(), problem.space.default_configuration()};
            if (!history.empty()) {
                const Answer next = strategy.ask(problem, history, draws);
                const auto* proposal = std::get_if<Proposal>(&next);
                if (proposal == nullptr) break;
                trial.configuration = proposal->configuration;
                trial.why = proposal->why;
                trial.purpose = proposal->purpose;
            }
            trial.outcome = answer(trial.configuration, noise);
            if (seconds) {
                trial.started_at = trial.asked_at;
                trial.told_at = trial.asked_at + seconds(trial.configuration);
            }
            history.push_back(std::move(trial));
        }
        return history;
    }
    /// The trials of a whole study of so many, the confirmation with them.
    [[nodiscard]] static std::vector<Trial> studied(const Problem& problem,
                                                    const Strategy& strategy, std::size_t trials,
                                                    std::uint64_t seed, const Answering& answer,
                                                    const Timing& seconds = {}) {
        Rng noise(derive_seed(seed, 1));
        MemoryJournal journal;
        double now = 0;
        Study study(problem, strategy, journal, {seed, {}, [&] { return now; }});
        Budget budget;
        budget.trials = trials;
        while (const auto trial = study.ask(budget)) {
            study.start(trial->id);
            now += seconds ? seconds(trial->configuration) : 0;
            study.tell(trial->id, answer(trial->configuration, noise));
        }
        return study.trials();
    }
    /// How far the best that was tried is from the best there is, as a share of it.
    [[nodiscard]] double regret(const Problem& problem, const std::vector<Trial>& history) const {
        double found = 0;
        for (const Trial& trial : history)
            if (!fails(trial.configuration)) found = std::max(found, truth(trial.configuration));
        return 1 - found / best(problem);
    }

private:
    double shift_;
};

}  // namespace servetune::test
