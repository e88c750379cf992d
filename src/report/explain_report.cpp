// SPDX-License-Identifier: Apache-2.0
#include "explain_report.hpp"

#include "base/text.hpp"
#include "content.hpp"
#include "report_json.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/explanation.hpp"
#include "space/nearest_feasible.hpp"
#include "study/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson plain_interval(const std::optional<CredibleInterval>& one) {
    OrderedJson result{{"value", nullptr}, {"low", nullptr}, {"high", nullptr}};
    if (one) result = {{"value", one->value}, {"low", one->low}, {"high", one->high}};
    return result;
}

OrderedJson expected_json(const Expectation& expected) {
    OrderedJson result = plain_interval(expected.objective);
    result["standard_deviation"] =
        expected.objective ? OrderedJson(expected.deviation) : OrderedJson();
    result["best"] = or_null(expected.best);
    result["expected_gain"] = expected.expected_gain
                                  ? OrderedJson(expected.scale.stated(*expected.expected_gain))
                                  : OrderedJson();
    result["works"] = expected.chance_works;
    result["limits"] = expected.chance_limits;
    result["seconds"] = or_null(expected.seconds);
    result["knowledge_weight"] = expected.belief_weight;
    return result;
}

OrderedJson effects_against_default(const std::vector<Effect>& effects, const FigureScale& scale) {
    OrderedJson result = OrderedJson::array();
    for (const Effect& effect : effects)
        result.push_back(
            {{"parameter", effect.parameter},
             {"level", text_of(effect.level)},
             {"gain", effect.refused.empty() ? gain_json(effect.gain, scale) : OrderedJson()},
             {"pairs", effect.pairs},
             {"measured", effect.measured},
             {"refused", text_or_null(effect.refused)}});
    return result;
}

OrderedJson interactions_json(const std::vector<Interaction>& interactions,
                              const FigureScale& scale) {
    OrderedJson result = OrderedJson::array();
    for (const Interaction& one : interactions)
        result.push_back({{"parameters", one.parameters},
                          {"levels", {text_of(one.levels[0]), text_of(one.levels[1])}},
                          {"gain", gain_json(one.gain, scale)},
                          {"together", one.together}});
    return result;
}

/// Four digits are more than a model is good for.
std::string model_figure(double value) { return significant_text(value, 4); }

std::string interval_cell(const CredibleInterval& gain, const FigureScale& scale) {
    return gain_text(gain.low, scale) + " to " + gain_text(gain.high, scale);
}

/// The first trials leave an interval over many powers of ten, whose ends tell nothing.
std::string spread_text(const Expectation& expected) {
    constexpr double wide = 1000;
    const CredibleInterval& one = *expected.objective;
    if (expected.scale.ratios() && (one.low * wide < one.value || one.high > one.value * wide))
        return "its spread is not known yet";
    return fmt::format("standard deviation {}, 95 % within [{}, {}]",
                       model_figure(expected.deviation), model_figure(one.low),
                       model_figure(one.high));
}

/// What the models expected of a trial: lines that begin with `expected`.
std::string expected_text(const TrialExplanation& trial, const Objective& objective) {
    if (!trial.expected) return "  expected  nothing: no trial had been told\n";
    const Expectation& expected = *trial.expected;
    std::string out =
        expected.objective
            ? fmt::format("  expected  {} {}, {}, from {}{}\n", objective.leading().metric,
                          model_figure(expected.objective->value), spread_text(expected),
                          counted_text(trial.told_before, "trial"),
                          expected.belief_weight > 0
                              ? fmt::format(", {:.0f} % by knowledge", 100 * expected.belief_weight)
                              : "")
            : fmt::format("  expected  no number yet: none of {} trials had given one\n",
                          trial.told_before);
    if (expected.best && expected.expected_gain)
        out += fmt::format("            expected improvement {} over the best then, {}\n",
                           expected.scale.ratios()
                               ? fmt::format("{:.3g} %", 100 * *expected.expected_gain)
                               : model_figure(expected.scale.stated(*expected.expected_gain)),
                           model_figure(*expected.best));
    return out + fmt::format("            P(starts) {:.0f} %, P(within limits) {:.0f} %{}\n",
                             100 * expected.chance_works, 100 * expected.chance_limits,
                             !expected.seconds ? ""
                             : *expected.seconds < 0.1
                                 ? ", takes less than 0.1 s"
                                 : ", takes " + seconds_text(*expected.seconds));
}

