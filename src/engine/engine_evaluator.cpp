// SPDX-License-Identifier: Apache-2.0
#include "servetune/engine/engine_evaluator.hpp"

#include "command_texts.hpp"
#include "servetune/base/error.hpp"
#include "servetune/base/rng.hpp"
#include "servetune/load/audit.hpp"
#include "servetune/load/calibration.hpp"
#include "servetune/load/probe.hpp"
#include "servetune/trial/objective.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace servetune {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point from) { return std::chrono::duration<double>(Clock::now() - from).count(); }

std::string rounded(double seconds) { return text_of(std::round(seconds * 10) / 10) + " s"; }

/// Looks at a server while it is loaded and stops the load when there is no use in going on: it died, the user stopped, the trial has taken too long.
class Watch {
public:
    enum class Found { nothing, died, stopped, out_of_time };

    Watch(const Deployment& deployment, Clock::time_point deadline, const std::stop_token& user)
        : thread_([this, &deployment, deadline, user](const std::stop_token& over) {
              std::mutex mutex;
              std::unique_lock lock(mutex);
              std::condition_variable_any wake;
              while (!over.stop_requested()) {
                  Found found = Found::nothing;
                  if (user.stop_requested()) found = Found::stopped;
                  else if (deployment.died()) found = Found::died;
                  else if (Clock::now() >= deadline) found = Found::out_of_time;
                  if (found != Found::nothing) {
                      found_ = found;
                      load_.request_stop();
                      return;
                  }
                  wake.wait_for(lock, over, std::chrono::milliseconds(50), [] { return false; });
              }
          }) {}

    [[nodiscard]] std::stop_token load() const { return load_.get_token(); }
    [[nodiscard]] Found found() const { return found_; }

private:
    std::atomic<Found> found_{Found::nothing};
    std::stop_source load_;
    std::jthread thread_;  // last: ends before what it uses
};

}  // namespace

/// What happens between the start and the stop of one engine.
class EngineEvaluator::OneTrial {
public:
    OneTrial(const EngineEvaluator& evaluator, const Configuration& configuration, const EvaluationContext& context, std::size_t attempt)
        : e_(evaluator),
          o_(evaluator.options_),
          configuration_(configuration),
          context_(context),
          engine_(evaluator.composition_.engine_of(configuration)),
          attempt_(attempt),
          began_(Clock::now()),
          deadline_(began_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(o_.trial_within_seconds))) {}

    Outcome run() {
        const ReservedPort port;
        const Command command = e_.composition_.render(configuration_, {e_.model_, "127.0.0.1", port.number()});
        DeployOptions options = o_.deploy;
        options.folder = o_.folder / "trials" / std::to_string(context_.trial);
        log_ = (options.folder / "engine.log").string();
        Deployment deployment(engine_, command, served_name(command), port, options, context_.stop);
        costs_["trial_start_seconds"] = {deployment.started().seconds};
        Outcome outcome = deployment.started().failure ? Outcome(*deployment.started().failure) : measured(deployment, command);
        const Ended ended = deployment.stop();
        if (!ended.report.empty()) say(ended.report);
        if (const std::string trouble = deployment.log_trouble(); !trouble.empty()) say(trouble);
        costs_["trial_stop_seconds"] = {ended.seconds};
        if (auto* measurement = std::get_if<Measurement>(&outcome)) measurement->metrics.insert(costs_.begin(), costs_.end());
        else if (auto& failure = std::get<Failure>(outcome); failure.log_path.empty()) failure.log_path = log_;
        return outcome;
    }

