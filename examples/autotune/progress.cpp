// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include "clocks.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "screen.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "base/text.hpp"
#include "study/clocks.hpp"
#include "servetune/error.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/report.hpp"
#include "study/verdict.hpp"
#include "study_file/study_predictions.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <vector>

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
    const double trials_left = static_cast<double>(spent.most.value_or(budget.trials)) -
                               static_cast<double>(spent.searched);
    if (spent.told > 0)
        left = std::min(left, trials_left * spent.trials_seconds /
                                  static_cast<double>(spent.told * spent.at_once));
    else if (spent.expected)
        left = std::min(left, trials_left * *spent.expected / static_cast<double>(spent.at_once));
    return std::max(left, 0.0);
}

Progress::Progress(const StudySetup& setup, const Budget& budget)
    : setup_(setup), budget_(budget), began_(steady_seconds()) {
    try {
        if (!std::holds_alternative<SimulateChoice>(setup.file.measuring))
            expected_ = expected_trial_seconds(setup, setup.problem->space.default_configuration());
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): the chip or the model is not known
    }
    if (screen().terminal())
        ticker_ = std::jthread([this](const std::stop_token& over) { tick(over); });
}

Progress::~Progress() {
    ticker_ = {};
    screen().status({});
}

std::string Progress::subject(const Trial& trial) const {
    const std::string changes =
        difference_text(trial.configuration, setup_.problem->space.default_configuration());
    return (trial.workload.empty() ? "" : trial.workload + ": ") +
           (changes.empty() ? "the default" : changes);
}

std::string Progress::left() const {
    Spent spent = spent_;
    spent.run_seconds = steady_seconds() - began_;
    spent.at_once = at_once_;
    spent.expected = expected_;
    const double seconds = seconds_left(budget_, spent, unix_seconds());
    if (!std::isfinite(seconds)) return "";
    const bool all_tried = spent.searched >= spent.most.value_or(budget_.trials);
    if (all_tried || spent.run_seconds >= budget_.wall_clock_seconds) return "search done";
    return seconds < 1 ? "less than 1 s left" : "at most " + duration(seconds) + " left";
}

Spent spent_in(const StudySetup& setup, const Budget& budget, std::span<const Trial> history) {
    Spent spent;
    std::set<Configuration> seen;
    std::size_t repeated = 0;
    for (const Trial& trial : history) {
        if (trial.of_search() && !seen.insert(trial.configuration).second) ++repeated;
        if (!trial.told()) continue;
        spent.searched += trial.of_search() ? 1 : 0;
        ++spent.told;
        spent.trials_seconds += trial.cost_seconds();
    }
    spent.most = most_trials(setup, budget, repeated);
    return spent;
}

void Progress::add_up(std::span<const Trial> history) {
    spent_ = spent_in(setup_, budget_, history);
}

void Progress::resumed(std::span<const Trial> history) {
    const std::scoped_lock lock(mutex_);
    add_up(history);
    const std::vector<Trial> search = search_history(*setup_.problem, history);
    keep_best(standings_of(*setup_.problem, search));
    complain("resuming after {}", counted_text(spent_.told, "trial"));
}

void Progress::show() {
    if (running_.empty()) return screen().status({});
    const LinePart best =
        incumbent_.empty() ? LinePart{"nothing measured yet", 2} : LinePart{incumbent_, 0};
    const std::size_t columns = screen().width() - 1;
    const std::size_t below = columns > 2 ? columns - 2 : columns;
    std::string number;
    std::vector<LinePart> parts;
    for (const auto& [trial, one] : running_) {
        number += (number.empty() ? running_.size() > 1 ? "trials " : "trial " : ", ") +
                  std::to_string(trial);
        const std::string took = duration(steady_seconds() - one.began);
        if (running_.size() == 1) parts = {{one.tried, 2}, {one.phase, 1}, {took, 0}};
        else
            parts.push_back(
                {fmt::format("{}: {} {}", trial, one.phase.empty() ? one.tried : one.phase, took),
                 static_cast<int>(parts.size())});
    }
    const std::string bound = most_ ? fmt::format(" of at most {}", *most_) : "";
    std::string above = fitted({{number + bound, 1}, {left(), 0}, best, {interval_, 3}}, columns);
    if (above.find(bound) == std::string::npos)
        above = fitted({{number, 1}, {left(), 0}, best, {interval_, 3}}, columns);
    screen().status({above, "  " + fitted(parts, below)});
}

void Progress::tick(const std::stop_token& over) {
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, over, std::chrono::seconds(1),
                           [&over] { return over.stop_requested(); }))
        show();
}

