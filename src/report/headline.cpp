// SPDX-License-Identifier: Apache-2.0
#include "report_view.hpp"
#include "servetune/detail/base/nearest.hpp"
#include "servetune/detail/study/confirmation_rounds.hpp"
#include "servetune/detail/study/recommendation_text.hpp"
#include "servetune/detail/study/smaller_command.hpp"
#include "servetune/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace servetune {
namespace {

std::string capitalized(std::string text) {
    if (!text.empty())
        text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
}

/// Whether a second measurement would give the same figure: simulated without noise.
bool repeats_exactly(const StudySetup& setup) {
    const auto* choice = std::get_if<SimulateChoice>(&setup.file.measuring);
    return choice != nullptr && choice->noise.run_cv == 0 && choice->noise.step_cv == 0 &&
           choice->noise.drift_cv == 0;
}

/// Whether the default has a figure at all, believed or not.
bool is_measured(const Standing* standing) {
    return standing != nullptr &&
           std::any_of(standing->trials.begin(), standing->trials.end(),
                       [](const Trial* trial) { return trial->measurement() != nullptr; });
}

std::string why_default_fails(const ReportView& view) {
    const Standing* base = view.standings.find(view.recommendation.default_configuration);
    if (base == nullptr || !base->told())
        return "The default has not been measured, so there is no gain to state.";
    return "The default itself does not pass (" + base->refused +
           "), so there is no gain to state.";
}

/// What disturbed the measurements that the doubt is about: the default's, the best's, else all.
std::vector<const Finding*> disturbances_of(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    std::vector<const Finding*> all;
    std::vector<const Finding*> meant;
    for (const Trial* trial : view.standings.trials()) {
        if (trial->measurement() == nullptr) continue;
        const bool is_meant = result.doubt == Doubt::default_disturbed
                                  ? trial->configuration == result.default_configuration
                              : result.doubt == Doubt::winner_disturbed
                                  ? result.best && trial->configuration == *result.best
                                  : false;
        for (const Finding& finding : trial->measurement()->validity.findings) {
            if (!is_disturbance(finding)) continue;
            all.push_back(&finding);
            if (is_meant) meant.push_back(&finding);
        }
    }
    return meant.empty() ? all : meant;
}

/// `: the GPU got too hot (gpu_throttled: 90 C)`.
std::string disturbance_text(const ReportView& view) {
    const auto found = disturbances_of(view);
    if (found.empty()) return "";
    const Finding& first = *found.front();
    const std::string seen = " (" + first.id + (first.left.empty() ? "" : ": " + first.left) + ")";
    return (first.cause.empty() ? "" : ": " + first.cause) + seen;
}

/// When or how to run a study again that was disturbed: each kind of disturbance has its remedy.
std::string remedies_text(const ReportView& view) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, disturbances.size()>
        remedies{{{"gpu_throttled", "once neither heat nor the supply of power holds the GPU back"},
                  {"gpu_shared", "while nothing else uses the machine"},
                  {"gpu_lost", "once the driver has its GPUs again"},
                  {"cpu_stolen", "where no other virtual machine gets the same cores"},
                  {"cpu_shared", "while nothing else uses the machine"},
                  {"client_stopped", "without stopping this program or its machine"}}};
    const auto found = disturbances_of(view);
    std::string text;
    for (const auto& [id, remedy] : remedies)
        if (std::any_of(found.begin(), found.end(),
                        [&id = id](const Finding* finding) { return finding->id == id; }))
            if (text.find(remedy) == std::string::npos)
                text += (text.empty() ? "" : ", ") + std::string(remedy);
    return text;
}

/// Measurements that count under the study's audit, by what it finds.
struct Flagged {
    std::size_t used = 0, unsound = 0, suspect = 0;
    const Validity* first = nullptr;  ///< of the gravest

