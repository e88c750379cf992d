// SPDX-License-Identifier: Apache-2.0
#include "explain_report.hpp"

#include "base/text.hpp"
#include "content.hpp"
#include "report_json.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/explanation.hpp"
#include "study/json.hpp"
#include "study/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson expected_json(const Expectation& expected) {
    OrderedJson result{{"value", nullptr}, {"low", nullptr}, {"high", nullptr}};
    if (const auto& one = expected.objective)
        result = {{"value", one->value}, {"low", one->low}, {"high", one->high}};
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

/// Four digits are more than a model is good for.
std::string model_figure(double value) {
    return short_number_text(real_of(significant_text(value, 4)).value_or(value));
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

/// One configuration: a title, lines that begin with a word, and the same as an object.
struct ExplainLines {
    void add(std::string_view word, const std::string& text) {
        lines += fmt::format("  {:9} {}\n", word, printable_line(text));
    }
    /// What the models expected of a trial.
    void add_expected(const TrialExplanation& trial, const Objective& objective) {
        if (!trial.expected) {
            add("expected", "nothing: no trial had been told");
            return;
        }
        const Expectation& expected = *trial.expected;
        json["expected"] = expected_json(expected);
        const std::string told = counted_text(trial.told_before, "trial");
        if (!expected.objective)
            add("expected", "no number yet: none of " + told + " had given one");
        else
            add("expected",
                fmt::format("{} {}, {}, from {}{}", objective.leading().metric,
                            model_figure(expected.objective->value), spread_text(expected), told,
                            expected.belief_weight > 0 ? fmt::format(", {:.0f} % by knowledge",
                                                                     100 * expected.belief_weight)
                                                       : ""));
        if (expected.best && expected.expected_gain)
            add("", fmt::format("expected improvement {} over the best then, {}",
                                expected.scale.ratios()
                                    ? fmt::format("{:.3g} %", 100 * *expected.expected_gain)
                                    : model_figure(expected.scale.stated(*expected.expected_gain)),
                                model_figure(*expected.best)));
        add("", fmt::format("P(works) {:.0f} %, P(within limits) {:.0f} %{}",
                            100 * expected.chance_works, 100 * expected.chance_limits,
                            expected.seconds ? ", takes " + seconds_text(*expected.seconds) : ""));
    }
    [[nodiscard]] ExplainReport report(const std::string& title, const Redactor& secrets) {
        redact(json, secrets);
        return {secrets(title + "\n" + lines), json.dump(2), something};
    }

    std::string lines{};
    OrderedJson json{};
    bool something = true;
};

class WhyNot {
public:
    WhyNot(const StudySetup& setup, std::span<const Trial> trials, const Assignment& changes)
        : view_(setup, trials), asked_(view_.problem().space.changed(recommended(), changes)) {}

    ExplainReport answer() {
        answer_.json = {{"configuration", asked_.text()},
                        {"recommended", recommended().text()},
                        {"rules", view_.problem().space.violations(asked_)},
                        {"told", nullptr},
                        {"expected", nullptr}};
        find();
        return answer_.report("why not " + asked_.text(), view_.setup.file.secrets);
    }

private:
    [[nodiscard]] const Configuration& recommended() const {
        return view_.recommendation.recommended;
    }

    void find() {
        const auto broken = view_.problem().space.violations(asked_);
        const Standing* standing = view_.standings.find(asked_);
        for (const std::string& rule : broken) answer_.add("rule", rule);
        if (!broken.empty()) return;
        if (asked_ == recommended()) {
            const Conclusion conclusion = view_.recommendation.conclusion;
            answer_.lines += conclusion == Conclusion::nothing_passes
                                 ? "  nothing passes, so the study recommends nothing\n"
                             : conclusion == Conclusion::inconclusive
                                 ? "  the study is inconclusive, so it recommends nothing\n"
                                 : "  it is what the study recommends\n";
        } else if (standing != nullptr && standing->told())
            answer_.add("told", told(*standing, answer_.json["told"]));
        else add_expected();
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
            text = fmt::format("{} {} in {}", view_.goal().metric,
                               figure_text(view_.goal().metric, standing.estimate().mean),
                               counted_text(standing.measured(), "measurement"));
        if (!standing.refused.empty()) return text + (text.empty() ? "" : "; ") + standing.refused;
        const Standing* best = view_.standings.find(recommended());
        if (best == nullptr || best == &standing || !best->passes() || !measured) return text;
        const Gain gain = judged_gain(view_.problem(), view_.standings, standing, *best);
        json["gain"] = gain_json(gain);
        return text + fmt::format(": {} against what is recommended ({})",
                                  gain_text(gain.value, gain.scale),
                                  gain.has_interval() ? with_interval(gain) : "no interval");
    }

    /// A trial that nobody has made: what the models expect of it by all that was told.
    void add_expected() {
        Trial imagined;
        imagined.configuration = asked_;
        std::vector<Trial> with = view_.search;
        for (const Trial& one : with) imagined.id = std::max(imagined.id, one.id + 1);
        with.push_back(imagined);
        const Bayesian bayesian(view_.setup.bayesian_options());
        const Explanation explanation(view_.problem(), with, bayesian);
        const TrialExplanation expected = explanation.trial(imagined.id);
        answer_.something = expected.expected.has_value();
        if (!answer_.something) {
            answer_.lines += "  nothing was told, so nothing is expected of it\n";
            return;
        }
        answer_.add("told", "nothing: it was not tried");
        answer_.add_expected(expected, view_.setup.file.objective);
    }

    const ReportView view_;
    Configuration asked_;
    ExplainLines answer_{};
};

}  // namespace

ExplainReport explain_trial(const StudySetup& setup, std::span<const Trial> trials,
                            std::uint64_t id) {
    const Bayesian bayesian(setup.bayesian_options());
    // What it says of a trial points into it.
    const Explanation explanation(*setup.problem, trials, bayesian);
    const TrialExplanation trial = explanation.trial(id);
    const Trial& of = *trial.trial;
    const Failure* failure = of.failure();
    ExplainLines answer;
    answer.json = {{"trial", of.id},      {"configuration", of.configuration.text()},
                   {"why", of.why},       {"told_before", trial.told_before},
                   {"expected", nullptr}, {"measured", or_null(trial.measured)},
                   {"failure", nullptr}};
    if (failure != nullptr) answer.json["failure"] = name_in(failure_kinds, failure->kind);
    answer.add("why", of.why.empty() ? "not said" : of.why);
    answer.add_expected(trial, setup.file.objective);
    answer.add("was",
               failure != nullptr
                   ? fmt::format("{}: {}", name_in(failure_kinds, failure->kind), failure->message)
               : trial.measured
                   ? figure_text(setup.file.objective.leading().metric, *trial.measured)
               : of.told() ? "no usable number"
                           : "not told yet");
    return answer.report(fmt::format("trial {}: {}", of.id, of.configuration.text()),
                         setup.file.secrets);
}

ExplainReport explain_study(const StudySetup& setup, std::span<const Trial> trials) {
    const ReportView view(setup, trials);
    const Explained explained = Explained::of(view);
    OrderedJson json = json_of(explained, view);
    redact(json, setup.file.secrets);
    return {text_of(explanation_of({view, "", &explained}), setup.file.secrets), json.dump(2),
            !explained.effects.main.empty()};
}

ExplainReport explain_why_not(const StudySetup& setup, std::span<const Trial> trials,
                              const Assignment& changes) {
    return WhyNot(setup, trials, changes).answer();
}

}  // namespace servetune
