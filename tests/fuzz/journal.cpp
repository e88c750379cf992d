// SPDX-License-Identifier: Apache-2.0
// Any bytes as a journal: a file of SQLite, or (without its header) one event a line: name, space,
// body.
#include "fuzz/target.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/journal_event.hpp"
#include "support/temporary_folder.hpp"

#include <sstream>
#include <string>

using namespace servetune;
using namespace servetune::fuzz;

namespace {

void read_file(std::string_view bytes) {
    static const test::TemporaryFolder folder;
    folder.write("study.db", std::string(bytes));
    (void)accepted([&] { (void)SqliteJournal::read(folder.path()).trials(); });
    (void)accepted([&] { (void)SqliteJournal::definition_of(folder.path()); });
    (void)accepted([&] {
        const RescuedJournal rescued = SqliteJournal::rescue(folder.path());
        must_hold(SqliteJournal::read(rescued.file).trials().size() == rescued.trials.size(),
                  "what is rescued can be read");
        std::filesystem::remove(rescued.file);
    });
}

void read_events(std::string_view text) {
    std::vector<Trial> trials;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        JournalEvent event;
        const std::size_t space = line.find(' ');
        event.event = line.substr(0, space);
        event.body = space == std::string::npos ? "" : line.substr(space + 1);
        event.trial = event.event == "asked" || trials.empty() ? trials.size() : trials.size() - 1;
        event.at = 1;
        (void)event.environment();
        if (!accepted([&] { event.apply(trials); })) continue;
        // What was read is written alike.
        const Trial& trial = trials.back();
        std::vector<Trial> again;
        JournalEvent{1, 0, "asked", 1, asked_body(trial)}.apply(again);
        must_hold(again[0].configuration == trial.configuration && again[0].seed == trial.seed,
                  "a trial is written as it was read");
        if (!trial.outcome) continue;
        JournalEvent{2, 0, "started", 1, started_body("")}.apply(again);
        JournalEvent{3, 0, "told", 1, told_body(*trial.outcome)}.apply(again);
        must_hold(told_body(*again[0].outcome) == told_body(*trial.outcome),
                  "an outcome is written as it was read");
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input = text_of_input(data, size);
    if (input.starts_with("SQLite format 3")) read_file(input);
    else read_events(input);
    return 0;
}
