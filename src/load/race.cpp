// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/load/race.hpp"

#include "servetune/detail/load/statistics.hpp"

#include <algorithm>
#include <vector>

namespace servetune {
namespace {

/// Which work a rate counts.
struct CountedWork {
    bool requests = false;
    bool input = false;
    bool output = false;
    [[nodiscard]] bool none() const { return !requests && !input && !output; }
};

CountedWork counted_by(const std::string& metric) {
    if (metric == "requests_per_second") return {.requests = true};
    if (metric == "input_tokens_per_second") return {.input = true};
    if (metric == "output_tokens_per_second") return {.output = true};
    if (metric == "total_tokens_per_second") return {.input = true, .output = true};
    return {};
}

/// 0 where it is not known.
double planned_work(const CountedWork& counted, const Plan& plan) {
    if (counted.requests) return double(plan.requests.size());
    double input = 0;
    double output = 0;
    for (const PlannedRequest& request : plan.requests) {
        if (request.input_tokens < 1 || request.output_tokens < 1) return 0;
        input += double(request.input_tokens);
        output += double(request.output_tokens);
    }
    return (counted.input ? input : 0) + (counted.output ? output : 0);
}

/// Answers that were cut off have no count: their pieces hold as many tokens as those of the whole
/// ones.
double output_done(const std::vector<RequestRecord>& records) {
    const std::vector<double> tokens = output_tokens_of(records);
    double whole_tokens = 0;
    double whole_pieces = 0;
    double cut_pieces = 0;
    for (std::size_t i = 0; i < records.size(); ++i)
        if (records[i].succeeded()) {
            whole_tokens += tokens[i];
            whole_pieces += records[i].chunks;
        } else cut_pieces += records[i].chunks;
    return whole_tokens + cut_pieces * (whole_pieces > 0 ? whole_tokens / whole_pieces : 1);
}

}  // namespace

std::optional<double> lost_after_seconds(const RateToReach& wanted, const Plan& plan) {
    const CountedWork counted = counted_by(wanted.metric);
    if (counted.none() || !(wanted.least > 0)) return std::nullopt;
    if (counted.input && !plan.lengths_exact)
        return std::nullopt;  // the server may count more than was planned
    const double work = planned_work(counted, plan);
    if (!(work > 0)) return std::nullopt;
    return work / wanted.least;
}

EarlyStop given_up(const RateToReach& wanted, const Plan& plan, const LoadRun& run) {
    const CountedWork counted = counted_by(wanted.metric);
    double done = 0;
    EarlyStop result;
    for (std::size_t i = 0; i < run.records.size(); ++i) {
        const RequestRecord& record = run.records[i];
        result.seconds = std::max(result.seconds, record.done);
        if (counted.requests) done += record.succeeded() ? 1 : 0;
        if (counted.input && record.first_token && i < plan.requests.size())
            done += double(record.input_tokens.value_or(plan.requests[i].input_tokens));
    }
    if (counted.output) done += output_done(run.records);
    const double planned = planned_work(counted, plan);
    const double share = planned > 0 ? std::clamp(done / planned, 0.0, 1.0) : 0;
    if (!(result.seconds > 0)) return result;
    result.value =
        std::max(done, 0.5) / result.seconds;  // a rate is above 0, also where nothing came yet
    result.standard_error = result.value * (1 - share) / 2;
    result.saved_seconds = share > 0 ? result.seconds * (1 - share) / share : 0;
    return result;
}

}  // namespace servetune
