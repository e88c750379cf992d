// SPDX-License-Identifier: Apache-2.0
// What a simulated study looks like as a landscape: how many configurations fail and why, where the
// default lies, what the best single changes give and what all parameters together give. Prints
// figures and draws them: landscape STUDY.yaml [OUTPUT.svg] [SAMPLES]
#include "base/files.hpp"
#include "predict/prediction.hpp"
#include "servetune/error.hpp"
#include "servetune/study_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>

namespace {

using namespace servetune;

constexpr std::size_t bars = 40;

struct Landscape {
    std::vector<PredictedTrial> drawn;  ///< evenly
    std::vector<double> values;         ///< of those that pass
    double usual = 0;                   ///< the default
    double best_single =
        0;  ///< the best configuration that differs from the default in one parameter
    double singles_together = 0;  ///< every parameter at its best single value (0: that fails)
    double stages = 0;            ///< one parameter after the other, each kept at its best
    double best = 0;
    std::string best_text, stages_text;
};

double value_of(const PredictedTrial& prediction, const Objective& objective) {
    return passes(prediction, objective) ? std::get<Measurement>(prediction.outcome)
                                               .metrics.at(objective.leading().metric)
                                               .value
                                         : 0;
}

/// One parameter changed, in every way that stays feasible.
std::vector<Configuration> changes_of(const Problem& problem, const Configuration& from,
                                      const Parameter& parameter) {
    std::vector<Configuration> result;
    if (from.find(parameter.name) == nullptr) return result;  // inactive
    for (std::size_t level = 0; level < parameter.level_count(); ++level) {
        const Configuration changed =
            problem.space.changed(from, {{parameter.name, parameter.level(level)}});
        if (changed != from && problem.space.feasible(changed)) result.push_back(changed);
    }
    return result;
}

class Survey {
public:
    Survey(const SimulateEvaluator& evaluator, const Problem& problem)
        : evaluator_(evaluator), problem_(problem) {}

    Landscape look(std::size_t samples) {
        Landscape result;
        Rng rng(2026);
        std::vector<Configuration> wanted;
        for (std::size_t i = 0; i < samples; ++i) wanted.push_back(problem_.feasible.sample(rng));
        result.drawn = predict(evaluator_, wanted, threads_);
        for (const PredictedTrial& prediction : result.drawn)
            if (const double value = value_of(prediction, problem_.objective); value > 0)
                result.values.push_back(value);
        const Configuration usual = problem_.space.default_configuration();
        result.usual = value(usual);
        one_at_a_time(result, usual);
        const auto found =
            search_predictions(evaluator_, problem_, {samples, 20, samples * 3, 7, threads_});
        for (const PredictedTrial* prediction : ranked(found, problem_.objective)) {
            result.best = value_of(*prediction, problem_.objective);
            result.best_text = prediction->configuration.text();
            break;
        }
        return result;
    }

private:
    double value(const Configuration& configuration) {
        return value_of(predict(evaluator_, std::vector{configuration}).front(),
                        problem_.objective);
    }

    void one_at_a_time(Landscape& result, const Configuration& usual) {
        Assignment together;
        Configuration incumbent = usual;
        double kept = result.usual;
        result.best_single = result.usual;
        for (const Parameter& parameter : problem_.space.parameters()) {
            double best = result.usual;
            for (const PredictedTrial& p :
                 predict(evaluator_, changes_of(problem_, usual, parameter), threads_))
                if (const double v = value_of(p, problem_.objective); v > best) {
                    best = v;
                    together[parameter.name] = *p.configuration.find(parameter.name);
                }
            result.best_single = std::max(result.best_single, best);
            for (const PredictedTrial& p :
                 predict(evaluator_, changes_of(problem_, incumbent, parameter), threads_))
                if (const double v = value_of(p, problem_.objective); v > kept) {
                    kept = v;
                    incumbent = p.configuration;
                }
        }
        result.stages = kept;
        result.stages_text = incumbent.text();
        const Configuration all = problem_.space.completed(together);
        result.singles_together = problem_.space.feasible(all) ? value(all) : 0;
    }

