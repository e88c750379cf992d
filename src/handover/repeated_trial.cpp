// SPDX-License-Identifier: Apache-2.0
#include "kept_load_test.hpp"

#include "deploy/trial_workloads.hpp"
#include "engine/load_level.hpp"
#include "engine/per_device.hpp"
#include "load/audit_parts.hpp"
#include "load/capacity.hpp"
#include "servetune/error.hpp"
#include "study_file/evaluator_type.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace servetune {
namespace {

bool figures_agree(double a, double b) {
    constexpr double rounding = 1e-9;
    return a == b || std::abs(a - b) <= rounding * std::max(std::abs(a), std::abs(b));
}

/// Findings that requests do not tell: of the machine, of the quality gate, of a flag.
bool is_of_machine(const Finding& finding) {
    return (is_disturbance(finding) && finding.id != "client_stopped") ||
           finding.id == "not_in_force" || finding.id == "given_up";
}

/// The load tests of a trial, taken one after the other.
class Repetition {
public:
    Repetition(const StudySetup& setup, const Trial& trial, std::vector<KeptLoadTest> tests,
               RepeatedTrial& result)
        : setup_(setup), trial_(trial), tests_(std::move(tests)), result_(result) {
        add_facts(setup.file, options_);
    }

    /// Throws ParseError for load tests that are not those of the trial.
    Measurement measurement() {
        std::vector<WorkloadMetrics> parts;
        Validity validity;
        for (const Workload& workload :
             workloads_of_trial({setup_.file.workloads, setup_.file.report_workloads},
                                trial_.workload, trial_.configuration)) {
            const Measurement part =
                workload.arrival.searched() ? searched(workload) : next(workload, workload.name);
            parts.push_back({workload.name, workload.weight, part.metrics});
            add(validity, part.validity);
        }
        if (taken_ < tests_.size())
            throw ParseError("there are " + std::to_string(tests_.size() - taken_) +
                             " load tests too many");
        return {combined(parts), validity};
    }

private:
    Measurement next(const Workload& workload, const std::string& called) {
        if (taken_ == tests_.size())
            throw ParseError("the load test of " + called + " is not there");
        KeptLoadTest& kept = tests_[taken_++];
        const auto wants = [&](const char* what, const std::string& wanted,
                               const std::string& got) {
            if (wanted != got)
                throw ParseError("load test " + std::to_string(kept.number) + " is of " + what +
                                 " " + got + ", not " + wanted);
        };
        wants("trial", std::to_string(trial_.id), std::to_string(kept.trial));
        wants("load", called, kept.called);
        wants("configuration", trial_.configuration.text(), kept.configuration.text());
        wants("seed", std::to_string(trial_.seed), std::to_string(kept.seed));
        LoadTest test;
        test.workload = workload;
        test.endpoint.replicas.resize(kept.servers - 1);
        test.limits = service_limits(limits_of_workload(options_.limits, workload.name));
        test.known.hardware = options_.hardware;
        test.known.served = served_model(kept.model, options_.models);
        test.known.devices = kept.devices;
        test.known.rate_is_chosen =
            called != workload.name || trial_.configuration.find(load_request_rate) != nullptr;
        judge_load_test(test, kept.result);
        result_.requests += kept.result.run.records.size();
        return {metrics_of(kept.result.statistics), kept.result.validity};
    }

    Measurement searched(const Workload& workload) {
        std::size_t point = 0;
        const MeasureLoad measure =
            [&](const Workload& at_level) -> std::variant<LoadPoint, Failure> {
            Measurement found = next(at_level, workload.name + ", load " + std::to_string(++point));
            return LoadPoint{.metrics = std::move(found.metrics),
                             .validity = std::move(found.validity)};
        };
        const std::size_t planned =
            taken_ < tests_.size() ? tests_[taken_].result.plan.requests.size() : 0;
        const auto requests = workload.requests ? std::size_t(*workload.requests) : planned;
        auto found = find_capacity(workload, requests, options_.limits, measure);
        if (const auto* failure = std::get_if<Failure>(&found))
            throw ParseError("the search for its load fails: " + failure->message);
        return measurement_of(std::get<Capacity>(found), workload.arrival);
    }