    /// Load tests that were ended early decide nothing.
    void count(const Measurement& measurement, const Decision& decision) {
        if (!decision.believes(measurement) || measurement.validity.ended_early()) return;
        ++used;
        const Verdict verdict = measurement.validity.verdict;
        unsound += verdict == Verdict::unsound ? 1 : 0;
        suspect += verdict == Verdict::suspect ? 1 : 0;
        if (verdict >= Verdict::suspect && (first == nullptr || verdict > first->verdict))
            first = &measurement.validity;
    }
    [[nodiscard]] bool only_suspect() const { return used > 0 && suspect == used; }
    /// ` (physics, client): mean TPOT = 1 ms; least = 5 ms.`
    [[nodiscard]] std::string finding_text() const {
        std::vector<std::string> ids;
        for (const Finding& finding : first->findings)
            if (std::find(ids.begin(), ids.end(), finding.id) == ids.end())
                ids.push_back(finding.id);
        std::string text = ids.empty() ? "" : " (" + listed(ids) + ")";
        for (const Finding& finding : first->findings) {
            if (finding.left.empty()) continue;
            text += ": " + finding.left + (finding.right.empty() ? "" : "; " + finding.right);
            break;
        }
        return text + '.';
    }
};

/// That measurements of a configuration are unsound, or all suspect, and what the first of them
/// breaks; empty: neither. A doubt names what is suspect itself. `whose`: `Its`.
std::string flagged_text(const ReportView& view, const Configuration& configuration,
                         const std::string& whose) {
    const Standing* standing = view.standings.find(configuration);
    if (standing == nullptr) return "";
    Flagged found;
    for (const Trial* trial : standing->trials)
        if (const Measurement* measurement = trial->measurement())
            found.count(*measurement, view.setup.problem->decision);
    const bool doubted = view.recommendation.doubt != Doubt::none;
    if (found.unsound == 0 && (doubted || !found.only_suspect())) return "";
    const char* what = found.unsound > 0 ? "unsound" : "suspect";
    const std::size_t count = found.unsound > 0 ? found.unsound : found.suspect;
    const std::string text = found.used == 1       ? whose + " measurement is " + what
                             : count == found.used ? whose + " measurements are all " + what
                                                   : fmt::format("{} measurements: {} of {} are {}",
                                                                 whose, count, found.used, what);
    return text + found.finding_text();
}

/// The same of all measurements that a verdict rests on.
std::string flagged_text(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    Flagged all;
    for (const Trial* trial : view.standings.trials())
        if (const Measurement* measurement = trial->measurement())
            all.count(*measurement, view.setup.problem->decision);
    if (result.doubt == Doubt::none && all.only_suspect() && all.used > 1)
        return "All results are suspect" + all.finding_text();
    const std::string of_default =
        flagged_text(view, result.default_configuration, "The default's");
    if (result.recommended == result.default_configuration) return of_default;
    const std::string of_winner = flagged_text(view, result.recommended, "Its");
    return of_winner + (of_winner.empty() || of_default.empty() ? "" : " ") + of_default;
}

std::string count_of_unreliable(const Recommendation& result) {
    std::string text;
    if (result.disturbed > 0)
        text = fmt::format("{} of {} results were disturbed", result.disturbed, result.results);
    const char* are = result.unsound == 1 ? "is" : "are";
    if (result.unsound > 0)
        text += text.empty() ? fmt::format("{} of {} results {} unsound", result.unsound,
                                           result.results, are)
                             : fmt::format(", {} {} unsound", result.unsound, are);
    return text;
}

std::string why_inconclusive(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    const Standing* base = view.standings.find(result.default_configuration);
    const std::string count = count_of_unreliable(result);
    const auto with_count = [&](const std::string& text) {
        return text + (count.empty() ? "" : "; " + count) + ".";
    };
    switch (result.doubt) {
        case Doubt::none: break;
        case Doubt::default_unsound:
            return is_measured(base) ? with_count("The default's measurement cannot be believed (" +
                                                  base->refused + ")")
                                     : "The default could not be measured (" + base->refused + ").";
        case Doubt::not_confirmed:
            return with_count(fmt::format(
                "{} looks better and is not confirmed: after the search it was not measured {} "
                "times in turn with the default",
                result.best ? difference_text(*result.best, result.default_configuration)
                            : "A configuration",
                least_rounds));
        case Doubt::default_disturbed:
        case Doubt::winner_disturbed:
            return with_count(capitalized(text_of(result.doubt)) + disturbance_text(view));
        case Doubt::most_unreliable: return with_count(capitalized(text_of(result.doubt)));
        case Doubt::unequal_work: return why_not_comparable(view, *result.unequal);
        case Doubt::never_cold:
            return "The best configuration was only measured with weights of the engine's cache, "
                   "and " +
                   std::string(result.to_confirm ? "no cold start has confirmed it."
                                                 : "its cold starts came to nothing.");
    }
    return "";
}

