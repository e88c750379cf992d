// SPDX-License-Identifier: Apache-2.0
#include "trial_workloads.hpp"

#include "engine/load_level.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"
#include "servetune/trial.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace servetune {
namespace {

double requests_in_flight(const Workload& workload) {
    switch (workload.arrival.kind) {
        case Arrival::Kind::all_at_once:
            return workload.requests ? double(*workload.requests)
                                     : std::numeric_limits<double>::infinity();
        case Arrival::Kind::concurrency: return double(workload.arrival.in_flight);
        case Arrival::Kind::rate:
        case Arrival::Kind::trace: return 0;
        case Arrival::Kind::largest_rate:
        case Arrival::Kind::largest_concurrency: break;
    }
    return -1;
}

/// How many requests are at the server at once; of a rate nobody knows it before it is measured.
std::int64_t places_of(const Workload& workload) {
    constexpr double usual = 64, most = 1024;
    const double known = requests_in_flight(workload);
    const double wanted = workload.arrival.kind == Arrival::Kind::largest_concurrency
                              ? workload.arrival.search.to.value_or(usual)
                          : known > 0 ? known
                                      : usual;
    return std::int64_t(std::min(wanted, most));
}

/// As many requests as wanted, within what can be planned; a trace has what it has.
void ask_for(Workload& workload, std::int64_t requests) {
    constexpr double most_requests = 1e6, most_tokens = 4e8;
    const Dataset& of = workload.dataset;
    const double tokens = double(of.input_tokens.value_or(1000) + of.prefix_tokens.value_or(0)) *
                          (1 + of.range_ratio);
    if (of.kind != Dataset::Kind::trace &&
        double(requests) <= std::min(most_requests, most_tokens / tokens))
        workload.requests = requests;
}

std::vector<Workload> stress_of(const std::vector<Workload>& workloads) {
    std::vector<Workload> result;
    for (Workload longest : workloads) {
        longest.longest = places_of(longest);
        longest.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = longest.longest};
        longest.name = "longest prompts of " + longest.name;
        ask_for(longest, std::max(longest.requests.value_or(0), longest.longest));
        result.push_back(std::move(longest));
    }
    Workload load = workloads.front();
    const std::int64_t places = places_of(load);
    if (load.arrival.searched())
        load.arrival = {.kind = Arrival::Kind::concurrency, .in_flight = places};
    Workload& burst = result.emplace_back(load);
    burst.name = "burst of " + load.name;
    burst.after_idle = true;
    burst.arrival.in_flight *= 3;
    burst.arrival.requests_per_second *= 3;
    burst.arrival.speed *= 3;
    ask_for(burst, load.arrival.kind == Arrival::Kind::concurrency
                       ? burst.arrival.in_flight
                       : 3 * load.requests.value_or(places));
    Workload& soak = result.emplace_back(load);
    soak.name = "soak of " + load.name;
    ask_for(soak, 2 * load.requests.value_or(places));
    return result;
}

}  // namespace

std::vector<Workload> workloads_of_trial(const StudyWorkloads& workloads, const std::string& asked,
                                         const Configuration& configuration) {
    const bool stress = asked == stress_workload;
    std::vector<Workload> result;
    for (const auto* list : {&workloads.searched, &workloads.reported})
        for (const Workload& workload : *list)
            if (stress || (asked.empty() ? list == &workloads.searched : workload.name == asked))
                result.push_back(at_load_level(workload, configuration));
    if (result.empty()) throw UsageError("there is no workload '" + asked + "' to measure");
    stable_sort(result, [](const Workload& a, const Workload& b) {
        return requests_in_flight(a) > requests_in_flight(b);
    });
    return stress ? stress_of(result) : result;
}

}  // namespace servetune
