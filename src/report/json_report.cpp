// SPDX-License-Identifier: Apache-2.0
#include "gain_json.hpp"
#include "predicted.hpp"
#include "report_view.hpp"
#include "servetune/detail/trial/metric_key.hpp"
#include "servetune/report.hpp"
#include "study/json_values.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Metrics are plain numbers here; standard errors are in the journal.
OrderedJson metrics_of(const ReportView& view, const Configuration& configuration,
                       std::string_view workload = "") {
    OrderedJson object = OrderedJson::object();
    for (const auto& [name, metric] : view.means(configuration, workload))
        object[name] = metric.value;
    return object;
}

/// Its words and environment are null where it is several commands.
void add_serving_command(OrderedJson& object, const StudySetup& setup,
                         const Configuration& configuration) {
    const bool several = setup.file.composition->needs_router(configuration);
    const Command command = several ? Command{} : setup.command(configuration);
    object["argv"] = several ? OrderedJson() : OrderedJson(command.argv);
    object["environment"] = several ? OrderedJson() : OrderedJson(command.environment);
    object["command"] = setup.command_text(configuration);
}

/// Every told configuration with the figures that decide: goals and limited metrics, each
/// workload's own too.
void add_deciding_figures(OrderedJson& object, const ReportView& view) {
    const Problem& problem = *view.setup.problem;
    object["limits"] = OrderedJson::array();
    for (const Limit& limit : problem.objective.limits)
        object["limits"].push_back(
            {{"metric", limit.metric}, {limit.at_least ? "at_least" : "at_most", limit.bound}});
    object["results"] = OrderedJson::array();
    for (const Standing& standing : view.standings.all()) {
        if (!standing.told()) continue;
        OrderedJson figures = OrderedJson::object();
        const auto decides = [&](std::string_view name) {
            const std::string_view plain = MetricKey::of(name).name;
            const std::vector<Goal> goals = problem.objective.goals;
            return std::any_of(goals.begin(), goals.end(),
                               [&](const Goal& goal) {
                                   return goal.metric == name || goal.metric == plain;
                               }) ||
                   std::any_of(problem.objective.limits.begin(), problem.objective.limits.end(),
                               [&](const Limit& limit) {
                                   return limit.metric == name || limit.metric == plain;
                               });
        };
        for (const auto& [name, metric] : view.means(standing.configuration))
            if (decides(name)) figures[name] = metric.value;
        OrderedJson broken = OrderedJson::array();
        for (const Limit& limit : problem.objective.limits)
            for (const auto& [workload, value] : limited_figures(standing, limit, problem.decision))
                if (!limit.keeps(value))
                    broken.push_back({{"metric", limit.metric},
                                      {"workload", workload},
                                      {limit.at_least ? "at_least" : "at_most", limit.bound},
                                      {"value", value}});
        object["results"].push_back(
            {{"configuration", to_json(standing.configuration)},
             {"passes", standing.passes()},
             {"measurements", static_cast<std::size_t>(standing.leading().total_runs())},
             {"metrics", figures},
             {"broken", broken}});
    }
}

/// Where requests had other lengths than the default's.
void add_other_work(OrderedJson& object, const ReportView& view) {
    object["other_work"] = OrderedJson::array();
    for (const Standing& standing : view.standings.all())
        for (const OtherWork& work : standing.other_work)
            object["other_work"].push_back({{"configuration", to_json(standing.configuration)},
                                            {"workload", work.workload},
                                            {"tokens", work.output ? "output" : "input"},
                                            {"mean", work.mine},
                                            {"default", work.usual}});
}

/// Where nothing passes: what comes nearest.
OrderedJson closest_json(const std::optional<Closest>& closest) {
    if (!closest) return nullptr;
    OrderedJson broken = OrderedJson::array();
    for (const BrokenLimit& one : closest->broken) {
        const char* bound = one.limit.at_least ? "at_least" : "at_most";
        broken.push_back({{"metric", one.limit.metric},
                          {"workload", one.workload},
                          {bound, one.limit.bound},
                          {"value", one.value},
                          {"passes_with", one.loosened().bound}});
    }
    return {{"configuration", to_json(closest->configuration)}, {"broken", broken}};
}