/// What a change is worth: `1 %`, or `0.02` where figures are compared by differences.
std::string worth_text(const ReportView& view) {
    const double least = view.setup.problem->decision.min_gain;
    const FigureScale& scale = view.standings.scale();
    return scale.ratios() ? plain_percent(least) : short_number_text(scale.stated(least));
}

/// `The highest figure that was confirmed`: a configuration that was measured fewer times may have
/// a better one, which nothing is decided by.
std::string best_figure_text(const ReportView& view, const Standing& best,
                             const std::string& which) {
    const Goal& goal = view.setup.problem->objective.leading();
    const Standing* highest = view.standings.best();
    const bool unconfirmed =
        highest != nullptr && goal.better(highest->estimate().mean, best.estimate().mean);
    return std::string(goal.direction == Direction::minimize ? "The lowest" : "The highest") +
           " figure " + (unconfirmed ? "that was confirmed" : which) + " is " +
           figure_text(goal.metric, best.estimate().mean);
}

std::string given_away_text(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    if (!result.best) return "";
    const Problem& problem = *view.setup.problem;
    const Standing& best = *view.standings.find(*result.best);
    if (result.conclusion == Conclusion::inconclusive) {
        if (best.configuration == result.default_configuration) return "";
        return best_figure_text(view, best, "that passes") + " (" +
               difference_text(best.configuration, result.default_configuration) +
               "); whether it is better than the default is not known.";
    }
    // Lucky in the search: measured in turn with the recommended one, it is slower.
    if (!result.given_away || result.given_away->value < 0) return "";
    const Gain& gap = *result.given_away;
    const std::string changes = difference_text(best.configuration, result.default_configuration);
    const bool exact = repeats_exactly(view.setup);
    std::string text = best_figure_text(view, best, "measured") + " (" +
                       (changes.empty() ? "the default" : changes) + "), " +
                       gain_text(gap.value, gap.scale) + " over the " +
                       (result.keep_default ? "default" : "recommended one") +
                       (exact ? "" : " (" + with_interval(gap) + ")") + ": ";
    if (gap.value < problem.decision.min_gain)
        text += "less than the " + worth_text(view) + " that a change is worth";
    else if (!gap.significant() && !exact) text += "it may be noise";
    else text += "not enough to decide for it";
    const SearchSpace& space = problem.space;
    text += result.keep_default ? "."
            : is_reduction_of(space, result.recommended, best.configuration)
                ? ", so the smaller command is recommended. That is what it gives away."
                : ", so the configuration with the larger proven gain is recommended.";
    return text;
}

}  // namespace

std::string plain_percent(double share) { return short_number_text(share * 100) + " %"; }

std::string not_tried_text(const ReportView& view) {
    const double size = view.setup.problem->feasible.size();
    const auto told = std::count_if(view.standings.all().begin(), view.standings.all().end(),
                                    [](const Standing& one) { return one.told(); });
    if (size <= static_cast<double>(told)) return "";
    constexpr double countable = 10'000;
    return fmt::format(
        "What was not tried: {} of {} configurations were measured.", told,
        size < countable ? fmt::format("{:.0f}", size) : fmt::format("{:.3g}", size));
}

std::string interval_text(const Gain& gain) {
    return gain_text(gain.low, gain.scale) + " to " + gain_text(gain.high, gain.scale);
}

std::string with_interval(const Gain& gain) {
    if (!gain.has_interval()) return "one measurement each: no interval";
    const std::string stated = "95 % interval " + interval_text(gain);
    if ((gain.low > 0) == gain.significant()) return stated;
    return stated +
           (gain.low > 0 ? "; the 99 % interval, which decides, begins at "
                         : "; by the noise of all results, which decides, it begins at ") +
           gain_text(gain.at_least(), gain.scale);
}

std::string noise_text(const ReportView& view) {
    const FigureScale& scale = view.standings.scale();
    const std::string noise =
        (scale.ratios() ? fmt::format("{:.1f} %", view.standings.noise() * 100)
                        : short_number_text(view.standings.noise() * scale.unit)) +
        " per measurement";
    const std::size_t replicated = view.standings.replicated();
    if (replicated == 0) return noise + " (assumed: every configuration was measured once)";
    const double assumed = view.setup.problem->decision.noise_cv;
    return noise +
           fmt::format(
               " (from the repeated measurements of {} configuration{}, {} the assumed {})",
               replicated, replicated == 1 ? "" : "s",
               assumption_is_contradicted(assumed, view.standings.noise()) ? "which contradict"
                                                                           : "and",
               scale.ratios() ? plain_percent(assumed) : short_number_text(assumed * scale.unit));
}

