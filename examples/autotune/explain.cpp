// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "servetune/io/explain_report.hpp"
#include "servetune/io/sqlite_journal.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace autotune {

using namespace servetune;

namespace {

/// What the study ran with may have come from a `--learn-from` that is not given now.
void warn_of_other_knowledge(const StudySetup& setup, const SqliteJournal& journal) {
    if (setup.file.strategy.name != "bayesian") return;
    std::vector<std::string> then;
    for (const auto& [path, text] : journal.definition())
        if (path.starts_with("knowledge[")) then.push_back(text);
    if (then == setup.knowledge) return;
    fmt::print(stderr, "autotune: the study ran with other knowledge than is given now, so its models were others:\n");
    for (const std::string& text : then) fmt::print(stderr, "  then: {}\n", text);
    for (const std::string& text : setup.knowledge) fmt::print(stderr, "  now: {}\n", text);
}

}  // namespace

int explain(const ExplainArguments& arguments) {
    StudyFile file = arguments.load(MeasuredBy::either);
    for (const std::filesystem::path& earlier : arguments.learn_from) file.knowledge.push_back({KnowledgeChoice::Kind::study, earlier});
    const std::filesystem::path folder = arguments.folder(file);
    const StudySetup setup = set_up(std::move(file), folder);
    const SqliteJournal journal = SqliteJournal::read(folder);
    warn_of_other_knowledge(setup, journal);
    const std::vector<Trial> trials = journal.trials();
    const ExplainReport report = arguments.trial ? explain_trial(setup, trials, *arguments.trial) : explain_study(setup, trials);
    if (arguments.json) fmt::print("{}\n", report.json);
    else fmt::print("{}", report.text);
    return report.something ? done : answer_is_no;
}

}  // namespace autotune
