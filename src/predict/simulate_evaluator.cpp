// SPDX-License-Identifier: Apache-2.0
#include "servetune/simulate_evaluator.hpp"

#include "base/present.hpp"
#include "engine/failure_reader.hpp"
#include "engine/load_level.hpp"
#include "engine/per_device.hpp"
#include "load/capacity.hpp"
#include "servetune/audit.hpp"
#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/error.hpp"
#include "servetune/objective.hpp"
#include "servetune/rng.hpp"

#include <cmath>
#include <utility>

namespace servetune {
namespace {

/// What the audit may know of a simulated run: everything.
AuditContext simulated_context(const SimulateEvaluator::Started& started,
                               const SimulatedWorkload& workload, const BenchmarkResult& result) {
    AuditContext context;
    context.dialect = Dialect::vllm;
    describe(context, workload.workload, result);
    context.rate_is_chosen = workload.chosen;
    context.requested_requests = double(workload.traffic.requests().size());
    const ServingSettings& settings = started.serving.settings;
    context.served = ServedModel{started.serving.target.model, settings.quantization};
    context.hardware = started.serving.target.hardware;
    context.devices = double(settings.devices());
    context.tokens_per_step = double(settings.speculation.tokens + 1);
    context.command_is_known = true;
    if (workload.workload.dataset.kind == Dataset::Kind::trace)
        context.prefix_cache_intended = true;
    return context;
}

/// No engine ran, so none has said its line: readers would take it for a log's.
std::string predicted_reason(const std::string& cause,
                             const std::optional<DecisiveLine>& decisive) {
    if (!decisive) return cause;
    return (cause.empty() ? "" : cause + "; ") +
           "predicted, the engine would say: " + decisive->line;
}

}  // namespace

SimulateEvaluator::SimulateEvaluator(const Composition& composition, std::string model,
                                     std::vector<ServingReader> readers,
                                     std::vector<SimulatedWorkload> workloads, Options options)
    : composition_(composition),
      model_(std::move(model)),
      readers_(std::make_shared<const std::vector<ServingReader>>(std::move(readers))),
      workloads_(std::move(workloads)),
      options_(std::move(options)) {
    check_options("simulating", options_.why_invalid());
    for (const Engine& engine : composition_.engines()) (void)reader_of(engine);
    if (options_.weights.empty())
        for (const SimulatedWorkload& workload : workloads_)
            options_.weights.emplace_back(workload.workload.name, 1.0);
}

const ServingReader& SimulateEvaluator::reader_of(const Engine& engine) const {
    for (const ServingReader& reader : *readers_)
        if (reader.engine().name == engine.name) return reader;
    throw UsageError("there are no traits of " + engine.name + " to simulate it with");
}

std::unique_ptr<SimulateEvaluator> SimulateEvaluator::with(const SpeedFactors& factors) const {
    auto result = std::make_unique<SimulateEvaluator>(*this);
    result->factors_ = factors;
    return result;
}

bool SimulateEvaluator::replicates_inform() const {
    return options_.noise.run_cv > 0 || options_.noise.step_cv > 0;
}

Failure SimulateEvaluator::failure_of(const Engine& engine, const StartResult& start) const {
    const auto decisive = decisive_line(engine, start.log);
    return {decisive ? decisive->kind : FailureKind::other,
            predicted_reason(start.cause, decisive)};
}

SimulateEvaluator::Started SimulateEvaluator::started(const Configuration& configuration) const {
    if (composition_.needs_router(configuration)) {
        Started result;
        result.failure = Failure{FailureKind::unsupported,
                                 "it cannot be simulated: prefill and decode apart; measure it"};
        return result;
    }
    return started(reader_of(composition_.engine_of(configuration)),
                   composition_.render(configuration, {model_, {}, 0}));
}

SimulateEvaluator::Started SimulateEvaluator::started(const ServingReader& reader,
                                                      const Command& command) const {
    Started result;
    try {
        result.serving = reader.read(command);
        result.start = result.serving.refused;
        if (result.start.serves) {
            if (factors_ != SpeedFactors{})
                result.serving.target.traits =
                    scaled(std::move(result.serving.target.traits), factors_);
            result.cost.emplace(result.serving.target, result.serving.settings);
            (void)result.cost->tokens_per_step();
            result.start = start(*result.cost);
        }
    } catch (
        // a figure that the cost model would need: this configuration's failure, not the study's
        // end
        const UsageError& error) {
        result.failure = Failure{FailureKind::unsupported,
                                 std::string("it cannot be simulated: ") + error.what()};
        return result;
    }
    if (!result.start.serves) result.failure = failure_of(reader.engine(), result.start);
    else if (reader.engine().ready_within_seconds > 0 &&
             result.start.seconds > reader.engine().ready_within_seconds)
        result.failure =
            Failure{FailureKind::not_ready_in_time,
                    "it would start in " + text_of(std::round(result.start.seconds)) + " s, " +
                        text_of(reader.engine().ready_within_seconds) + " s are given"};
    return result;
}

std::optional<Failure> SimulateEvaluator::died(const Started& started,
                                               const SimulatedRun& run) const {
    if (run.death.empty()) return std::nullopt;
    const EngineTraits& traits = started.serving.target.traits;
    const Engine& engine = *find_if(composition_.engines(),
                                    [&](const Engine& one) { return one.name == traits.engine; });
    // Whatever the engine says of it, it served before: under load is where it died.
    return Failure{
        FailureKind::crashed_under_load,
        predicted_reason(run.death,
                         decisive_line(engine, log_lines(*started.cost, "load_out_of_memory")))};
}

Outcome SimulateEvaluator::measured(const Started& started, const SimulatedWorkload& workload,
                                    std::uint64_t seed) const {
    if (!workload.workload.arrival.searched()) return loaded(started, workload, seed);
    const std::size_t all = workload.traffic.requests().size();
    const MeasureLoad measure = [&](const Workload& at_level) -> std::variant<LoadPoint, Failure> {
        const std::size_t requests = at_level.requests ? std::size_t(*at_level.requests) : all;
        Outcome outcome = loaded(
            started, {at_level, workload.traffic.under(at_level.arrival, requests), true}, seed);
        if (auto* failure = std::get_if<Failure>(&outcome)) return std::move(*failure);
        auto& measurement = std::get<Measurement>(outcome);
        return LoadPoint{.metrics = std::move(measurement.metrics),
                         .validity = std::move(measurement.validity)};
    };
    auto found = find_capacity(workload.workload, all, options_.limits, measure);
    if (auto* failure = std::get_if<Failure>(&found)) return std::move(*failure);
    return measurement_of(std::get<Capacity>(found), workload.workload.arrival);
}

Outcome SimulateEvaluator::loaded(const Started& started, const SimulatedWorkload& workload,
                                  std::uint64_t seed) const {
    SimulatedRun run = simulate(present(started.cost), workload.traffic, {seed, options_.noise});
    if (auto failure = died(started, run)) return *failure;
    const auto requests = workload.traffic.requests().size();
    LoadRun load;
    load.records = std::move(run.records);
    load.duration_seconds = run.duration_seconds;
    load.server = run.server;
    const LoadStatistics statistics = statistics_of(
        load, {requests, workload.traffic.arrival(),
               service_limits(limits_of_workload(options_.limits, workload.workload.name))});
    if (statistics.result.successful_requests.value_or(0) == 0)
        return Failure{FailureKind::load_test_failed,
                       "no request succeeded: " +
                           (load.records.empty() ? "there was none" : load.records.front().error)};
    return Measurement{
        metrics_of(statistics),
        audit(statistics.result, simulated_context(started, workload, statistics.result))};
}

Outcome SimulateEvaluator::evaluate(const Configuration& configuration,
                                    const EvaluationContext& context) {
    return predicted(configuration, context);
}

Outcome SimulateEvaluator::predicted(const Configuration& configuration,
                                     const EvaluationContext& context) const {
    Outcome outcome = predicted_rates(configuration, context);
    if (auto* measurement = std::get_if<Measurement>(&outcome))
        add_per_device(measurement->metrics, composition_.devices_of(configuration),
                       options_.usd_per_device_hour);
    return outcome;
}

Outcome SimulateEvaluator::predicted_rates(const Configuration& configuration,
                                           const EvaluationContext& context) const {
    const Started on_paper = started(configuration);
    if (on_paper.failure) return *on_paper.failure;
    // The noise is the trial's own; the requests are the same for all.
    const std::uint64_t seed =
        derive_seed(derive_seed(context.seed, context.trial), configuration.fingerprint().bits);
    const auto at_level = [&](const SimulatedWorkload& workload) {
        if (load_level_text(configuration).empty()) return workload;
        const Workload changed = at_load_level(workload.workload, configuration);
        return SimulatedWorkload{changed,
                                 SimulatedTraffic(workload.traffic.requests(), changed.arrival)};
    };
    std::vector<WorkloadMetrics> parts;
    Validity validity;
    for (const auto& [name, weight] : options_.weights) {
        if (!context.workload.empty() && name != context.workload) continue;
        const auto workload = find_if(
            workloads_, [&, &wanted = name](const auto& w) { return w.workload.name == wanted; });
        Outcome outcome = measured(on_paper, at_level(*workload), seed);
        if (std::holds_alternative<Failure>(outcome)) return outcome;
        if (!context.workload.empty()) return outcome;
        auto& measurement = std::get<Measurement>(outcome);
        parts.push_back({name, weight, std::move(measurement.metrics)});
        add(validity, measurement.validity);
    }
    if (parts.empty()) {  // one of the workloads that are only reported
        for (const SimulatedWorkload& workload : workloads_)
            if (workload.workload.name == context.workload)
                return measured(on_paper, at_level(workload), seed);
        throw UsageError("there is no workload '" + context.workload + "' to simulate");
    }
    Metrics metrics = combined(parts);
    metrics[std::string(ready_seconds_metric)] = {on_paper.start.seconds};
    return Measurement{std::move(metrics), std::move(validity)};
}

std::string SimulateEvaluator::Options::why_invalid() const {
    OptionCheck check;
    check.part("noise", noise.why_invalid());
    for (const auto& [name, weight] : weights)
        check.that(weight > 0 && weight <= most_weight, "weight of '" + name + "'",
                   "a number in (0, 1e6]", std::to_string(weight));
    return check.text();
}

}  // namespace servetune
