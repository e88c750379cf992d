// SPDX-License-Identifier: Apache-2.0
#include "explain_report.hpp"

#include "account.hpp"
#include "effects_report.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/explanation.hpp"
#include "servetune/report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <tuple>

#include <optional>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson explained_json(const CredibleInterval& interval) {
    return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

OrderedJson stated_json(const CredibleInterval& gain, const FigureScale& scale) {
    return explained_json(CredibleInterval{scale.stated(gain.value), scale.stated(gain.low),
                                           scale.stated(gain.high)});
}

template <class Number>
OrderedJson explained_json(const std::optional<Number>& number) {
    return number ? OrderedJson(*number) : OrderedJson();
}

OrderedJson explained_json(const TrialExplanation& trial) {
    OrderedJson result{
        {"trial", trial.trial->id}, {"configuration", trial.trial->configuration.text()},
        {"why", trial.trial->why},  {"told_before", trial.told_before},
        {"expected", nullptr},      {"measured", explained_json(trial.measured)}};
    const Failure* failure = trial.trial->failure();
    result["failure"] = failure == nullptr
                            ? OrderedJson()
                            : OrderedJson(std::string(name_in(failure_kinds, failure->kind)));
    if (trial.expected) result["expected"] = expected_json(*trial.expected);
    return result;
}

OrderedJson explained_json(const std::vector<Effect>& effects, const FigureScale& scale) {
    OrderedJson result = OrderedJson::array();
    for (const Effect& effect : effects)
        result.push_back(
            {{"parameter", effect.parameter},
             {"level", text_of(effect.level)},
             {"gain", effect.refused.empty() ? stated_json(effect.gain, scale) : OrderedJson()},
             {"pairs", effect.pairs},
             {"measured", effect.measured},
             {"refused", effect.refused.empty() ? OrderedJson() : OrderedJson(effect.refused)}});
    return result;
}

OrderedJson explained_json(const std::vector<Interaction>& interactions, const FigureScale& scale) {
    OrderedJson result = OrderedJson::array();
    for (const Interaction& one : interactions)
        result.push_back({{"parameters", one.parameters},
                          {"levels", {text_of(one.levels[0]), text_of(one.levels[1])}},
                          {"gain", stated_json(one.gain, scale)},
                          {"together", one.together}});
    return result;
}

/// Four digits are more than a model is good for.
std::string figure(double value) { return significant_text(value, 4); }

std::string with_interval(const CredibleInterval& gain, const FigureScale& scale) {
    return fmt::format("{:>8}  [{}, {}]", gain_text(gain.value, scale), gain_text(gain.low, scale),
                       gain_text(gain.high, scale));
}

/// The first trials leave an interval over many powers of ten, whose ends tell nothing.
std::string spread_text(const Expectation& expected) {
    constexpr double wide = 1000;
    const auto& [value, low, high] =
        std::tie(expected.objective->value, expected.objective->low, expected.objective->high);
    if (expected.scale.ratios() && (low * wide < value || high > value * wide))
        return "its spread is not known yet";
    return fmt::format("standard deviation {}, 95 % within [{}, {}]", figure(expected.deviation),
                       figure(low), figure(high));
}

std::string explained_text(const TrialExplanation& trial, const Objective& objective) {
    std::string out =
        fmt::format("trial {}: {}\n", trial.trial->id, trial.trial->configuration.text());
    out +=
        fmt::format("  why       {}\n", trial.trial->why.empty() ? "not said" : trial.trial->why);
    out += expected_text(trial, objective);
    const Failure* failure = trial.trial->failure();
    if (failure != nullptr)
        out += fmt::format("  was       {}: {}\n", name_in(failure_kinds, failure->kind),
                           printable_line(failure->message));
    else if (trial.measured) out += fmt::format("  was       {}\n", figure(*trial.measured));
    else
        out += fmt::format("  was       {}\n",
                           trial.trial->told() ? "no usable number" : "not told yet");
    return out;
}

