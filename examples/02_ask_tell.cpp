// SPDX-License-Identifier: Apache-2.0
// Tuning by hand: your program measures, servetune decides what to measure next. Needs the
// header-only core alone.
#include "servetune/staged.hpp"
#include "servetune/study.hpp"

#include <cmath>
#include <iostream>

using namespace servetune;

// Stands for your own load test: tokens per second of an engine under these flags.
double measure(const Configuration& flags) {
    const double sequences = flags.number("max_num_seqs");
    const double tokens = flags.number("max_num_batched_tokens");
    const double full = 12000 * (1 - std::exp(-sequences / 200)) * (1 - std::exp(-tokens / 6000));
    return *flags.find("attention_backend") == Value("flashinfer") ? full * 1.06 : full;
}

int main() {
    const Problem problem(
        SearchSpace({Parameter::choice("attention_backend", {"flash_attn", "flashinfer"}),
                     Parameter::integer("max_num_seqs", 64, 1024, Scale::log2).with_default(256),
                     Parameter::integer("max_num_batched_tokens", 512, 32768, Scale::log2)
                         .with_default(8192)},
                    {require("max_num_batched_tokens >= max_num_seqs",
                             "the engine refuses to start otherwise")}),
        Objective{"total_tokens_per_second", Direction::maximize}, Decision{});
    const Staged strategy({{{"backend", {"attention_backend"}},
                            {"limits", {"max_num_seqs", "max_num_batched_tokens"}}}});
    MemoryJournal journal;
    Study study(problem, strategy, journal);

    while (const auto trial = study.ask())
        study.tell(trial->id,
                   Measurement{{{"total_tokens_per_second", {measure(trial->configuration)}}}});

    const Recommendation result = study.recommendation();
    std::cout << study.trials().size() << " trials; serve with " << result.recommended.text()
              << ": " << result.gain.value * 100 << " % over the default\n";
    return result.keep_default ? 1 : 0;
}
