// SPDX-License-Identifier: Apache-2.0
#include <servetune/strategy/bayesian.hpp>
#include <servetune/study/study.hpp>

#include <cmath>
#include <cstdio>

int main() {
    using namespace servetune;
    const Problem problem(SearchSpace({Parameter::integer("max_num_seqs", 64, 512, Scale::log2)}), Objective{}, Decision{});
    BayesianOptions options;
    options.trials = 8;
    const Bayesian strategy(options);
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    for (std::size_t i = 0; i < options.trials; ++i)
        if (const auto trial = study.ask()) {
            const double sequences = trial->configuration.number("max_num_seqs");
            study.tell(trial->id, Measurement{{{"total_tokens_per_second", {std::log(sequences)}}}});
        }
    std::puts(study.recommendation().recommended.text().c_str());
    return study.recommendation().recommended.text() == "max_num_seqs=512" ? 0 : 1;
}
