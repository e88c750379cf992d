// SPDX-License-Identifier: Apache-2.0
#include "predict/prediction.hpp"
#include "predict/study_fit.hpp"
#include "report_view.hpp"
#include "search/effects.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/report.hpp"
#include "watched_study.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>
#include <utility>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t drawn_for_advice = 200;
constexpr std::size_t shown_predictions = 3;
constexpr double least_prefix_share = 0.1;
constexpr std::int64_t requests_of_advice = 200;

/// Requests of the mean lengths, at the load that was seen; nothing: the page does not say them.
std::optional<Workload> workload_seen(const ServerWindow& seen, const Workload& like,
                                      bool by_rate) {
    const Histogram* prompts = seen.histogram("request_prompt_tokens");
    const Histogram* outputs = seen.histogram("request_generated_tokens");
    const auto load = by_rate ? seen.requests() : seen.in_flight();
    if (prompts == nullptr || outputs == nullptr || !load || !(*load > 0)) return std::nullopt;
    const auto whole = [](double tokens) {
        return std::max<std::int64_t>(1, std::llround(tokens));
    };
    Workload result;
    result.name = like.name;
    result.weight = like.weight;
    result.seed = like.seed;
    result.ignore_eos = true;
    result.requests = std::max(requests_of_advice, by_rate ? 0 : 4 * whole(*load));
    result.dataset = {.kind = Dataset::Kind::random,
                      .input_tokens = whole(prompts->mean()),
                      .output_tokens = whole(outputs->mean())};
    const double shared = seen.hit_share().value_or(0);
    if (shared >= least_prefix_share && shared < 1) {
        result.dataset.kind = Dataset::Kind::shared_prefix;
        result.dataset.prefix_tokens = whole(prompts->mean() * shared);
        result.dataset.input_tokens = whole(prompts->mean() * (1 - shared));
    }
    if (by_rate)
        result.arrival = {.kind = Arrival::Kind::rate, .requests_per_second = *load / seen.seconds};
    else result.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = whole(*load)};
    return result;
}

std::string workload_yaml(const Workload& workload) {
    const Dataset& dataset = workload.dataset;
    const std::string prefix =
        dataset.prefix_tokens ? fmt::format("prefix_tokens: {}, ", *dataset.prefix_tokens) : "";
    return fmt::format(
        "{{workload: {}, dataset: {{kind: {}, {}input_tokens: {}, output_tokens: {}}}, arrival: "
        "{{{}}}, requests: {}, "
        "ignore_eos: true}}",
        workload.name, name_in(dataset_kinds, dataset.kind), prefix, *dataset.input_tokens,
        *dataset.output_tokens,
        workload.arrival.kind == Arrival::Kind::rate
            ? "rate: " + significant_text(workload.arrival.requests_per_second, 3)
            : "concurrency: " + std::to_string(workload.arrival.in_flight),
        *workload.requests);
}

/// The study with another traffic, for as long as this lives.
class WithWorkload {
public:
    WithWorkload(StudyFile& file, const Workload& workload) : file_(file), workloads_({workload}) {
        std::swap(file_.workloads, workloads_);
        std::swap(file_.report_workloads, report_workloads_);
    }
    ~WithWorkload() {
        std::swap(file_.workloads, workloads_);
        std::swap(file_.report_workloads, report_workloads_);
    }
    WithWorkload(const WithWorkload&) = delete;
    WithWorkload& operator=(const WithWorkload&) = delete;

private:
    StudyFile& file_;
    std::vector<Workload> workloads_, report_workloads_{};
};

std::optional<double> predicted_value(const PredictedTrial& trial, const Objective& objective) {
    const auto* measurement = std::get_if<Measurement>(&trial.outcome);
    if (measurement == nullptr) return std::nullopt;
    const auto found = measurement->metrics.find(objective.leading().metric);
    return found == measurement->metrics.end() ? std::nullopt : std::optional(found->second.value);
}