void add_effects(Document& document, const std::vector<Effect>& effects,
                 const std::vector<Interaction>& interactions, const Problem& problem,
                 const FigureScale& scale) {
    Section section{"effects", "What each level does"};
    section.say(
        "Against the default level, the others as in a sample of the space; gain with its "
        "interval, those of a list together with 95 %.");
    Table table{section.title, {"parameter", "level", "gain", "interval"}};
    table.texts = 2;
    std::vector<std::string> rest;
    for (const Parameter& parameter : problem.space.parameters()) {
        if (!parameter.continuous() && parameter.level_count() < 2) continue;
        const std::string usual = text_of(parameter.default_value);
        std::size_t told = 1;  // the default
        for (const Effect& effect : effects) {
            if (effect.parameter != parameter.name) continue;
            const std::string name = told++ == 1 ? parameter.name + " (default " + usual + ")" : "";
            Row& row = table.rows.emplace_back(Row{{name, text_of(effect.level)}});
            if (!effect.refused.empty())
                row.cells.insert(row.cells.end(), {"refused", effect.refused});
            else
                row.cells.insert(row.cells.end(), {gain_text(effect.gain.value, scale),
                                                   interval_cell(effect.gain, scale) +
                                                       (effect.known()         ? ""
                                                        : effect.measured == 0 ? " (not measured)"
                                                                               : " (not known)")});
        }
        if (parameter.level_count() > told)
            rest.push_back(counted_text(parameter.level_count() - told, "more level") + " of " +
                           parameter.name);
    }
    section.show(std::move(table));
    if (!rest.empty()) section.say("Not compared: " + joined(rest) + ".");
    document.add(std::move(section));
    Section both{"together", "Interactions"};
    if (interactions.empty())
        both.say(fmt::format(
            "What two changes do together is not known: no pair of them was measured in {} "
            "configurations or more.",
            least_together));
    Table pairs{both.title, {"together, beyond what each gives alone", "gain", "interval"}};
    for (const Interaction& one : interactions)
        pairs.rows.push_back(
            {{fmt::format("{}={} and {}={}", one.parameters[0], text_of(one.levels[0]),
                          one.parameters[1], text_of(one.levels[1])),
              gain_text(one.gain.value, scale),
              interval_cell(one.gain, scale) + (one.gain.known() ? "" : " (not known)")}});
    both.show(std::move(pairs));
    document.add(std::move(both));
}

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

/// Why not: lines for a person and an object.
class WhyNot {
public:
    WhyNot(const StudySetup& setup, std::span<const Trial> trials, const Assignment& changes)
        : setup_(setup),
          trials_(trials),
          changes_(changes),
          problem_(*setup.problem),
          standings_(standings_of(problem_, trials)),
          recommendation_(recommend(problem_, trials)),
          asked_(problem_.space.changed(recommendation_.recommended, changes)) {}

    ExplainReport answer() {
        json_ = {{"configuration", asked_.text()},
                 {"recommended", recommended().text()},
                 {"rules", OrderedJson::array()},
                 {"told", nullptr},
                 {"expected", nullptr},
                 {"nearest", nullptr},
                 {"allowed", nullptr}};
        const bool something = find();
        return {"why not " + asked_.text() + "\n" + text_, json_.dump(2), something};
    }

private:
    [[nodiscard]] const Configuration& recommended() const { return recommendation_.recommended; }

    bool find() {
        const auto broken = problem_.space.violations(asked_);
        const Standing* standing = standings_.find(asked_);
        if (!broken.empty()) {
            json_["rules"] = broken;
            for (const std::string& rule : broken)
                text_ += "  rule      " + printable_line(rule) + "\n";
            add_allowed();
        } else if (asked_ == recommended()) {
            const Conclusion conclusion = recommendation_.conclusion;
            text_ += conclusion == Conclusion::nothing_passes
                         ? "  nothing passes, so the study recommends nothing\n"
                     : conclusion == Conclusion::inconclusive
                         ? "  the study is inconclusive, so it recommends nothing\n"
                         : "  it is what the study recommends\n";
        } else if (standing != nullptr && standing->told())
            text_ += "  told      " + told(*standing, json_["told"]) + "\n";
        else return add_expected();
        return true;
    }

    /// How one that was told stands against what is recommended.
    std::string told(const Standing& standing, OrderedJson& json) const {
        std::string text;
        const bool measured = standing.measured() > 0;
        json = {{"configuration", standing.configuration.text()},
                {"measurements", standing.measured()},
                {"value", measured ? OrderedJson(standing.estimate().mean) : OrderedJson()},
                {"refused", text_or_null(standing.refused)},
                {"gain", nullptr}};
        if (measured)
            text = fmt::format("{} {} in {}", problem_.objective.leading().metric,
                               model_figure(standing.estimate().mean),
                               counted_text(standing.measured(), "measurement"));
        if (!standing.refused.empty())
            return text + (text.empty() ? "" : "; ") + printable_line(standing.refused);
        const Standing* best = standings_.find(recommended());
        if (best == nullptr || best == &standing || !best->passes() || !measured) return text;
        const Gain gain = judged_gain(problem_, standings_, standing, *best);
        json["gain"] = gain_json(gain);
        return text + fmt::format(": {} against what is recommended ({})",
                                  gain_text(gain.value, gain.scale),
                                  gain.has_interval() ? with_interval(gain) : "no interval");
    }

