// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include "output.hpp"

#include "servetune/base/printable.hpp"
#include "servetune/io/report.hpp"
#include "servetune/study/recommendation.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace autotune {

using namespace servetune;

namespace {

std::string duration(double seconds) {
    if (seconds < 90) return fmt::format("{:.0f} s", seconds);
    if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
    return fmt::format("{:.1f} h", seconds / 3600);
}

std::size_t width() {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

Progress::Progress(const StudySetup& setup, const Budget& budget, bool terminal) : setup_(setup), budget_(budget), terminal_(terminal) {}

Progress::~Progress() {
    if (line_open_) std::fputc('\n', stderr);
}

void Progress::show(const std::string& line, bool overwrite) {
    if (!terminal_) {
        if (!overwrite) put(stderr, "{}\n", printable_line(line));
        return;
    }
    // \r goes back to the start, ESC [K clears the old line; a line that wraps could not be overwritten.
    put_controls(stderr, "\r\033[K");
    put(stderr, "{}{}", printable_line(line).substr(0, width() - 1), overwrite ? "" : "\n");
    std::fflush(stderr);
    line_open_ = overwrite;
}

std::string Progress::subject(const Trial& trial) const {
    const std::string changes = difference_text(trial.configuration, setup_.problem->space.default_configuration());
    return (trial.workload.empty() ? "" : trial.workload + ": ") + (changes.empty() ? "the default" : changes);
}

void Progress::resumed(std::span<const Trial> history) {
    const auto told = std::count_if(history.begin(), history.end(), [](const Trial& trial) { return trial.told(); });
    show(fmt::format("going on with {} told trials", told), false);
}

void Progress::started(const Trial& trial) {
    show(fmt::format("trial {} of at most {} | {} | {}", trial.id, budget_.trials, subject(trial),
                     incumbent_.empty() ? "nothing measured yet" : incumbent_),
         true);
}

void Progress::told(const Trial& trial, std::span<const Trial> history) {
    const Objective& objective = setup_.problem->objective;
    const std::vector<Trial> search = search_history(*setup_.problem, history);
    double cost = 0;
    for (const Trial& t : history) cost += t.cost_seconds();
    const Standings standings(search, objective, setup_.problem->decision);
    const Standing* base = standings.find(setup_.problem->space.default_configuration());
    const auto gain = [&](double value) {
        return base != nullptr && base->passes() ? " (" + percent(objective.gain(value, base->estimate.mean)) + ")" : std::string();
    };
    if (const Standing* best = standings.best())
        incumbent_ = "best " + figure_text(objective.metric, best->estimate.mean) + gain(best->estimate.mean);
    const auto told_count = static_cast<double>(std::count_if(search.begin(), search.end(), [](const Trial& t) { return t.told(); }));
    const double left = static_cast<double>(budget_.trials) - told_count;
    std::string result;
    if (const Failure* failure = trial.failure()) result = fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message);
    else {
        const auto found = trial.measurement()->metrics.find(objective.metric);
        const Standing* standing = trial.of_search() ? standings.find(trial.configuration) : nullptr;
        result = found == trial.measurement()->metrics.end()
                     ? "no " + objective.metric
                     : figure_text(objective.metric, found->second.value) + (trial.of_search() ? gain(found->second.value) : "");
        if (standing != nullptr && !standing->refused.empty()) result += ", refused: " + standing->refused;
    }
    show(fmt::format("trial {} | {} | {} | {} | at most {} left", trial.id, subject(trial), result,
                     incumbent_.empty() ? "nothing passes yet" : incumbent_,
                     duration(std::max(left, 0.0) * cost / static_cast<double>(history.size()))),
         false);
}

}  // namespace autotune