/// What the cost model expects under the new traffic, against what is recommended today.
void add_predictions(RetuneAdvice& advice, StudySetup& setup, const ReportView& view,
                     const WatchedStudy& study, const Workload& workload,
                     const std::stop_token& stop) {
    const Problem& problem = *setup.problem;
    const SpeedFactors factors = factors_of(
        *simulated(setup.file), measured_speeds(view.search, problem.decision, {workload.name}));
    const WithWorkload with(setup.file, workload);
    const auto evaluator = simulated(setup.file)->with(factors);
    const PredictionSearch search{drawn_for_advice, 1, 2 * drawn_for_advice, 1,
                                  std::max(1U, std::thread::hardware_concurrency())};
    std::vector<PredictedTrial> found = search_predictions(*evaluator, problem, search, stop);
    std::erase_if(found,
                  [](const PredictedTrial& one) { return one.configuration.entries().empty(); });
    const std::vector<Configuration> today_alone{study.recommended};
    const auto today = predicted_value(predict(*evaluator, today_alone).front(), problem.objective);
    const auto best =
        distinct(*evaluator, problem, ranked(found, problem.objective), shown_predictions, stop);
    advice.lines.push_back(
        fmt::format("The cost model, fitted to the trials, expects of that traffic (predicted, not "
                    "measured; {} of {:.6g} "
                    "configurations):",
                    found.size(), problem.feasible.size()));
    if (best.empty()) advice.lines.emplace_back("  none of them serves it within the limits");
    for (const DistinctPrediction& one : best) {
        const auto value = predicted_value(one.trial, problem.objective);
        if (!value) continue;
        const std::string gain =
            today ? fmt::format("{:+.1f} % over what is recommended",
                                problem.objective.leading().gain(*value, *today) * 100)
                  : "what is recommended does not serve it";
        const std::string changes = difference_text(one.trial.configuration, study.recommended);
        advice.lines.push_back(fmt::format("  {} {} ({}): {}", problem.objective.leading().metric,
                                           significant_text(*value, 4), gain,
                                           changes.empty() ? "as recommended today" : changes));
        advice.json["predicted"].push_back(
            {{"configuration", one.trial.configuration.text()},
             {"value", *value},
             {"recommended_value", today ? OrderedJson(*today) : OrderedJson()}});
    }
    for (const std::string& doubt : doubts_of_cost_model(setup.file))
        advice.lines.push_back("  take care: " + doubt);
}

/// The parameters whose levels differed most, as far as an effect is proven.
void add_what_matters(RetuneAdvice& advice, const StudySetup& setup, const ReportView& view) {
    const Effects effects(*setup.problem, view.search, Bayesian(setup.bayesian_options()),
                          setup.beliefs);
    std::map<std::string, double> largest;
    for (const MainEffect& effect : effects.main())
        if (effect.known())
            largest[effect.parameter] =
                std::max(largest[effect.parameter], std::abs(effect.gain.value));
    std::vector<std::pair<double, std::string>> order;
    for (const auto& [name, gain] : largest) order.emplace_back(-gain, name);
    std::sort(order.begin(), order.end());
    std::string names;
    for (const auto& [gain, name] : order) {
        names += (names.empty() ? "" : ", ") + name + " (" + percent_text(-gain, 0) + ")";
        advice.json["matters"].push_back({{"parameter", name}, {"effect", -gain}});
    }
    advice.lines.push_back(
        names.empty() ? "No parameter's effect is proven by the trials: all of the space would be "
                        "searched again."
                      : "What mattered in the trials, largest effect first: " + names + ".");
}

}  // namespace

RetuneAdvice retune_advice(StudySetup& setup, std::span<const Trial> trials,
                           const WatchedStudy& study, const ServerWindow& seen,
                           const std::stop_token& stop) {
    RetuneAdvice advice;
    advice.json = {{"workload", nullptr},
                   {"predicted", OrderedJson::array()},
                   {"matters", OrderedJson::array()}};
    const ReportView view(setup, trials);
    const bool one_workload = setup.file.workloads.size() == 1;
    const auto workload = workload_seen(seen, setup.file.workloads.front(),
                                        study.expected.requests_per_second.has_value());
    if (workload) {
        const std::string yaml = workload_yaml(*workload);
        advice.json["workload"] = yaml;
        advice.lines.push_back(
            "The traffic that was seen, by its means; its spread is not in it (a log of requests "
            "has that):");
        advice.lines.push_back("  workloads: [" + yaml + "]");
    } else
        advice.lines.emplace_back(
            "The page does not say the lengths of requests, so no workload can be written down for "
            "you.");
    try {
        if (workload && one_workload) add_predictions(advice, setup, view, study, *workload, stop);
        else if (workload)
            advice.lines.emplace_back(
                "No prediction: which of the study's workloads changed is not known.");
    } catch (const Error& error) {
        advice.lines.push_back(std::string("No prediction: ") + error.what());
    }
    try {
        add_what_matters(advice, setup, view);
    } catch (const Error& error) {
        advice.lines.push_back(std::string("What mattered in the trials is not known: ") +
                               error.what());
    }
    return advice;
}

}  // namespace servetune
