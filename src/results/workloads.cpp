// SPDX-License-Identifier: Apache-2.0
#include "workloads.hpp"

#include "base/text.hpp"
#include "servetune/value.hpp"

#include <cmath>
#include <map>

namespace servetune {
namespace {

std::optional<double> requests_sent(const BenchmarkResult& result) {
    if (result.requested_requests || !result.successful_requests) return result.requested_requests;
    return *result.successful_requests + result.failed_requests.value_or(0);
}

/// Its means are those of the requests that succeeded, fewer than were sent.
bool has_lost_requests(const PublishedResult& published) {
    const double sent = requests_sent(published.result).value_or(0);
    return sent > 0 && published.result.successful_requests.value_or(sent) < 0.99 * sent;
}

std::string first_label(const PublishedResult& result) {
    return result.labels.empty() ? "" : result.labels.front();
}

bool both_or_none(const std::optional<double>& a, const std::optional<double>& b) {
    return a.has_value() == b.has_value();
}

/// Where nothing names the load: as many requests with the same prompts, sent in the same way. Of
/// other prompts nobody said that they are the same work.
bool is_same_load(const PublishedResult& a, const PublishedResult& b) {
    const Work one(a), other(b);
    if (!one.alike(other) || requests_sent(a.result) != requests_sent(b.result)) return false;
    if (has_lost_requests(a) || has_lost_requests(b)) return true;
    return both_or_none(one.input_tokens, other.input_tokens) &&
           (!one.input_tokens ||
            std::abs(*one.input_tokens - *other.input_tokens) <= 0.005 * *other.input_tokens);
}

/// Whether all results that lost none did the same work; `first`: one of them.
bool did_one_work(std::span<const PublishedResult> results, const std::vector<std::size_t>& which,
                  std::size_t& whole) {
    const PublishedResult* first = nullptr;
    whole = 0;
    for (const std::size_t i : which) {
        if (has_lost_requests(results[i])) continue;
        if (first == nullptr) first = &results[i];
        if (!Work(*first).same(Work(results[i]))) return false;
        ++whole;
    }
    return true;
}

}  // namespace

std::string numbered(const std::string& what, const std::vector<std::size_t>& which) {
    std::string text = what + (which.size() == 1 ? " " : "s ");
    for (std::size_t i = 0; i < which.size(); ++i)
        text += (i == 0 ? "" : i + 1 == which.size() ? " and " : ", ") + std::to_string(which[i]);
    return text;
}

Work::Work(const PublishedResult& published)
    : in_flight(published.result.maximum_concurrency),
      rate(published.result.requested_rate_per_second) {
    const BenchmarkResult& result = published.result;
    // GPUStack's block prints what was in flight at most, not what was allowed.
    if (published.tool == "gpustack" && in_flight == result.peak_concurrent_requests)
        in_flight.reset();
    if (!result.successful_requests || *result.successful_requests <= 0) return;
    if (result.input_tokens) input_tokens = *result.input_tokens / *result.successful_requests;
    if (result.output_tokens) output_tokens = *result.output_tokens / *result.successful_requests;
}

bool Work::same(const Work& other) const {
    const auto near = [](const std::optional<double>& a, const std::optional<double>& b,
                         double factor) {
        return !a || !b || (*a <= *b * factor && *b <= *a * factor);
    };
    return near(input_tokens, other.input_tokens, 1.25) &&
           near(output_tokens, other.output_tokens, 2) && same_load(other);
}

bool Work::same_load(const Work& other) const {
    return (!in_flight || !other.in_flight || *in_flight == *other.in_flight) &&
           (!rate || !other.rate || *rate == *other.rate);
}

bool Work::alike(const Work& other) const {
    return same(other) && both_or_none(in_flight, other.in_flight) &&
           both_or_none(rate, other.rate);
}

std::string Work::text() const {
    std::string result;
    const auto add = [&](const std::optional<double>& value, const char* what) {
        if (value) result += (result.empty() ? "" : ", ") + text_of(std::round(*value)) + what;
    };
    add(input_tokens, " input tokens");
    add(output_tokens, " output tokens");
    add(in_flight, " in flight");
    add(rate, " requests a second");
    return result;
}

std::vector<std::size_t> comparable_runs(std::span<const PublishedResult> results) {
    std::map<std::string, std::vector<std::size_t>> by_label;
    for (std::size_t i = 0; i < results.size(); ++i) by_label[first_label(results[i])].push_back(i);
    std::vector<std::size_t> group(results.size());
    std::size_t groups = 0, whole = 0;
    for (const auto& [label, members] : by_label) {
        // A label names a load where what stands under it may be one; a stray one does not.
        const bool names_load = !label.empty() && did_one_work(results, members, whole);
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

// -------------------------------------------------------------------------------------------------
// repeats

namespace {

/// The results of one configuration and one workload, where there are several.
std::vector<std::vector<std::size_t>> groups_of_repeats(const std::vector<PlacedResult>& results) {
    std::vector<std::vector<std::size_t>> groups;
    std::map<std::pair<std::string, Configuration>, std::size_t> group_of;
    for (std::size_t i = 0; i < results.size(); ++i) {
        const auto [found, is_new] = group_of.emplace(
            std::pair{results[i].workload, results[i].configuration}, groups.size());
        if (is_new) groups.emplace_back();
        groups[found->second].push_back(i);
    }
    std::erase_if(groups, [](const std::vector<std::size_t>& same) { return same.size() < 2; });
    return groups;
}

std::string numbered_blocks(const std::vector<PlacedResult>& results,
                            const std::vector<std::size_t>& which) {
    std::vector<std::size_t> blocks;
    for (const std::size_t one : which) blocks.push_back(results[one].source->index);
    return numbered("block", blocks);
}

}  // namespace

std::vector<std::string> why_no_repeat(const std::vector<PlacedResult>& results) {
    const auto rounded = [](double value) { return text_of(std::round(value * 100) / 100); };
    std::vector<std::string> reasons(results.size());
    for (const std::vector<std::size_t>& same : groups_of_repeats(results))
        for (const auto& [name, rate] : leading_rates) {
            std::vector<double> values;
            for (const std::size_t one : same)
                if (const auto& value = results[one].source->result.*rate; value && *value > 0)
                    values.push_back(*value);
            if (values.size() < same.size()) continue;
            const auto [least, most] = std::minmax_element(values.begin(), values.end());
            if (*most > *least * most_between_repeats)
                for (const std::size_t one : same)
                    reasons[one] =
                        numbered_blocks(results, same) +
                        " have one configuration and one workload, and their " + name +
                        " go from " + rounded(*least) + " to " + rounded(*most) + " (" +
                        rounded(*most / *least) + " times, repeats up to " +
                        text_of(most_between_repeats) +
                        "): what tells them apart is not said, so they are not averaged; import "
                        "them apart";
            break;
        }
    return reasons;
}

}  // namespace servetune