std::string drift_text(const Standings& standings) {
    const Drift& drift = standings.drift();
    const FigureScale& scale = standings.scale();
    if (drift.checks() < Drift::least_checks) return "";
    const std::string checks = fmt::format("by {} measurements of the default", drift.checks());
    if (!drift.real()) return "none is proven, " + checks;
    return fmt::format(
        "{}, the speed of the machine changed by {} during the study (chance of as much without a "
        "drift: {:.1g} %). It is taken off "
        "every figure that is judged here",
        checks,
        scale.ratios() ? fmt::format("{:.1f} %", 100 * drift.change())
                       : short_number_text(std::abs(scale.stated(-drift.change()))),
        100 * drift.chance());
}

namespace {

Metrics means_of(std::vector<const Measurement*> measurements, const Decision& decision) {
    if (std::any_of(measurements.begin(), measurements.end(),
                    [&](const Measurement* m) { return decision.believes(*m); }))
        std::erase_if(measurements, [&](const Measurement* m) { return !decision.believes(*m); });
    Metrics result;
    std::map<std::string, double, std::less<>> runs;
    for (const Measurement* measurement : measurements)
        for (const auto& [name, metric] : measurement->metrics) {
            const auto count = static_cast<double>(metric.replicates);
            result[name].value += count * metric.value;
            runs[name] += count;
        }
    for (auto& [name, metric] : result) metric.value /= runs.at(name);
    return result;
}

}  // namespace

Metrics ReportView::means(const Configuration& configuration, std::string_view workload) const {
    std::vector<const Measurement*> measurements;
    for (const Trial& trial : trials)
        if (trial.workload == workload && trial.configuration == configuration &&
            trial.measurement() != nullptr)
            measurements.push_back(trial.measurement());
    return means_of(std::move(measurements), setup.problem->decision);
}

Metrics ReportView::judged_means(const Configuration& configuration) const {
    if (!gain_is_by_rounds()) return means(configuration);
    std::vector<const Measurement*> measurements;
    for (const ConfirmationRound& round : confirmation_rounds(standings.trials())) {
        const auto measured = [&](const Configuration& one) -> const Measurement* {
            for (const Trial* trial : round)
                if (trial->configuration == one && trial->measurement() != nullptr)
                    return trial->measurement();
            return nullptr;
        };
        const bool both = measured(recommendation.recommended) != nullptr &&
                          measured(recommendation.default_configuration) != nullptr;
        if (const Measurement* mine = measured(configuration); both && mine != nullptr)
            measurements.push_back(mine);
    }
    return means_of(std::move(measurements), setup.problem->decision);
}

std::optional<double> ReportView::gain_in_table(const Configuration& configuration,
                                                std::optional<double> figure,
                                                std::optional<double> of_default) const {
    if (recommendation.conclusion == Conclusion::recommended && recommendation.default_passes &&
        configuration == recommendation.recommended)
        return recommendation.gain.scale.stated(recommendation.gain.value);
    if (!figure || !of_default) return std::nullopt;
    return stated_gain(setup.problem->objective.leading(), standings.scale(), *figure, *of_default);
}

std::map<std::string, double> limited_figures(const Standing& standing, const Limit& limit,
                                              const Decision& decision) {
    std::map<std::string, double> result;
    for (const Trial* trial : standing.trials) {
        const Measurement* measurement = trial->measurement();
        if (measurement == nullptr || (!decision.believes(*measurement) && standing.measured() > 0))
            continue;
        for (const auto& [workload, value] : limit.figures(measurement->metrics)) {
            const auto [at, is_new] = result.emplace(workload, value);
            if (!is_new)
                at->second =
                    limit.at_least ? std::min(at->second, value) : std::max(at->second, value);
        }
    }
    if (result.size() > 1)
        result.erase("");  // the workloads' own figures are judged, not their mean
    return result;
}