    const StudySetup& setup_;
    const Trial& trial_;
    std::vector<KeptLoadTest> tests_;
    RepeatedTrial& result_;
    MeasureOptions options_{};
    std::size_t taken_ = 0;
};

/// Of a deployed study, whose devices are known.
void add_figures_per_device(const StudySetup& setup, const Trial& trial, const Measurement& journal,
                            Metrics& metrics) {
    if (!std::holds_alternative<DeployChoice>(setup.file.measuring)) return;
    const auto* copies = entry_in(journal.metrics, "replicas");
    const auto count = copies == nullptr ? 1 : std::int64_t(copies->value);
    add_per_device(
        metrics,
        std::max<std::int64_t>(count, 1) * setup.file.composition->devices_of(trial.configuration),
        setup.file.machine.usd_per_device_hour);
}

void compare_with_journal(const Measurement& journal, const Measurement& repeated,
                          RepeatedTrial& result) {
    const auto differs = [&](const std::string& what, const std::string& now,
                             const std::string& then) {
        result.differs.push_back(what + ": the requests say " + now + ", the journal " + then);
    };
    Measurement whole = journal;
    for (const auto& [name, metric] : repeated.metrics) {
        const auto* kept = entry_in(journal.metrics, name);
        ++result.figures;
        whole.metrics[name] = metric;
        const double error = metric.standard_error.value_or(0);
        if (kept == nullptr) differs(name, text_of(metric.value), "nothing");
        else if (!figures_agree(metric.value, kept->value))
            differs(name, text_of(metric.value), text_of(kept->value));
        else if (const double of_journal = kept->standard_error.value_or(0);
                 !figures_agree(error, of_journal))
            differs("the standard error of " + name, text_of(error), text_of(of_journal));
    }
    const auto has = [](const Validity& validity, const Finding& wanted) {
        return any_of(validity.findings, [&](const Finding& one) {
            return one.id == wanted.id && one.left == wanted.left && one.right == wanted.right;
        });
    };
    for (const Finding& finding : repeated.validity.findings)
        if (!has(journal.validity, finding))
            differs("the audit", finding.id + " (" + finding.left + "; " + finding.right + ")",
                    "nothing of it");
    bool of_machine = false;
    for (const Finding& finding : journal.validity.findings) {
        of_machine = of_machine || is_of_machine(finding);
        if (!is_of_machine(finding) && !has(repeated.validity, finding))
            differs("the audit", "nothing of " + finding.id, "it found it");
    }
    const auto verdict = [](const Measurement& one) {
        return std::string(name_in(verdicts, one.validity.verdict));
    };
    if (repeated.validity.verdict > journal.validity.verdict ||
        (!of_machine && repeated.validity.verdict != journal.validity.verdict))
        differs("the audit's verdict", verdict(repeated), verdict(journal));
    result.measurement = std::move(whole);
}

/// Why nothing of it can be repeated; empty: it can.
std::string why_not_repeated(const Trial& trial) {
    const Measurement* journal = trial.measurement();
    return journal == nullptr                ? "it has no figures"
           : journal->validity.ended_early() ? "its load test was ended early"
                                             : "";
}

}  // namespace

RepeatedTrial repeated_trial(const StudySetup& setup, const Trial& trial,
                             std::vector<KeptLoadTest> tests) {
    RepeatedTrial result{.why_not = why_not_repeated(trial)};
    const Measurement* journal = trial.measurement();
    if (result.why_not.empty() && tests.empty()) result.why_not = "its requests were not kept";
    if (!result.why_not.empty()) return result;
    try {
        Measurement repeated = Repetition(setup, trial, std::move(tests), result).measurement();
        add_figures_per_device(setup, trial, *journal, repeated.metrics);
        compare_with_journal(*journal, repeated, result);
    } catch (const Error& error) {
        result.differs.emplace_back(error.what());
        result.measurement = *journal;
    }
    return result;
}

bool repeats_by_asking(const StudyFile& file) {
    return std::holds_alternative<ReplayChoice>(file.measuring) ||
           std::holds_alternative<SimulateChoice>(file.measuring);
}

RepeatedTrial asked_again(StudySetup& setup, const Trial& trial) {
    RepeatedTrial result{.why_not = why_not_repeated(trial)};
    const Measurement* journal = trial.measurement();
    if (!result.why_not.empty()) return result;
    const Outcome outcome =
        setup.evaluator->evaluate(trial.configuration, {trial.id, trial.seed, trial.workload, {}});
    if (const auto* measured = std::get_if<Measurement>(&outcome))
        compare_with_journal(*journal, *measured, result);
    else {
        result.differs.push_back("the table or the model has no figures: " +
                                 std::get<Failure>(outcome).message);
        result.measurement = *journal;
    }
    return result;
}

}  // namespace servetune
