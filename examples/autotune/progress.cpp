// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include "clocks.hpp"
#include "output.hpp"
#include "screen.hpp"

#include "servetune/base/printable.hpp"
#include "servetune/report/report.hpp"
#include "servetune/study/recommendation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace autotune {

using namespace servetune;

namespace {

std::string duration(double seconds) {
    if (seconds < 90) return fmt::format("{:.0f} s", seconds);
    if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
    return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

double seconds_left(const Budget& budget, const Spent& spent, double now) {
    double left = std::min(budget.wall_clock_seconds - spent.run_seconds, budget.until - now);
    const double trials_left = static_cast<double>(budget.trials) - static_cast<double>(spent.searched);
    if (spent.told > 0) left = std::min(left, trials_left * spent.trials_seconds / static_cast<double>(spent.told));
    return std::max(left, 0.0);
}

Progress::Progress(const StudySetup& setup, const Budget& budget) : setup_(setup), budget_(budget), began_(steady_seconds()) {}

Progress::~Progress() { screen().status({}); }

std::string Progress::subject(const Trial& trial) const {
    const std::string changes = difference_text(trial.configuration, setup_.problem->space.default_configuration());
    return (trial.workload.empty() ? "" : trial.workload + ": ") + (changes.empty() ? "the default" : changes);
}

std::string Progress::left() const {
    Spent spent = spent_;
    spent.run_seconds = steady_seconds() - began_;
    const double seconds = seconds_left(budget_, spent, unix_seconds());
    return std::isfinite(seconds) ? "at most " + duration(seconds) + " left" : "";
}

void Progress::add_up(std::span<const Trial> history) {
    spent_ = {};
    for (const Trial& trial : history) {
        if (!trial.told()) continue;
        spent_.searched += trial.of_search() ? 1 : 0;
        ++spent_.told;
        spent_.trials_seconds += trial.cost_seconds();
    }
}

void Progress::resumed(std::span<const Trial> history) {
    add_up(history);
    complain("going on with {} told trials", spent_.told);
}

void Progress::started(const Trial& trial) {
    const LinePart best = incumbent_.empty() ? LinePart{"nothing measured yet", 2} : LinePart{incumbent_, 0};
    const LinePart number{fmt::format("trial {} of at most {}", trial.id, budget_.trials), 1};
    screen().status({fitted({number, {left(), 0}, best}, screen().width() - 1), "  " + subject(trial)});
}

void Progress::told(const Trial& trial, std::span<const Trial> history) {
    add_up(history);
    const Objective& objective = setup_.problem->objective;
    const std::vector<Trial> search = search_history(*setup_.problem, history);
    const Standings standings(search, objective, setup_.problem->decision);
    const Standing* base = standings.find(setup_.problem->space.default_configuration());
    const auto gain = [&](double value) {
        return base != nullptr && base->passes() ? " (" + percent(objective.leading().gain(value, base->estimate().mean)) + ")"
                                                 : std::string();
    };
    if (const Standing* best = standings.best())
        incumbent_ = "best " + figure_text(objective.leading().metric, best->estimate().mean) + gain(best->estimate().mean);
    std::string result;
    if (const Failure* failure = trial.failure()) result = fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message);
    else {
        const auto found = trial.measurement()->metrics.find(objective.leading().metric);
        const Standing* standing = trial.of_search() ? standings.find(trial.configuration) : nullptr;
        result = found == trial.measurement()->metrics.end()
                     ? "no " + objective.leading().metric
                     : figure_text(objective.leading().metric, found->second.value) + (trial.of_search() ? gain(found->second.value) : "");
        if (standing != nullptr && !standing->refused.empty()) result += ", refused: " + standing->refused;
    }
    const std::string number = fmt::format("trial {}", trial.id);
    const std::string best = incumbent_.empty() ? "nothing passes yet" : incumbent_;
    result = printable_line(secrets()(result));
    if (!screen().terminal()) return put_text(stderr, fitted({{number}, {subject(trial)}, {result}, {best}, {left()}}, std::string::npos));
    // The best and the time left are in the status lines below. A long reason goes on in the next row; what was tried
    // is cut for it.
    const std::size_t wanted = columns_of(number) + columns_of(" | ") + columns_of(result);
    put_text(stderr, fitted({{number, 0}, {result, 0}, {subject(trial), 1}}, std::max(screen().width() - 1, wanted)));
}

}  // namespace autotune
