// SPDX-License-Identifier: Apache-2.0
#include <servetune/report.hpp>
#include <servetune/study.hpp>

#include <cstdio>

int main(int, char** argv) {
    using namespace servetune;
    const StudySetup setup = set_up(load_study(argv[1], Catalogue(argv[2])));
    MemoryJournal journal;
    Study study(*setup.problem, *setup.strategy, journal, {setup.file.seed});
    const Summary summary = study.run(*setup.evaluator, setup.file.budget);
    std::puts(setup.command(summary.recommendation.recommended).text().c_str());
    return markdown_report(setup, study.trials(), "").empty() ? 1 : 0;
}
