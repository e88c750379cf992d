// SPDX-License-Identifier: Apache-2.0
// The verdict in words, and the notes beside it: environment, work that cannot be compared,
// knowledge.
#include "report_view.hpp"

#include "base/nearest.hpp"
#include "base/text.hpp"
#include "host/environment.hpp"
#include "search/rejected_priors.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/outcome.hpp"
#include "servetune/recommendation.hpp"
#include "study/confirmation.hpp"
#include "study/verdict.hpp"
#include "study_file/readers.hpp"
#include "trial/metric_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <tuple>

namespace servetune {
namespace {

std::string capitalized(std::string text) {
    if (!text.empty())
        text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
}

/// What disturbed the measurements that the verdict is inconclusive for: the default's, the best's,
/// else any. Null: nothing did.
const Finding* disturbance_of(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    const Finding* any = nullptr;
    for (const Trial* trial : view.standings.trials()) {
        if (trial->measurement() == nullptr) continue;
        const bool is_meant = (result.doubt == InconclusiveReason::default_disturbed &&
                               trial->configuration == view.base()) ||
                              (result.doubt == InconclusiveReason::winner_disturbed &&
                               result.best && trial->configuration == *result.best);
        for (const Finding& finding : trial->measurement()->validity.findings) {
            if (!is_disturbance(finding)) continue;
            if (is_meant) return &finding;
            if (any == nullptr) any = &finding;
        }
    }
    return any;
}

/// `: the GPU got too hot (gpu_throttled: 90 C)`.
std::string disturbance_text(const ReportView& view) {
    const Finding* found = disturbance_of(view);
    if (found == nullptr) return "";
    return (found->cause.empty() ? "" : ": " + found->cause) + " (" + found->id +
           (found->left.empty() ? "" : ": " + found->left) + ")";
}

/// When or how to run a study again that was disturbed.
std::string_view remedy_of(const Finding& finding) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, disturbances.size()>
        remedies{{{"gpu_throttled", "once neither heat nor the supply of power holds the GPU back"},
                  {"gpu_shared", "while nothing else uses the machine"},
                  {"gpu_lost", "once the driver has its GPUs again"},
                  {"cpu_stolen", "where no other virtual machine gets the same cores"},
                  {"cpu_shared", "while nothing else uses the machine"},
                  {"client_stopped", "without stopping this program or its machine"}}};
    return find_if(remedies, [&](const auto& one) { return one.first == finding.id; })->second;
}

/// Measurements that count under the study's audit, by the gravest verdict among them. Load tests
/// that were ended early decide nothing.
struct Flagged {
    Flagged(const std::vector<const Trial*>& trials, const Decision& decision) {
        for (const Trial* trial : trials) {
            const Measurement* measurement = trial->measurement();
            if (measurement == nullptr || !decision.believes(*measurement) ||
                measurement->validity.ended_early())
                continue;
            ++used;
            const Validity& validity = measurement->validity;
            if (validity.verdict < Verdict::suspect || (first && validity.verdict < first->verdict))
                continue;
            count = first && validity.verdict == first->verdict ? count + 1 : 1;
            if (count == 1) first = &validity;
        }
    }
    [[nodiscard]] bool unsound() const { return first && first->verdict == Verdict::unsound; }
    [[nodiscard]] bool all_suspect() const { return first && !unsound() && count == used; }
    /// `Its measurement is unsound (physics, client): mean TPOT = 1 ms (least = 5 ms).`
    [[nodiscard]] std::string text(const std::string& whose) const {
        std::vector<std::string> ids;
        for (const Finding& finding : first->findings)
            if (!contains(ids, finding.id)) ids.push_back(finding.id);
        std::string text = whose + (used == 1 ? " measurement is " : " measurements are ") +
                           std::string(name_in(verdicts, first->verdict));
        if (count < used)
            text = fmt::format("{} of {} measurements are unsound", count, used) +
                   (whose == "Its" ? "" : " of the default");
        if (!ids.empty()) text += " (" + listed(ids) + ")";
        const auto& findings = first->findings;
        if (const auto said =
                find_if(findings, [](const Finding& one) { return !one.left.empty(); });
            said != findings.end())
            text += ": " + said->left + (said->right.empty() ? "" : " (" + said->right + ")");
        return text + '.';
    }

