// SPDX-License-Identifier: Apache-2.0
// The shortest way: a study that owns its space, strategy and journal, and a function that
// measures.
#include <servetune/servetune.hpp>

#include <cmath>
#include <iostream>

using namespace servetune;

// Stands for your own load test: tokens per second of an engine under these flags.
double measure(const Configuration& flags) {
    const double full = 12000 * (1 - std::exp(-flags.number("seqs") / 200)) *
                        (1 - std::exp(-flags.number("tokens") / 6000));
    return flags.text("backend") == "flashinfer" ? full * 1.06 : full;
}

int main() {
    Study study(StudySettings{
        .parameters = {choice("backend", {"flash_attn", "flashinfer"}),
                       integer("seqs", 64, 1024).log2().with_default(256),
                       integer("tokens", 512, 32768).log2().with_default(8192)},
        .rules = {"tokens >= seqs"},
        .maximize = "tokens_per_second",
        .trials = 25,
    });
    std::cout << study.optimize(measure) << '\n';
}
