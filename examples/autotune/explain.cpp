// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "servetune/base/error.hpp"
#include "servetune/io/report.hpp"
#include "servetune/io/sqlite_journal.hpp"
#include "servetune/strategy/explanation.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace autotune {

using namespace servetune;
using OrderedJson = nlohmann::ordered_json;

namespace {

OrderedJson as_json(const CredibleInterval& interval) {
    return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

template <class Number>
OrderedJson as_json(const std::optional<Number>& number) {
    return number ? OrderedJson(*number) : OrderedJson();
}

OrderedJson as_json(const TrialExplanation& trial) {
    OrderedJson result{{"trial", trial.trial->id}, {"configuration", trial.trial->configuration.text()},
                       {"why", trial.trial->why},  {"told_before", trial.told_before},
                       {"expected", nullptr},      {"measured", as_json(trial.measured)}};
    const Failure* failure = trial.trial->failure();
    result["failure"] = failure == nullptr ? OrderedJson() : OrderedJson(std::string(name_in(failure_kinds, failure->kind)));
    if (!trial.expected) return result;
    result["expected"] = as_json(trial.expected->objective);
    result["expected"]["standard_deviation"] = trial.expected->deviation;
    result["expected"]["best"] = as_json(trial.expected->best);
    result["expected"]["expected_gain"] = as_json(trial.expected->expected_gain);
    result["expected"]["works"] = trial.expected->chance_works;
    result["expected"]["limits"] = trial.expected->chance_limits;
    result["expected"]["knowledge_weight"] = trial.expected->belief_weight;
    return result;
}

OrderedJson as_json(const std::vector<Effect>& effects) {
    OrderedJson result = OrderedJson::array();
    for (const Effect& effect : effects)
        result.push_back(
            {{"parameter", effect.parameter}, {"level", text_of(effect.level)}, {"gain", as_json(effect.gain)}, {"pairs", effect.pairs}});
    return result;
}

OrderedJson as_json(const std::vector<Interaction>& interactions) {
    OrderedJson result = OrderedJson::array();
    for (const Interaction& one : interactions)
        result.push_back(
            {{"parameters", one.parameters}, {"levels", {text_of(one.levels[0]), text_of(one.levels[1])}}, {"gain", as_json(one.gain)}});
    return result;
}

/// Four digits are more than a model is good for.
std::string figure(double value) { return fmt::format("{:.4g}", value); }

std::string range(const CredibleInterval& gain) {
    return fmt::format("{:>8}  [{}, {}]", percent(gain.value), percent(gain.low), percent(gain.high));
}

void print_trial(const TrialExplanation& trial, const Objective& objective) {
    fmt::print("trial {}: {}\n", trial.trial->id, trial.trial->configuration.text());
    fmt::print("  why       {}\n", trial.trial->why.empty() ? "not said" : trial.trial->why);
    if (!trial.expected) fmt::print("  expected  nothing: no trial had been told\n");
    else {
        const Expectation& expected = *trial.expected;
        fmt::print("  expected  {} {}, standard deviation {}, 95 % within [{}, {}], from {} trials{}\n", objective.metric,
                   figure(expected.objective.value), figure(expected.deviation), figure(expected.objective.low),
                   figure(expected.objective.high), trial.told_before,
                   expected.belief_weight > 0 ? fmt::format(", {:.0f} % by knowledge", 100 * expected.belief_weight) : "");
        if (expected.best && expected.expected_gain)
            fmt::print("            expected improvement {:.3g} % over the best then, {}\n", 100 * *expected.expected_gain,
                       figure(*expected.best));
        fmt::print("            works with a chance of {:.0f} %, keeps the limits with {:.0f} %\n", 100 * expected.chance_works,
                   100 * expected.chance_limits);
    }
    const Failure* failure = trial.trial->failure();
    if (failure != nullptr) fmt::print("  was       {}: {}\n", name_in(failure_kinds, failure->kind), failure->message);
    else if (trial.measured) fmt::print("  was       {}\n", figure(*trial.measured));
    else fmt::print("  was       {}\n", trial.trial->told() ? "no usable number" : "not told yet");
}

void print_effects(const std::vector<Effect>& effects, const std::vector<Interaction>& interactions, const Problem& problem) {
    if (effects.empty()) {
        fmt::print("nothing was measured, nothing can be explained\n");
        return;
    }
    fmt::print("against the default level, the others as in a sample of the space; gain with its 95 % interval\n\n");
    std::string last;
    for (const Effect& effect : effects) {
        if (effect.parameter != last)
            fmt::print("{} (default {})\n", effect.parameter, text_of(problem.space.at(effect.parameter).default_value));
        last = effect.parameter;
        const bool known = effect.gain.low > 0 || effect.gain.high < 0;
        fmt::print("  {:<20} {}{}\n", text_of(effect.level), range(effect.gain), known ? "" : "  not known");
    }
    if (interactions.empty()) return;
    fmt::print("\ntogether, beyond what each gives alone\n\n");
    for (const Interaction& one : interactions) {
        const std::string both =
            fmt::format("{}={} and {}={}", one.parameters[0], text_of(one.levels[0]), one.parameters[1], text_of(one.levels[1]));
        fmt::print("  {:<50} {}{}\n", both, range(one.gain), one.gain.low > 0 || one.gain.high < 0 ? "" : "  not known");
    }
}

/// What the study ran with may have come from a `--learn-from` that is not given now.
void warn_of_other_knowledge(const StudySetup& setup, const SqliteJournal& journal) {
    if (setup.file.strategy.name != "bayesian") return;
    std::vector<std::string> then;
    for (const auto& [path, text] : journal.definition())
        if (path.starts_with("knowledge[")) then.push_back(text);
    if (then == setup.knowledge) return;
    fmt::print(stderr, "autotune: the study ran with other knowledge than is given now, so its models were others:\n");
    for (const std::string& text : then) fmt::print(stderr, "  then: {}\n", text);
    for (const std::string& text : setup.knowledge) fmt::print(stderr, "  now: {}\n", text);
}

}  // namespace

int explain(const ExplainArguments& arguments) {
    StudyFile file = arguments.load(MeasuredBy::either);
    for (const std::filesystem::path& earlier : arguments.learn_from) file.knowledge.push_back({KnowledgeChoice::Kind::study, earlier});
    const std::filesystem::path folder = arguments.folder(file);
    const StudySetup setup = set_up(std::move(file), folder);
    const SqliteJournal journal = SqliteJournal::read(folder);
    warn_of_other_knowledge(setup, journal);
    Bayesian::Options options = setup.file.strategy.bayesian;
    options.trials = setup.file.budget.trials;
    options.beliefs = setup.beliefs;
    const Bayesian bayesian(options);
    const std::vector<Trial> trials = journal.trials();
    const Explanation explanation(*setup.problem, trials, bayesian, setup.beliefs);
    if (arguments.trial) {
        const TrialExplanation trial = explanation.trial(*arguments.trial);
        if (arguments.json) fmt::print("{}\n", as_json(trial).dump(2));
        else print_trial(trial, setup.file.objective);
        return done;
    }
    const std::vector<Effect> effects = explanation.effects();
    const std::vector<Interaction> interactions = explanation.interactions(effects);
    if (arguments.json) fmt::print("{}\n", OrderedJson{{"effects", as_json(effects)}, {"interactions", as_json(interactions)}}.dump(2));
    else print_effects(effects, interactions, *setup.problem);
    return effects.empty() ? answer_is_no : done;
}

}  // namespace autotune