/// Of several goals: which they are, and what no other one beats in all of them.
void add_front(OrderedJson& object, const ReportView& view) {
    const std::vector<Goal> goals = view.setup.file.objective.goals;
    object["goals"] = OrderedJson::array();
    for (const Goal& goal : goals)
        object["goals"].push_back(
            {{"metric", goal.metric},
             {"direction", goal.direction == Direction::maximize ? "maximize" : "minimize"}});
    object["front"] = OrderedJson::array();
    for (const FrontPoint& point : view.recommendation.front) {
        OrderedJson estimates = OrderedJson::object();
        for (std::size_t k = 0; k < goals.size(); ++k) {
            const Estimate& estimate = point.estimates[k];
            estimates[goals[k].metric] = {{"value", estimate.mean},
                                          {"low", estimate.low()},
                                          {"high", estimate.high()},
                                          {"measurements", estimate.replicates}};
        }
        OrderedJson row{{"configuration", to_json(point.configuration)}};
        add_serving_command(row, view.setup, point.configuration);
        row["estimates"] = estimates;
        row["metrics"] = metrics_of(view, point.configuration);
        object["front"].push_back(std::move(row));
    }
}

}  // namespace

std::string why_not_measured(const ReportView& view, const Configuration& configuration,
                             std::string_view workload, std::string_view stop_reason) {
    if (view.measured(configuration, workload) != nullptr) return "";
    for (const Trial& trial : view.trials)
        if (trial.workload == workload && trial.configuration == configuration &&
            trial.failure() != nullptr) {
            const Failure& failure = *trial.failure();
            return std::string(name_in(failure_kinds, failure.kind)) +
                   (failure.message.empty() ? "" : ": " + failure.message);
        }
    if (stop_reason == name_in(stop_reasons, StopReason::deadline))
        return "there was no time for it before the deadline ('until')";
    if (stop_reason == name_in(stop_reasons, StopReason::wall_clock_spent))
        return "the budget's 'wall_clock' was spent";
    if (stop_reason == name_in(stop_reasons, StopReason::stopped_by_user))
        return "the run was stopped";
    return "not yet; run the study again";
}