private:
    void say(const std::string& what) const {
        if (o_.say) o_.say("trial " + std::to_string(context_.trial) + ": " + what);
    }

    /// The name that clients ask for: the one that the command gives, else the model's.
    [[nodiscard]] std::string served_name(Command command) const {
        const std::string model = model_word(engine_, command.argv);
        for (const auto& [name, value] : take_texts(engine_, command))
            if (engine_.find(name)->parameter.concept_name == "served_model_name") return text_of(value);
        return model;
    }

    [[nodiscard]] std::vector<const Workload*> workloads() const {
        std::vector<const Workload*> result;
        for (const auto* list : {&e_.workloads_, &e_.report_workloads_})
            for (const Workload& workload : *list)
                if (context_.workload.empty() ? list == &e_.workloads_ : workload.name == context_.workload) result.push_back(&workload);
        if (result.empty()) throw UsageError("there is no workload '" + context_.workload + "' to measure");
        return result;
    }

    Outcome measured(Deployment& deployment, const Command& command) {
        say("serves after " + rounded(deployment.started().seconds));
        for (const std::string& flag : deployment.not_in_force()) say("a flag did not take effect: " + flag);
        Watch watch(deployment, deadline_, context_.stop);
        const auto list = workloads();
        const auto warm_from = Clock::now();
        const Calibration calibration = warm_up(deployment, *list.front(), watch);
        costs_["trial_warm_up_seconds"] = {seconds_since(warm_from)};
        if (auto failure = interrupted(deployment, watch)) return *failure;

        const auto measure_from = Clock::now();
        std::vector<WorkloadMetrics> parts;
        Validity validity;
        for (const Workload* workload : list) {
            (void)deployment.reset_cache();
            const LoadTestResult result = run_load_test(load_test(deployment, *workload, calibration, command), watch.load());
            if (auto failure = interrupted(deployment, watch)) return *failure;
            if (auto failure = fruitless(result)) return *failure;
            parts.push_back({workload->name, workload->weight, metrics_of(result.statistics)});
            add(validity, result.validity);
            say(workload->name + " measured in " + rounded(result.run.duration_seconds));
        }
        costs_["trial_measure_seconds"] = {seconds_since(measure_from)};
        if (!deployment.same_server())
            return Failure{FailureKind::crashed_under_load, "another process answers than the one that was started"};
        return Measurement{combined(parts), std::move(validity)};
    }

    /// A few requests of the first workload's kind, so that nothing of the first measured request is the engine's first time.
    Calibration warm_up(Deployment& deployment, const Workload& like, const Watch& watch) {
        const Endpoint endpoint = deployment.endpoint();
        const Calibration calibration = calibrate([&](const std::string& text) { return count_prompt_tokens(endpoint, text); });
        if (o_.warm_up_requests == 0) return calibration;
        Workload few = like;
        few.requests = std::min<std::int64_t>(static_cast<std::int64_t>(o_.warm_up_requests), like.requests.value_or(1 << 20));
        if (few.arrival.kind != Arrival::Kind::concurrency) few.arrival = {};
        (void)generate_load(endpoint, plan_requests(few, {salt("warm-up"), calibration}).requests, few.arrival, o_.load, watch.load());
        return calibration;
    }

    [[nodiscard]] std::uint64_t salt(const std::string& what) const {
        return derive_seed(derive_seed(context_.trial, attempt_ + 1), fingerprint_of(what).bits ^ context_.seed);
    }

    [[nodiscard]] LoadTest load_test(const Deployment& deployment, const Workload& workload, const Calibration& calibration,
                                     const Command& command) const {
        LoadTest test;
        test.endpoint = deployment.endpoint();
        test.workload = workload;
        test.workload.seed = derive_seed(workload.seed, context_.seed);
        test.options = o_.load;
        test.limits = o_.limits;
        test.salt = salt(workload.name);
        test.calibration = calibration;
        test.known.hardware = o_.hardware;
        test.known.served = served_model(model_word(engine_, command.argv), o_.models);
        return test;
    }

    [[nodiscard]] std::optional<Failure> interrupted(const Deployment& deployment, const Watch& watch) const {
        if (context_.stop.stop_requested()) return Failure{FailureKind::cancelled, "stopped by the user"};
        if (auto died = deployment.died()) return died;
        if (watch.found() == Watch::Found::out_of_time)
            return Failure{FailureKind::hung, "the trial was not over within " + rounded(o_.trial_within_seconds)};
        return std::nullopt;
    }

    /// A load test without one success says why by its most frequent end.
    [[nodiscard]] static std::optional<Failure> fruitless(const LoadTestResult& result) {
        std::map<RequestEnd, std::size_t> ends;
        for (const RequestRecord& record : result.run.records) ++ends[record.end];
        if (ends.contains(RequestEnd::success)) return std::nullopt;
        const auto most = std::max_element(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
        if (most == ends.end()) return Failure{FailureKind::load_test_failed, "the workload has no request"};
        const auto example = std::find_if(result.run.records.begin(), result.run.records.end(),
                                          [&](const RequestRecord& record) { return record.end == most->first; });
        const FailureKind kind =
            most->first == RequestEnd::stalled || most->first == RequestEnd::timed_out ? FailureKind::hung : FailureKind::load_test_failed;
        return Failure{kind, "no request of " + std::to_string(result.run.records.size()) + " succeeded: " + example->error};
    }

    const EngineEvaluator& e_;
    const Options& o_;
    const Configuration& configuration_;
    const EvaluationContext& context_;
    const Engine& engine_;
    std::size_t attempt_;
    Clock::time_point began_;
    Clock::time_point deadline_;
    std::string log_;
    Metrics costs_;
};

EngineEvaluator::EngineEvaluator(const Composition& composition, std::string model, std::vector<Workload> workloads,
                                 std::vector<Workload> report_workloads, Options options)
    : composition_(composition),
      model_(std::move(model)),
      workloads_(std::move(workloads)),
      report_workloads_(std::move(report_workloads)),
      options_(std::move(options)) {}

Outcome EngineEvaluator::evaluate(const Configuration& configuration, const EvaluationContext& context) {
    for (std::size_t attempt = 0;; ++attempt) {
        Outcome outcome;
        try {
            outcome = OneTrial(*this, configuration, context, attempt).run();
        } catch (const IoError& error) {
            outcome = Failure{FailureKind::infrastructure, error.what()};
        }
        const auto* failure = std::get_if<Failure>(&outcome);
        if (failure == nullptr || failure->kind != FailureKind::infrastructure) return outcome;
        if (attempt >= options_.infrastructure_retries)  // told, it would be held against the configuration
            throw IoError("trial " + std::to_string(context.trial) + " cannot be measured here: " + failure->message);
        if (options_.say)
            options_.say("trial " + std::to_string(context.trial) + ": tried again, not the configuration's fault: " + failure->message);
        std::mutex mutex;
        std::unique_lock lock(mutex);
        std::condition_variable_any wake;
        wake.wait_for(lock, context.stop, std::chrono::seconds(1U << (2 * attempt)), [] { return false; });
        if (context.stop.stop_requested()) return Failure{FailureKind::cancelled, "stopped by the user"};
    }
}

}  // namespace servetune
