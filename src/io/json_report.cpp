// SPDX-License-Identifier: Apache-2.0
#include "json_values.hpp"
#include "report_view.hpp"
#include "servetune/io/report.hpp"

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Metrics are plain numbers here; standard errors are in the journal.
OrderedJson metrics_of(const ReportView& view, const Configuration& configuration, std::string_view workload = "") {
    OrderedJson object = OrderedJson::object();
    if (const Measurement* measurement = view.measured(configuration, workload))
        for (const auto& [name, metric] : measurement->metrics) object[name] = metric.value;
    return object;
}

/// Of several goals: which they are, and what no other one beats in all of them.
void add_front(OrderedJson& object, const ReportView& view) {
    const std::vector<Goal> goals = view.setup.file.objective.goals();
    object["goals"] = OrderedJson::array();
    for (const Goal& goal : goals)
        object["goals"].push_back(
            {{"metric", goal.metric}, {"direction", goal.direction == Direction::maximize ? "maximize" : "minimize"}});
    object["front"] = OrderedJson::array();
    for (const FrontPoint& point : view.recommendation.front) {
        const Command command = view.setup.command(point.configuration);
        OrderedJson estimates = OrderedJson::object();
        for (std::size_t k = 0; k < goals.size(); ++k) {
            const Estimate& estimate = point.estimates[k];
            estimates[goals[k].metric] = {
                {"value", estimate.mean}, {"low", estimate.low()}, {"high", estimate.high()}, {"measurements", estimate.replicates}};
        }
        object["front"].push_back({{"configuration", to_json(point.configuration)},
                                   {"argv", command.argv},
                                   {"environment", command.environment},
                                   {"command", command.text()},
                                   {"estimates", estimates},
                                   {"metrics", metrics_of(view, point.configuration)}});
    }
}

}  // namespace

std::string json_of(const ReportView& view, std::string_view stop_reason, const nlohmann::ordered_json* effects) {
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
                               {"started_at", trial.started_at ? OrderedJson(*trial.started_at) : OrderedJson(nullptr)},
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
        unsound += trial.measurement() != nullptr && trial.measurement()->validity.verdict == Verdict::unsound ? 1 : 0;
    }
    for (const Trial& trial : view.trials) {
        if (trial.measurement() == nullptr || trial.measurement()->validity.verdict == Verdict::sound) continue;
        const Validity& validity = trial.measurement()->validity;
        OrderedJson findings = OrderedJson::array();
        for (const Finding& finding : validity.findings)
            findings.push_back({{"id", finding.id}, {"left", finding.left}, {"right", finding.right}, {"cause", finding.cause}});
        audit.push_back({{"trial", trial.id},
                         {"configuration", to_json(trial.configuration)},
                         {"workload", trial.workload},
                         {"verdict", name_in(verdicts, validity.verdict)},
                         {"findings", findings}});
    }
    for (const Standing& standing : view.standings.all())
        if (standing.told() && !standing.passes())
            refused.push_back({{"configuration", to_json(standing.configuration)}, {"reason", standing.refused}});

    OrderedJson object;
    object["version"] = 1;
    object["study"] = setup.file.name;
    object["strategy"] = setup.file.strategy.name;
    object["objective"] = {{setup.file.objective.direction == Direction::maximize ? "maximize" : "minimize", setup.file.objective.metric}};
    if (setup.file.objective.several()) add_front(object, view);
    object["trials"] = {{"told", told}, {"failed", failed}, {"unsound", unsound}};
    object["pending"] = pending;
    const Measurement* of_default = view.measured(result.default_configuration);
    object["default"] = {
        {"configuration", to_json(result.default_configuration)},
        {"metrics", metrics(result.default_configuration)},
        {"verdict", of_default == nullptr ? OrderedJson(nullptr) : OrderedJson(name_in(verdicts, of_default->validity.verdict))}};
    if (result.best) {
        const Command command = setup.command(result.recommended);
        OrderedJson recommended;
        recommended["configuration"] = to_json(result.recommended);
        recommended["argv"] = command.argv;
        recommended["environment"] = command.environment;
        recommended["command"] = command.text();
        recommended["metrics"] = metrics(result.recommended);
        recommended["gain"] =
            result.default_passes
                ? OrderedJson{{"value", result.gain.value}, {"low", result.gain.low}, {"high", result.gain.high}, {"p_best", result.p_best}}
                : OrderedJson(nullptr);
        recommended["keep_default"] = result.keep_default;
        recommended["unknown_limits"] = result.unknown;
        object["recommended"] = recommended;
        object["best_observed"] = {{"configuration", to_json(*result.best)}, {"metrics", metrics(*result.best)}};
        object["not_distinguishable"] = OrderedJson::array();
        for (const Configuration& tied : result.tied) object["not_distinguishable"].push_back(to_json(tied));
        object["report_workloads"] = OrderedJson::object();
        for (const Workload& workload : setup.file.report_workloads)
            object["report_workloads"][workload.name] = {{"default", metrics(result.default_configuration, workload.name)},
                                                         {"recommended", metrics(result.recommended, workload.name)}};
    } else object["recommended"] = nullptr;
    object["refused"] = refused;
    object["failures"] = failures;
    object["audit"] = audit;
    if (effects != nullptr) object["effects"] = *effects;
    object["cost_seconds"] = view.cost_seconds();
    object["stop_reason"] = stop_reason.empty() ? OrderedJson(nullptr) : OrderedJson(stop_reason);
    return object.dump(2, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace servetune
