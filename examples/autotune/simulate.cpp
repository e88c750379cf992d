// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "output.hpp"
#include "plan.hpp"
#include "stop_signals.hpp"

#include "base/present.hpp"
#include "perf/cost_check.hpp"
#include "predict/prediction.hpp"
#include "report/report_json.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"
#include "servetune/study_checks.hpp"
#include "study_file/readers.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace autotune {

namespace {

double value_of(const PredictedTrial& prediction, const std::string& metric) {
    return std::get<Measurement>(prediction.outcome).metrics.find(metric)->second.value;
}

/// How many of the simulated ones would have failed, by kind.
std::map<std::string, std::size_t> failures_of(const std::vector<PredictedTrial>& predictions) {
    std::map<std::string, std::size_t> result;
    for (const PredictedTrial& prediction : predictions)
        if (const auto* failure = std::get_if<Failure>(&prediction.outcome))
            ++result[std::string(name_in(failure_kinds, failure->kind))];
    return result;
}

/// What the metric is with 90 %, by the rows that the cost model was checked with.
std::optional<std::pair<double, double>> interval(const SimulateEvaluator& evaluator,
                                                  const PredictedTrial& prediction,
                                                  const std::string& metric) {
    const auto started = evaluator.started(prediction.configuration);
    if (!started.cost || std::holds_alternative<Failure>(prediction.outcome)) return std::nullopt;
    const ServingTarget& target = started.cost->target();
    return interval_of(check_of(target.traits, target.hardware, target.model), metric,
                       value_of(prediction, metric));
}

OrderedJson prediction_json(const StudyFile& file, const Objective& objective,
                            const PredictedTrial& prediction, const SimulateEvaluator& evaluator) {
    const Command command = file.composition->render(prediction.configuration, {file.model, {}, 0});
    OrderedJson metrics = OrderedJson::object();
    if (const auto* measured = std::get_if<Measurement>(&prediction.outcome))
        for (const auto& [name, metric] : measured->metrics) metrics[name] = metric.value;
    const std::string& metric = objective.leading().metric;
    OrderedJson json{{"configuration", prediction.configuration.text()},
                     {"command", command.text()},
                     {"argv", command.argv},
                     {"predicted", metrics.value(metric, OrderedJson())},
                     {"predicted_90_percent", or_null(interval(evaluator, prediction, metric))},
                     {"metrics", metrics}};
    if (const auto* failure = std::get_if<Failure>(&prediction.outcome))
        json["failure"] = failure->message;
    else if (!passes(prediction, objective)) json["failure"] = "it breaks a limit";
    return json;
}

void print_predictions(const StudyFile& file, const std::string& hardware, const Problem& problem,
                       const std::vector<PredictedTrial>& predictions,
                       const std::vector<PredictedTrial>& best, const std::string& reason,
                       const SimulateEvaluator& evaluator) {
    const std::string& metric = problem.objective.leading().metric;
    put(stdout, "PREDICTED, not measured: {} on {}, by the cost model and the simulator\n",
        file.model, hardware);
    if (!file.model_file.empty()) put(stdout, "facts: {}\n", file.model_file.string());
    put_each(stdout, "take care: ", facts_to_know(file, hardware));
    put(stdout, "\n");
    put(stdout, "{} of {:.6g} configurations simulated", predictions.size(),
        problem.feasible.size());
    for (const auto& [kind, count] : failures_of(predictions)) put(stdout, ", {} {}", count, kind);
    put(stdout, "\n\n");
    if (best.empty()) {
        put(stdout, "{}\n", reason);
        return;
    }
    const PredictedTrial& default_ = predictions.front();
    const bool default_serves = passes(default_, problem.objective);
    if (default_serves)
        put(stdout, "  {:>12.6g} {:>18}           the default: {}\n", value_of(default_, metric),
            interval_text(interval(evaluator, default_, metric)),
            file.composition->render(default_.configuration, {file.model, {}, 0}).text());
    else if (const auto* failure = std::get_if<Failure>(&default_.outcome))
        put(stdout, "  the default fails: {} ({})\n", name_in(failure_kinds, failure->kind),
            failure->message);
    for (const PredictedTrial& trial : best) {
        const double value = value_of(trial, metric);
        const std::string gain =
            default_serves
                ? fmt::format(
                      "{:+.1f} %",
                      problem.objective.leading().gain(value, value_of(default_, metric)) * 100)
                : "";
        put(stdout, "  {:>12.6g} {:>18} {:>9} {}\n", value,
            interval_text(interval(evaluator, trial, metric)), gain,
            file.composition->render(trial.configuration, {file.model, {}, 0}).text());
    }
    put(stdout,
        "  ({} of each and its 90 % interval, of the study's requests with their start and end, "
        "where 'suggest' says the steady state; flags that change no figure are left out)\n",
        metric);
    put_text(stdout,
             "\nmemory of the best:\n" +
                 present(evaluator.started(best.front().configuration).cost).memory().text());
    put(stdout,
        "\nThese are guesses to start from: as good as the traits they rest on. 'autotune run' "
        "measures.\n");
}

}  // namespace

