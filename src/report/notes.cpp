// SPDX-License-Identifier: Apache-2.0
// What reports say beside the figures: environment, work that cannot be compared, knowledge.
#include "host/environment.hpp"
#include "report_view.hpp"
#include "search/given_up.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/outcome.hpp"
#include "study/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace servetune {
namespace {

/// Each name of the environments in which a configuration was measured, with what of its nodes
/// matters, and all its values.
std::map<std::string, std::set<std::string>> environments_of(const ReportView& view,
                                                             const Configuration& configuration) {
    std::map<std::string, std::set<std::string>> result;
    std::vector<Environment> all;
    for (const Trial& trial : view.search) {
        if (trial.configuration != configuration || trial.measurement() == nullptr) continue;
        all.push_back(trial.environment ? *trial.environment : Environment{});
        for (const auto& [name, value] : trial.measurement()->place)
            if (name != name_of_node) all.back().emplace(name, value);
        if (!trial.environment && all.back().empty()) all.pop_back();
    }
    for (const Environment& one : all)
        for (const auto& [name, value] : one) result[name].insert(value);
    for (auto& [name, values] : result)
        for (const Environment& one : all)
            if (!one.contains(name)) values.insert("not set");
    return result;
}

/// `512 in and 128 out`; empty: not known.
std::string lengths_text(const Metrics& metrics, const std::string& workload) {
    const auto mean = [&](const char* what) {
        const auto tokens = value_in(metrics, MetricKey{what, workload}.text());
        const auto requests = value_in(metrics, MetricKey{"successful_requests", workload}.text());
        return tokens && requests && *requests > 0 ? short_number_text(*tokens / *requests, 1)
                                                   : std::string();
    };
    const std::string input = mean("input_tokens");
    const std::string output = mean("output_tokens");
    return output.empty() ? "" : (input.empty() ? "" : input + " in and ") + output + " out";
}

std::string other_work_text(const Standing& standing) {
    std::vector<std::string> texts;
    for (const OtherWork& work : standing.other_work) texts.push_back(work.text());
    return joined(texts, "; ");
}

}  // namespace

std::string not_tried_text(const ReportView& view) {
    const double size = view.problem().feasible.size();
    const auto told = std::count_if(view.standings.all().begin(), view.standings.all().end(),
                                    [](const Standing& one) { return one.told(); });
    if (size <= static_cast<double>(told)) return "";
    constexpr double countable = 10'000;
    return fmt::format(
        "What was not tried: {} of {} configurations were measured.", told,
        size < countable ? fmt::format("{:.0f}", size) : fmt::format("{:.3g}", size));
}

std::string why_not_measured(const ReportView& view, const Configuration& configuration,
                             std::string_view workload, std::string_view stop_reason) {
    if (view.measured(configuration, workload) != nullptr) return "";
    for (const Trial& trial : view.trials)
        if (const Failure* failure = trial.failure(); failure != nullptr &&
                                                      trial.workload == workload &&
                                                      trial.configuration == configuration)
            return std::string(name_in(failure_kinds, failure->kind)) +
                   (failure->message.empty() ? "" : ": " + failure->message);
    if (stop_reason == name_in(stop_reasons, StopReason::deadline))
        return "there was no time for it before the deadline ('until')";
    if (stop_reason == name_in(stop_reasons, StopReason::wall_clock_spent))
        return "the budget's 'wall_clock' was spent";
    if (stop_reason == name_in(stop_reasons, StopReason::stopped_by_user))
        return "the run was stopped";
    return "not yet; run the study again";
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
    auto before = environments_of(view, view.base());
    auto after = environments_of(view, other);
    if (before.empty() || after.empty()) return "";
    std::vector<std::string> texts;
    std::set<std::string> names;
    for (const auto* one : {&before, &after})
        for (const auto& [name, values] : *one) names.insert(name);
    for (const std::string& name : names) {
        const auto values = [&](const auto& of) {
            const auto found = of.find(name);
            return found == of.end()
                       ? "not set"
                       : joined({found->second.begin(), found->second.end()}, " and ");
        };
        if (values(before) != values(after))
            texts.push_back(name + ": " + values(before) + " -> " + values(after));
    }
    return texts.empty() ? ""
                         : "The default and the best were measured in different environments (" +
                               joined(texts, "; ") + "): a part of the difference may be theirs.";
}

