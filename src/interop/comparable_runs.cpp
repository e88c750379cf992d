// SPDX-License-Identifier: Apache-2.0
#include "comparable_runs.hpp"
#include "workload_groups.hpp"

#include <cmath>
#include <map>

namespace servetune {
namespace {

std::optional<double> requests_sent(const PublishedResult& published) {
    const BenchmarkResult& result = published.result;
    if (published.planned_requests) return published.planned_requests;
    if (result.requested_requests) return result.requested_requests;
    if (!result.successful_requests) return std::nullopt;
    return *result.successful_requests + result.failed_requests.value_or(0);
}

/// Less than it was sent: its means are those of the requests that succeeded.
bool has_lost_requests(const PublishedResult& published) {
    const double sent = requests_sent(published).value_or(0);
    return sent > 0 && published.result.successful_requests.value_or(sent) < 0.99 * sent;
}

/// Where nothing names the load: as many requests with the same prompts, sent in the same way. Of
/// other prompts nobody said that they are the same work.
bool is_same_load(const PublishedResult& a, const PublishedResult& b) {
    const Work one(a), other(b);
    if (!one.same(other) || requests_sent(a) != requests_sent(b)) return false;
    if (one.in_flight.has_value() != other.in_flight.has_value() ||
        one.rate.has_value() != other.rate.has_value())
        return false;
    if (has_lost_requests(a) || has_lost_requests(b)) return true;
    return one.input_tokens.has_value() == other.input_tokens.has_value() &&
           (!one.input_tokens ||
            std::abs(*one.input_tokens - *other.input_tokens) <= 0.005 * *other.input_tokens);
}

}  // namespace

std::vector<std::size_t> comparable_runs(std::span<const PublishedResult> results) {
    std::map<std::string, std::vector<std::size_t>> by_label;
    for (std::size_t i = 0; i < results.size(); ++i)
        by_label[results[i].labels.empty() ? "" : results[i].labels.front()].push_back(i);
    std::vector<std::size_t> group(results.size());
    std::size_t groups = 0;
    for (const auto& [label, members] : by_label) {
        // A label that is no heading names a load where what stands under it may be one; a comment
        // or a stray line does not.
        bool names_load = !label.empty();
        const PublishedResult* first = nullptr;
        for (const std::size_t i : members) {
            if (results[i].labels.size() <= results[i].sections.size()) names_load = false;
            if (!names_load || has_lost_requests(results[i])) continue;
            if (first == nullptr) first = &results[i];
            names_load = Work(*first).same(Work(results[i]));
        }
        std::vector<std::size_t> heads;  // of each load
        for (const std::size_t i : members) {
            std::size_t at = 0;
            while (at < heads.size() && !names_load &&
                   !is_same_load(results[heads[at]], results[i]))
                ++at;
            if (at == heads.size()) heads.push_back(i);
            group[i] = groups + at;
        }
        groups += heads.size();
    }
    return group;
}

}  // namespace servetune
