// SPDX-License-Identifier: Apache-2.0
#include "measuring_here.hpp"

#include "output.hpp"

#include "servetune/detail/host/process.hpp"
#include "servetune/error.hpp"
#include "servetune/version.hpp"

#include <algorithm>
#include <chrono>
#include <string>

namespace autotune {

using namespace servetune;

std::optional<SqliteJournal> open_journal(const std::filesystem::path& folder,
                                          const StudySetup& setup, bool accept_changes) {
    try {
        auto journal = SqliteJournal::open(
            folder,
            {setup.file.name, setup.definition(), std::string(library_version), setup.texts()},
            accept_changes, [](const std::string& line) { complain("autotune: {}", line); });
        journal.keep_environment([&setup] { return setup.environment(); });
        return journal;
    } catch (const IoError& error) {
        complain("autotune: {}", error.what());
        return std::nullopt;
    }
}

void end_what_was_left(const StudySetup& setup) {
    const auto [mark, stop_within_seconds, launcher] = setup.file.processes();
    if (launcher) {
        for (const std::string& left : launcher->leftovers(mark))
            complain("autotune: removing what an earlier run left: {}", left);
        for (const std::string& why : launcher->end_leftovers(mark)) complain("autotune: {}", why);
    }
    for (const Leftover& left : leftovers(mark))
        complain("autotune: ending what an earlier run left: {} ({})", left.id, left.command);
    const std::chrono::duration<double> patience(stop_within_seconds);
    for (const Leftover& left :
         end_leftovers(mark, std::chrono::ceil<std::chrono::milliseconds>(patience)))
        complain("autotune: {} ({}) would not end", left.id, left.command);
}

std::shared_ptr<Watchdog> watchdog_for(double stop_within_seconds) {
    constexpr double longest_seconds = 3600;  // nobody is there to end the watchdog itself
    const std::chrono::duration<double> patience(std::min(stop_within_seconds, longest_seconds));
    return std::make_shared<Watchdog>(std::chrono::ceil<std::chrono::milliseconds>(patience));
}

}  // namespace autotune