std::string why_not_comparable(const ReportView& view, const Configuration& configuration) {
    const Standing& standing = *view.standings.find(configuration);
    const auto unchecked = unchecked_answers(view.problem().space, standing);
    const std::string text = "What looks best (" + view.changes(configuration) +
                             ") did other work than the default: " + other_work_text(standing) +
                             ". ";
    if (unchecked.empty())
        return text +
               "With requests of other lengths, faster ones are no proof of a faster engine.";
    return text + std::string(unchecked.front()) +
           " changes what the model computes, and nobody compared the answers: answers of another "
           "length are what a broken quantization looks like.";
}

std::vector<std::string> other_work_notes(const ReportView& view) {
    std::vector<std::string> result;
    for (const Standing& standing : view.standings.all()) {
        if (standing.other_work.empty()) continue;
        result.push_back(fmt::format(
            "Other work: {} had requests of other lengths, beyond noise ({}). {}{}",
            view.changes(standing.configuration), other_work_text(standing),
            standing.refusal == Refusal::other_work
                ? "The objective does not say what equal work would give, so it cannot win."
                : "Of a gain only what equal work leaves counts, in requests and in tokens alike.",
            unchecked_answers(view.problem().space, standing).empty()
                ? ""
                : " It changes what the model computes, and nobody compared the answers: a broken "
                  "quantization looks like this."));
    }
    return result;
}

std::vector<std::string> knowledge_notes(const ReportView& view) {
    std::vector<std::string> result;
    for (const std::string& source : view.setup.knowledge)
        result.push_back(fmt::format("Knowledge: {}.", source));
    if (!view.setup.earlier.empty())
        result.push_back(
            fmt::format("Knowledge: {}, which the cache had. Its figures do not enter the verdict.",
                        view.setup.earlier));
    const Beliefs& beliefs = view.setup.beliefs;
    for (const GivenUp& one : given_up(beliefs, view.problem(), view.standings))
        result.push_back(
            fmt::format("{} was given up: {} configurations that it expected to change the goal by "
                        "{:+.0f} % changed it by {:+.0f} %.",
                        beliefs[one.source].name(), one.trials, 100 * std::expm1(one.promised),
                        100 * std::expm1(one.measured)));
    return result;
}

std::vector<std::string> quality_notes(const ReportView& view) {
    std::vector<std::string> result;
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

std::vector<std::string> speculation_notes(const ReportView& view) {
    std::vector<std::string> result;
    for (const Standing& standing : view.standings.all()) {
        const Metrics means = view.means(standing.configuration);
        std::vector<std::string> texts;
        for (const auto& [workload, drafted] : figures_of(means, "server_drafted_tokens"))
            if (const auto accepted =
                    value_in(means, MetricKey{"server_accepted_tokens", workload}.text());
                accepted && drafted->value > 0)
                texts.push_back(fmt::format(
                    "{} of {} guessed tokens ({}) were right{}", short_number_text(*accepted, 0),
                    short_number_text(drafted->value, 0), plain_percent(*accepted / drafted->value),
                    workload.empty() ? "" : fmt::format(" on {}", workload)));
        if (texts.empty()) continue;
        const bool first = standing.configuration == view.recommendation.recommended;
        result.insert(first ? result.begin() : result.end(),
                      fmt::format("Speculation, as the engine counts: {}, with {}.", joined(texts),
                                  view.changes(standing.configuration)));
    }
    return result;
}

std::vector<std::string> lengths_texts(const ReportView& view) {
    const Metrics before = view.means(view.base());
    const Metrics after = view.means(view.recommendation.recommended);
    std::vector<std::string> workloads;
    for (const Workload& workload : view.setup.file.workloads) workloads.push_back(workload.name);
    if (workloads.size() < 2) workloads = {""};
    std::vector<std::string> result;
    for (const std::string& workload : workloads) {
        const std::string of_default = lengths_text(before, workload);
        const std::string of_recommended = lengths_text(after, workload);
        if (of_default.empty() || of_recommended.empty()) continue;
        result.push_back(
            fmt::format("Tokens a request{}: {} with the default, {} with the recommendation.",
                        workload.empty() ? "" : " on " + workload, of_default, of_recommended));
    }
    return result;
}

}  // namespace servetune
