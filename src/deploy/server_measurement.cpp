// SPDX-License-Identifier: Apache-2.0
#include "server_measurement.hpp"

#include "base/present.hpp"
#include "base/waiting.hpp"
#include "engine/load_level.hpp"
#include "host/elapsed.hpp"
#include "load/capacity.hpp"
#include "load/failed_requests.hpp"
#include "load/warm_up.hpp"
#include "servetune/audit.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/probe.hpp"
#include "servetune/error.hpp"
#include "servetune/load_test.hpp"
#include "servetune/rng.hpp"
#include "trial/metric_text.hpp"
#include "trial_workloads.hpp"

#include <atomic>
#include <cmath>
#include <thread>
#include <utility>

namespace servetune {
namespace {

/// A load test without one success says why by its most frequent end.
std::optional<Failure> fruitless(const LoadTestResult& result) {
    std::map<RequestEnd, std::size_t> ends;
    for (const RequestRecord& record : result.run.records) ++ends[record.end];
    if (ends.contains(RequestEnd::success)) return std::nullopt;
    const auto most = std::max_element(
        ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == ends.end())
        return Failure{FailureKind::load_test_failed, "the workload has no request"};
    const auto example = find_if(
        result.run.records, [&](const RequestRecord& record) { return record.end == most->first; });
    const FailureKind kind =
        most->first == RequestEnd::stalled || most->first == RequestEnd::timed_out
            ? FailureKind::hung
            : FailureKind::load_test_failed;
    return Failure{kind, "no request of " + std::to_string(result.run.records.size()) +
                             " succeeded: " + example->error};
}

/// An engine that served some requests and then none: more requests stalled than a sound result may
/// miss (1 %), and nothing moved during the whole time that the last of them were waited for.
std::optional<Failure> stalled_for_good(const LoadTestResult& result,
                                        double stall_timeout_seconds) {
    std::size_t stalled = 0;
    double moved = 0;
    double ended = 0;
    for (const RequestRecord& record : result.run.records) {
        stalled += record.end == RequestEnd::stalled ? 1 : 0;
        moved = std::max({moved, record.last_token.value_or(0),
                          record.end == RequestEnd::success ? record.done : 0});
        ended = std::max(ended, record.done);
    }
    const std::size_t all = result.run.records.size();
    constexpr double nearly = 0.9;  // time-outs are looked at now and then
    if (stalled * 100 <= all || ended - moved < nearly * stall_timeout_seconds) return std::nullopt;
    return Failure{FailureKind::hung, std::to_string(stalled) + " of " + std::to_string(all) +
                                          " requests stalled, and nothing moved meanwhile"};
}

void say_of_trial(const MeasureOptions& options, const EvaluationContext& context,
                  const std::string& what) {
    try {
        if (options.say) options.say("trial " + std::to_string(context.trial) + ": " + what);
    } catch (
        ...) {  // NOLINT(bugprone-empty-catch): a log that is full must not cost what was measured
    }
}

/// Under three times the load requests wait three times as long, and a stress is several trials.
MeasureOptions patient(MeasureOptions options) {
    options.load.stall_timeout_seconds *= 3;
    options.load.request_timeout_seconds *= 3;
    options.trial_within_seconds *= 8;
    return options;
}

/// The relative error of the last of several parts, by its share in the weighted geometric mean.
void add_error_of_last(Metrics& whole, const std::vector<WorkloadMetrics>& parts,
                       const std::string& metric) {
    const auto last = parts.back().metrics.find(metric);
    const auto mean = whole.find(metric);
    if (parts.size() < 2 || last == parts.back().metrics.end() || mean == whole.end()) return;
    double weights = 0;
    for (const WorkloadMetrics& part : parts) weights += part.weight;
    if (last->second.standard_error && last->second.value > 0)
        mean->second.standard_error = mean->second.value * *last->second.standard_error /
                                      last->second.value * parts.back().weight / weights;
}

}  // namespace

/// Looks at a server while it is loaded and stops the load when there is no use in going on: it
/// died, the user stopped, the trial has taken too long.
class ServerMeasurement::Watch {
public:
    enum class Found { nothing, died, stopped, out_of_time, stalled };

