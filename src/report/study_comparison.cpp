// SPDX-License-Identifier: Apache-2.0
#include "study_comparison.hpp"

#include "base/probability.hpp"
#include "document.hpp"
#include "report_json.hpp"
#include "trial/metric_text.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The second study's figures over the first one's, of the configurations that both have.
struct InBoth {
    std::size_t configurations = 0;
    /// Geometric mean, with its 95 % interval over the configurations; of one: of its measurements.
    std::optional<Gain> gain{};
};

InBoth found_in_both(const ReportView& a, const ReportView& b) {
    InBoth result;
    if (a.goal().metric != b.goal().metric) return result;
    std::vector<double> logs;
    std::optional<Gain> of_last;
    for (const Standing& standing : a.standings.all()) {
        const Standing* other = b.standings.find(standing.configuration);
        if (other == nullptr || !standing.passes() || !other->passes()) continue;
        of_last = gain_between(a.goal(), other->estimate(), standing.estimate());
        logs.push_back(std::log1p(of_last->value));
    }
    result.configurations = logs.size();
    if (!a.scale().ratios() || !b.scale().ratios()) return result;  // each has a unit of its own
    if (logs.size() < 2) {
        result.gain = of_last;
        return result;
    }
    const auto count = static_cast<double>(logs.size());
    double mean = 0;
    for (const double one : logs) mean += one / count;
    double squares = 0;
    for (const double one : logs) squares += (one - mean) * (one - mean);
    const double reach =
        student_quantile(0.05, logs.size() - 1) * std::sqrt(squares / (count - 1) / count);
    result.gain = Gain{std::expm1(mean), std::expm1(mean - reach), std::expm1(mean + reach)};
    return result;
}

const Estimate* passing_estimate(const ReportView& view, const Configuration& configuration) {
    const Standing* standing = view.standings.find(configuration);
    return standing == nullptr || !standing->passes() ? nullptr : &standing->leading().estimate;
}

std::string passing_figure(const ReportView& view, const Configuration& configuration) {
    const std::string& metric = view.goal().metric;
    const Estimate* estimate = passing_estimate(view, configuration);
    if (estimate == nullptr) return "does not pass, or was not measured";
    return figure_text(metric, estimate->mean) +
           (view.standings.replicated() == 0  // its noise is only assumed
                ? ""
                : " (" + plain_figure_text(metric, estimate->low()) + " to " +
                      figure_text(metric, estimate->high()) + ")");
}

std::string recommended_figure(const ReportView& view) {
    return view.recommendation.conclusion == Conclusion::nothing_passes
               ? "nothing"
               : passing_figure(view, view.recommendation.recommended);
}

std::size_t failed_in(const ReportView& view) {
    return static_cast<std::size_t>(
        std::count_if(view.search.begin(), view.search.end(),
                      [](const Trial& trial) { return trial.failure() != nullptr; }));
}

std::string counted_trials(const ReportView& view) {
    const std::size_t failed = failed_in(view);
    return std::to_string(view.completed()) + ", " +
           (failed == 0 ? "none" : std::to_string(failed)) + " of them failed";
}

using Pairs = std::vector<std::pair<std::string, std::pair<std::string, std::string>>>;

/// The names under which two maps of texts have not the same.
Pairs differing(const std::map<std::string, std::string>& one,
                const std::map<std::string, std::string>& other) {
    std::set<std::string> names;
    for (const auto* each : {&one, &other})
        for (const auto& [name, text] : *each) names.insert(name);
    Pairs result;
    for (const std::string& name : names) {
        const auto text = [&](const auto& in) {
            const auto found = in.find(name);
            return found == in.end() ? "not there" : found->second;
        };
        if (text(one) != text(other)) result.push_back({name, {text(one), text(other)}});
    }
    return result;
}

Pairs different_settings(const ReportView& a, const ReportView& b) {
    const auto texts = [](const ReportView& view) {
        std::map<std::string, std::string> result;
        for (const auto& [name, value] : view.recommendation.recommended.entries())
            result[name] = text_of(value);
        return result;
    };
    return differing(texts(a), texts(b));
}

/// What decides what the studies do, where it is not the same; the first so many characters of it.
Pairs different_definitions(const ReportView& a, const ReportView& b) {
    constexpr std::size_t shown = 120;
    Pairs result = differing(a.setup.definition(), b.setup.definition());
    for (auto& [path, texts] : result)
        for (std::string* text : {&texts.first, &texts.second})
            if (text->size() > shown) *text = text->substr(0, shown) + "...";
    return result;
}

