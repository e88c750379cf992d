// SPDX-License-Identifier: Apache-2.0
#include "summary.hpp"

#include "sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

namespace servetune::convergence {
namespace {

using Runs = std::vector<const Run*>;
using ByContender = std::map<std::string, Runs>;

template <class Figure>
std::vector<double> figures(const Runs& runs, const Figure& figure) {
    std::vector<double> values;
    for (const Run* run : runs) values.push_back(static_cast<double>(figure(*run)));
    return values;
}

std::string quartiles(const std::vector<double>& regrets) {
    return fmt::format("{:.1f} [{:.1f}, {:.1f}]", quantile(regrets, 0.5) * 100,
                       quantile(regrets, 0.25) * 100, quantile(regrets, 0.75) * 100);
}

/// `-3.1 ± 1.2` over the seeds that both have.
template <class Figure>
std::string difference(const Runs& mine, const Runs& other, double scale, const Figure& figure) {
    std::vector<double> differences;
    for (const Run* a : mine)
        for (const Run* b : other)
            if (a->key.seed == b->key.seed)
                differences.push_back(
                    scale * (static_cast<double>(figure(*a)) - static_cast<double>(figure(*b))));
    return differences.empty()
               ? ""
               : fmt::format("{:+.1f} ± {:.1f}", mean(differences), standard_error(differences));
}

std::string table_of(const ByContender& contenders, const std::string& title, std::size_t budget,
                     const std::string& against) {
    const auto last = [](const Run& run) { return at_trial(run.regret_best_mean, run.key.budget); };
    std::string reference = against;
    double least = 2;
    for (const auto& [name, runs] : contenders)
        if (const double average = mean(figures(runs, last));
            against.empty() && !name.starts_with("bayesian") && average < least) {
            least = average;
            reference = name;
        }
    std::string text = "### " + title + "\n\n";
    text += "| contender | seeds |";
    std::string rule = "|---|---:|";
    std::vector<std::size_t> places;
    for (const std::size_t place : {5U, 10U, 20U, 40U, 60U})
        if (place <= budget) places.push_back(place);
    for (const std::size_t place : places) {
        text += fmt::format(" at {} |", place);
        rule += "---:|";
    }
    text += " as recommended | mean | to " + reference +
            " | trials to good | crashes | repeats | s an ask, last |\n" + rule +
            "---:|---:|---:|---:|---:|---:|---:|\n";
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [name, runs] : contenders) order.emplace_back(mean(figures(runs, last)), name);
    std::sort(order.begin(), order.end());
    for (const auto& [average, name] : order) {
        const Runs& runs = contenders.at(name);
        text += fmt::format("| {} | {} |", name, runs.size());
        for (const std::size_t place : places)
            text +=
                " " +
                quartiles(figures(
                    runs, [&](const Run& run) { return at_trial(run.regret_best_mean, place); })) +
                " |";
        std::vector<Run> copies;
        for (const Run* run : runs) copies.push_back(*run);
        const auto arrival = median_arrival(copies);
        const auto reference_runs = contenders.find(reference);
        const std::string paired = reference_runs == contenders.end() || name == reference
                                       ? ""
                                       : difference(runs, reference_runs->second, 100, last);
        text += fmt::format(
            " {} | {:.1f} ± {:.1f} | {} | {} | {:.1f} | {:.1f} | {:.4f} |\n",
            quartiles(figures(
                runs,
                [](const Run& run) { return at_trial(run.regret_recommended, run.key.budget); })),
            average * 100, standard_error(figures(runs, last)) * 100, paired,
            arrival ? std::to_string(*arrival) : fmt::format("> {}", budget),
            mean(figures(runs, [](const Run& r) { return r.crashes; })),
            mean(figures(runs, [](const Run& r) { return r.repeats; })),
            quantile(figures(runs, [](const Run& r) { return r.last_ask_seconds; }), 0.5));
    }
    return text + "\n";
}

/// One row a task, noise and budget: everybody's median and quartiles, and how `bayesian` stands to
/// the best of the others, by their means.
std::string overview_of(
    const std::map<std::tuple<std::string, double, std::size_t>, ByContender>& tables) {
    std::set<std::string> names;
    for (const auto& [key, contenders] : tables)
        for (const auto& [name, runs] : contenders) names.insert(name);
    std::string text = "| task, noise, trials (seeds) |";
    std::string rule = "\n|---|";
    for (const std::string& name : names) {
        text += " " + name + " |";
        rule += "---:|";
    }
    text += " bayesian to the best other |" + rule + "---:|\n";
    const auto last = [](const Run& run) { return at_trial(run.regret_best_mean, run.key.budget); };
    for (const auto& [key, contenders] : tables) {
        const auto& [task, noise, budget] = key;
        std::set<std::uint64_t> seeds;
        for (const auto& [name, runs] : contenders)
            for (const Run* run : runs) seeds.insert(run->key.seed);
        text += fmt::format("| {}, {:g} %, {} ({}) |", task, noise * 100, budget, seeds.size());
        std::string best;
        double least = 2;
        for (const std::string& name : names) {
            const auto found = contenders.find(name);
            if (found == contenders.end()) {
                text += " |";
                continue;
            }
            text +=
                " " + quartiles(figures(found->second, last)) +
                fmt::format(", {:.1f} |",
                            mean(figures(found->second, [](const Run& r) { return r.crashes; })));
            if (const double average = mean(figures(found->second, last));
                !name.starts_with("bayesian") && average < least) {
                least = average;
                best = name;
            }
        }
        const auto mine = contenders.find("bayesian");
        const bool both = mine != contenders.end() && !best.empty();
        text += both ? " " + difference(mine->second, contenders.at(best), 100, last) + " (" +
                           best + ") |\n"
                     : " |\n";
    }
    return text + "\n";
}

const std::array<const char*, 10> colours{"#1f4e79", "#b03a2e", "#2e7d32", "#8e5ea2", "#e08214",
                                          "#444444", "#00838f", "#c2185b", "#6d4c41", "#9e9d24"};

}  // namespace

