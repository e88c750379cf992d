// SPDX-License-Identifier: Apache-2.0
// What reports say of the work of an engine: configurations that did other work than the default,
// the lengths of requests, and the tokens that speculation guessed.
#include "report_view.hpp"
#include "servetune/detail/study/unequal_work.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/report.hpp"

#include <fmt/format.h>

namespace servetune {
namespace {

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

}  // namespace

std::string other_work_text(const ReportView& view, const Configuration& configuration) {
    std::string text;
    if (const Standing* standing = view.standings.find(configuration))
        for (const OtherWork& work : standing->other_work)
            text += (text.empty() ? "" : "; ") + work.text();
    return text;
}

std::string why_not_comparable(const ReportView& view, const Configuration& configuration) {
    const auto unchecked =
        unchecked_answers(view.setup.problem->space, *view.standings.find(configuration));
    const std::string text =
        "What looks best (" +
        difference_text(configuration, view.recommendation.default_configuration) +
        ") did other work than the default: " + other_work_text(view, configuration) + ". ";
    if (unchecked.empty())
        return text +
               "With requests of other lengths, faster ones are no proof of a faster engine.";
    return text + std::string(unchecked.front()) +
           " changes what the model computes, and nobody compared the answers: answers of another "
           "length are what a broken "
           "quantization looks like.";
}

std::vector<std::string> other_work_notes(const ReportView& view) {
    std::vector<std::string> result;
    for (const Standing& standing : view.standings.all()) {
        if (standing.other_work.empty()) continue;
        const std::string counts =
            standing.refusal == Refusal::other_work
                ? "The objective does not say what equal work would give, so it cannot win."
                : "Of a gain only what equal work leaves counts, in requests and in tokens alike.";
        const bool unchecked = !unchecked_answers(view.setup.problem->space, standing).empty();
        result.push_back(fmt::format(
            "Other work: {} had requests of other lengths, beyond noise ({}). {}{}",
            difference_text(standing.configuration, view.recommendation.default_configuration),
            other_work_text(view, standing.configuration), counts,
            unchecked
                ? " It changes what the model computes, and nobody compared the answers: a broken "
                  "quantization looks like this."
                : ""));
    }
    return result;
}

std::vector<std::string> speculation_notes(const ReportView& view) {
    const Recommendation& recommendation = view.recommendation;
    std::vector<std::string> result;
    for (const Standing& standing : view.standings.all()) {
        const Metrics means = view.means(standing.configuration);
        std::string text;
        for (const auto& [workload, drafted] : figures_of(means, "server_drafted_tokens")) {
            const auto accepted =
                value_in(means, MetricKey{"server_accepted_tokens", workload}.text());
            if (!accepted || drafted->value <= 0) continue;
            text +=
                fmt::format("{}{} of {} guessed tokens ({}) were right{}", text.empty() ? "" : ", ",
                            short_number_text(*accepted, 0), short_number_text(drafted->value, 0),
                            plain_percent(*accepted / drafted->value),
                            workload.empty() ? "" : fmt::format(" on {}", workload));
        }
        if (text.empty()) continue;
        const bool first = standing.configuration == recommendation.recommended;
        result.insert(first ? result.begin() : result.end(),
                      fmt::format("Speculation, as the engine counts: {}, with {}.", text,
                                  difference_text(standing.configuration,
                                                  recommendation.default_configuration)));
    }
    return result;
}

std::vector<std::string> lengths_texts(const ReportView& view) {
    const Recommendation& recommendation = view.recommendation;
    const Metrics before = view.means(recommendation.default_configuration);
    const Metrics after = view.means(recommendation.recommended);
    std::vector<std::string> workloads;
    if (view.setup.file.workloads.size() < 2) workloads.emplace_back();
    else
        for (const Workload& workload : view.setup.file.workloads)
            workloads.push_back(workload.name);
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