    /// `stalled_after_seconds`: without any answer moving while some are awaited; then the rest of
    /// the load would only wait as long.
    Watch(const Server& server, Clock::time_point deadline, double stalled_after_seconds,
          const std::stop_token& user)
        : stalled_after_seconds_(stalled_after_seconds),
          thread_([this, &server, until = PatientDeadline(deadline),
                   user](const std::stop_token& over) mutable {
              while (!over.stop_requested()) {
                  Found found = Found::nothing;
                  if (user.stop_requested()) found = Found::stopped;
                  else if (server.died()) found = Found::died;
                  else if (until.passed()) found = Found::out_of_time;
                  if (found != Found::nothing) {
                      found_ = found;
                      load_.request_stop();
                      return;
                  }
                  (void)wait_or_stop(std::chrono::milliseconds(50), over);
              }
          }) {}

    [[nodiscard]] std::stop_token load() const { return load_.get_token(); }
    [[nodiscard]] bool out_of_time() const { return found_ == Found::out_of_time; }
    [[nodiscard]] bool stalled() const { return found_ == Found::stalled; }

    /// From the load generator, twice a second.
    void heard(const LoadProgress& progress) {
        const std::uint64_t moved = progress.token_chunks + (progress.ended - progress.failed);
        moved_at_ += std::chrono::duration<double>(heard_.gap()).count();
        if (moved != moved_ || progress.sent == progress.ended || progress.seconds < moved_at_) {
            moved_ = moved;
            moved_at_ = progress.seconds;
        } else if (progress.seconds - moved_at_ > stalled_after_seconds_ &&
                   found_ == Found::nothing) {
            found_ = Found::stalled;
            load_.request_stop();
        }
    }

private:
    double stalled_after_seconds_;
    std::uint64_t moved_ = 0;
    double moved_at_ = 0;  ///< of the load's own clock, which begins anew with each workload
    PatientDeadline heard_{Clock::now()};
    std::atomic<Found> found_{Found::nothing};
    std::stop_source load_;
    std::jthread thread_;  // last: ends before what it uses
};

ServerMeasurement::ServerMeasurement(const MeasureOptions& options, const StudyWorkloads& workloads,
                                     const Configuration& configuration,
                                     const EvaluationContext& context, std::size_t attempt)
    : context_(context),
      options_(stresses() ? patient(options) : options),
      configuration_(configuration),
      attempt_(attempt),
      deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(options_.trial_within_seconds))),
      workloads_(workloads_of_trial(workloads, context.workload, configuration)),
      early_end_(load_level_text(configuration).empty() ? context.to_beat : std::nullopt,
                 options_.give_up, options_.limits, workloads_) {}

void ServerMeasurement::say(const std::string& what) const {
    say_of_trial(options_, context_, what);
}

std::uint64_t ServerMeasurement::salt(const std::string& what) const {
    return derive_seed(derive_seed(context_.trial, 2 * attempt_ + run_ + 1),
                       fingerprint_of(what).bits ^ context_.seed);
}

std::optional<Failure> ServerMeasurement::interrupted(const Server& server,
                                                      const Watch& watch) const {
    if (context_.stop.stop_requested())
        return Failure{FailureKind::cancelled, "stopped by the user"};
    if (auto died = server.died()) return died;
    if (watch.out_of_time() || watch.stalled())
        if (auto lost = server.lost()) return lost;
    if (watch.out_of_time())
        return Failure{FailureKind::hung, "the trial was not over within " +
                                              seconds_text(options_.trial_within_seconds)};
    if (watch.stalled())
        return Failure{FailureKind::hung, "no answer moved for `stall_timeout` (" +
                                              seconds_text(options_.load.stall_timeout_seconds) +
                                              ") while some were awaited"};
    return std::nullopt;
}

