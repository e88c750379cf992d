// SPDX-License-Identifier: Apache-2.0
#include <servetune/servetune.hpp>

#include <cstdio>

int main() {
    using namespace servetune;
    const Problem problem(SearchSpace({Parameter::integer("max_num_seqs", 64, 512, Scale::log2)}),
                          Objective{}, Decision{});
    const Exhaustive strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    while (const auto trial = study.ask())
        study.tell(trial->id, Measurement{{{"total_tokens_per_second",
                                            {double(std::get<std::int64_t>(
                                                *trial->configuration.find("max_num_seqs")))}}}});
    std::puts(study.recommendation().recommended.text().c_str());
    return study.recommendation().recommended.text() == "max_num_seqs=512" ? 0 : 1;
}
