// SPDX-License-Identifier: Apache-2.0
#include "servetune/load_test.hpp"

#include "audit_parts.hpp"
#include "failed_requests.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"

#include <atomic>
#include <utility>

namespace servetune {

namespace {

/// The workload says most of it, the plan how many requests there are and how long they are for
/// certain.
AuditContext context_of(const LoadTest& test, const Plan& plan, const LoadRun& run,
                        const BenchmarkResult& result, bool may_end_early) {
    AuditContext context = test.known;
    context.dialect = Dialect::vllm;
    context.servers = 1 + double(test.endpoint.replicas.size());
    Workload workload = test.workload;
    workload.ignore_eos = workload.ignore_eos && !may_end_early;
    describe(context, workload, result);
    if (may_end_early) context.asked_output_tokens = plan.mean_output_tokens;
    for (const RequestRecord& record : run.records)
        if (record.succeeded()) context.hidden_output_tokens += double(record.hidden_tokens);
    context.failures = failed_requests_text(run.records);
    context.tokens_are_estimated = any_of(run.records, [](const RequestRecord& record) {
        return record.succeeded() && !record.output_tokens;
    });
    context.requested_requests = double(plan.requests.size());
    // The later turns of conversations hold answers, whose lengths are not planned.
    const bool all_known =
        plan.lengths_exact && all_of(plan.requests, [](const PlannedRequest& request) {
            return request.input_tokens > 0;
        });
    context.mean_input_tokens = all_known ? plan.mean_input_tokens : std::nullopt;
    if (test.workload.dataset.kind == Dataset::Kind::trace)
        context.prefix_cache_intended = true;  // its requests may share blocks
    return context;
}

bool refused(const Handshake& handshake, const std::string& field) {
    return contains(handshake.refused_fields, field);
}

/// Successful answers that have fewer tokens than asked for.
std::size_t ended_early(const Plan& plan, const LoadRun& run) {
    return count_if(run.records, [&](const RequestRecord& record) {
        return record.succeeded() && record.output_tokens && record.index < plan.requests.size() &&
               *record.output_tokens < plan.requests[record.index].output_tokens;
    });
}

std::string refusal_text(const std::string& field, const std::string& reason) {
    const std::string what = field == "ignore_eos"
                                 ? "it is not sent, so answers may be shorter than asked for"
                             : field == "max_tokens" ? "max_completion_tokens is sent in its place"
                                                     : "it is not sent";
    return "the server refuses the field " + field + ": " + what + ". Its words: " + reason;
}

}  // namespace

LoadTestResult run_load_test(const LoadTest& test, const std::stop_token& stop) {
    if (test.workload.arrival.searched())
        throw UsageError(
            "workload '" + test.workload.name +
            "': its load is to be looked for (find_capacity); one load test has a fixed one");
    LoadTestResult result{};
    result.handshake = test.handshake ? *test.handshake
                                      : try_request(test.endpoint, test.workload.ignore_eos, stop);
    const Endpoint endpoint = as_agreed(test.endpoint, result.handshake);
    if (test.calibration) result.calibration = *test.calibration;
    else if (!stop.stop_requested())
        result.calibration = calibrated(endpoint, stop).value_or(Calibration{});
    result.plan = plan_requests(test.workload, {test.salt, result.calibration});
    LoadOptions options = test.options;
    options.ignore_eos = test.workload.ignore_eos;
    const auto lost_after =
        test.to_reach ? lost_after_seconds(*test.to_reach, result.plan) : std::nullopt;
    std::stop_source over;
    const std::stop_callback stopped(stop, [&over] { over.request_stop(); });
    std::atomic<bool> lost{false};
    if (lost_after)
        // A server that hangs, or answers with errors, is not slow: that is found out as ever.
        options.progress = [&, inner = options.progress,
                            chunks = std::uint64_t{0}](const LoadProgress& progress) mutable {
            if (inner) inner(progress);
            const bool moves = progress.token_chunks > std::exchange(chunks, progress.token_chunks);
            const bool under_way = moves && progress.failed == 0 && progress.ended > 0 &&
                                   progress.ended < progress.planned;
            if (progress.seconds <= *lost_after || !under_way || lost.exchange(true)) return;
            over.request_stop();
        };
    result.run = generate_load(endpoint, result.plan.requests, test.workload.arrival, options,
                               over.get_token());
    if (lost && result.run.stopped && !stop.stop_requested())
        result.given_up = given_up(*test.to_reach, result.plan, result.run);
    judge_load_test(test, result);
    return result;
}

void judge_load_test(const LoadTest& test, LoadTestResult& result) {
    result.statistics = statistics_of(
        result.run,
        {result.plan.requests.size(), test.workload.arrival, test.limits, result.plan.requests});
    for (std::size_t i = 0; i < result.handshake.refused_fields.size(); ++i)
        result.statistics.notes.push_back(
            refusal_text(result.handshake.refused_fields[i], result.handshake.reasons[i]));
    const std::size_t early = ended_early(result.plan, result.run);
    if (test.workload.ignore_eos && early > 0 && !refused(result.handshake, "ignore_eos"))
        result.statistics.notes.push_back(
            "the server takes the field ignore_eos, but " + std::to_string(early) +
            " answers ended by themselves, with fewer tokens than asked for");
    const bool may_end_early =
        test.workload.ignore_eos && (early > 0 || refused(result.handshake, "ignore_eos"));
    const AuditContext context =
        context_of(test, result.plan, result.run, result.statistics.result, may_end_early);
    result.validity = audit(result.statistics.result, context);
    add(result.validity, audit_answers(result.run.records));
    result.not_checked = not_checked(result.statistics.result, context);
    if (result.run.stopped) return;
    if (test.workload.dataset.kind == Dataset::Kind::multi_turn) {
        result.not_checked.push_back(
            {"steady", "conversations grow, so that their later turns take longer"});
        return;
    }
    Steadiness steadiness = steadiness_of(result.run, test.workload.arrival);
    if (steadiness.finding)
        add(result.validity, {Verdict::unsound, {std::move(*steadiness.finding)}});
    if (steadiness.not_checked) result.not_checked.push_back(std::move(*steadiness.not_checked));
}

}  // namespace servetune