void Progress::phase(std::uint64_t trial, const std::string& what) {
    const std::scoped_lock lock(mutex_);
    if (const auto found = running_.find(trial); found != running_.end())
        found->second.phase = printable_line(secrets()(what));
}

void Progress::started(const Trial& trial) {
    const std::scoped_lock lock(mutex_);
    most_ = spent_.told > 0 ? spent_.most : most_trials(setup_, budget_);
    running_[trial.id] = {subject(trial), "", steady_seconds()};
    at_once_ = running_.size();
    show();
}

std::string Progress::gain_of(const Trial& trial, double figure, const Standings& standings) const {
    const Objective& objective = setup_.problem->objective;
    const Standing* base = standings.find(setup_.problem->space.default_configuration());
    if (base == nullptr || !base->passes() || !trial.of_search()) return "";
    const bool worst = objective.over == Objective::Over::worst;
    if (worst) {  // the trial's own figure is the mean over the workloads
        const Standing* standing = standings.find(trial.configuration);
        if (standing == nullptr) return "";
        const GoalFigures& figures = standing->leading();
        const auto at =
            std::find(figures.places.begin(), figures.places.end(), static_cast<double>(trial.id));
        if (at == figures.places.end()) return "";
        figure = figures.values[static_cast<std::size_t>(at - figures.places.begin())];
    }
    const FigureScale& scale = standings.scale();
    const auto gain = stated_gain(objective.leading(), scale, figure, base->estimate().mean);
    if (!gain) return "";
    return " (" + stated_text(*gain, scale) + (worst ? " in the worst workload)" : ")");
}

void Progress::keep_best(const Standings& standings) {
    const Problem& problem = *setup_.problem;
    const Standing* best = standings.best();
    incumbent_.clear();
    interval_.clear();
    if (best == nullptr) return;
    const Standing* base = standings.find(problem.space.default_configuration());
    incumbent_ = "best " + figure_text(problem.objective.leading().metric, best->estimate().mean);
    if (base == nullptr || !base->passes()) return;
    const auto stated = stated_gain(problem.objective.leading(), standings.scale(),
                                    best->estimate().mean, base->estimate().mean);
    incumbent_ +=
        " (" + (stated ? stated_text(*stated, standings.scale()) : std::string("?")) +
        (problem.objective.over == Objective::Over::worst ? " in the worst workload)" : ")");
    if (best == base) return;
    const Gain gain = judged_gain(problem, standings, *best, *base);
    if (gain.has_interval())
        interval_ =
            "95 % " + gain_text(gain.low, gain.scale) + " to " + gain_text(gain.high, gain.scale);
}

void Progress::told(const Trial& trial, std::span<const Trial> history) {
    const std::scoped_lock lock(mutex_);
    add_up(history);
    running_.erase(trial.id);
    const Objective& objective = setup_.problem->objective;
    const std::vector<Trial> search = search_history(*setup_.problem, history);
    const Standings standings = standings_of(*setup_.problem, search);
    const std::string before = incumbent_;
    keep_best(standings);
    std::string result;
    LineStyle style = LineStyle::plain;
    if (const Failure* failure = trial.failure()) {
        result = fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message);
        style = LineStyle::bad;
    } else {
        const auto found = trial.measurement()->metrics.find(objective.leading().metric);
        const Standing* standing =
            trial.of_search() ? standings.find(trial.configuration) : nullptr;
        result = found == trial.measurement()->metrics.end()
                     ? "no " + objective.leading().metric
                     : figure_text(objective.leading().metric, found->second.value) +
                           gain_of(trial, found->second.value, standings);
        if (standing != nullptr && !standing->refused.empty()) {
            result += ", refused: " + standing->refused;
            style = LineStyle::bad;
        } else if (!before.empty() && standing != nullptr && standing == standings.best() &&
                   before != incumbent_)
            style = LineStyle::good;
    }
    const std::string number = fmt::format("trial {}", trial.id);
    const std::string best = incumbent_.empty() ? "nothing passes yet" : incumbent_;
    result = printable_line(secrets()(result));
    if (!screen().terminal())
        return put_text(stderr, fitted({{number}, {subject(trial)}, {result}, {best}, {left()}},
                                       std::string::npos));
    // The best and the time left are in the status lines below. A long reason goes on in the next
    // rows; what was tried is cut for it.
    const std::size_t columns = screen().width() - 1;
    const std::size_t wanted = columns_of(number) + columns_of(" | ") + columns_of(result);
    const std::string line =
        fitted({{number, 0}, {result, 0}, {subject(trial), 1}}, std::max(columns, wanted));
    screen().line(wrapped(printable(secrets()(line)), columns), style);
}

}  // namespace autotune
