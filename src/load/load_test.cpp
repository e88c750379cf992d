// SPDX-License-Identifier: Apache-2.0
#include "servetune/load/load_test.hpp"

#include "servetune/load/probe.hpp"

#include <algorithm>

namespace servetune {

AuditContext audit_context(const Workload& workload, const Plan& plan, AuditContext known) {
    AuditContext result = std::move(known);
    result.dialect = Dialect::vllm;
    result.requested_requests = static_cast<double>(plan.requests.size());
    result.closed_loop = workload.arrival.kind == Arrival::Kind::concurrency;
    if (result.closed_loop) result.concurrency_cap = static_cast<double>(workload.arrival.in_flight);
    if (workload.arrival.kind == Arrival::Kind::rate) result.requested_rate_per_second = workload.arrival.requests_per_second;
    const auto& requests = plan.requests;
    result.equal_output_lengths = workload.ignore_eos && std::all_of(requests.begin(), requests.end(), [&](const PlannedRequest& request) {
                                      return request.output_tokens > 0 && request.output_tokens == requests.front().output_tokens;
                                  });
    if (plan.lengths_exact) result.mean_input_tokens = plan.mean_input_tokens;
    result.prefix_cache_intended = workload.dataset.kind == Dataset::Kind::shared_prefix ||
                                   workload.dataset.kind == Dataset::Kind::multi_turn || workload.dataset.kind == Dataset::Kind::trace;
    return result;
}

LoadTestResult run_load_test(const LoadTest& test, const std::stop_token& stop) {
    LoadTestResult result{};
    if (test.calibration) result.calibration = *test.calibration;
    else if (!test.token_ids)
        result.calibration = calibrate([&](const std::string& text) { return count_prompt_tokens(test.endpoint, text); });
    result.plan = plan_requests(test.workload, {test.salt, result.calibration, test.token_ids});
    LoadOptions options = test.options;
    options.ignore_eos = test.workload.ignore_eos;
    result.run = generate_load(test.endpoint, result.plan.requests, test.workload.arrival, options, stop);
    result.statistics = statistics_of(result.run, {result.plan.requests.size(), test.workload.arrival, test.limits});
    const AuditContext context = audit_context(test.workload, result.plan, test.known);
    result.validity = audit(result.statistics.result, context);
    result.not_checked = not_checked(result.statistics.result, context);
    return result;
}

}  // namespace servetune
