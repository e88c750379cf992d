// SPDX-License-Identifier: Apache-2.0
#include "servetune/load/load_test.hpp"

#include "servetune/load/probe.hpp"

namespace servetune {

namespace {

/// The workload says most of it, the plan how many requests there are and how long they are for certain.
AuditContext context_of(const LoadTest& test, const Plan& plan, const BenchmarkResult& result) {
    AuditContext context = test.known;
    context.dialect = Dialect::vllm;
    describe(context, test.workload, result);
    context.requested_requests = static_cast<double>(plan.requests.size());
    context.mean_input_tokens = plan.lengths_exact ? plan.mean_input_tokens : std::nullopt;
    if (test.workload.dataset.kind == Dataset::Kind::trace) context.prefix_cache_intended = true;  // its requests may share blocks
    return context;
}

}  // namespace

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
    const AuditContext context = context_of(test, result.plan, result.statistics.result);
    result.validity = audit(result.statistics.result, context);
    result.not_checked = not_checked(result.statistics.result, context);
    return result;
}

}  // namespace servetune
