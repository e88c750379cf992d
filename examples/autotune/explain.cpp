// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "output.hpp"
#include "study_journal.hpp"

#include "report/explain_report.hpp"

namespace autotune {

int explain(const ExplainArguments& arguments) {
    StudyFile file = arguments.load_to_read();
    add_earlier_studies(file, arguments.learn_from);
    const fs::path folder = arguments.folder_to_read(file);
    const StudySetup setup = set_up(std::move(file), folder);
    const SqliteJournal journal = read_journal(setup, folder);
    if (const std::string path = "knowledge[" + std::to_string(setup.knowledge.size()) + "]";
        journal.definition().contains(path))
        complain("autotune: the run also learned from {}: name it with --learn-from",
                 journal.definition().at(path));
    const std::vector<Trial> trials = journal.trials();
    const auto explained = [&] {
        if (!arguments.why_not.empty())
            return explain_why_not(
                setup, trials, settings_of(setup.file, setup.problem->space, arguments.why_not));
        return arguments.trial ? explain_trial(setup, trials, *arguments.trial)
                               : explain_study(setup, trials);
    };
    const ExplainReport report = explained();
    put_text(stdout, arguments.json ? report.json + "\n" : report.text);
    return report.something ? done : answer_is_no;
}

}  // namespace autotune
