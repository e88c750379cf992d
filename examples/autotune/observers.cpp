// SPDX-License-Identifier: Apache-2.0
#include "observers.hpp"
#include "output.hpp"
#include "plan.hpp"

#include "base/text.hpp"
#include "report/report_json.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/outcome.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/report.hpp"
#include "servetune/study.hpp"
#include "study/clocks.hpp"
#include "study/json.hpp"
#include "study/verdict.hpp"
#include "trial/metric_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <system_error>

namespace autotune {

double seconds_left(const Budget& budget, const Spent& spent, double now) {
    double left = std::min(budget.wall_clock_seconds - spent.run_seconds, budget.until - now);
    std::optional<double> each = spent.expected;
    if (spent.told > 0) each = spent.each_seconds();
    if (each && spent.all) {
        const auto trials_left =
            double(spent.all->trials) - double(std::min(spent.all->trials, spent.searched));
        left = std::min(left, trials_left * *each / double(spent.at_once));
    }
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

std::string tried_text(const Problem& problem, const Trial& trial) {
    const std::string changes =
        difference_text(trial.configuration, problem.space.default_configuration());
    return (trial.workload.empty() ? "" : trial.workload + ": ") +
           (changes.empty() ? "the default" : changes);
}

BestSoFar best_so_far(const Problem& problem, const Standings& standings) {
    BestSoFar result{standings.best(), standings.find(problem.space.default_configuration())};
    if (result.base != nullptr && (result.best == nullptr || !result.base->passes()))
        result.base = nullptr;
    if (result.base != nullptr && result.base != result.best)
        result.gain = judged_gain(problem, standings, *result.best, *result.base);
    return result;
}

std::string Progress::left() const {
    Spent spent = spent_;
    spent.run_seconds = steady_seconds() - began_;
    spent.at_once = at_once_;
    spent.expected = expected_;
    const double seconds = seconds_left(budget_, spent, unix_seconds());
    if (!std::isfinite(seconds)) return "";
    const bool all_told = spent.all && spent.searched >= spent.all->trials;
    if (all_told && !spent.all->at_most) return "";
    if (all_told || spent.run_seconds >= budget_.wall_clock_seconds) return "search done";
    return (seconds < 1 ? "" : "about ") + duration_text(seconds) + " left";
}

Spent spent_in(const StudySetup& setup, const Budget& budget, std::span<const Trial> history) {
    Spent spent;
    for (const Trial& trial : history) {
        if (!trial.told()) continue;
        spent.searched += trial.of_search() ? 1 : 0;
        ++spent.told;
        spent.stressed += trial.purpose == Purpose::stress ? 1 : 0;
        spent.trials_seconds += trial.cost_seconds();
    }
    spent.all = trials_expected(setup, budget, history);
    return spent;
}

void Progress::add_up(std::span<const Trial> history) {
    spent_ = spent_in(setup_, budget_, history);
}

void Progress::resumed(std::span<const Trial> history) {
    const std::scoped_lock lock(mutex_);
    add_up(history);
    const std::vector<Trial> search = search_history(*setup_.problem, history);
    keep_best(setup_.problem->standings(search));
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
        const std::string took = duration_text(steady_seconds() - one.began);
        if (running_.size() == 1) parts = {{one.tried, 2}, {one.phase, 1}, {took, 0}};
        else
            parts.push_back(
                {fmt::format("{}: {} {}", trial, one.phase.empty() ? one.tried : one.phase, took),
                 static_cast<int>(parts.size())});
    }
    if (spent_.all && running_.begin()->first < spent_.all->trials)
        number += " of " + spent_.all->text();
    const std::string above = fitted({{number, 1}, {left(), 0}, best}, columns);
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
    if (auto* found = entry_in(running_, trial)) found->phase = printable_line(secrets()(what));
}

void Progress::started(const Trial& trial) {
    const std::scoped_lock lock(mutex_);
    if (!spent_.all) spent_.all = trials_expected(setup_, budget_);
    running_[trial.id] = {tried_text(*setup_.problem, trial), "", steady_seconds()};
    at_once_ = running_.size();
    show();
}

std::string Progress::gain_of(const Trial& trial, double figure, const Standings& standings) const {
    const Objective& objective = setup_.problem->objective;
    const Standing* base = standings.find(setup_.problem->space.default_configuration());
    if (base == nullptr || !base->passes() || !trial.of_search()) return "";
    const auto gain =
        stated_gain(objective.leading(), standings.scale(), figure, base->estimate().mean);
    return gain ? " (" + stated_text(*gain, standings.scale()) + ")" : "";
}

void Progress::keep_best(const Standings& standings) {
    const auto [best, base, gain] = best_so_far(*setup_.problem, standings);
    incumbent_.clear();
    if (best == nullptr) return;
    const std::string& metric = setup_.problem->objective.leading().metric;
    incumbent_ = "best " + figure_text(metric, best->estimate().mean);
    if (base != nullptr)
        incumbent_ += " (" + gain_text(gain ? gain->value : 0, standings.scale()) + ")";
}

void Progress::told(const Trial& trial, std::span<const Trial> history) {
    const std::scoped_lock lock(mutex_);
    add_up(history);
    running_.erase(trial.id);
    const Objective& objective = setup_.problem->objective;
    const std::vector<Trial> search = search_history(*setup_.problem, history);
    const Standings standings = setup_.problem->standings(search);
    const std::string before = incumbent_;
    keep_best(standings);
    std::string result;
    LineStyle style = LineStyle::plain;
    if (const Failure* failure = trial.failure()) {
        result = fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message);
        style = LineStyle::bad;
    } else {
        const auto* found = entry_in(trial.measurement()->metrics, objective.leading().metric);
        const Standing* standing =
            trial.of_search() ? standings.find(trial.configuration) : nullptr;
        result = found == nullptr ? "no " + objective.leading().metric
                                  : figure_text(objective.leading().metric, found->value) +
                                        gain_of(trial, found->value, standings);
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
        return put_text(
            stderr,
            fitted({{number}, {tried_text(*setup_.problem, trial)}, {result}, {best}, {left()}},
                   npos));
    // The best and the time left are in the status lines below. A long reason goes on in the next
    // rows; what was tried is cut for it.
    const std::size_t columns = screen().width() - 1;
    const std::size_t wanted = columns_of(number) + columns_of(" | ") + columns_of(result);
    const std::string line =
        fitted({{number, 0}, {result, 0}, {tried_text(*setup_.problem, trial), 1}},
               std::max(columns, wanted));
    screen().line(wrapped(printable(secrets()(line)), columns), style);
}

namespace {

OrderedJson event_of(const char* name) { return {{"event", name}, {"at", unix_seconds()}}; }

}  // namespace

void put_event(OrderedJson event) {
    put_controls(stdout, shown_json(std::move(event)) + "\n");
    (void)std::fflush(stdout);
}

void EventLines::resumed(std::span<const Trial> history) {
    const std::scoped_lock lock(mutex_);
    OrderedJson event = event_of("resumed");
    event["told"] = std::ranges::count_if(history, &Trial::told);
    put_event(std::move(event));
}

void EventLines::started(const Trial& trial) {
    const std::scoped_lock lock(mutex_);
    phases_.erase(trial.id);
    OrderedJson event = event_of("started");
    event["trial"] = trial.id;
    event["workload"] = trial.workload;
    event["configuration"] = OrderedJson::parse(json_of(trial.configuration));
    event["why"] = trial.why;
    put_event(std::move(event));
}

void EventLines::told(const Trial& trial, std::span<const Trial> history) {
    const std::scoped_lock lock(mutex_);
    const Problem& problem = *setup_.problem;
    const std::vector<Trial> search = search_history(problem, history);
    const Standings standings = problem.standings(search);
    const auto [best, base, gain] = best_so_far(problem, standings);
    phases_.erase(trial.id);
    OrderedJson event = event_of("told");
    event["trial"] = trial.id;
    event["workload"] = trial.workload;
    event["seconds"] = trial.cost_seconds();
    event["outcome"] = OrderedJson::parse(json_of(*trial.outcome));
    event["best"] = nullptr;
    if (best != nullptr) {
        event["best"] = {{"configuration", OrderedJson::parse(json_of(best->configuration))},
                         {"metric", problem.objective.leading().metric},
                         {"value", best->estimate().mean},
                         {"gain", nullptr}};
        if (base != nullptr) event["best"]["gain"] = gain_json(gain.value_or(Gain{}));
    }
    put_event(std::move(event));
}

void EventLines::phase(std::uint64_t trial, const std::string& what) {
    const std::scoped_lock lock(mutex_);
    const std::string name = what.substr(0, what.find(':'));
    if (std::string& last = phases_[trial]; std::exchange(last, name) == name) return;
    OrderedJson event = event_of("phase");
    event["trial"] = trial;
    event["phase"] = name;
    put_event(std::move(event));
}

void EventLines::said(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    OrderedJson event = event_of("said");
    event["text"] = line;
    put_event(std::move(event));
}

void EventLines::ended(std::string_view reason, const std::string& report) {
    const std::scoped_lock lock(mutex_);
    OrderedJson event = event_of("ended");
    event["reason"] = reason;
    event["report"] = OrderedJson::parse(report);
    put_event(std::move(event));
}

namespace {

constexpr std::uintmax_t most_log_bytes = 20UL << 20UL;
constexpr std::string_view ending = " ends: ";  // behind the time, before reason and message

std::string text_of_outcome(const Trial& trial) {
    if (const Failure* failure = trial.failure())
        return fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message);
    const Measurement& measurement = *trial.measurement();
    std::string text(name_in(verdicts, measurement.validity.verdict));
    for (const Finding& finding : measurement.validity.findings)
        text += fmt::format(", {} ({}; {})", finding.id, finding.left, finding.right);
    for (const auto& [name, metric] : measurement.metrics)
        if (MetricKey::of(name).workload.empty())
            text += fmt::format(" {}={:.6g}", name, metric.value);
    return text;
}

}  // namespace