std::optional<std::size_t> median_arrival(const std::vector<Run>& runs) {
    std::map<std::size_t, std::pair<std::size_t, std::size_t>> at;  // trial -> arrived, censored
    for (const Run& run : runs) {
        if (run.arrived > 0) ++at[run.arrived].first;
        else ++at[run.key.budget].second;
    }
    double surviving = 1;
    auto at_risk = static_cast<double>(runs.size());
    for (const auto& [trial, counts] : at) {
        surviving *= 1 - static_cast<double>(counts.first) / at_risk;
        if (counts.first > 0 && surviving <= 0.5 + 1e-12) return trial;
        at_risk -= static_cast<double>(counts.first + counts.second);
    }
    return std::nullopt;
}

std::string summary_of(const std::vector<Run>& runs, const std::string& against) {
    std::map<std::tuple<std::string, double, std::size_t>, ByContender> tables;
    for (const Run& run : runs)
        tables[{run.key.task, run.key.noise_cv, run.key.budget}][run.key.contender].push_back(&run);
    std::string text =
        "True regret in percent of the best rate, median [quartiles]: of the configuration with "
        "the best mean among those that pass; `as "
        "recommended`: by the "
        "program's own rule after the last trial. `to X`: mean paired difference in points ± "
        "standard error. First all together, the mean "
        "number "
        "of crashes behind the comma.\n\n" +
        overview_of(tables);
    for (const auto& [key, contenders] : tables) {
        const auto& [task, noise, budget] = key;
        text += table_of(contenders,
                         fmt::format("{}, noise {:g} %, {} trials", task, noise * 100, budget),
                         budget, against);
    }
    return text;
}

std::string svg_of(const std::vector<Run>& runs, const std::string& task, double noise_cv) {
    std::size_t budget = 0;
    for (const Run& run : runs)
        if (run.key.task == task && run.key.noise_cv == noise_cv)
            budget = std::max(budget, run.key.budget);
    ByContender contenders;
    for (const Run& run : runs)
        if (run.key.task == task && run.key.noise_cv == noise_cv && run.key.budget == budget)
            contenders[run.key.contender].push_back(&run);
    constexpr double lowest = 0.005;  // of the logarithmic scale: half a percent
    const auto x = [&](std::size_t trial) {
        return 60 + 560 * static_cast<double>(trial) /
                        static_cast<double>(std::max<std::size_t>(budget, 1));
    };
    const auto y = [&](double regret) {
        return 40 + 280 * std::log(1 / std::max(regret, lowest)) / std::log(1 / lowest);
    };
    std::string svg =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 840 370\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"840\" height=\"370\" fill=\"white\"/>\n";
    svg += fmt::format(
        "<text x=\"60\" y=\"22\" font-size=\"14\">{}: median true regret, noise {:g} %</text>\n",
        task, noise_cv * 100);
    for (const double tick : {1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005})
        svg += fmt::format(
            "<line x1=\"60\" y1=\"{0:.1f}\" x2=\"620\" y2=\"{0:.1f}\" stroke=\"#ddd\"/><text "
            "x=\"54\" y=\"{1:.1f}\" "
            "text-anchor=\"end\">{2:g} %</text>\n",
            y(tick), y(tick) + 4, tick * 100);
    for (std::size_t trial = 0; trial <= budget; trial += 10)
        svg += fmt::format("<text x=\"{:.1f}\" y=\"338\" text-anchor=\"middle\">{}</text>\n",
                           x(trial), trial);
    svg += "<text x=\"340\" y=\"358\" text-anchor=\"middle\">trials</text>\n";
    std::size_t which = 0;
    for (const auto& [name, list] : contenders) {
        const char* colour = colours[which % colours.size()];
        const char* dash = which >= colours.size() ? " stroke-dasharray=\"5 3\"" : "";
        std::string points;
        for (std::size_t trial = 1; trial <= budget; ++trial)
            points += fmt::format("{:.1f},{:.1f} ", x(trial),
                                  y(quantile(figures(list,
                                                     [&](const Run& r) {
                                                         return at_trial(r.regret_best_mean, trial);
                                                     }),
                                             0.5)));
        svg += fmt::format(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"{}/>\n",
            points, colour, dash);
        const double row = 48 + 20 * static_cast<double>(which);
        svg += fmt::format(
            "<line x1=\"636\" y1=\"{0:.0f}\" x2=\"660\" y2=\"{0:.0f}\" stroke=\"{1}\" "
            "stroke-width=\"2.5\"{2}/><text x=\"666\" "
            "y=\"{3:.0f}\">{4}</text>\n",
            row, colour, dash, row + 4, name);
        ++which;
    }
    return svg + "</svg>\n";
}

}  // namespace servetune::convergence