int simulate(const SimulateArguments& arguments) {
    StopSignals signals("what was simulated so far is printed");
    StudyFile file = arguments.load();
    if (auto* choice = std::get_if<SimulateChoice>(&file.measuring))
        choice->noise = {};  // a prediction is of the truth, not of one noisy trial
    if (file.machine.hardware.empty() && arguments.hardware.empty())
        throw UsageError(file.source.file.string() +
                         " names no hardware; say which with --hardware");
    check_simulated_names(file, arguments.hardware);
    const auto evaluator = simulated(file, arguments.hardware);
    const Problem problem(
        SearchSpace(file.composition->parameters(), file.composition->constraints()),
        file.objective, file.decision);
    const std::string why = why_nothing_starts(*evaluator, problem);
    if (contains(why, "the default: it cannot be simulated")) throw UsageError(why);
    if (!why.empty() && !arguments.json) {
        put_text(stderr, "autotune: " + why + "\n");
        return nothing_feasible;
    }
    auto [reason, memory] = sentence_and_memory(why);
    const PredictionSearch search{arguments.configurations, 3, arguments.configurations * 4, 1,
                                  std::max(1U, std::thread::hardware_concurrency())};
    std::vector<PredictedTrial> predictions;
    if (why.empty()) predictions = search_predictions(*evaluator, problem, search, signals.token());
    std::erase_if(predictions, [](const PredictedTrial& p) {
        return p.configuration.entries().empty();
    });  // not reached before a stop
    const auto best = distinct(*evaluator, problem, ranked(predictions, file.objective),
                               arguments.top, signals.token());
    if (best.empty() && reason.empty()) reason = context_text(file);
    if (best.empty() && reason.empty()) reason = "none of them serves within the limits";
    const std::string hardware =
        arguments.hardware.empty() ? file.machine.hardware : arguments.hardware;
    if (arguments.json) {
        OrderedJson list = OrderedJson::array(), default_;
        for (const PredictedTrial& shown : best)
            list.push_back(prediction_json(file, file.objective, shown, *evaluator));
        if (!predictions.empty())
            default_ = prediction_json(file, file.objective, predictions.front(), *evaluator);
        put_json(OrderedJson{{"study", file.name},
                             {"kind", "prediction"},
                             {"hardware", hardware},
                             {"facts", text_or_null(file.model_file.string())},
                             {"take_care", facts_to_know(file, hardware)},
                             {"simulated", predictions.size()},
                             {"failures", failures_of(predictions)},
                             {"objective", file.objective.leading().metric},
                             {"reason", text_or_null(reason)},
                             {"memory", text_or_null(memory)},
                             {"default", default_},
                             {"best", list}});
    } else print_predictions(file, hardware, problem, predictions, best, reason, *evaluator);
    if (signals.token().stop_requested()) return stopped;
    return best.empty() ? nothing_feasible : done;
}

}  // namespace autotune