std::string json_of(const ReportView& view, std::string_view stop_reason,
                    const nlohmann::ordered_json* effects, const nlohmann::ordered_json* account) {
    const StudySetup& setup = view.setup;
    const Recommendation& result = view.recommendation;
    const auto metrics = [&](const Configuration& configuration, std::string_view workload = "") {
        return metrics_of(view, configuration, workload);
    };
    std::size_t told = 0;
    std::size_t failed = 0;
    std::size_t unsound = 0;
    OrderedJson pending = OrderedJson::array();
    OrderedJson failures = OrderedJson::array();
    OrderedJson audit = OrderedJson::array();
    OrderedJson refused = OrderedJson::array();
    for (const Trial& trial : view.trials) {
        told += trial.told() ? 1 : 0;
        if (!trial.told())
            pending.push_back({{"trial", trial.id},
                               {"configuration", to_json(trial.configuration)},
                               {"workload", trial.workload},
                               {"started_at", trial.started_at ? OrderedJson(*trial.started_at)
                                                               : OrderedJson(nullptr)},
                               {"why", trial.why}});
        if (const Failure* failure = trial.failure()) {
            ++failed;
            failures.push_back({{"trial", trial.id},
                                {"configuration", to_json(trial.configuration)},
                                {"kind", name_in(failure_kinds, failure->kind)},
                                {"message", failure->message},
                                {"log", failure->log_path},
                                {"log_lines", failure->log_lines}});
        }
        unsound += trial.measurement() != nullptr &&
                           trial.measurement()->validity.verdict == Verdict::unsound
                       ? 1
                       : 0;
    }
    for (const Trial& trial : view.trials) {
        if (trial.measurement() == nullptr ||
            trial.measurement()->validity.verdict == Verdict::sound)
            continue;
        const Validity& validity = trial.measurement()->validity;
        OrderedJson findings = OrderedJson::array();
        for (const Finding& finding : validity.findings)
            findings.push_back({{"id", finding.id},
                                {"left", finding.left},
                                {"right", finding.right},
                                {"cause", finding.cause}});
        audit.push_back({{"trial", trial.id},
                         {"configuration", to_json(trial.configuration)},
                         {"workload", trial.workload},
                         {"verdict", name_in(verdicts, validity.verdict)},
                         {"findings", findings}});
    }
    for (const Standing& standing : view.standings.all())
        if (standing.told() && !standing.passes())
            refused.push_back(
                {{"configuration", to_json(standing.configuration)}, {"reason", standing.refused}});

    OrderedJson object;
    object["version"] = 1;
    object["study"] = setup.file.name;
    object["strategy"] = setup.file.strategy.name;
    object["objective"] = {
        {setup.file.objective.leading().direction == Direction::maximize ? "maximize" : "minimize",
         setup.file.objective.leading().metric}};
    if (setup.file.objective.several()) add_front(object, view);
    const Headline headline = headline_of(view);
    object["verdict"] = name_in(conclusions, headline.conclusion);
    object["headline"] = headline.title;
    object["reason"] = headline.reason;
    object["advice"] = headline.advice;
    object["notes"] = quality_notes(view);
    if (const std::string measured_by = view.setup.file.measured_by(); !measured_by.empty())
        object["notes"].insert(object["notes"].begin(), measured_by);
    object["trials"] = {{"told", told}, {"failed", failed}, {"unsound", unsound}};
    object["pending"] = pending;
    const Measurement* of_default = view.measured(result.default_configuration);
    object["default"] = {
        {"configuration", to_json(result.default_configuration)},
        {"metrics", metrics(result.default_configuration)},
        {"verdict", of_default == nullptr
                        ? OrderedJson(nullptr)
                        : OrderedJson(name_in(verdicts, of_default->validity.verdict))}};
    if (result.conclusion != Conclusion::nothing_passes) {
        OrderedJson recommended;
        recommended["configuration"] = to_json(result.recommended);
        add_serving_command(recommended, setup, result.recommended);
        recommended["metrics"] = metrics(result.recommended);
        recommended["gain"] = result.default_passes && result.conclusion != Conclusion::inconclusive
                                  ? gain_json(result.gain)
                                  : OrderedJson(nullptr);
        if (!recommended["gain"].is_null())
            recommended["gain"]["p_best"] =
                result.p_best ? OrderedJson(*result.p_best) : OrderedJson(nullptr);
        recommended["keep_default"] = result.keep_default;
        object["recommended"] = recommended;
        object["given_away"] =
            result.given_away ? gain_json(*result.given_away) : OrderedJson(nullptr);
        const FigureScale& scale = view.standings.scale();
        object["compared_by"] = scale.ratios() ? "ratios" : "differences";
        object["noise"] = {{"value", view.standings.noise() * (scale.ratios() ? 1 : scale.unit)},
                           {"repeated_configurations", view.standings.replicated()}};
        const Drift& drift = view.standings.drift();
        object["drift"] = {
            {"checks", drift.checks()},
            {"chance", drift.chance()},
            {"change", scale.ratios() ? drift.change() : std::abs(scale.stated(-drift.change()))}};
        object["best_observed"] = result.best
                                      ? OrderedJson{{"configuration", to_json(*result.best)},
                                                    {"metrics", metrics(*result.best)}}
                                      : OrderedJson(nullptr);
        object["not_distinguishable"] = OrderedJson::array();
        for (const Configuration& tied : result.tied)
            object["not_distinguishable"].push_back(to_json(tied));
        object["report_workloads"] = OrderedJson::object();
        for (const Workload& workload : setup.file.report_workloads) {
            OrderedJson& row = object["report_workloads"][workload.name];
            row = {{"default", metrics(result.default_configuration, workload.name)},
                   {"recommended", metrics(result.recommended, workload.name)},
                   {"not_measured", OrderedJson::object()}};
            for (const auto& [name, configuration] :
                 {std::pair("default", &result.default_configuration),
                  std::pair("recommended", &result.recommended)})
                if (const std::string why =
                        why_not_measured(view, *configuration, workload.name, stop_reason);
                    !why.empty())
                    row["not_measured"][name] = why;
        }
    } else {
        object["recommended"] = nullptr;
        object["closest"] = closest_json(result.closest);
    }
    add_deciding_figures(object, view);
    add_other_work(object, view);
    if (const auto predicted = predicted_of(view)) {
        OrderedJson rows = OrderedJson::array();
        for (const Predicted::Row& row : predicted->rows)
            rows.push_back({{"configuration", to_json(row.configuration)},
                            {"measured", row.measured},
                            {"predicted_before", row.shipped},
                            {"predicted_fitted",
                             row.fitted ? OrderedJson(*row.fitted) : OrderedJson(nullptr)}});
        object["predicted"] = {{"by", predicted->by},
                               {"median_error_before", predicted->shipped_error},
                               {"median_error_fitted", predicted->fitted_error},
                               {"doubts", predicted->doubts},
                               {"rows", rows}};
    }
    object["refused"] = refused;
    object["failures"] = failures;
    object["audit"] = audit;
    if (effects != nullptr) object["effects"] = *effects;
    if (account != nullptr) object["explanation"] = *account;
    object["environment_changes"] = environment_changes(view.trials);
    object["cost_seconds"] = view.cost_seconds();
    object["stop_reason"] = stop_reason.empty() ? OrderedJson(nullptr) : OrderedJson(stop_reason);
    redact(object, setup.file.secrets);
    return object.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace servetune
