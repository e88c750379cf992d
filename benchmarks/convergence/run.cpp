// SPDX-License-Identifier: Apache-2.0
#include "run.hpp"

#include "base/files.hpp"
#include "servetune/recommendation.hpp"
#include "study/confirmation.hpp"
#include "study/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <fstream>
#include <set>

namespace servetune::convergence {
namespace {

const std::vector<std::string> columns{
    "task",       "contender",        "noise_cv",          "budget",
    "seed",       "trials",           "crashes",           "repeats",
    "infeasible", "ask_seconds",      "last_ask_seconds",  "arrived",
    "predicted",  "in_half",          "in_nine_tenths",    "trace",
    "seconds",    "regret_best_mean", "regret_recommended"};

char letter_of(const std::string& why, bool repeated) {
    if (repeated) return 'r';
    if (why.empty()) return 'p';
    if (why.starts_with("far from") || why.starts_with("best by")) return 's';
    if (why.starts_with("expected to gain")) return 'g';
    if (why.starts_with("to learn")) return 'l';
    return 'p';
}

double median_of_last(const std::vector<double>& values, std::size_t count) {
    std::vector<double> last(values.end() - std::ptrdiff_t(std::min(count, values.size())),
                             values.end());
    if (last.empty()) return 0;
    sort(last);
    return last[last.size() / 2];
}

std::string joined(const std::vector<double>& curve) {
    std::string text;
    for (const double value : curve)
        text += fmt::format("{}{:.5g}", text.empty() ? "" : " ", value);
    return text;
}

std::vector<double> curve_of(const std::string& text) {
    std::vector<double> curve;
    for (const std::string& part : split(text, ' ')) curve.push_back(real_of(part).value());
    return curve;
}

}  // namespace

std::vector<std::string> split(const std::string& text, char separator) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find(separator, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

std::vector<Run> run(const Task& task, Contender& contender, const RunKey& key,
                     const std::vector<std::size_t>& looks, std::size_t workers) {
    using Clock = std::chrono::steady_clock;
    const auto seconds_since = [](Clock::time_point start) {
        return std::chrono::duration<double>(Clock::now() - start).count();
    };
    const std::shared_ptr<const Problem> problem = task.problem(key.noise_cv, key.seed);
    Run result{key};
    std::vector<double> asks;
    auto start = Clock::now();
    contender.begin(*problem, task, key.budget, key.seed);
    result.ask_seconds = seconds_since(start);
    std::vector<Trial> history;
    std::set<Configuration> seen;
    std::vector<Run> looked;
    double clock = 0;  // seconds, of trials
    const auto look = [&](std::size_t budget) {
        looked.push_back(result);
        looked.back().key.budget = budget;
        looked.back().trials = result.seconds.size();
        looked.back().last_ask_seconds = median_of_last(asks, 5);
        const std::vector<double> chances = contender.leave_one_out_chances(history);
        const auto within = [&](double share) {
            const auto inside = [&](double chance) { return std::abs(chance - 0.5) <= share / 2; };
            return std::size_t(count_if(chances, inside));
        };
        looked.back().predicted = chances.size();
        looked.back().in_half = within(0.5);
        looked.back().in_nine_tenths = within(0.9);
    };
    struct UnderWay {
        std::size_t place = 0;  ///< in the history
        double ends = 0;
    };
    std::vector<UnderWay> under_way;
    const auto ask = [&] {
        Contender::Asked asked{problem->space.default_configuration(), "the default", 0};
        Purpose purpose = Purpose::search;
        if (!history.empty()) {
            start = Clock::now();
            // The last trials of every contender are those of a study: they confirm.
            const bool searches =
                history.size() <
                search_trials(*problem, key.budget,
                              rounds_needed(*problem, problem->standings(history)));
            const Answer confirming =
                searches ? Answer(Finished{}) : Confirmation(*problem, history, key.budget).next();
            if (const auto* next = std::get_if<Proposal>(&confirming)) {
                asked = {next->configuration, next->why, 0};
                purpose = Purpose::confirm;
            } else if (std::holds_alternative<Waiting>(confirming) || any_of(history, confirms))
                asked.configuration.reset();
            else asked = contender.ask(history);
            asks.push_back(seconds_since(start));
            result.ask_seconds += asks.back();
        }
        result.infeasible += asked.infeasible;
        if (!asked.configuration) return false;
        Trial trial{history.size(), *asked.configuration, {}, key.seed, asked.why};
        trial.purpose = purpose;
        trial.started_at = clock;
        under_way.push_back({history.size(), clock + task.seconds(*asked.configuration)});
        history.push_back(std::move(trial));
        return true;
    };
    const auto tell_next = [&] {
        const auto next =
            std::min_element(under_way.begin(), under_way.end(),
                             [](const UnderWay& a, const UnderWay& b) { return a.ends < b.ends; });
        Trial& trial = history[next->place];
        clock = next->ends;
        under_way.erase(next);
        const Outcome outcome =
            task.measured(trial.configuration, key.noise_cv, key.seed, trial.id);
        const bool crashed = std::holds_alternative<Failure>(outcome);
        const bool repeated = !seen.insert(trial.configuration).second;
        trial.outcome = outcome;
        trial.told_at = clock;
        result.seconds.push_back(clock);
        const char letter = trial.id == 0 ? 'd' : letter_of(trial.why, repeated);
        result.trace += crashed ? static_cast<char>(std::toupper(letter)) : letter;
        result.crashes += crashed ? 1 : 0;
        result.repeats += repeated ? 1 : 0;
        const Recommendation recommendation = recommend(*problem, history);
        result.regret_best_mean.push_back(recommendation.best ? task.regret(*recommendation.best)
                                                              : 1);
        result.regret_recommended.push_back(
            recommendation.best ? task.regret(recommendation.recommended) : 1);
        if (result.arrived == 0 && recommendation.best && task.good(*recommendation.best))
            result.arrived = result.seconds.size();
    };
    while (result.seconds.size() < key.budget) {
        if (looked.size() < looks.size() && result.seconds.size() == looks[looked.size()])
            look(result.seconds.size());
        while (under_way.size() < workers && history.size() < key.budget)
            if (!ask()) break;  // it is done, or waits for what is under way
        if (under_way.empty()) break;
        tell_next();
    }
    while (looked.size() < looks.size()) look(looks[looked.size()]);
    return looked;
}

double at_trial(const std::vector<double>& curve, std::size_t trial) {
    return curve.empty() || trial == 0 ? 1 : curve[std::min(trial, curve.size()) - 1];
}

std::size_t trials_within(const Run& run, double seconds) {
    return std::size_t(std::upper_bound(run.seconds.begin(), run.seconds.end(), seconds) -
                       run.seconds.begin());
}

std::vector<Run> read_runs(const std::filesystem::path& file) {
    std::vector<Run> runs;
    if (!std::filesystem::exists(file)) return runs;
    const auto rows = parse_csv(read_file(file), file.string());
    if (rows.empty() || rows.front().cells != columns)
        throw UsageError(
            file.string() +
            " has no results of `convergence run`, or of another version with other columns");
    for (const CsvRow& row : rows) {
        if (row.cells.size() != columns.size() || row.cells[0] == columns[0])
            continue;  // a header, or a line cut short
        const auto whole = [&](std::size_t i) {
            return std::size_t(integer_of(row.cells[i]).value());
        };
        const auto real = [&](std::size_t i) { return real_of(row.cells[i]).value(); };
        Run run{{row.cells[0], row.cells[1], real(2), whole(3), std::uint64_t(whole(4))}};
        run.trials = whole(5);
        run.crashes = whole(6);
        run.repeats = whole(7);
        run.infeasible = whole(8);
        run.ask_seconds = real(9);
        run.last_ask_seconds = real(10);
        run.arrived = whole(11);
        run.predicted = whole(12);
        run.in_half = whole(13);
        run.in_nine_tenths = whole(14);
        run.trace = row.cells[15];
        run.seconds = curve_of(row.cells[16]);
        run.regret_best_mean = curve_of(row.cells[17]);
        run.regret_recommended = curve_of(row.cells[18]);
        runs.push_back(std::move(run));
    }
    return runs;
}

void append_run(const std::filesystem::path& file, const Run& run) {
    const bool fresh = !std::filesystem::exists(file);
    std::ofstream out(file, std::ios::app);
    if (fresh) out << csv_line(columns);
    out << csv_line(
        {run.key.task, run.key.contender, text_of(run.key.noise_cv), std::to_string(run.key.budget),
         std::to_string(run.key.seed), std::to_string(run.trials), std::to_string(run.crashes),
         std::to_string(run.repeats), std::to_string(run.infeasible),
         fmt::format("{:.6g}", run.ask_seconds), fmt::format("{:.6g}", run.last_ask_seconds),
         std::to_string(run.arrived), std::to_string(run.predicted), std::to_string(run.in_half),
         std::to_string(run.in_nine_tenths), run.trace, joined(run.seconds),
         joined(run.regret_best_mean), joined(run.regret_recommended)});
    out.flush();
    if (!out) throw IoError("cannot write " + file.string());
}

}  // namespace servetune::convergence
