// SPDX-License-Identifier: Apache-2.0
#include "workload_groups.hpp"

#include "base/whole_number.hpp"
#include "servetune/value.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

namespace servetune {
namespace {

/// Labels that are no headings, nearest first.
std::vector<std::string> own_labels(const PublishedResult& result) {
    std::vector<std::string> own = result.labels;
    own.resize(own.size() - std::min(own.size(), result.sections.size()));
    return own;
}

std::string name_from(const std::string& label) {
    std::string name;
    for (const char c : label.substr(0, 40)) {
        const auto u = static_cast<unsigned char>(c);
        if (u < 0x80 && std::isalnum(u) != 0) name += static_cast<char>(std::tolower(u));
        else if (!name.empty() && name.back() != '_') name += '_';
    }
    while (!name.empty() && name.back() == '_') name.pop_back();
    return name;
}

std::string name_from(const Work& work) {
    const auto whole = [](const std::optional<double>& value) {
        const auto rounded = value ? whole_number(std::round(*value)) : std::nullopt;
        return rounded ? std::to_string(*rounded) : "?";
    };
    std::string name = "in" + whole(work.input_tokens) + "_out" + whole(work.output_tokens);
    if (work.in_flight) name += "_at" + whole(work.in_flight);
    std::erase(name, '?');
    return name;
}

/// As `same`, and what one says of the load the other says too.
bool alike(const Work& a, const Work& b) {
    return a.same(b) && a.in_flight.has_value() == b.in_flight.has_value() &&
           a.rate.has_value() == b.rate.has_value();
}

}  // namespace

Work::Work(const PublishedResult& published) : Work(published.result) {
    // GPUStack's block prints what was in flight at most, not what was allowed.
    if (published.tool == "gpustack" &&
        published.result.maximum_concurrency == published.result.peak_concurrent_requests)
        in_flight.reset();
}

Work::Work(const BenchmarkResult& result)
    : in_flight(result.maximum_concurrency), rate(result.requested_rate_per_second) {
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

std::vector<WorkloadGroup> workload_groups(const std::vector<PublishedResult>& results) {
    const auto lost_requests = [](const PublishedResult& result) {
        const double sent =
            result.planned_requests.value_or(result.result.requested_requests.value_or(0));
        return sent > 0 && result.result.successful_requests.value_or(sent) < 0.99 * sent;
    };
    // A label is of a workload where several blocks under it did the same.
    std::map<std::string, std::vector<std::size_t>> labelled;
    for (std::size_t i = 0; i < results.size(); ++i)
        if (const auto labels = own_labels(results[i]);
            results[i].failure.empty() && !labels.empty())
            labelled[labels.front()].push_back(i);  // farther ones may be of scripts before it
    std::erase_if(labelled, [&](const auto& one) {
        const std::size_t* first = nullptr;
        std::size_t whole = 0;
        for (const std::size_t& i : one.second) {
            if (lost_requests(results[i])) continue;
            if (first == nullptr) first = &i;
            if (!Work(results[*first]).same(Work(results[i]))) return true;
            ++whole;
        }
        return whole < 2;
    });

    std::vector<WorkloadGroup> groups;
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < results.size(); ++i) {
        if (!results[i].failure.empty()) continue;
        const std::vector<std::string> labels = own_labels(results[i]);
        // A farther label may be left over from blocks before it, so it is this one's only for the
        // same work; and no label joins what is known to be another load.
        const auto label = std::find_if(labels.begin(), labels.end(), [&](const std::string& each) {
            const auto found = labelled.find(each);
            if (found == labelled.end()) return false;
            const Work work(results[i]);
            return std::all_of(found->second.begin(), found->second.end(), [&](std::size_t other) {
                const Work member(results[other]);
                return other == i || (each == labels.front()
                                          ? member.same_load(work)
                                          : lost_requests(results[other]) || member.same(work));
            });
        });
        if (label == labels.end()) {
            rest.push_back(i);
            continue;
        }
        const auto known = std::find_if(
            groups.begin(), groups.end(),
            [&](const WorkloadGroup& group) { return group.labels.front() == *label; });
        if (known != groups.end()) known->blocks.push_back(i);
        else groups.push_back({name_from(*label), {*label}, {i}});
    }
    for (const std::size_t i : rest) {
        const Work work(results[i]);
        const auto fits =
            std::find_if(groups.begin(), groups.end(), [&](const WorkloadGroup& group) {
                return std::any_of(
                    group.blocks.begin(), group.blocks.end(), [&](std::size_t other) {
                        return !lost_requests(results[other]) && alike(work, Work(results[other]));
                    });
            });
        if (fits != groups.end()) fits->blocks.push_back(i);
        else groups.push_back({"", {}, {i}});
    }
    std::set<std::string> taken;
    for (WorkloadGroup& group : groups) {
        std::sort(group.blocks.begin(), group.blocks.end());
        const PublishedResult& first = results[group.blocks.front()];
        const bool described =
            first.dataset.starts_with('{') || first.dataset.starts_with('[');  // settings, no name
        if (group.name.empty() && !first.dataset.empty() && !described)
            group.name = name_from(first.dataset);
        if (group.name.empty()) group.name = name_from(Work(first));
        const std::string name = group.name;
        for (int again = 2; !taken.insert(group.name).second; ++again)
            group.name = name + "_" + std::to_string(again);
    }
    std::sort(groups.begin(), groups.end(), [](const WorkloadGroup& a, const WorkloadGroup& b) {
        return a.blocks.front() < b.blocks.front();
    });
    return groups;
}

}  // namespace servetune