    const SimulateEvaluator& evaluator_;
    const Problem& problem_;
    std::size_t threads_ = std::max(1U, std::thread::hardware_concurrency());
};

std::string svg_of(const Landscape& land, const std::string& title) {
    const double top = land.best * 1.03;
    std::vector<std::size_t> counts(bars, 0);
    for (const double value : land.values)
        ++counts[std::min(bars - 1, static_cast<std::size_t>(value / top * bars))];
    const double highest = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
    const double failed =
        1 - static_cast<double>(land.values.size()) / static_cast<double>(land.drawn.size());
    const auto x = [&](double value) { return 60 + value / top * 700; };
    std::string svg =
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 330\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n"
        "<rect width=\"800\" height=\"330\" fill=\"white\"/>\n";
    svg += fmt::format(
        "<text x=\"60\" y=\"22\" font-size=\"14\">{}: {} configurations drawn evenly, {:.0f} % of "
        "them fail</text>\n",
        title, land.drawn.size(), failed * 100);
    for (std::size_t i = 0; i < bars; ++i)
        svg += fmt::format(
            "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"16\" height=\"{:.1f}\" fill=\"#7aa6c2\"/>\n",
            60 + static_cast<double>(i) * 700 / bars,
            270 - 150 * static_cast<double>(counts[i]) / highest,
            150 * static_cast<double>(counts[i]) / highest);
    svg += "<line x1=\"60\" y1=\"270\" x2=\"760\" y2=\"270\" stroke=\"black\"/>\n";
    for (int tick = 0; tick <= 4; ++tick)
        svg += fmt::format("<text x=\"{:.1f}\" y=\"287\" text-anchor=\"middle\">{:.0f}</text>\n",
                           x(top * tick / 4), top * tick / 4);
    svg +=
        "<text x=\"410\" y=\"310\" text-anchor=\"middle\">total tokens per second "
        "(predicted)</text>\n";
    int row = 0;
    for (const auto& [value, name] : {std::pair{land.usual, "default"},
                                      {land.best_single, "best single change"},
                                      {land.stages, "one after the other"},
                                      {land.best, "best found"}}) {
        svg += fmt::format(
            "<line x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"270\" stroke=\"#b03a2e\" "
            "stroke-dasharray=\"4 3\"/>\n",
            x(value), 50 + 18 * row);
        svg += fmt::format(
            "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"end\" fill=\"#b03a2e\">{} {:.0f}</text>\n",
            x(value) - 4, 54 + 18 * row, name, value);
        ++row;
    }
    return svg + "</svg>\n";
}

void print(const Landscape& land, const Problem& problem) {
    const auto n = static_cast<double>(land.drawn.size());
    std::map<std::string, std::size_t> failures;
    std::map<std::string, std::pair<std::size_t, std::size_t>> engines;  // failed, drawn
    for (const PredictedTrial& prediction : land.drawn) {
        const auto* failure = std::get_if<Failure>(&prediction.outcome);
        if (failure != nullptr) ++failures[std::string(name_in(failure_kinds, failure->kind))];
        else if (!passes(prediction, problem.objective)) ++failures["limit broken"];
        const Value* engine = prediction.configuration.find("engine");
        auto& [failed, drawn] = engines[engine != nullptr ? text_of(*engine) : "all"];
        ++drawn;
        failed += passes(prediction, problem.objective) ? 0 : 1;
    }
    fmt::print("configurations            {:.0f}\n", problem.feasible.size());
    fmt::print("failed                    {:.1f} % of {}\n",
               (1 - static_cast<double>(land.values.size()) / n) * 100, land.drawn.size());
    for (const auto& [kind, count] : failures)
        fmt::print("  {:<23} {:.1f} %\n", kind, static_cast<double>(count) / n * 100);
    for (const auto& [engine, counts] : engines)
        fmt::print("  {:<23} {} of {}\n", engine, counts.first, counts.second);
    const auto line = [&](const char* name, double value) {
        fmt::print("{:<25} {:.0f}  ({:.1f} % below the best)\n", name, value,
                   (1 - value / land.best) * 100);
    };
    line("default", land.usual);
    line("best single change", land.best_single);
    line("best singles together", land.singles_together);
    line("one after the other", land.stages);
    line("best found", land.best);
    fmt::print("one after the other: {}\nbest found: {}\n", land.stages_text, land.best_text);
    const auto within = [&](double share) {
        return std::count_if(land.values.begin(), land.values.end(),
                             [&](double v) { return v >= land.best * (1 - share); });
    };
    fmt::print("within 5 % of the best    {:.2f} % of all drawn, within 10 % {:.2f} %\n",
               static_cast<double>(within(0.05)) / n * 100,
               static_cast<double>(within(0.1)) / n * 100);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        fmt::print(stderr, "landscape STUDY.yaml [OUTPUT.svg] [SAMPLES]\n");
        return 2;
    }
    try {
        StudyFile file = load_study(argv[1], Catalogue::standard());
        if (auto* choice = std::get_if<SimulateChoice>(&file.measuring))
            choice->noise = {};  // the truth
        const auto evaluator = simulated(file);
        const Problem problem(
            SearchSpace(file.composition->parameters(), file.composition->constraints()),
            file.objective, file.decision);
        const std::size_t samples = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1000;
        const Landscape land = Survey(*evaluator, problem).look(samples);
        print(land, problem);
        if (argc > 2) write_file(argv[2], svg_of(land, file.name));
    } catch (const Error& error) {
        fmt::print(stderr, "landscape: {}\n", error.what());
        return 2;
    }
    return 0;
}