Headline headline_of(const ReportView& view) {
    const auto only_default_told = [](const ReportView& of) {
        const Configuration usual = of.setup.problem->space.default_configuration();
        return std::none_of(of.search.begin(), of.search.end(), [&](const Trial& trial) {
            return trial.told() && trial.configuration != usual;
        });
    };
    const Problem& problem = *view.setup.problem;
    const Recommendation& result = view.recommendation;
    const std::string in_leading =
        problem.objective.several() ? " in " + problem.objective.leading().metric : "";
    const std::string significantly =
        problem.decision.rule == Decision::Rule::significant ? " with an interval above zero" : "";
    const bool all_wanted = view.setup.strategy->name() == "exhaustive" && !only_default_told(view);
    std::string rest = all_wanted ? not_tried_text(view) : "";  // of what was to be measured
    if (!rest.empty()) rest.insert(0, " ");
    Headline headline{result.conclusion, {}, {}, {}, {}, {}, {}};
    switch (result.conclusion) {
        case Conclusion::recommended:
            if (!result.default_passes) {
                headline.title = "Recommended: the best that passes";
                headline.reason = why_default_fails(view);
            } else {
                headline.title =
                    result.gain.scale.ratios()
                        ? "Recommended: " + percent(result.gain.value) + in_leading +
                              " over the default"
                        : "Recommended: better by " +
                              short_number_text(result.gain.scale.stated(result.gain.value)) +
                              " in " + problem.objective.leading().metric + " than the default";
                headline.reason = capitalized(with_interval(result.gain)) + '.';
            }
            headline.advice = std::holds_alternative<SimulateChoice>(view.setup.file.measuring)
                                  ? "Predicted: measure it first."
                                  : "Serve this.";
            break;
        case Conclusion::keep_default:
            headline.title = "Keep the default";
            headline.reason = problem.objective.several()
                                  ? "The best in " + problem.objective.leading().metric +
                                        " gains the " + worth_text(view) +
                                        " that a change is worth in none of the goals" +
                                        significantly + "."
                                  : "Nothing measured gains the " + worth_text(view) +
                                        " that a change is worth" + significantly + ".";
            if (only_default_told(view))
                headline.reason = "Nothing but the default has been measured yet.";
            headline.advice =
                result.front.size() > 1
                    ? "Serve the default, unless another trade on the front is worth more to you."
                    : "Serve the default.";
            break;
        case Conclusion::inconclusive:
            headline.title = "Inconclusive";
            headline.reason = why_inconclusive(view);
            headline.advice =
                result.doubt == Doubt::unequal_work
                    ? "Keep the default for now; measure both with fixed lengths ('ignore_eos: "
                      "true'), and compare the answers "
                      "('quality')."
                : result.doubt == Doubt::never_cold || result.doubt == Doubt::not_confirmed
                    ? "Keep the default for now; go on with a larger budget."
                : result.disturbed > 0 && result.doubt != Doubt::default_unsound
                    ? "Keep the default for now; run the study again, in a new folder, " +
                          remedies_text(view) + "."
                    : "Keep the default for now; remove the cause, then run the study again in a "
                      "new folder.";
            break;
        case Conclusion::nothing_passes: {
            headline.title = "Nothing can be recommended";
            std::tie(headline.reason, headline.advice) = why_nothing_passes(view);
            headline.reason += rest;
            return headline;
        }
    }
    headline.unsound = flagged_text(view);
    if (!headline.unsound.empty()) {
        headline.reason += " " + headline.unsound;
        if (result.conclusion == Conclusion::recommended)
            headline.advice = "Find out why before you serve this.";
    }
    if (const std::string difference = environment_difference(view); !difference.empty())
        headline.reason += " " + difference;
    headline.reason += rest;
    headline.command = view.setup.advice(result.recommended);
    if (const auto copies = value_in(view.means(result.recommended), "replicas");
        copies && *copies > 1)
        headline.advice += fmt::format(
            " {} was measured as {:.0f} copies, each on devices and a port of its own; 'autotune "
            "recommend --as shell' starts them all.",
            result.recommended == result.default_configuration ? "The default" : "It", *copies);
    headline.given_away = given_away_text(view);
    return headline;
}

Headline headline_of(const StudySetup& setup, std::span<const Trial> trials) {
    return headline_of(ReportView(setup, trials));
}

}  // namespace servetune
