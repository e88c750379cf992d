// SPDX-License-Identifier: Apache-2.0
#include "study_comparison.hpp"

#include "markdown.hpp"
#include "report_view.hpp"
#include "servetune/detail/base/student.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The second study's figures over the first one's, of the configurations that both have.
struct InBoth {
    std::size_t configurations = 0;
    std::optional<Gain>
        gain{};  ///< geometric mean, with its 95 % interval over the configurations; of one: of its measurements
};

InBoth found_in_both(const ReportView& a, const ReportView& b) {
    InBoth result;
    const Goal& goal = a.setup.problem->objective.leading();
    if (goal.metric != b.setup.problem->objective.leading().metric) return result;
    std::vector<double> logs;
    std::optional<Gain> of_last;
    for (const Standing& standing : a.standings.all()) {
        const Standing* other = b.standings.find(standing.configuration);
        if (other == nullptr || !standing.passes() || !other->passes()) continue;
        of_last =
            gain_between(goal, other->goals.front().estimate, standing.goals.front().estimate);
        logs.push_back(std::log1p(of_last->value));
    }
    result.configurations = logs.size();
    if (!a.standings.scale().ratios() || !b.standings.scale().ratios())
        return result;  // each has a unit of its own
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

std::string passing_figure(const ReportView& view, const Configuration& configuration) {
    const Standing* standing = view.standings.find(configuration);
    const Goal& goal = view.setup.problem->objective.leading();
    if (standing == nullptr || !standing->passes()) return "does not pass, or was not measured";
    const Estimate& estimate = standing->goals.front().estimate;
    if (view.standings.replicated() == 0)
        return figure_text(goal.metric, estimate.mean);  // its noise is only assumed
    return figure_text(goal.metric, estimate.mean) + " (" +
           plain_figure_text(goal.metric, estimate.low()) + " to " +
           figure_text(goal.metric, estimate.high()) + ")";
}

std::ptrdiff_t count_told(const ReportView& view) {
    return std::count_if(view.search.begin(), view.search.end(),
                         [](const Trial& trial) { return trial.told(); });
}
std::ptrdiff_t count_failed(const ReportView& view) {
    return std::count_if(view.search.begin(), view.search.end(),
                         [](const Trial& trial) { return trial.failure() != nullptr; });
}
std::string counted_trials(const ReportView& view) {
    const auto failed = count_failed(view);
    return std::to_string(count_told(view)) + ", " +
           (failed == 0 ? "none" : std::to_string(failed)) + " of them failed";
}

std::string setting_in(const Configuration& configuration, const std::string& name) {
    const Value* value = configuration.find(name);
    return value == nullptr ? "not there" : text_of(*value);
}

using Pairs = std::vector<std::pair<std::string, std::pair<std::string, std::string>>>;

Pairs different_settings(const ReportView& a, const ReportView& b) {
    const Configuration& one = a.recommendation.recommended;
    const Configuration& other = b.recommendation.recommended;
    std::set<std::string> names;
    for (const Configuration* each : {&one, &other})
        for (const auto& [name, value] : each->entries()) names.insert(name);
    Pairs result;
    for (const std::string& name : names)
        if (setting_in(one, name) != setting_in(other, name))
            result.push_back({name, {setting_in(one, name), setting_in(other, name)}});
    return result;
}

/// What decides what the studies do, where it is not the same; the first so many characters of it.
Pairs different_definitions(const StudySetup& a, const StudySetup& b) {
    constexpr std::size_t shown = 120;
    const auto shortened = [](const std::string& text) {
        return text.size() <= shown ? text : text.substr(0, shown) + "...";
    };
    const std::map<std::string, std::string> one = a.definition();
    const std::map<std::string, std::string> other = b.definition();
    std::set<std::string> paths;
    for (const auto* each : {&one, &other})
        for (const auto& [path, text] : *each) paths.insert(path);
    Pairs result;
    for (const std::string& path : paths) {
        const auto in_one = one.find(path);
        const auto in_other = other.find(path);
        const std::string left = in_one == one.end() ? "not there" : in_one->second;
        const std::string right = in_other == other.end() ? "not there" : in_other->second;
        if (left != right) result.push_back({path, {shortened(left), shortened(right)}});
    }
    return result;
}

std::string named(const StudySetup& setup, const char* letter) {
    return std::string(letter) + ": " + markdown_text(setup.file.name);
}

std::string table_of(const std::string& what, const std::string& a, const std::string& b,
                     const Pairs& rows) {
    std::string result = "| " + what + " | " + a + " | " + b + " |\n|---|---|---|\n";
    for (const auto& [name, values] : rows)
        result += "| " + markdown_text(name) + " | " + markdown_text(values.first) + " | " +
                  markdown_text(values.second) + " |\n";
    return result;
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
                       {"objective", view.setup.problem->objective.goals_text()},
                       {"trials", {{"told", count_told(view)}, {"failed", count_failed(view)}}},
                       {"command", headline.command}};
    const auto figure = [&](const char* name, const Configuration& configuration) {
        const Standing* standing = view.standings.find(configuration);
        if (standing == nullptr || !standing->passes()) return;
        const Estimate& estimate = standing->goals.front().estimate;
        result[name] = {
            {"value", estimate.mean}, {"low", estimate.low()}, {"high", estimate.high()}};
    };
    figure("default", view.recommendation.default_configuration);
    if (headline.conclusion != Conclusion::nothing_passes)
        figure("recommended", view.recommendation.recommended);
    return result;
}

}  // namespace

