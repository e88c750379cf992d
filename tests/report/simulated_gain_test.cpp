// SPDX-License-Identifier: Apache-2.0
// What is simulated without noise is not said to be noise.
#include "servetune/report.hpp"
#include "servetune/study.hpp"
#include "servetune/study_file.hpp"
#include "support/shipped.hpp"
#include "support/temporary_folder.hpp"
#include "support/test.hpp"

using namespace servetune;
using namespace servetune::test;

TEST_CASE(
    "report: a simulated figure without noise is not said to be noise, nor to lack an interval") {
    const auto given_away = [](const std::string& evaluator) {
        const TemporaryFolder folder;
        const StudySetup setup = set_up(
            load_study(
                folder.write(
                    "s.yaml",
                    "study: s\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: vllm\nstrategy: "
                    "exhaustive\n"
                    "workloads: [{use: random, input_tokens: 64, output_tokens: 8, requests: 10}]\n"
                    "objective: {maximize: total_tokens_per_second}\nothers: default\n"
                    "space: {max_num_seqs: {choice: [8, 16]}, enforce_eager: {choice: [false, "
                    "true]}}\nevaluator: " +
                        evaluator + "\n"),
                Catalogue(search_spaces)),
            folder.path() / "out");
        MemoryJournal journal;
        Study study(*setup.problem, *setup.strategy, journal);
        for (int i = 0; i < 60; ++i) {
            const auto trial = study.ask({.trials = 60});
            if (!trial) break;
            const bool more = *trial->configuration.find("max_num_seqs") == Value(std::int64_t{16});
            const bool eager = *trial->configuration.find("enforce_eager") == Value(true);
            study.tell(trial->id, Measurement{{{"total_tokens_per_second",
                                                {more ? eager ? 1220.0 : 1200.0 : 1000.0}}}});
            if (static_cast<double>(study.trials().size()) == setup.problem->feasible.size()) break;
        }
        return headline_of(setup, study.trials()).given_away;
    };
    const std::string noisy = given_away("{simulate: {noise: 2%}}");
    CHECK_FALSE(noisy.empty());
    const std::string exact = given_away("simulate");
    INFO(exact);
    CHECK(has(exact, "figure measured is 1220"));
    CHECK_FALSE(has(exact, "noise"));
    CHECK_FALSE(has(exact, "interval"));
}
