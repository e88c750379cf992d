// SPDX-License-Identifier: Apache-2.0
// The optimizer for programs in any language: JSON lines in and out
// (docs/reference/your-own-program.md).
#include "ask_tell_conversation.hpp"
#include "commands.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "study_journal.hpp"

#include "base/text.hpp"
#include "servetune/error.hpp"
#include "servetune/sqlite_journal.hpp"
#include "servetune/version.hpp"

#include <nlohmann/json.hpp>

namespace autotune {

namespace {

/// The next line of standard input without its end; nothing when the input ends. Of a longer one
/// the beginning.
std::optional<std::string> next_line() {
    std::string line;
    int c = std::getc(stdin);
    if (c == EOF) return std::nullopt;
    for (; c != EOF && c != '\n'; c = std::getc(stdin))
        if (line.size() <= longest_line) line += static_cast<char>(c);
    return line;
}

}  // namespace

int ask_tell(const AskTellArguments& arguments) {
    StudyFile file =
        load_study(arguments.study, Catalogue::standard(), arguments.strategy, MeasuredBy::outside);
    if (file.budget_until) file.budget.until = next_time_of_day(*file.budget_until);
    const StudySetup setup = set_up(std::move(file), arguments.directory.value_or(""));
    put_each(stderr, "knowledge: ", setup.knowledge);
    std::unique_ptr<Journal> journal;
    try {
        if (!arguments.directory) journal = std::make_unique<MemoryJournal>();
        else
            journal = std::make_unique<SqliteJournal>(SqliteJournal::open(
                *arguments.directory,
                {setup.file.name, setup.definition(), std::string(library_version), setup.texts()},
                arguments.accept_changes,
                [](const std::string& line) { put_text(stderr, "autotune: " + line); }));
    } catch (const IoError& error) {
        put_text(stderr, complaint_of(error));
        return environment_error;
    }
    AskTellConversation conversation(setup, setup.file.budget, *journal);
    while (const auto line = next_line()) {
        OrderedJson answer;
        bool broken = false;
        try {
            answer = conversation.answer(*line);
        } catch (const Error& error) {
            answer = {{"error", secrets()(error.what())}};
            broken = dynamic_cast<const IoError*>(&error) !=
                     nullptr;  // what was told can no longer be kept
            if (broken) put(stderr, "autotune: {}\n", error.what());
        }
        // A configuration is given as it is, whatever it holds: the program that asks must be able
        // to use it.
        put_controls(
            stdout,
            printable(answer.dump(-1, ' ', false, OrderedJson::error_handler_t::replace)) + "\n");
        if (std::fflush(stdout) != 0) return environment_error;
        if (broken) return environment_error;
    }
    return done;
}

}  // namespace autotune