    /// The nearest configuration that the rules allow: with what was asked for, where there is one.
    void add_allowed() {
        std::set<std::string> kept;
        for (const auto& [name, value] : changes_) kept.insert(name);
        const NearestFeasible nearest(problem_.space);
        auto found = nearest.to(asked_, kept);
        const bool keeps = found.has_value();
        if (!found) found = nearest.to(asked_, {});
        if (!found) {
            text_ += fmt::format("  allowed   nothing within {} changes of it\n",
                                 NearestFeasible::most_changes);
            return;
        }
        std::vector<std::string> settings;
        for (const std::string& name : found->changed) {
            const Value* value = found->configuration.find(name);
            settings.push_back(name + " = " + (value == nullptr ? "inactive" : text_of(*value)));
        }
        const Standing* standing = standings_.find(found->configuration);
        json_["allowed"] = {{"configuration", found->configuration.text()},
                            {"changed", found->changed},
                            {"keeps_asked", keeps},
                            {"told", nullptr}};
        text_ += fmt::format("  allowed   with {}{}: {}; {}\n", joined(settings),
                             keeps ? "" : " (nothing with what was asked for)",
                             found->configuration == recommended() ? "what is recommended"
                                                                   : found->configuration.text(),
                             standing != nullptr && standing->told()
                                 ? told(*standing, json_["allowed"]["told"])
                                 : "not tried");
    }

    /// A trial that nobody has made: what the models expect of it by all that was told.
    bool add_expected() {
        Trial imagined;
        imagined.configuration = asked_;
        std::vector<Trial> with(trials_.begin(), trials_.end());
        for (const Trial& one : with) imagined.id = std::max(imagined.id, one.id + 1);
        with.push_back(imagined);
        const Bayesian bayesian(setup_.bayesian_options());
        const Explanation explanation(problem_, with, bayesian, setup_.beliefs);
        const TrialExplanation expected = explanation.trial(imagined.id);
        if (!expected.expected) {
            text_ += "  nothing was told, so nothing is expected of it\n";
            return false;
        }
        text_ += "  told      nothing: it was not tried\n" +
                 expected_text(expected, setup_.file.objective);
        json_["expected"] = expected_json(*expected.expected);
        const Standing* nearest = nullptr;
        std::size_t least = std::numeric_limits<std::size_t>::max();
        for (const Standing& one : standings_.all())
            if (const std::size_t differs = distance(problem_, one.configuration, asked_);
                one.told() && differs < least)
                nearest = &one, least = differs;
        if (nearest != nullptr)
            text_ += fmt::format("  nearest   {}, which differs in {}: {}\n",
                                 nearest->configuration.text(), counted_text(least, "parameter"),
                                 told(*nearest, json_["nearest"]));
        return true;
    }

    const StudySetup& setup_;
    std::span<const Trial> trials_;
    const Assignment& changes_;
    const Problem& problem_;
    Standings standings_;
    Recommendation recommendation_;
    Configuration asked_;
    std::string text_{};
    OrderedJson json_{};
};

}  // namespace

ExplainReport explain_trial(const StudySetup& setup, std::span<const Trial> trials,
                            std::uint64_t id) {
    const Bayesian bayesian(setup.bayesian_options());
    const Explanation explanation(*setup.problem, trials, bayesian,
                                  setup.beliefs);  // what it says of a trial points into it
    const TrialExplanation trial = explanation.trial(id);
    const Trial& of = *trial.trial;
    const Failure* failure = of.failure();
    const std::string was = failure != nullptr
                                ? fmt::format("{}: {}", name_in(failure_kinds, failure->kind),
                                              printable_line(failure->message))
                            : trial.measured ? model_figure(*trial.measured)
                            : of.told()      ? "no usable number"
                                             : "not told yet";
    OrderedJson json{{"trial", of.id},      {"configuration", of.configuration.text()},
                     {"why", of.why},       {"told_before", trial.told_before},
                     {"expected", nullptr}, {"measured", or_null(trial.measured)},
                     {"failure", nullptr}};
    if (trial.expected) json["expected"] = expected_json(*trial.expected);
    if (failure != nullptr) json["failure"] = name_in(failure_kinds, failure->kind);
    return {fmt::format("trial {}: {}\n  why       {}\n{}  was       {}\n", of.id,
                        of.configuration.text(), of.why.empty() ? "not said" : of.why,
                        expected_text(trial, setup.file.objective), was),
            json.dump(2), true};
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
                           {"effects", effects_against_default(effects, scale)},
                           {"interactions", interactions_json(interactions, scale)},
                           {"explanation", account_json(account, view)}};
    Document document{headline_of(view).title};
    add_account(document, account, view);
    if (effects.empty()) {
        Section none{"effects", "What each level does"};
        none.say(floor.enough() ? "The space has nothing to vary." : not_said(floor));
        document.add(std::move(none));
    } else add_effects(document, effects, interactions, *setup.problem, scale);
    return {text_of(document, setup.file.secrets), json.dump(2), !effects.empty()};
}

ExplainReport explain_why_not(const StudySetup& setup, std::span<const Trial> trials,
                              const Assignment& changes) {
    return WhyNot(setup, trials, changes).answer();
}

}  // namespace servetune