std::string markdown_comparison(const StudyTrials& a, const StudyTrials& b) {
    const ReportView one(a.setup, a.trials);
    const ReportView other(b.setup, b.trials);
    const std::string left = named(a.setup, "A");
    const std::string right = named(b.setup, "B");
    const Headline of_one = headline_of(one);
    const Headline of_other = headline_of(other);
    const auto recommended = [](const ReportView& view, const Headline& headline) {
        return headline.conclusion == Conclusion::nothing_passes
                   ? std::string("nothing")
                   : passing_figure(view, view.recommendation.recommended);
    };
    std::string result = "# Two studies side by side\n\n";
    result += table_of(
        "", left, right,
        {{"verdict", {of_one.title, of_other.title}},
         {"objective",
          {a.setup.problem->objective.goals_text(), b.setup.problem->objective.goals_text()}},
         {"trials", {counted_trials(one), counted_trials(other)}},
         {"the default",
          {passing_figure(one, one.recommendation.default_configuration),
           passing_figure(other, other.recommendation.default_configuration)}},
         {"recommended", {recommended(one, of_one), recommended(other, of_other)}}});
    for (const auto& [name, headline] : {std::pair(&left, &of_one), std::pair(&right, &of_other)})
        if (!headline->command.empty())
            result += "\n" + *name + "\n\n" + markdown_block("sh", headline->command);
    const Pairs settings = different_settings(one, other);
    result += "\n## Recommended settings that differ\n\n" +
              (settings.empty() ? "None.\n" : table_of("parameter", "A", "B", settings));

    const InBoth both = found_in_both(one, other);
    const std::string metric = a.setup.problem->objective.leading().metric;
    result += "\n## Measured in both\n\n";
    if (metric != b.setup.problem->objective.leading().metric)
        result += "The studies have different objectives.\n";
    else if (both.configurations == 0) result += "No configuration passes in both.\n";
    else if (!both.gain)
        result +=
            "Some figures are 0 or below: by how much B is better than A is not said, as that "
            "would be a ratio.\n";
    else
        result += std::to_string(both.configurations) +
                  (both.configurations == 1 ? " configuration passes" : " configurations pass") +
                  " in both. B against A in " + metric + ": " + percent(both.gain->value) + " (" +
                  interval_text(*both.gain) +
                  "). This is the difference of machines, days, versions or workloads, not of "
                  "flags. `autotune compare` measures two "
                  "studies' defaults in turns.\n";
    const Pairs definitions = different_definitions(a.setup, b.setup);
    result +=
        "\n## What is not the same\n\n" +
        (definitions.empty() ? "Nothing.\n" : table_of("of the definition", "A", "B", definitions));
    return result;
}

std::string json_comparison(const StudyTrials& a, const StudyTrials& b) {
    const ReportView one(a.setup, a.trials);
    const ReportView other(b.setup, b.trials);
    OrderedJson result{{"a", json_of_study(one)}, {"b", json_of_study(other)}};
    result["different_settings"] = json_of_pairs(different_settings(one, other));
    const InBoth both = found_in_both(one, other);
    result["in_both"] = {{"configurations", both.configurations}};
    if (both.gain)
        result["in_both"]["b_against_a"] = {
            {"value", both.gain->value}, {"low", both.gain->low}, {"high", both.gain->high}};
    result["different_definitions"] = json_of_pairs(different_definitions(a.setup, b.setup));
    return result.dump(2);
}

}  // namespace servetune