/// Longer than any one request may stall: all that were under way have had their time.
double ServerMeasurement::stalled_after() const { return options_.load.stall_timeout_seconds + 2; }

LoadOptions ServerMeasurement::watched(Watch& watch, const std::string& what) const {
    LoadOptions load = options_.load;
    load.progress = [this, &watch, what](const LoadProgress& progress) {
        watch.heard(progress);
        phase(what + ": " + std::to_string(progress.ended) + " of " +
              std::to_string(progress.planned) + " requests");
    };
    return load;
}

void ServerMeasurement::phase(const std::string& what) const {
    try {
        if (options_.phase) options_.phase(context_.trial, what);
    } catch (...) {  // NOLINT(bugprone-empty-catch): a status line must not cost what is measured
    }
}

/// What the server accepts and how it counts. A server that served and now gives no answer to be
/// counted has failed, not this machine.
std::optional<Failure> ServerMeasurement::first_answers(Server& server, Watch& watch,
                                                        std::optional<Calibration>& known) {
    const bool ignore_eos =
        any_of(workloads_, [](const Workload& workload) { return workload.ignore_eos; });
    Endpoint endpoint = server.endpoint();
    try {
        handshake_ = try_request(endpoint, ignore_eos, watch.load());
        for (const std::string& field : handshake_.refused_fields)
            say("the server refuses the field " + field + ", so it is not sent");
        endpoint = as_agreed(endpoint, handshake_);
        if (!known) {
            known = calibrated(endpoint, watch.load());
            if (!known && !watch.load().stop_requested()) {
                say("the server does not count the tokens of prompts: their lengths are estimated");
                known = Calibration{};  // of the next trial too; after a stop nothing is known
            }
        }
    } catch (const Error& error) {
        if (auto failure = interrupted(server, watch)) return failure;
        if (auto failure = server.changed()) return failure;
        return Failure{FailureKind::load_test_failed,
                       std::string("it serves, but it refuses the load test: ") + error.what()};
    }
    return interrupted(server, watch);
}

/// Requests like those of the load test that follows, until the server does not get faster any
/// more. What was measured once is measured again on a server that is warm.
void ServerMeasurement::warm_up(Watch& watch, const std::string& called, const LoadTest& measured) {
    if (options_.warm_up_requests == 0 || run_ > 0 || stresses()) return;
    const auto from = Clock::now();
    LoadTest test = measured;
    test.salt = salt("warm-up " + called);
    test.options = watched(watch, called + ", warm-up");
    test.options.loops = measured.options.loops;
    const WarmUp warm = servetune::warm_up(test, std::exchange(least_warm_up_, 0), watch.load());
    warm_up_seconds_ += seconds_since(from);
    if (!warm.stopped) say(called + ", " + warm.text);
}

