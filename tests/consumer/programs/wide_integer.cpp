// SPDX-License-Identifier: Apache-2.0
// A storage server, no engine of language models: an integer with 65 thousand levels under rules
// that only compare.
#include "expect.hpp"

#include <servetune/bayesian.hpp>
#include <servetune/servetune.hpp>

#include <chrono>
#include <cmath>
#include <string>

using namespace servetune;

namespace {

SearchSpace space() {
    return SearchSpace(
        {Parameter::choice("engine", {"btree", "lsm", "hash"}),
         Parameter::integer("buffer_mib", 16, 65536, Scale::log).with_default(1024),
         Parameter::integer("threads", 1, 128, Scale::log).with_default(8),
         Parameter::integer("memtable_mib", 8, 512, Scale::log2)
             .with_default(64)
             .when("engine", {"lsm"}),
         Parameter::boolean("bloom", true).when("engine", {"lsm"}), Parameter::boolean("prefetch"),
         Parameter::choice("scheduler", {"fifo", "fair", "deadline"}).or_unset("fair")},
        {require("buffer_mib >= 4 * threads", "each thread pins four pages"),
         require("memtable_mib * 2 <= buffer_mib", "memtables live in the buffer")});
}

}  // namespace

int main() {
    const auto began = std::chrono::steady_clock::now();
    const Problem problem(space(), Objective("rate"), Decision{});
    const Bayesian strategy;
    MemoryJournal journal;
    Study study(problem, strategy, journal);
    for (int i = 0; i < 8; ++i) {
        const auto trial = study.ask();
        expect(problem.space.feasible(trial->configuration),
               text(trial->configuration.text(), " breaks a rule"));
        const double rate = std::pow(std::min(trial->configuration.number("threads"), 48.0), 0.6) *
                            std::pow(trial->configuration.number("buffer_mib"), 0.12);
        study.tell(trial->id, Measurement{{{"rate", {rate}}}});
    }
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    // One second in a release; twenty minutes where every level is looked at.
    expect(seconds < 60, text("the problem and eight asks take ", seconds, " s"));
    return wrong;
}
