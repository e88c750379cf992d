// SPDX-License-Identifier: Apache-2.0
#include "aggregate.hpp"

#include "sample.hpp"
#include "servetune/rng.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>

namespace servetune::convergence {
namespace {

constexpr std::array<std::size_t, 5> looks{5, 10, 20, 40, 60};
constexpr double near_best = 0.05;

/// regret[contender][task][seed] after so many trials, whole: every contender has every task with
/// the same seeds.
struct Regrets {
    std::vector<std::string> contenders{}, tasks{};
    std::vector<std::vector<std::vector<double>>> of{};
};

/// What is summed up of one contender.
struct Figures {
    double rank = 0, near = 0, regret = 0;
};

/// A draw of tasks, and for each of the seeds.
struct Draw {
    std::vector<std::size_t> tasks{};
    std::vector<std::vector<std::size_t>> seeds{};
};

std::vector<Figures> figures_of(const Regrets& regrets, const Draw& draw) {
    const std::size_t contenders = regrets.contenders.size();
    std::vector<Figures> result(contenders);
    const auto count = double(draw.tasks.size());
    for (std::size_t k = 0; k < draw.tasks.size(); ++k) {
        std::vector<double> means(contenders);
        for (std::size_t c = 0; c < contenders; ++c) {
            double near = 0;
            for (const std::size_t seed : draw.seeds[k]) {
                const double regret = regrets.of[c][draw.tasks[k]][seed];
                means[c] += regret;
                near += regret <= near_best ? 1 : 0;
            }
            const auto seeds = double(draw.seeds[k].size());
            means[c] /= seeds;
            result[c].near += near / seeds / count;
            result[c].regret += means[c] / count;
        }
        for (std::size_t c = 0; c < contenders; ++c) {
            constexpr double same = 1e-9;
            double rank = 1;
            for (std::size_t other = 0; other < contenders; ++other)
                if (other != c)
                    rank += means[other] < means[c] - same    ? 1
                            : means[other] <= means[c] + same ? 0.5
                                                              : 0;
            result[c].rank += rank / count;
        }
    }
    return result;
}

template <class Figure>
std::string with_interval(const std::vector<Figures>& point,
                          const std::vector<std::vector<Figures>>& draws, std::size_t contender,
                          int decimals, double scale, const Figure& figure) {
    std::vector<double> values;
    for (const auto& draw : draws) values.push_back(scale * figure(draw[contender]));
    return fmt::format("{:.{}f} [{:.{}f}, {:.{}f}]", scale * figure(point[contender]), decimals,
                       quantile(values, 0.05), decimals, quantile(values, 0.95), decimals);
}

/// Contender -> task -> seed.
using ByTask = std::map<std::string, std::map<std::string, std::map<std::uint64_t, const Run*>>>;

/// Task -> the seeds that every contender has run.
using Seeds = std::map<std::string, std::vector<std::uint64_t>>;

/// `trials_of`: after how many trials a run is looked at.
template <class TrialsOf>
Regrets regrets_of(const ByTask& runs, const Seeds& seeds, const TrialsOf& trials_of) {
    Regrets result;
    for (const auto& [task, of_task] : seeds) result.tasks.push_back(task);
    for (const auto& [contender, tasks] : runs) {
        result.contenders.push_back(contender);
        auto& rows = result.of.emplace_back();
        for (const auto& [task, of_task] : seeds) {
            auto& row = rows.emplace_back();
            for (const std::uint64_t seed : of_task) {
                const Run& run = *tasks.at(task).at(seed);
                row.push_back(at_trial(run.regret_best_mean, trials_of(run)));
            }
        }
    }
    return result;
}

std::string behind(const Regrets& regrets, std::size_t trials, const std::string& reference) {
    const auto mine = std::find(regrets.contenders.begin(), regrets.contenders.end(), reference) -
                      regrets.contenders.begin();
    if (std::size_t(mine) == regrets.contenders.size()) return "";
    std::string rows;
    std::size_t looked = 0;
    std::size_t found = 0;
    for (std::size_t task = 0; task < regrets.tasks.size(); ++task)
        for (std::size_t c = 0; c < regrets.contenders.size(); ++c) {
            if (c == std::size_t(mine)) continue;
            ++looked;
            std::vector<double> differences = regrets.of[std::size_t(mine)][task];
            for (std::size_t i = 0; i < differences.size(); ++i)
                differences[i] -= regrets.of[c][task][i];
            const double by = mean(differences);
            const double error = standard_error(differences);
            if (differences.size() < 2 || !(by > 2 * error)) continue;
            ++found;
            rows += fmt::format("| {} | {} | {} | {:+.1f} ± {:.1f} |\n", trials,
                                regrets.tasks[task], regrets.contenders[c], 100 * by, 100 * error);
        }
    return rows + fmt::format("| {} | {} of {} pairs | | |\n", trials, found, looked);
}

/// Task -> seconds of a trial, of all contenders.
std::map<std::string, double> mean_lengths(const ByTask& runs, const Seeds& seeds) {
    std::map<std::string, double> result;
    for (const auto& [task, of_task] : seeds) {
        double seconds = 0;
        double trials = 0;
        for (const auto& [contender, tasks] : runs)
            for (const std::uint64_t seed : of_task) {
                const Run& run = *tasks.at(task).at(seed);
                seconds += run.seconds.empty() ? 0 : run.seconds.back();
                trials += double(run.seconds.size());
            }
        result[task] = seconds / std::max(trials, 1.0);
    }
    return result;
}

/// How often the intervals of models hold what was measured.
std::string coverage(const ByTask& runs, const Seeds& seeds) {
    std::string rows;
    for (const auto& [contender, tasks] : runs) {
        double predicted = 0;
        double half = 0;
        double most = 0;
        for (const auto& [task, of_task] : seeds)
            for (const std::uint64_t seed : of_task) {
                const Run& run = *tasks.at(task).at(seed);
                predicted += double(run.predicted);
                half += double(run.in_half);
                most += double(run.in_nine_tenths);
            }
        if (predicted > 0)
            rows += fmt::format("| {} | {:.0f} | {:.1f} % | {:.1f} % |\n", contender, predicted,
                                100 * half / predicted, 100 * most / predicted);
    }
    if (rows.empty()) return "";
    return "Predictive intervals, each measured configuration predicted from all others of its run "
           "(leave one out):\n\n"
           "| contender | predicted | in their 50 % intervals | in their 90 % intervals "
           "|\n|---|---:|---:|---:|\n" +
           rows + "\n";
}

/// The Kaplan-Meier median of the trial of arrival: runs that never arrived are right-censored at
/// their budget. Nothing: fewer than half arrive.
std::optional<std::size_t> median_arrival(const std::vector<Run>& runs) {
    std::map<std::size_t, std::pair<std::size_t, std::size_t>> at;  // trial -> arrived, censored
    for (const Run& run : runs) {
        if (run.arrived > 0) ++at[run.arrived].first;
        else ++at[run.key.budget].second;
    }
    double surviving = 1;
    auto at_risk = double(runs.size());
    for (const auto& [trial, counts] : at) {
        surviving *= 1 - double(counts.first) / at_risk;
        if (counts.first > 0 && surviving <= 0.5 + 1e-12) return trial;
        at_risk -= double(counts.first + counts.second);
    }
    return std::nullopt;
}

/// Each task by itself: what a run ends with depends on it more than on the contender.
std::string task_by_task(const ByTask& runs, const Seeds& seeds, std::size_t budget) {
    std::string header = "| task | contender | failing trials | trials to good |";
    std::string rule = "|---|---|---:|---:|";
    for (const std::size_t trials : looks) {
        if (trials > budget) break;
        header += fmt::format(" regret at {} |", trials);
        rule += "---:|";
    }
    std::string rows;
    for (const auto& [task, of_task] : seeds)
        for (const auto& [contender, tasks] : runs) {
            std::vector<Run> mine;
            std::vector<double> crashes;
            for (const std::uint64_t seed : of_task) {
                mine.push_back(*tasks.at(task).at(seed));
                crashes.push_back(double(mine.back().crashes));
            }
            const auto arrival = median_arrival(mine);
            rows += fmt::format("| {} | {} | {:.1f} | {} |", task, contender, mean(crashes),
                                arrival ? std::to_string(*arrival) : fmt::format("> {}", budget));
            for (const std::size_t trials : looks) {
                if (trials > budget) break;
                std::vector<double> regrets;
                for (const Run& run : mine)
                    regrets.push_back(100 * at_trial(run.regret_best_mean, trials));
                rows += fmt::format(" {:.1f} ± {:.1f} |", mean(regrets), standard_error(regrets));
            }
            rows += "\n";
        }
    return "Task by task, mean regret in percent ± standard error over seeds:\n\n" + header + "\n" +
           rule + "\n" + rows + "\n";
}

}  // namespace

std::string aggregate_of(const std::vector<Run>& runs, const std::string& reference) {
    std::size_t budget = 0;
    for (const Run& run : runs) budget = std::max(budget, run.key.budget);
    std::set<double> noises;
    for (const Run& run : runs) noises.insert(run.key.noise_cv);
    std::string text;
    for (const double noise : noises) {
        ByTask by_task;
        for (const Run& run : runs)
            if (run.key.budget == budget && run.key.noise_cv == noise)
                by_task[run.key.contender][run.key.task][run.key.seed] = &run;
        Seeds seeds;
        if (!by_task.empty())
            for (const auto& [task, of_task] : by_task.begin()->second)
                for (const auto& [seed, run] : of_task)
                    if (all_of(by_task, [&, &task = task, &seed = seed](const auto& contender) {
                            const auto* found = entry_in(contender.second, task);
                            return found != nullptr && found->contains(seed);
                        }))
                        seeds[task].push_back(seed);
        if (seeds.empty()) continue;
        std::size_t all = 0;
        for (const auto& [task, of_task] : seeds) all += of_task.size();
        text += fmt::format("### {} tasks, {} runs of {} trials each, noise {:g} %\n\n",
                            seeds.size(), all, budget, noise * 100);

        Draw whole;
        for (const auto& [task, of_task] : seeds) {
            whole.tasks.push_back(whole.tasks.size());
            std::vector<std::size_t>& every = whole.seeds.emplace_back(of_task.size());
            std::iota(every.begin(), every.end(), std::size_t{0});
        }
        constexpr std::size_t count = 2000;
        std::vector<Draw> drawn(count);
        Rng rng(20);
        for (Draw& draw : drawn)
            for (std::size_t k = 0; k < whole.tasks.size(); ++k) {
                draw.tasks.push_back(rng.index(whole.tasks.size()));
                std::vector<std::size_t>& some = draw.seeds.emplace_back();
                const std::size_t n = whole.seeds[draw.tasks.back()].size();
                for (std::size_t i = 0; i < n; ++i) some.push_back(rng.index(n));
            }
        const auto table = [&](const std::string& when, const auto& trials_of) {
            const Regrets regrets = regrets_of(by_task, seeds, trials_of);
            const std::vector<Figures> point = figures_of(regrets, whole);
            std::vector<std::vector<Figures>> draws;
            for (const Draw& draw : drawn) draws.push_back(figures_of(regrets, draw));
            std::vector<std::size_t> order(regrets.contenders.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            sort(order,
                 [&](std::size_t a, std::size_t b) { return point[a].rank < point[b].rank; });
            text += fmt::format(
                "| {} | mean rank | runs within 5 %, percent | mean regret, percent | crashes |\n"
                "|---|---:|---:|---:|---:|\n",
                when);
            for (const std::size_t c : order) {
                double crashes = 0;
                for (const auto& [task, of_task] : seeds)
                    for (const std::uint64_t seed : of_task) {
                        const Run& run = *by_task.at(regrets.contenders[c]).at(task).at(seed);
                        for (const char letter : run.trace.substr(0, trials_of(run)))
                            crashes += letter >= 'A' && letter <= 'Z' ? 1 : 0;
                    }
                text += fmt::format(
                    "| {} | {} | {} | {} | {:.1f} |\n", regrets.contenders[c],
                    with_interval(point, draws, c, 2, 1, [](const Figures& f) { return f.rank; }),
                    with_interval(point, draws, c, 0, 100, [](const Figures& f) { return f.near; }),
                    with_interval(point, draws, c, 1, 100,
                                  [](const Figures& f) { return f.regret; }),
                    crashes / double(all));
            }
            text += "\n";
            return regrets;
        };
        std::string losses;
        for (const std::size_t trials : looks) {
            if (trials > budget) break;
            losses += behind(
                table(fmt::format("after {} trials", trials), [&](const Run&) { return trials; }),
                trials, reference);
        }
        const std::map<std::string, double> lengths = mean_lengths(by_task, seeds);
        for (const std::size_t trials : looks) {
            if (3 * trials > 2 * budget) break;  // runs of short trials end before their time
            table(fmt::format("after the time of {} mean trials", trials), [&](const Run& run) {
                return trials_within(run, double(trials) * lengths.at(run.key.task));
            });
        }
        text += fmt::format(
            "Where {} is behind, in points of regret, paired over seeds:\n\n| trials | task | "
            "behind | by |\n|---:|---|---|---:|\n{}\n",
            reference, losses);
        text += coverage(by_task, seeds);
        text += task_by_task(by_task, seeds, budget);
    }
    return text;
}

}  // namespace servetune::convergence