/// One load test. `called`: what is told of it, and what makes its prompts its own.
Outcome ServerMeasurement::loaded(Server& server, Watch& watch, const std::string& model,
                                  const Calibration& calibration, const Workload& workload,
                                  const std::string& called,
                                  const std::optional<RateToReach>& to_reach) {
    LoadTest test;
    test.endpoint = server.endpoint();
    test.workload = workload;
    test.workload.seed = derive_seed(workload.seed, context_.seed);
    test.options = watched(watch, called);
    constexpr std::size_t servers_of_a_loop = 4;
    test.options.loops =
        std::max(test.options.loops,
                 (1 + test.endpoint.replicas.size() + servers_of_a_loop - 1) / servers_of_a_loop);
    test.limits = service_limits(limits_of_workload(options_.limits, workload.name));
    test.salt = salt(called);
    test.handshake = handshake_;
    test.calibration = calibration;
    test.known.hardware = options_.hardware;
    test.known.served = served_model(model, options_.models);
    test.known.devices = devices_;
    test.known.rate_is_chosen =
        called != workload.name || configuration_.find(load_request_rate) != nullptr;
    warm_up(watch, called, test);
    if (auto failure = interrupted(server, watch)) return *failure;
    phase(called + ": load test");
    (void)server.reset_cache();
    test.to_reach = to_reach;
    const LoadTestResult result = run_load_test(test, watch.load());
    if (auto failure = interrupted(server, watch)) return *failure;
    if (result.given_up) {
        costs_["trial_saved_seconds"] = {result.given_up->saved_seconds};
        costs_[std::string(trial_had_to_reach)] = {early_end_.had_to_reach()};
        Measurement given_up = as_given_up(workload.name, *test.to_reach, *result.given_up);
        for (const Finding& finding : result.validity.findings)  // then it only looked slow
            if (is_disturbance(finding)) add(given_up.validity, {Verdict::unsound, {finding}});
        return given_up;
    }
    for (const auto& failure :
         {fruitless(result), stalled_for_good(result, options_.load.stall_timeout_seconds)})
        if (failure) return server.changed().value_or(*failure);
    const std::string failed = failed_requests_text(result.run.records);
    say(called + " measured in " + seconds_text(result.run.duration_seconds) +
        (failed.empty() ? "" : " (" + failed + ")"));
    constexpr std::size_t one_of = 100;  // may fail
    const auto& records = result.run.records;
    if (stresses() && one_of * count_if(records, [](const auto& one) { return !one.succeeded(); }) >
                          records.size())
        return Failure{FailureKind::load_test_failed, failed};
    Measurement measured{metrics_of(result.statistics), result.validity};
    add_power_of(result.run, called, measured.metrics);
    keep(model, called, test, result);
    return measured;
}

void ServerMeasurement::keep(const std::string& model, const std::string& called,
                             const LoadTest& test, const LoadTestResult& result) {
    if (!options_.keep) return;
    try {
        options_.keep(
            {context_.trial, context_.seed, kept_++, configuration_, model, called, test, result});
    } catch (const std::exception& error) {
        say(called + ": its requests are not kept: " + error.what());
    }
}

void ServerMeasurement::add_power_of(const LoadRun& run, const std::string& called,
                                     Metrics& metrics) const {
    if (!machine_) return;
    double begin = run.records.front().scheduled;
    for (const RequestRecord& record : run.records) begin = std::min(begin, record.scheduled);
    begin += run.started_at_monotonic_seconds;
    const auto power = machine_->power(begin, begin + run.duration_seconds);
    if (const auto* use = std::get_if<PowerUse>(&power)) add_power(metrics, *use);
    else if (const std::string& why = std::get<std::string>(power);
             !why.empty() && context_.trial == 0 && run_ == 0)
        say(called + ": power and energy are not known: " + why);
}

Measurement ServerMeasurement::as_given_up(const std::string& workload, const RateToReach& wanted,
                                           const EarlyStop& found) const {
    say(workload + " ended early after " + seconds_text(found.seconds) +
        ": the configuration is surely slower than the best so far by " +
        short_number_text(early_end_.give_up() * 100) + " % or more");
    Finding finding{"given_up", figure_text(wanted.metric, found.value),
                    figure_text(wanted.metric, wanted.least),
                    "its load test was ended once it was certain that it would not reach the "
                    "right-hand figure; the left one is approximate"};
    return {{{wanted.metric, {found.value, found.standard_error}}},
            {Verdict::suspect, {std::move(finding)}}};
}