    std::size_t used = 0, count = 0;  ///< with the gravest verdict
    const Validity* first = nullptr;  ///< of those; null: all are sound
};

/// That measurements which the verdict rests on are unsound, or all suspect. An inconclusive
/// verdict names what is suspect itself.
std::string flagged_text(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    const Decision& decision = view.problem().decision;
    const bool decided = result.doubt == InconclusiveReason::none;
    const Flagged all(view.standings.trials(), decision);
    if (decided && all.all_suspect() && all.used > 1) return all.text("All");
    std::vector<std::string> texts;
    const auto add = [&](const Configuration& configuration, const char* whose) {
        const Standing* standing = view.standings.find(configuration);
        if (standing == nullptr) return;
        const Flagged found(standing->trials, decision);
        if (found.unsound() || (decided && found.all_suspect())) texts.push_back(found.text(whose));
    };
    if (result.recommended != view.base()) add(result.recommended, "Its");
    add(view.base(), "The default's");
    return joined(texts, " ");
}

/// `bits = fp8 did other work than the default: 16 output tokens a request, 32 with the default.`
std::string other_work_text(const ReportView& view, const Standing& standing) {
    std::vector<std::string> texts;
    for (const LengthMismatch& work : standing.other_work) texts.push_back(work.text());
    return view.changes(standing.configuration) +
           " did other work than the default: " + joined(texts, "; ") + "." +
           (unchecked_answers(view.problem().space, standing).empty()
                ? ""
                : " It changes what the model computes, and nobody compared the answers: a broken "
                  "quantization looks like this.");
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
        case InconclusiveReason::none: break;
        case InconclusiveReason::default_unsound: {
            const Standing& base = *view.standings.find(view.base());
            return view.measured(view.base()) != nullptr
                       ? with_count("The default's measurement cannot be believed (" +
                                    base.refused + ")")
                       : "The default could not be measured (" + base.refused + ").";
        }
        case InconclusiveReason::not_confirmed:
            return with_count(fmt::format(
                "{} looks better and is not confirmed: after the search it was not measured {} "
                "times in turn with the default",
                result.best ? difference_text(*result.best, view.base()) : "A configuration",
                least_rounds));
        case InconclusiveReason::default_disturbed:
        case InconclusiveReason::winner_disturbed:
            return with_count(capitalized(text_of(result.doubt)) + disturbance_text(view));
        case InconclusiveReason::most_unreliable:
            return with_count(capitalized(text_of(result.doubt)));
        case InconclusiveReason::length_mismatch:
            return other_work_text(view, *view.standings.find(*result.unequal));
        case InconclusiveReason::never_cold:
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
    return best_figure_text(view, best, "measured") + ", " + gain_text(gap.value, gap.scale) +
           " over the " + (result.keep_default ? "default" : "recommended one") + " (" +
           with_interval(gap) + "): " +
           (gap.value < view.problem().decision.min_gain
                ? "less than the " + worth_text(view) + " that a change is worth"
            : view.problem().is_confirmed() ? "not proven, a larger budget may prove it"
                                            : "not proven") +
           (result.keep_default ? "."
            : is_reduction_of(view.problem().space, result.recommended, best.configuration)
                ? ", so the smaller command is recommended."
                : ", so the configuration with the larger proven gain is recommended.");
}

/// What happened to most of the trials that something happened to.
struct Commonest {
    std::size_t all = 0;
    std::string text{};  ///< `most often NAME: DETAIL`
};

/// `event_of` a trial: a name and how it was the first time; an empty name: it does not count.
template <class EventOf>
Commonest commonest(const ReportView& view, const EventOf& event_of) {
    std::map<std::string, std::pair<std::size_t, std::string>> events;
    Commonest result;
    for (const Trial& trial : view.search)
        if (auto [name, detail] = event_of(trial); !name.empty()) {
            ++result.all;
            ++events.try_emplace(std::move(name), 0, std::move(detail)).first->second.first;
        }
    const auto most = std::max_element(
        events.begin(), events.end(),
        [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    if (most == events.end()) return result;
    const auto& [name, event] = *most;
    result.text = (event.first < result.all ? "most often " : "") + name +
                  (event.second.empty() ? "" : ": " + event.second);
    return result;
}

using TrialEvent = std::pair<std::string, std::string>;

TrialEvent failure_event(const Trial& trial) {
    const Failure* failure = trial.failure();
    if (failure == nullptr) return {};
    std::string message = printable_line(failure->message);
    while (message.ends_with('.')) message.pop_back();  // the sentence around it ends with one
    return {std::string(name_in(failure_kinds, failure->kind)), message};
}

TrialEvent finding_event(const Trial& trial, const Decision& decision) {
    const Measurement* one = trial.measurement();
    if (one == nullptr || decision.believes(*one) || one->validity.findings.empty()) return {};
    const Finding& finding = one->validity.findings.front();
    std::vector<std::string> parts{finding.left, finding.right, finding.cause};
    std::erase(parts, "");
    return {finding.id, joined(parts, "; ")};
}

/// `limit M <= 100 ms by 23 %: 123 ms on chat`.
std::string broken_text(const BrokenLimit& broken) {
    const double beyond = std::abs(broken.value - broken.limit.bound);
    const double bound = std::abs(broken.limit.bound);
    return fmt::format(
        "{} by {}: {}{}", broken.limit.readable(),
        bound > 0 ? short_number_text(100 * beyond / bound, 1) + " %" : short_number_text(beyond),
        figure_text(broken.limit.metric, broken.value, 4),
        broken.workload.empty() ? "" : " on " + broken.workload);
}

/// The limits as they would have to be, each metric's once with the bound that all its workloads
/// keep.
std::string loosened_text(const Closest& closest) {
    std::vector<Limit> limits;
    for (const BrokenLimit& broken : closest.broken) {
        const Limit loose = broken.loosened();
        const auto same = find_if(limits, [&](const Limit& other) {
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
    const Commonest failure = commonest(view, failure_event);
    const Commonest finding = commonest(
        view, [&](const Trial& trial) { return finding_event(trial, view.problem().decision); });
    const std::string failures =
        failure.all == 0
            ? ""
            : fmt::format(" {} failed, {}.", counted_text(failure.all, "trial"), failure.text);
    const std::string beginning = others ? "No measured configuration passes."
                                         : "The default does not pass, and nothing else was tried.";
    if (const auto& closest = view.recommendation.closest) {
        std::vector<std::string> broken;
        for (const BrokenLimit& one : closest->broken) broken.push_back(broken_text(one));
        return {fmt::format("{} Nearest is {}: it breaks {}.{}", beginning,
                            view.changes(closest->configuration), joined(broken), failures),
                "It passes with " + loosened_text(*closest) +
                    ". Loosen that far or widen the space, then run the study in a new folder."};
    }
    if (failure.all == view.search.size() || (failure.all > 0 && finding.all == 0))
        return {beginning + failures, "Mend that first; the report has the lines of the logs."};
    if (finding.all > 0)
        return {beginning + fmt::format(" The audit refuses {}, for {}.{}",
                                        counted_text(finding.all, "measurement"), finding.text,
                                        failures),
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
                          : view.use("Serve") + " this.";
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
    const std::string keep = "Keep the default for now; ";
    const Finding* disturbance = disturbance_of(view);
    switch (view.recommendation.doubt) {
        case InconclusiveReason::length_mismatch:
            return keep +
                   "measure both with fixed lengths ('ignore_eos: true'), and compare the answers "
                   "('quality').";
        case InconclusiveReason::never_cold:
        case InconclusiveReason::not_confirmed:
            return keep + "go on with a larger budget (--trials).";
        case InconclusiveReason::default_unsound: break;
        default:
            if (disturbance != nullptr)
                return keep + "run the study again, in a new folder, " +
                       std::string(remedy_of(*disturbance)) + ".";
    }
    return keep + "remove the cause, then run the study again in a new folder.";
}

}  // namespace

Headline headline_of(const ReportView& view) {
    const Problem& problem = view.problem();
    const Recommendation& result = view.recommendation;
    const bool only_default = none_of(view.search, [&](const Trial& trial) {
        return trial.told() && trial.configuration != view.base();
    });
    Headline headline{result.conclusion, {}, {}, {}, {}, {}, {}};
    switch (result.conclusion) {
        case Conclusion::recommended: say_recommended(view, headline); break;
        case Conclusion::keep_default:
            headline.title = "Keep the default";
            headline.reason =
                only_default ? "Nothing but the default has been measured yet."
                : any_of(view.search, [](const Trial& trial) { return trial.fell(); })
                    ? "What gains more fell under stress."
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
                    ? view.use("Serve") +
                          " the default, unless another trade on the front is worth more to you."
                    : view.use("Serve") + " the default.";
            break;
        case Conclusion::inconclusive:
            headline.title = "Inconclusive";
            headline.reason = why_inconclusive(view);
            headline.advice = advice_of_inconclusive(view);
            break;
        case Conclusion::nothing_passes:
            headline.title = "Nothing can be recommended";
            std::tie(headline.reason, headline.advice) = why_nothing_passes(view);
            return headline;
    }
    headline.unsound = flagged_text(view);
    if (!headline.unsound.empty()) {
        headline.reason += " " + headline.unsound;
        if (result.conclusion == Conclusion::recommended)
            headline.advice = "Find out why before you " + view.use("serve") + " this.";
    }
    if (const std::string difference = environment_difference(view); !difference.empty())
        headline.reason += " " + difference;
    if (result.conclusion == Conclusion::recommended &&
        any_of(view.search, [](const Trial& trial) { return trial.fell(); }))
        headline.reason += " What looked better fell under stress.";
    for (const Trial& trial : view.trials)
        if (trial.fell() && trial.configuration == result.recommended) {
            headline.reason += trial.configuration == view.base()
                                   ? " Under stress the default failed."
                                   : " Under stress it failed, as the default does.";
            headline.advice = "Find out why before you " + view.use("serve") + " it.";
        }
    for (const Trial& trial : view.search)
        if (trial.started_at && !trial.told())
            headline.reason += fmt::format(" Trial {} has no result yet: {}.", trial.id,
                                           view.changes(trial.configuration));
    headline.command = view.setup.advice(result.recommended);
    if (const auto copies = value_in(view.means(result.recommended), "replicas");
        copies && *copies > 1)
        headline.advice += fmt::format(
            " {} was measured as {:.0f} copies, each on devices and a port of its own: start as "
            "many.",
            result.recommended == view.base() ? "The default" : "It", *copies);
    headline.given_away = given_away_text(view);
    return headline;
}

Headline headline_of(const StudySetup& setup, std::span<const Trial> trials) {
    return headline_of(ReportView(setup, trials));
}

namespace {

/// The environment of a configuration's first measurement, with what of its node matters.
Environment measured_environment(const ReportView& view, const Configuration& configuration) {
    Environment result;
    for (const Trial& trial : view.search) {
        if (trial.configuration != configuration || trial.measurement() == nullptr) continue;
        if (trial.environment) result = *trial.environment;
        for (const auto& [name, value] : trial.measurement()->place)
            if (name != name_of_node) result.emplace(name, value);
        break;
    }
    return result;
}

}  // namespace

std::string not_tried_text(const ReportView& view) {
    const double size = view.problem().feasible.size();
    const auto told =
        count_if(view.standings.all(), [](const Standing& one) { return one.told(); });
    if (size <= double(told)) return "";
    constexpr double countable = 10'000;
    return fmt::format(
        "What was not tried: {} of {} configurations were measured.", told,
        size < countable ? fmt::format("{:.0f}", size) : fmt::format("{:.3g}", size));
}

std::vector<std::string> environment_changes(std::span<const Trial> trials) {
    std::vector<std::string> result;
    std::map<std::string, std::map<std::string, std::size_t>> nodes;  // fact -> value -> trials
    for (const Trial& trial : trials)
        if (trial.measurement() != nullptr)
            for (const auto& [name, value] : trial.measurement()->place)
                if (name != name_of_node) ++nodes[name][value];
    for (const auto& [name, values] : nodes) {
        std::vector<std::string> texts;
        for (const auto& [value, times] : values)
            texts.push_back(value + " (" + counted_text(times, "trial") + ")");
        if (texts.size() > 1)
            result.push_back(
                "trials ran on nodes of several kinds, keep to one by the template's "
                "nodeSelector; " +
                name + ": " + joined(texts));
    }
    const Environment* before = nullptr;
    for (const Trial& trial : trials) {
        if (!trial.environment) continue;
        if (before != nullptr)
            for (const std::string& one : differences(*before, *trial.environment))
                result.push_back("from trial " + std::to_string(trial.id) + " on " + one);
        before = &*trial.environment;
    }
    return result;
}

std::string environment_difference(const ReportView& view) {
    const Recommendation& result = view.recommendation;
    const Configuration& other =
        result.keep_default && result.best ? *result.best : result.recommended;
    if (other == view.base()) return "";
    const Environment before = measured_environment(view, view.base());
    const Environment after = measured_environment(view, other);
    if (before.empty() || after.empty()) return "";
    const std::vector<std::string> texts = differences(before, after);
    return texts.empty() ? ""
                         : "The default and the best were measured in different environments (" +
                               joined(texts, "; ") + "): a part of the difference may be theirs.";
}

std::vector<std::string> other_work_notes(const ReportView& view) {
    std::vector<std::string> result;
    for (const Standing& standing : view.standings.all())
        if (!standing.other_work.empty())
            result.push_back(other_work_text(view, standing) +
                             (standing.refusal == Refusal::other_work
                                  ? " What equal work would give is not known, so it cannot win."
                                  : " Of its gain only what equal work leaves counts."));
    return result;
}

std::vector<std::string> knowledge_notes(const ReportView& view) {
    std::vector<std::string> result;
    for (const std::string& source : view.setup.knowledge)
        result.push_back(fmt::format("Knowledge: {}.", source));
    const Beliefs& beliefs = view.setup.beliefs;
    for (const RejectedPrior& one : rejected_priors(beliefs, view.problem(), view.standings))
        result.push_back(
            fmt::format("{} was given up: {} configurations that it expected to change the goal by "
                        "{:+.0f} % changed it by {:+.0f} %.",
                        beliefs[one.source].name(), one.trials, 100 * std::expm1(one.promised),
                        100 * std::expm1(one.measured)));
    return result;
}

std::vector<std::string> quality_notes(const ReportView& view) {
    std::vector<std::string> result;
    if (std::string note = guesses_on_random_words(view.setup.file); !note.empty())
        result.push_back(capitalized(std::move(note)) + ".");
    if (value_in(view.means(view.recommendation.recommended), quality_drop)) return result;
    for (const auto& [name, value] : view.recommendation.recommended.entries()) {
        const Parameter& parameter = view.problem().space.at(name);
        if (changes_answers(parameter) && value != parameter.default_value)
            result.push_back(
                fmt::format("Quality not measured: {} = {} changes the numbers a model computes "
                            "with. Compare its answers before you serve it.",
                            name, text_of(value)));
    }
    return result;
}

}  // namespace servetune