void show_pairs(Section& section, const std::string& what, const std::string& a,
                const std::string& b, const Pairs& rows, const char* if_none = "") {
    Table table{section.title, {what, a, b}};
    table.texts = 3;
    for (const auto& [name, values] : rows)
        table.rows.push_back({{name, values.first, values.second}});
    if (rows.empty()) section.say(if_none);
    section.show(std::move(table));
}

OrderedJson json_of_pairs(const Pairs& pairs) {
    OrderedJson result = OrderedJson::object();
    for (const auto& [name, values] : pairs)
        result[name] = {{"a", values.first}, {"b", values.second}};
    return result;
}

OrderedJson json_of_study(const ReportView& view) {
    const Headline headline = headline_of(view);
    OrderedJson result{{"study", view.setup.file.name},
                       {"conclusion", name_in(conclusions, headline.conclusion)},
                       {"title", headline.title},
                       {"objective", view.problem().objective.goals_text()},
                       {"trials", {{"told", view.completed()}, {"failed", failed_in(view)}}},
                       {"command", headline.command}};
    const auto figure = [&](const char* name, const Configuration& configuration) {
        if (const Estimate* one = passing_estimate(view, configuration))
            result[name] = {{"value", one->mean}, {"low", one->low()}, {"high", one->high()}};
    };
    figure("default", view.base());
    if (headline.conclusion != Conclusion::nothing_passes)
        figure("recommended", view.recommendation.recommended);
    return result;
}

std::string in_both_text(const ReportView& a, const ReportView& b) {
    const InBoth both = found_in_both(a, b);
    if (a.goal().metric != b.goal().metric) return "The studies have different objectives.";
    if (both.configurations == 0) return "No configuration passes in both.";
    if (!both.gain)
        return "Some figures are 0 or below: by how much B is better than A is not said, as that "
               "would be a ratio.";
    return std::to_string(both.configurations) +
           (both.configurations == 1 ? " configuration passes" : " configurations pass") +
           " in both. B against A in " + a.goal().metric + ": " + percent(both.gain->value) + " (" +
           interval_text(*both.gain) +
           "). This is the difference of machines, days, versions or workloads, not of flags. "
           "'autotune compare' measures two studies' defaults in turns.";
}

}  // namespace

std::string markdown_comparison(const StudyTrials& a, const StudyTrials& b) {
    const ReportView one(a.setup, a.trials);
    const ReportView other(b.setup, b.trials);
    const std::string left = "A: " + a.setup.file.name;
    const std::string right = "B: " + b.setup.file.name;
    const Headline of_one = headline_of(one);
    const Headline of_other = headline_of(other);
    Document document{"Two studies side by side"};
    Section of_both{"verdicts", "Verdicts"};
    show_pairs(
        of_both, "what", left, right,
        {{"verdict", {of_one.title, of_other.title}},
         {"objective",
          {one.problem().objective.goals_text(), other.problem().objective.goals_text()}},
         {"trials", {counted_trials(one), counted_trials(other)}},
         {"the default", {passing_figure(one, one.base()), passing_figure(other, other.base())}},
         {"recommended", {recommended_figure(one), recommended_figure(other)}}});
    for (const auto& [name, headline] : {std::pair(&left, &of_one), std::pair(&right, &of_other)})
        if (!headline->command.empty()) {
            of_both.say(*name);
            of_both.blocks.emplace_back(Code{"sh", headline->command});
        }
    Section settings{"settings", "Recommended settings that differ"};
    show_pairs(settings, "parameter", "A", "B", different_settings(one, other), "None.");
    Section both{"both", "Measured in both"};
    both.say(in_both_text(one, other));
    Section definitions{"definitions", "What is not the same"};
    show_pairs(definitions, "of the definition", "A", "B", different_definitions(one, other),
               "Nothing.");
    for (Section* section : {&of_both, &settings, &both, &definitions})
        document.add(std::move(*section));
    Redactor secrets = a.setup.file.secrets;
    secrets.add(b.setup.file.secrets);
    return markdown_of(document, secrets);
}

std::string json_comparison(const StudyTrials& a, const StudyTrials& b) {
    const ReportView one(a.setup, a.trials);
    const ReportView other(b.setup, b.trials);
    OrderedJson result{{"a", json_of_study(one)}, {"b", json_of_study(other)}};
    result["different_settings"] = json_of_pairs(different_settings(one, other));
    const InBoth both = found_in_both(one, other);
    result["in_both"] = {{"configurations", both.configurations}};
    if (both.gain) result["in_both"]["b_against_a"] = gain_json(*both.gain);
    result["different_definitions"] = json_of_pairs(different_definitions(one, other));
    return result.dump(2);
}

}  // namespace servetune