/// The server goes on serving while the load changes; its cache is emptied between the points as
/// between workloads.
Outcome ServerMeasurement::at_capacity(Server& server, Watch& watch, const std::string& model,
                                       const Calibration& calibration, const Workload& workload) {
    std::size_t point = 0;
    const MeasureLoad measure = [&](const Workload& at_level) -> std::variant<LoadPoint, Failure> {
        Outcome outcome = loaded(server, watch, model, calibration, at_level,
                                 workload.name + ", load " + std::to_string(++point));
        if (auto* failure = std::get_if<Failure>(&outcome)) return std::move(*failure);
        auto& measurement = std::get<Measurement>(outcome);
        return LoadPoint{.metrics = std::move(measurement.metrics),
                         .validity = std::move(measurement.validity)};
    };
    const std::size_t requests =
        plan_requests(workload, {salt(workload.name), calibration}).requests.size();
    auto found = find_capacity(workload, requests, options_.limits, measure,
                               [&](const std::string& line) { say(workload.name + ", " + line); });
    if (auto* failure = std::get_if<Failure>(&found)) return std::move(*failure);
    const auto& capacity = std::get<Capacity>(found);
    say(workload.name + ": the largest load is " + capacity.text(load_unit(workload.arrival)));
    return measurement_of(capacity, workload.arrival);
}

std::variant<ServerMeasurement::Measured, Failure> ServerMeasurement::once(
    Server& server, Watch& watch, const std::string& model, const Calibration& calibration) {
    Measured measured;
    kept_ = 0;
    machine_.reset();
    if (options_.watch) {
        MachineWatchOptions watched = *options_.watch;
        if (context_.trial == 0 && run_ == 0)
            watched.say = [this](const std::string& line) {
                say(line);
            };  // the same for all trials
        machine_ = server.watch(std::move(watched));
    }
    double before_seconds = 0;
    for (const Workload& workload : workloads_) {
        if (workload.after_idle) {
            phase(workload.name + ": idle before it");
            (void)wait_or_stop(std::chrono::duration<double>(std::min(60.0, before_seconds)),
                               watch.load());
        }
        const auto from = Clock::now();
        Outcome outcome = workload.arrival.searched()
                              ? at_capacity(server, watch, model, calibration, workload)
                              : loaded(server, watch, model, calibration, workload, workload.name,
                                       early_end_.rate_to_reach(measured.parts));
        before_seconds = seconds_since(from);
        if (auto* failure = std::get_if<Failure>(&outcome)) {
            if (stresses()) failure->message = workload.name + ": " + failure->message;
            return std::move(*failure);
        }
        auto& measurement = std::get<Measurement>(outcome);
        const bool given_up = measurement.validity.ended_early();
        measured.parts.push_back({workload.name, workload.weight, std::move(measurement.metrics)});
        add(measured.validity, measurement.validity);
        if (const auto reason = early_end_.left_out(measured.parts); reason || given_up) {
            leave_out_rest(measured, reason);
            break;
        }
    }
    if (machine_) measured.disturbed = machine_->findings();
    return measured;
}

/// No `reason`: the last load test itself was ended early.
void ServerMeasurement::leave_out_rest(Measured& measured, const std::optional<Hopeless>& reason) {
    std::string left_out;
    for (std::size_t i = measured.parts.size(); i < workloads_.size(); ++i)
        left_out += (left_out.empty() ? "" : ", ") + workloads_[i].name;
    if (left_out.empty()) return;
    costs_["trial_saved_seconds"].value += early_end_.saved_seconds(measured.parts.size());
    say("left out: " + left_out + (reason ? "; " + reason->why : ""));
    if (!reason) return;
    if (!reason->by_limit) costs_[std::string(trial_had_to_reach)] = {early_end_.had_to_reach()};
    add(measured.validity,
        {Verdict::suspect, {{"given_up", left_out, "was not measured", reason->why}}});
}

/// Why what was measured is measured once more; empty: it is not.
std::string ServerMeasurement::why_again(const std::variant<Measured, Failure>& result) const {
    const auto* measured = std::get_if<Measured>(&result);
    if (measured == nullptr || stresses()) return "";
    if (!measured->disturbed.empty())
        return "the machine disturbed it: " + measured->disturbed.front().cause;
    for (const Finding& finding : measured->validity.findings)
        if (finding.id == "steady" || is_disturbance(finding)) return finding.cause;
    return "";
}