std::string explained_text(const std::vector<Effect>& effects,
                           const std::vector<Interaction>& interactions, const Problem& problem,
                           const FigureScale& scale) {
    std::string out =
        "What each level does\n  against the default level, the others as in a sample of the "
        "space; gain with its interval, those of a "
        "list together with 95 %\n\n";
    for (const Parameter& parameter : problem.space.parameters()) {
        if (!parameter.continuous() && parameter.level_count() < 2) continue;
        out += fmt::format("{} (default {})\n", parameter.name, text_of(parameter.default_value));
        std::size_t told = 1;  // the default
        for (const Effect& effect : effects) {
            if (effect.parameter != parameter.name) continue;
            ++told;
            out +=
                fmt::format("  {:<20} {}{}\n", text_of(effect.level),
                            effect.refused.empty() ? with_interval(effect.gain, scale)
                                                   : "refused: " + printable_line(effect.refused),
                            effect.known() || !effect.refused.empty() ? ""
                            : effect.measured == 0                    ? "  not measured"
                                                                      : "  not known");
        }
        if (parameter.level_count() > told)
            out += fmt::format("  {} not compared\n",
                               counted_text(parameter.level_count() - told, "more level"));
    }
    if (interactions.empty())
        return out + fmt::format(
                         "\nwhat two changes do together is not known: no pair of them was "
                         "measured in {} configurations or more\n",
                         least_together);
    out += "\ntogether, beyond what each gives alone\n\n";
    for (const Interaction& one : interactions) {
        const std::string both =
            fmt::format("{}={} and {}={}", one.parameters[0], text_of(one.levels[0]),
                        one.parameters[1], text_of(one.levels[1]));
        out += fmt::format("  {:<50} {}{}\n", both, with_interval(one.gain, scale),
                           one.gain.known() ? "" : "  not known");
    }
    return out;
}

}  // namespace

OrderedJson expected_json(const Expectation& expected) {
    const auto& objective = expected.objective;
    OrderedJson result = objective
                             ? explained_json(*objective)
                             : OrderedJson{{"value", nullptr}, {"low", nullptr}, {"high", nullptr}};
    result["standard_deviation"] = objective ? OrderedJson(expected.deviation) : OrderedJson();
    result["best"] = explained_json(expected.best);
    result["expected_gain"] = expected.expected_gain
                                  ? OrderedJson(expected.scale.stated(*expected.expected_gain))
                                  : OrderedJson();
    result["works"] = expected.chance_works;
    result["limits"] = expected.chance_limits;
    result["seconds"] = explained_json(expected.seconds);
    result["knowledge_weight"] = expected.belief_weight;
    return result;
}

std::string expected_text(const TrialExplanation& trial, const Objective& objective) {
    std::string out;
    if (!trial.expected) out += "  expected  nothing: no trial had been told\n";
    else {
        const Expectation& expected = *trial.expected;
        if (expected.objective)
            out += fmt::format(
                "  expected  {} {}, {}, from {}{}\n", objective.leading().metric,
                figure(expected.objective->value), spread_text(expected),
                counted_text(trial.told_before, "trial"),
                expected.belief_weight > 0
                    ? fmt::format(", {:.0f} % by knowledge", 100 * expected.belief_weight)
                    : "");
        else
            out += fmt::format("  expected  no number yet: none of {} trials had given one\n",
                               trial.told_before);
        if (expected.best && expected.expected_gain)
            out += fmt::format("            expected improvement {} over the best then, {}\n",
                               expected.scale.ratios()
                                   ? fmt::format("{:.3g} %", 100 * *expected.expected_gain)
                                   : figure(expected.scale.stated(*expected.expected_gain)),
                               figure(*expected.best));
        out += fmt::format(
            "            works with a chance of {:.0f} %, keeps the limits with {:.0f} %{}\n",
            100 * expected.chance_works, 100 * expected.chance_limits,
            expected.seconds
                ? ", takes " + (*expected.seconds < 0.1 ? "less than 0.1 s"
                                                        : seconds_text(*expected.seconds))
                : "");
    }
    return out;
}

ExplainReport explain_trial(const StudySetup& setup, std::span<const Trial> trials,
                            std::uint64_t id) {
    const Bayesian bayesian(setup.bayesian_options());
    const Explanation explanation(*setup.problem, trials, bayesian,
                                  setup.beliefs);  // what it says of a trial points into it
    const TrialExplanation trial = explanation.trial(id);
    return {explained_text(trial, setup.file.objective), explained_json(trial).dump(2), true};
}

ExplainReport explain_study(const StudySetup& setup, std::span<const Trial> trials) {
    const Bayesian bayesian(setup.bayesian_options());
    const Explanation explanation(*setup.problem, trials, bayesian, setup.beliefs);
    const std::vector<Effect> effects = explanation.effects();
    const std::vector<Interaction> interactions = explanation.interactions(effects);
    const EffectsFloor floor = explanation.floor();
    const FigureScale scale = explanation.scale();
    const ReportView view(setup, trials);
    const Account account = account_of(view);
    const OrderedJson json{{"configurations", floor.measured},
                           {"needed", floor.needed()},
                           {"effects", explained_json(effects, scale)},
                           {"interactions", explained_json(interactions, scale)},
                           {"explanation", account_json(account, view)}};
    const std::string text =
        headline_of(view).title + "\n\n" + account_text(account_parts(account, view)) +
        (!floor.enough()   ? not_said(floor) + "\n"
         : effects.empty() ? "the space has nothing to vary\n"
                           : explained_text(effects, interactions, *setup.problem, scale));
    return {setup.file.secrets(text), json.dump(2), !effects.empty()};
}

}  // namespace servetune