std::string last_end(const fs::path& folder) {
    constexpr std::streamoff enough = 64 << 10;
    std::error_code unknown;
    const fs::path file = folder / "run.log";
    if (!fs::is_regular_file(file, unknown)) return "";
    std::ifstream log(file, std::ios::binary);
    const auto size = static_cast<std::streamoff>(fs::file_size(file, unknown));
    if (!unknown && size > enough) log.seekg(size - enough);
    std::string last;
    for (std::string line; std::getline(log, line);)
        if (!line.empty()) last = std::move(line);
    const auto after_time = last.find(' ');
    if (after_time == npos || last.compare(after_time, ending.size(), ending) != 0) return "";
    return last.substr(after_time + ending.size());
}

RunLog::RunLog(const fs::path& folder, Observer* next) : next_(next) {
    const fs::path file = folder / "run.log";
    std::error_code unknown;  // then opening it says what is wrong
    const fs::file_status there = fs::symlink_status(file, unknown);
    // A FIFO would wait for a reader, a device would be renamed with the older files, a link leads
    // out of the folder.
    if (fs::exists(there) && !fs::is_regular_file(there)) {
        complain("autotune: there will be no run.log: {} is not a regular file; remove it",
                 file.string());
        return;
    }
    if (fs::exists(there) && fs::file_size(file, unknown) > most_log_bytes)
        fs::rename(file, folder / "run.log.1", unknown);
    log_.open(file, std::ios::app);
    if (!log_)
        complain("autotune: there will be no run.log: {}", std::generic_category().message(errno));
}

void RunLog::ends(std::string_view reason, const std::string& message) {
    say(fmt::format("{}{} {}", ending.substr(1), reason, message));
}

void RunLog::say(const std::string& line) {
    const std::scoped_lock lock(mutex_);
    if (!log_.is_open() || !log_) return;
    log_ << local_time("%Y-%m-%dT%H:%M:%S%z") << ' ' << printable_line(secrets()(line)) << '\n'
         << std::flush;
    if (!log_) complain("autotune: run.log is not complete: it cannot be written any more");
}

void RunLog::resumed(std::span<const Trial> history) {
    say("resumes after " +
        counted_text(count_if(history, [](const Trial& trial) { return trial.told(); }), "trial"));
    if (next_ != nullptr) next_->resumed(history);
}

void RunLog::started(const Trial& trial) {
    say(fmt::format("trial {}: {}{}", trial.id, trial.workload.empty() ? "" : trial.workload + ": ",
                    trial.configuration.text()));
    if (next_ != nullptr) next_->started(trial);
}

void RunLog::told(const Trial& trial, std::span<const Trial> history) {
    say(fmt::format("trial {}: told {}", trial.id, text_of_outcome(trial)));
    if (next_ != nullptr) next_->told(trial, history);
}

}  // namespace autotune