Outcome ServerMeasurement::of(Server& server, const std::string& model, double devices,
                              std::optional<Calibration>& known) {
    devices_ = devices;
    const std::vector<std::string> not_in_force = server.not_in_force();
    for (const std::string& flag : not_in_force) say("a flag may have no effect: " + flag);
    phase("first answers");
    Watch watch(server, deadline_, stalled_after(), context_.stop);
    const auto warm_from = Clock::now();
    auto warm_failure = first_answers(server, watch, known);
    warm_up_seconds_ = seconds_since(warm_from);
    costs_["trial_warm_up_seconds"] = {warm_up_seconds_};
    if (warm_failure) return *warm_failure;

    const auto measure_from = Clock::now();
    const double before = warm_up_seconds_;
    auto result = once(server, watch, model, known.value_or(Calibration{}));
    const std::string again = why_again(result);
    if (!again.empty()) {
        say("measured once more, " + again);
        ++run_;
        for (const std::string_view of_first :
             {std::string_view("trial_saved_seconds"), trial_had_to_reach})
            costs_.erase(std::string(of_first));
        result = once(server, watch, model, known.value_or(Calibration{}));
    }
    costs_["trial_measure_seconds"] = {seconds_since(measure_from) - (warm_up_seconds_ - before)};
    costs_["trial_warm_up_seconds"] = {warm_up_seconds_};
    if (const auto* failure = std::get_if<Failure>(&result)) return *failure;
    if (auto failure = server.changed()) return *failure;

    auto& measured = std::get<Measured>(result);
    const bool all = measured.parts.size() == workloads_.size();
    Metrics whole = all ? combined(measured.parts) : early_end_.whole(measured.parts);
    if (stresses()) measured.validity = {};  // that it serves is what counts, no figure
    if (all && measured.validity.ended_early())
        add_error_of_last(whole, measured.parts, present(context_.to_beat).goal.metric);
    for (const std::string& flag : not_in_force)
        measured.disturbed.push_back(
            {"not_in_force", flag, "it serves all the same",
             "a flag may have no effect: then this is another configuration's figure"});
    if (!measured.disturbed.empty())
        add(measured.validity, {Verdict::suspect, std::move(measured.disturbed)});
    return Measurement{std::move(whole), std::move(measured.validity)};
}

Outcome with_retries(const MeasureOptions& options, const EvaluationContext& context,
                     const std::function<Outcome(std::size_t attempt)>& evaluate) {
    for (std::size_t attempt = 0;; ++attempt) {
        Outcome outcome;
        try {
            outcome = evaluate(attempt);
        } catch (const IoError& error) {
            outcome = Failure{FailureKind::infrastructure, error.what()};
        }
        const auto* failure = std::get_if<Failure>(&outcome);
        if (failure == nullptr || failure->kind != FailureKind::infrastructure) return outcome;
        if (attempt >= options.infrastructure_retries)
            throw IoError("trial " + std::to_string(context.trial) +
                          " cannot be measured here: " + failure->message);
        say_of_trial(options, context,
                     "tried again, not the configuration's fault: " + failure->message);
        (void)wait_or_stop(std::chrono::duration<double>(std::pow(4, double(attempt))),
                           context.stop);
        if (context.stop.stop_requested())
            return Failure{FailureKind::cancelled, "stopped by the user"};
    }
}

std::string MeasureOptions::why_invalid() const {
    constexpr double most_retries =
        10;  // each waits four times as long as the one before: the tenth twelve days
    OptionCheck check;
    check.part("load", load.why_invalid())
        .seconds("trial_within_seconds", trial_within_seconds)
        .within("warm_up_requests", double(warm_up_requests), 0, 1e6)
        .that(give_up >= 0 && give_up <= 10, "give_up", "a share from 0 to 10",
              std::to_string(give_up))
        .within("infrastructure_retries", double(infrastructure_retries), 0, most_retries);
    if (watch) check.part("watch", watch->why_invalid());
    return check.text();
}

}  // namespace servetune
