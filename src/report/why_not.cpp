// SPDX-License-Identifier: Apache-2.0
#include "why_not.hpp"

#include "effects_report.hpp"
#include "gain_json.hpp"
#include "report_view.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/printable.hpp"
#include "servetune/explanation.hpp"
#include "servetune/recommendation.hpp"
#include "servetune/report.hpp"
#include "space/nearest_feasible.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <set>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// In how many parameters two configurations differ.
std::size_t distance(const Problem& problem, const Configuration& a, const Configuration& b) {
    std::size_t count = 0;
    for (const Parameter& parameter : problem.space.parameters()) {
        const Value* mine = a.find(parameter.name);
        const Value* other = b.find(parameter.name);
        if ((mine == nullptr) != (other == nullptr) || (mine != nullptr && *mine != *other))
            ++count;
    }
    return count;
}

const Standing* nearest_told(const Problem& problem, const Standings& standings,
                             const Configuration& asked) {
    const Standing* nearest = nullptr;
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const Standing& one : standings.all())
        if (const std::size_t differs = distance(problem, one.configuration, asked);
            one.told() && differs < least) {
            nearest = &one;
            least = differs;
        }
    return nearest;
}

/// How one that was told stands against what is recommended.
struct Told {
    std::string text{};
    OrderedJson json{};
};

Told told_of(const Problem& problem, const Standings& standings, const Standing& standing,
             const Configuration& recommended) {
    const std::string& metric = problem.objective.leading().metric;
    Told told;
    told.json = {
        {"configuration", standing.configuration.text()},
        {"measurements", standing.measured()},
        {"value", standing.measured() > 0 ? OrderedJson(standing.estimate().mean) : OrderedJson()},
        {"refused", standing.refused.empty() ? OrderedJson() : OrderedJson(standing.refused)},
        {"gain", nullptr}};
    if (standing.measured() > 0)
        told.text =
            fmt::format("{} {} in {}", metric, significant_text(standing.estimate().mean, 4),
                        counted_text(standing.measured(), "measurement"));
    if (!standing.refused.empty()) {
        told.text += (told.text.empty() ? "" : "; ") + printable_line(standing.refused);
        return told;
    }
    const Standing* best = standings.find(recommended);
    if (best == nullptr || best == &standing || !best->passes() || standing.measured() == 0)
        return told;
    const Gain gain = judged_gain(problem, standings, standing, *best);
    told.json["gain"] = gain_json(gain);
    told.text +=
        fmt::format(": {} against what is recommended ({})", gain_text(gain.value, gain.scale),
                    gain.has_interval() ? with_interval(gain) : "no interval");
    return told;
}

/// The nearest configuration that the rules allow: with what was asked for, where there is one.
void add_allowed(std::string& text, OrderedJson& json, const Problem& problem,
                 const Standings& standings, const Configuration& asked,
                 const Configuration& recommended, const Assignment& changes) {
    std::set<std::string> kept;
    for (const auto& [name, value] : changes) kept.insert(name);
    const NearestFeasible nearest(problem.space);
    auto found = nearest.to(asked, kept);
    const bool keeps = found.has_value();
    if (!found) found = nearest.to(asked, {});
    if (!found) {
        text += fmt::format("  allowed   nothing within {} changes of it\n",
                            NearestFeasible::most_changes);
        return;
    }
    std::string settings;
    for (const std::string& name : found->changed) {
        const Value* value = found->configuration.find(name);
        settings += (settings.empty() ? "" : ", ") + name + " = " +
                    (value == nullptr ? "inactive" : text_of(*value));
    }
    const Standing* standing = standings.find(found->configuration);
    const bool told = standing != nullptr && standing->told();
    json["allowed"] = {{"configuration", found->configuration.text()},
                       {"changed", found->changed},
                       {"keeps_asked", keeps},
                       {"told", nullptr}};
    text += fmt::format(
        "  allowed   with {}{}: {}", settings, keeps ? "" : " (nothing with what was asked for)",
        found->configuration == recommended ? "what is recommended" : found->configuration.text());
    if (told) {
        const Told of = told_of(problem, standings, *standing, recommended);
        json["allowed"]["told"] = of.json;
        text += "; " + of.text + "\n";
    } else text += "; not tried\n";
}

}  // namespace

ExplainReport explain_why_not(const StudySetup& setup, std::span<const Trial> trials,
                              const Assignment& changes) {
    const Problem& problem = *setup.problem;
    const Standings standings(trials, problem.objective, problem.decision,
                              problem.space.default_configuration());
    const Recommendation recommendation = recommend(problem, trials);
    const Configuration& recommended = recommendation.recommended;
    const Configuration asked = problem.space.changed(recommended, changes);
    std::string text = "why not " + asked.text() + "\n";
    OrderedJson json{{"configuration", asked.text()},
                     {"recommended", recommended.text()},
                     {"rules", OrderedJson::array()},
                     {"told", nullptr},
                     {"expected", nullptr},
                     {"nearest", nullptr},
                     {"allowed", nullptr}};
    if (const auto broken = problem.space.violations(asked); !broken.empty()) {
        json["rules"] = broken;
        for (const std::string& rule : broken) text += "  rule      " + printable_line(rule) + "\n";
        add_allowed(text, json, problem, standings, asked, recommended, changes);
        return {text, json.dump(2), true};
    }
    if (asked == recommended) {
        const Conclusion conclusion = recommendation.conclusion;
        const bool stands =
            conclusion == Conclusion::recommended || conclusion == Conclusion::keep_default;
        text += stands ? "  it is what the study recommends\n"
                : conclusion == Conclusion::nothing_passes
                    ? "  nothing passes, so the study recommends nothing\n"
                    : "  the study is inconclusive, so it recommends nothing\n";
        return {text, json.dump(2), true};
    }
    if (const Standing* standing = standings.find(asked); standing != nullptr && standing->told()) {
        const Told told = told_of(problem, standings, *standing, recommended);
        json["told"] = told.json;
        return {text + "  told      " + told.text + "\n", json.dump(2), true};
    }
    // A trial that nobody has made: what the models expect of it by all that was told.
    Trial imagined;
    imagined.configuration = asked;
    std::vector<Trial> with(trials.begin(), trials.end());
    for (const Trial& one : with) imagined.id = std::max(imagined.id, one.id + 1);
    with.push_back(imagined);
    const Bayesian bayesian(setup.bayesian_options());
    const Explanation explanation(problem, with, bayesian, setup.beliefs);
    const TrialExplanation expected = explanation.trial(imagined.id);
    if (!expected.expected)
        return {text + "  nothing was told, so nothing is expected of it\n", json.dump(2), false};
    text +=
        "  told      nothing: it was not tried\n" + expected_text(expected, setup.file.objective);
    json["expected"] = expected_json(*expected.expected);
    if (const Standing* nearest = nearest_told(problem, standings, asked)) {
        const Told told = told_of(problem, standings, *nearest, recommended);
        json["nearest"] = told.json;
        text += fmt::format(
            "  nearest   {}, which differs in {}: {}\n", nearest->configuration.text(),
            counted_text(distance(problem, nearest->configuration, asked), "parameter"), told.text);
    }
    return {text, json.dump(2), true};
}

}  // namespace servetune
