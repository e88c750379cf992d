// SPDX-License-Identifier: Apache-2.0
#include <servetune/bayesian.hpp>
#include <servetune/study.hpp>

#include <cmath>
#include <cstdio>

int main() {
    using namespace servetune;
    const Problem problem(SearchSpace({Parameter::integer("max_num_seqs", 64, 512, Scale::log2)}),
                          Objective{}, Decision{});
    const Bayesian strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    while (const auto trial = study.ask({.trials = 16})) {
        const double sequences = trial->configuration.number("max_num_seqs");
        study.tell(trial->id, Measurement{{{"total_tokens_per_second", {std::log(sequences)}}}});
    }
    std::puts(study.recommendation().recommended.text().c_str());
    return study.recommendation().recommended.text() == "max_num_seqs=512" ? 0 : 1;
}
