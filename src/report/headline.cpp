// SPDX-License-Identifier: Apache-2.0
// The verdict in words; where nothing passes, what came nearest or what most trials failed of.
#include "base/nearest.hpp"
#include "base/text.hpp"
#include "report_view.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/recommendation.hpp"
#include "study/confirmation.hpp"
#include "study/verdict.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>

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

/// What disturbed the measurements that the verdict is inconclusive for: the default's, the best's,
/// else all.
std::vector<const Finding*> disturbances_of(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    std::vector<const Finding*> all;
    std::vector<const Finding*> meant;
    for (const Trial* trial : view.standings.trials()) {
        if (trial->measurement() == nullptr) continue;
        const bool is_meant =
            (result.doubt == Doubt::default_disturbed && trial->configuration == view.base()) ||
            (result.doubt == Doubt::winner_disturbed && result.best &&
             trial->configuration == *result.best);
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
    return (first.cause.empty() ? "" : ": " + first.cause) + " (" + first.id +
           (first.left.empty() ? "" : ": " + first.left) + ")";
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
    std::vector<std::string> texts;
    for (const auto& [id, remedy] : remedies)
        for (const Finding* finding : disturbances_of(view))
            if (finding->id == id && std::find(texts.begin(), texts.end(), remedy) == texts.end())
                texts.emplace_back(remedy);
    return joined(texts);
}

/// Measurements that count under the study's audit, by what it finds.
struct Flagged {
    std::size_t used = 0, unsound = 0, suspect = 0;
    const Validity* first = nullptr;  ///< of the gravest

    /// Load tests that were ended early decide nothing.
    void count(const std::vector<const Trial*>& trials, const Decision& decision) {
        for (const Trial* trial : trials) {
            const Measurement* measurement = trial->measurement();
            if (measurement == nullptr || !decision.believes(*measurement) ||
                measurement->validity.ended_early())
                continue;
            ++used;
            const Verdict verdict = measurement->validity.verdict;
            unsound += verdict == Verdict::unsound ? 1 : 0;
            suspect += verdict == Verdict::suspect ? 1 : 0;
            if (verdict >= Verdict::suspect && (first == nullptr || verdict > first->verdict))
                first = &measurement->validity;
        }
    }
    [[nodiscard]] bool only_suspect() const { return used > 0 && suspect == used; }
    /// ` (physics, client): mean TPOT = 1 ms (least = 5 ms).`
    [[nodiscard]] std::string finding_text() const {
        std::vector<std::string> ids;
        for (const Finding& finding : first->findings)
            if (std::find(ids.begin(), ids.end(), finding.id) == ids.end())
                ids.push_back(finding.id);
        std::string text = ids.empty() ? "" : " (" + listed(ids) + ")";
        const auto& findings = first->findings;
        if (const auto said = std::find_if(findings.begin(), findings.end(),
                                           [](const Finding& one) { return !one.left.empty(); });
            said != findings.end())
            text += ": " + said->left + (said->right.empty() ? "" : " (" + said->right + ")");
        return text + '.';
    }
};

/// That measurements of a configuration are unsound, or all suspect, and what the first of them
/// breaks; empty: neither. An inconclusive verdict names what is suspect itself. `whose`: `Its`.
std::string flagged_text(const ReportView& view, const Configuration& configuration,
                         const std::string& whose) {
    const Standing* standing = view.standings.find(configuration);
    if (standing == nullptr) return "";
    Flagged found;
    found.count(standing->trials, view.problem().decision);
    const bool doubted = view.recommendation.doubt != Doubt::none;
    if (found.unsound == 0 && (doubted || !found.only_suspect())) return "";
    const char* what = found.unsound > 0 ? "unsound" : "suspect";
    const std::size_t count = found.unsound > 0 ? found.unsound : found.suspect;
    return (found.used == 1 ? whose + " measurement is " + what
            : count == found.used
                ? whose + " measurements are all " + what
                : fmt::format("{} measurements: {} of {} are {}", whose, count, found.used, what)) +
           found.finding_text();
}

/// The same of all measurements that a verdict rests on.
std::string flagged_text(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    Flagged all;
    all.count(view.standings.trials(), view.problem().decision);
    if (result.doubt == Doubt::none && all.only_suspect() && all.used > 1)
        return "All measurements are suspect" + all.finding_text();
    const std::string of_default = flagged_text(view, view.base(), "The default's");
    if (result.recommended == view.base()) return of_default;
    const std::string of_winner = flagged_text(view, result.recommended, "Its");
    return of_winner + (of_winner.empty() || of_default.empty() ? "" : " ") + of_default;
}

std::string why_inconclusive(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    const auto with_count = [&](const std::string& text) {
        std::vector<std::string> parts;
        if (result.disturbed > 0)
            parts.push_back(
                fmt::format("{} of {} results were disturbed", result.disturbed, result.results));
        if (result.unsound > 0)
            parts.push_back(
                fmt::format("{}{} {} unsound", result.unsound,
                            parts.empty() ? fmt::format(" of {} results", result.results) : "",
                            result.unsound == 1 ? "is" : "are"));
        return text + (parts.empty() ? "" : "; " + joined(parts)) + ".";
    };
    switch (result.doubt) {
        case Doubt::none: break;
        case Doubt::default_unsound: {
            const Standing& base = *view.standings.find(view.base());
            return view.measured(view.base()) != nullptr
                       ? with_count("The default's measurement cannot be believed (" +
                                    base.refused + ")")
                       : "The default could not be measured (" + base.refused + ").";
        }
        case Doubt::not_confirmed:
            return with_count(fmt::format(
                "{} looks better and is not confirmed: after the search it was not measured {} "
                "times in turn with the default",
                result.best ? difference_text(*result.best, view.base()) : "A configuration",
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
    const double least = view.problem().decision.min_gain;
    return view.scale().ratios() ? plain_percent(least)
                                 : short_number_text(view.scale().stated(least));
}

/// `The highest figure that was confirmed is 12`: a configuration that was measured fewer times may
/// have a better one, which nothing is decided by.
std::string best_figure_text(const ReportView& view, const Standing& best,
                             const std::string& which) {
    const Goal& goal = view.goal();
    const Standing* highest = view.standings.best();
    const bool unconfirmed =
        highest != nullptr && goal.better(highest->estimate().mean, best.estimate().mean);
    return std::string(goal.direction == Direction::minimize ? "The lowest" : "The highest") +
           " figure " + (unconfirmed ? "that was confirmed" : which) + " is " +
           figure_text(goal.metric, best.estimate().mean) + " (" +
           view.changes(best.configuration) + ")";
}

std::string given_away_text(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    if (!result.best) return "";
    const Standing& best = *view.standings.find(*result.best);
    if (result.conclusion == Conclusion::inconclusive)
        return best.configuration == view.base()
                   ? ""
                   : best_figure_text(view, best, "that passes") +
                         "; whether it is better than the default is not known.";
    // Lucky in the search: measured in turn with the recommended one, it is slower.
    if (!result.given_away || result.given_away->value < 0) return "";
    const Gain& gap = *result.given_away;
    const bool exact = repeats_exactly(view.setup);
    std::string text = best_figure_text(view, best, "measured") + ", " +
                       gain_text(gap.value, gap.scale) + " over the " +
                       (result.keep_default ? "default" : "recommended one") +
                       (exact ? "" : " (" + with_interval(gap) + ")") + ": ";
    text += gap.value < view.problem().decision.min_gain
                ? "less than the " + worth_text(view) + " that a change is worth"
            : !gap.significant() && !exact ? "it may be noise"
                                           : "not enough to decide for it";
    return text + (result.keep_default ? "."
                   : is_reduction_of(view.problem().space, result.recommended, best.configuration)
                       ? ", so the smaller command is recommended. That is what it gives away."
                       : ", so the configuration with the larger proven gain is recommended.");
}

/// What happened most often, and the first trial that it happened to.
struct Commonest {
    std::string name{};
    std::size_t count = 0;
    std::size_t all = 0;
    const Trial* first = nullptr;

    /// `most often NAME`, or `NAME` where nothing else happened.
    [[nodiscard]] std::string text(const char* before) const {
        return (count < all ? "most often " : "") + std::string(before) + name;
    }
};

/// `name_of`: what happened to a trial; empty: it does not count.
template <class Name>
Commonest commonest(const ReportView& view, const Name& name_of) {
    std::map<std::string, std::pair<std::size_t, const Trial*>> counts;
    Commonest result;
    for (const Trial& trial : view.search) {
        const std::string name = name_of(trial);
        if (name.empty()) continue;
        ++result.all;
        auto& [count, first] = counts[name];
        if (count++ == 0) first = &trial;
    }
    for (const auto& [name, found] : counts)
        if (found.first > result.count)
            std::tie(result.name, result.count, result.first) =
                std::tie(name, found.first, found.second);
    return result;
}

std::string failures_text(const Commonest& failure) {
    if (failure.all == 0) return "";
    std::string message = printable_line(failure.first->failure()->message);
    while (message.ends_with('.')) message.pop_back();  // the sentence around it ends with one
    return fmt::format(" {} failed, {}{}.", counted_text(failure.all, "trial"), failure.text(""),
                       message.empty() ? "" : ": " + message);
}

std::string finding_text(const Commonest& finding) {
    std::string text = finding.text("for ");
    const auto& findings = finding.first->measurement()->validity.findings;
    const auto one = std::find_if(findings.begin(), findings.end(),
                                  [&](const Finding& other) { return other.id == finding.name; });
    for (const std::string& part : {one->left, one->right, one->cause})
        text += part.empty() ? "" : "; " + part;
    return text;
}

/// `limit M <= 100 ms by 23 %: 123 ms on chat`.
std::string broken_text(const BrokenLimit& broken) {
    const double beyond = std::abs(broken.value - broken.limit.bound);
    const double bound = std::abs(broken.limit.bound);
    const bool milliseconds = shown_in_milliseconds(broken.limit.metric);
    return fmt::format(
        "{} by {}: {}{}", broken.limit.readable(),
        bound > 0 ? short_number_text(100 * beyond / bound, 1) + " %" : short_number_text(beyond),
        short_number_text(broken.value * (milliseconds ? 1e3 : 1)) + (milliseconds ? " ms" : ""),
        broken.workload.empty() ? "" : " on " + broken.workload);
}

/// The limits as they would have to be, each metric's once with the bound that all its workloads
/// keep.
std::string loosened_text(const Closest& closest) {
    std::vector<Limit> limits;
    for (const BrokenLimit& broken : closest.broken) {
        const Limit loose = broken.loosened();
        const auto same = std::find_if(limits.begin(), limits.end(), [&](const Limit& other) {
            return other.metric == loose.metric && other.at_least == loose.at_least;
        });
        if (same == limits.end()) limits.push_back(loose);
        else
            same->bound = loose.at_least ? std::min(same->bound, loose.bound)
                                         : std::max(same->bound, loose.bound);
    }
    std::vector<std::string> texts;
    for (const Limit& limit : limits) texts.push_back("'" + limit.readable() + "'");
    return joined(texts, " and ");
}

/// Why nothing passes and what to do: the limits that the nearest configuration breaks and how far
/// they would have to be loosened, or the commonest failure or finding.
std::pair<std::string, std::string> why_nothing_passes(const ReportView& view) {
    const Standing* first = nullptr;  // of those that were told; the default, where it is one
    bool others = false;
    for (const Standing& standing : view.standings.all()) {
        if (!standing.told()) continue;
        const bool is_default = standing.configuration == view.base();
        if (first == nullptr || is_default) first = &standing;
        others = others || !is_default;
    }
    if (first == nullptr) return {"Nothing has been measured yet.", ""};
    const Commonest failure = commonest(view, [](const Trial& trial) {
        const Failure* one = trial.failure();
        return one == nullptr ? std::string() : std::string(name_in(failure_kinds, one->kind));
    });
    const Commonest finding = commonest(view, [&](const Trial& trial) {
        const Measurement* one = trial.measurement();
        return one == nullptr || view.problem().decision.believes(*one) ||
                       one->validity.findings.empty()
                   ? std::string()
                   : one->validity.findings.front().id;
    });
    const std::string beginning = others ? "No measured configuration passes."
                                         : "The default does not pass, and nothing else was tried.";
    if (const auto& closest = view.recommendation.closest) {
        std::vector<std::string> broken;
        for (const BrokenLimit& one : closest->broken) broken.push_back(broken_text(one));
        return {fmt::format("{} Nearest is {}: it breaks {}.{}", beginning,
                            view.changes(closest->configuration), joined(broken),
                            failures_text(failure)),
                "It passes with " + loosened_text(*closest) +
                    ". Loosen that far or widen the space, then run the study in a new folder."};
    }
    if (failure.all == view.search.size() || (failure.all > 0 && finding.all == 0))
        return {beginning + failures_text(failure),
                "Mend that first; the report has the lines of the logs."};
    if (finding.all > 0)
        return {beginning + fmt::format(" The audit refuses {}, {}.{}",
                                        counted_text(finding.all, "measurement"),
                                        finding_text(finding), failures_text(failure)),
                "Remove the cause, then run the study again in a new folder."};
    return {beginning + (first->refused.empty() ? ""
                                                : " " + view.changes(first->configuration) + ": " +
                                                      first->refused + "."),
            "See what failed or was refused, and why."};
}

void say_recommended(const ReportView& view, Headline& headline) {
    const Recommendation& result = view.recommendation;
    const Gain& gain = result.gain;
    const Objective& objective = view.problem().objective;
    headline.advice = std::holds_alternative<SimulateChoice>(view.setup.file.measuring)
                          ? "Predicted: measure it first."
                          : "Serve this.";
    if (result.default_passes) {
        headline.title =
            gain.scale.ratios()
                ? "Recommended: " + percent(gain.value) +
                      (objective.several() ? " in " + view.goal().metric : "") + " over the default"
                : "Recommended: better by " + short_number_text(gain.scale.stated(gain.value)) +
                      " in " + view.goal().metric + " than the default";
        headline.reason = capitalized(with_interval(gain)) + '.';
        return;
    }
    headline.title = "Recommended: the best that passes";
    const Standing* base = view.standings.find(view.base());
    headline.reason = (base == nullptr || !base->told()
                           ? "The default has not been measured"
                           : "The default itself does not pass (" + base->refused + ")") +
                      std::string(", so there is no gain to state.");
}

std::string advice_of_inconclusive(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    const std::string keep = "Keep the default for now; ";
    if (result.doubt == Doubt::unequal_work)
        return keep +
               "measure both with fixed lengths ('ignore_eos: true'), and compare the answers "
               "('quality').";
    if (result.doubt == Doubt::never_cold || result.doubt == Doubt::not_confirmed)
        return keep + "go on with a larger budget.";
    return result.disturbed > 0 && result.doubt != Doubt::default_unsound
               ? keep + "run the study again, in a new folder, " + remedies_text(view) + "."
               : keep + "remove the cause, then run the study again in a new folder.";
}

}  // namespace

Headline headline_of(const ReportView& view) {
    const Problem& problem = view.problem();
    const Recommendation& result = view.recommendation;
    const bool only_default = std::none_of(
        view.search.begin(), view.search.end(),
        [&](const Trial& trial) { return trial.told() && trial.configuration != view.base(); });
    // A strategy that is to measure all says how many it measured.
    std::string rest =
        view.setup.strategy->name() == "exhaustive" && !only_default ? not_tried_text(view) : "";
    if (!rest.empty()) rest.insert(0, " ");
    Headline headline{result.conclusion, {}, {}, {}, {}, {}, {}};
    switch (result.conclusion) {
        case Conclusion::recommended: say_recommended(view, headline); break;
        case Conclusion::keep_default:
            headline.title = "Keep the default";
            headline.reason =
                only_default
                    ? "Nothing but the default has been measured yet."
                    : fmt::format("{} gains the {} that a change is worth{}{}.",
                                  problem.objective.several() ? "The best in " + view.goal().metric
                                                              : "Nothing measured",
                                  worth_text(view),
                                  problem.objective.several() ? " in none of the goals" : "",
                                  problem.decision.rule == Decision::Rule::significant
                                      ? " with an interval above zero"
                                      : "");
            headline.advice =
                result.front.size() > 1
                    ? "Serve the default, unless another trade on the front is worth more to you."
                    : "Serve the default.";
            break;
        case Conclusion::inconclusive:
            headline.title = "Inconclusive";
            headline.reason = why_inconclusive(view);
            headline.advice = advice_of_inconclusive(view);
            break;
        case Conclusion::nothing_passes:
            headline.title = "Nothing can be recommended";
            std::tie(headline.reason, headline.advice) = why_nothing_passes(view);
            headline.reason += rest;
            return headline;
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
            result.recommended == view.base() ? "The default" : "It", *copies);
    headline.given_away = given_away_text(view);
    return headline;
}

Headline headline_of(const StudySetup& setup, std::span<const Trial> trials) {
    return headline_of(ReportView(setup, trials));
}

}  // namespace servetune
