// SPDX-License-Identifier: Apache-2.0
// Two goals at once: more tokens per second and a shorter wait for the first one. There is no
// single best answer, but a front of trades to choose from.
#include "servetune/bayesian.hpp"
#include "servetune/servetune.hpp"

#include <cmath>
#include <iostream>

using namespace servetune;

// Stands for your own load test: larger steps serve more tokens, and let whoever comes meanwhile
// wait.
Metrics measure(const Configuration& flags) {
    const double sequences = flags.number("max_num_seqs");
    const double tokens = flags.number("max_num_batched_tokens");
    return {{"total_tokens_per_second",
             {12000 * (1 - std::exp(-sequences / 200)) * (1 - std::exp(-tokens / 6000))}},
            {"time_to_first_token_p99_seconds", {0.1 + sequences / 2000 + tokens / 20000}}};
}

int main() {
    // The first goal leads: what is best in it is recommended. The others stand beside it.
    const Objective objective(
        std::vector<Goal>{{"total_tokens_per_second", Direction::maximize},
                          {"time_to_first_token_p99_seconds", Direction::minimize}});
    const Problem problem(
        SearchSpace({Parameter::integer("max_num_seqs", 16, 1024, Scale::log2).with_default(256),
                     Parameter::integer("max_num_batched_tokens", 512, 32768, Scale::log2)
                         .with_default(8192)}),
        objective, Decision{});
    const Bayesian strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);

    const Budget budget{.trials = 25};
    while (const auto trial = study.ask(budget))
        study.tell(trial->id, Measurement{measure(trial->configuration)});

    const Recommendation result = study.recommendation();
    for (const FrontPoint& point : result.front)
        std::cout << point.estimates[0].mean << " tokens/s, first token within "
                  << point.estimates[1].mean << " s: " << point.configuration.text() << '\n';
    return result.front.size() > 2 ? 0 : 1;
}
