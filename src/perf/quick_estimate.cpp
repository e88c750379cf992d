// SPDX-License-Identifier: Apache-2.0
#include "quick_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <vector>

namespace servetune {
namespace {

/// One replica with so many places taken.
struct Steady {
    double requests_per_step = 0;
    double step_seconds = 0;
    double prompt_steps = 0;  ///< of one request
};

class Replica {
public:
    Replica(const CostModel& cost, const TrafficMeans& traffic)
        : cost_(cost), settings_(cost.settings()), traffic_(traffic) {
        fresh_ = std::max(
            1.0, traffic.prompt_tokens - (settings_.prefix_cache ? traffic.repeated_tokens : 0));
        decode_steps_ = std::max(0.0, traffic.output_tokens - 1) / cost.tokens_per_step();
        context_ = traffic.prompt_tokens + traffic.output_tokens / 2;
        checked_ = 1 + double(settings_.speculation.tokens);
    }

    [[nodiscard]] double decode_steps() const { return decode_steps_; }
    /// Sequences that sequences of a step and cache allow; at least 1.
    [[nodiscard]] double places() const {
        const double held =
            traffic_.prompt_tokens +
            traffic_.output_tokens * (0.5 + 0.5 * std::min(settings_.reserved_share, 1.0));
        const double by_cache = double(cost_.memory().cache_tokens) / std::max(held, 1.0);
        return std::max(1.0, std::min(double(settings_.max_sequences), by_cache));
    }

    [[nodiscard]] Steady at(double places) const {
        const auto budget = double(settings_.max_batched_tokens);
        Steady result;
        result.prompt_steps =
            std::max(1.0, fresh_ / std::max(1.0, budget - std::min(places, budget - 1) * checked_));
        result.requests_per_step = std::min(places / (decode_steps_ + result.prompt_steps),
                                            budget / (fresh_ + decode_steps_ * checked_));
        const double decoding = result.requests_per_step * decode_steps_;
        const double flow = result.requests_per_step * fresh_;
        const double chunk = std::clamp(fresh_, 1.0, std::max(1.0, budget - decoding * checked_));
        const double share = std::min(1.0, flow / chunk);
        const double prompts = flow / share;  // tokens in a step that has some
        const StepWork plain = decode_work(decoding);
        if (settings_.mixed_steps)
            result.step_seconds = share * cost_.step(with_prompts(plain, prompts)).total +
                                  (share < 1 ? (1 - share) * cost_.step(plain).total : 0);
        else
            result.step_seconds =
                cost_.step(plain).total + share * cost_.step(with_prompts({}, prompts)).total;
        return result;
    }

private:
    [[nodiscard]] StepWork decode_work(double sequences) const {
        StepWork work;
        work.decode_sequences = std::llround(sequences);
        if (work.decode_sequences == 0 && sequences > 0.05) work.decode_sequences = 1;
        work.decode_context_tokens = sequences * context_;
        work.decode_windowed_context_tokens = sequences * windowed(context_);
        return work;
    }
    [[nodiscard]] StepWork with_prompts(StepWork work, double tokens) const {
        const double prompts = tokens / fresh_;
        const double before = traffic_.prompt_tokens - fresh_;
        work.prefill_tokens = std::max<std::int64_t>(1, std::llround(tokens));
        work.prefill_sequences = std::max<std::int64_t>(1, std::llround(prompts));
        work.prefill_finished = std::llround(prompts);
        work.prefill_pairs = tokens * (before + fresh_ / 2);
        work.prefill_windowed_pairs = tokens * windowed(before + fresh_ / 2);
        work.prefill_context_tokens = prompts * before;
        return work;
    }
    [[nodiscard]] double windowed(double context) const {
        const auto window = double(cost_.target().model.sliding_window);
        return window > 0 ? std::min(context, window) : context;
    }

    const CostModel& cost_;
    const ServingSettings& settings_;
    const TrafficMeans& traffic_;
    double fresh_ = 1;  ///< prompt tokens that are computed
    double decode_steps_ = 0;
    double context_ = 0;
    double checked_ = 1;
};

/// Requests a second that come whatever the server does; nothing: as many as it takes.
std::optional<double> rate_of(const Arrival& arrival, const TrafficMeans& traffic) {
    switch (arrival.kind) {
        case Arrival::Kind::rate: return arrival.requests_per_second;
        case Arrival::Kind::trace:
            if (traffic.last_at_seconds > 0)
                return double(traffic.requests) / traffic.last_at_seconds;
            return std::nullopt;
        case Arrival::Kind::all_at_once:
        case Arrival::Kind::concurrency:
        case Arrival::Kind::largest_rate:
        case Arrival::Kind::largest_concurrency: break;
    }
    return std::nullopt;
}

}  // namespace

TrafficMeans TrafficMeans::of(const SimulatedTraffic& traffic) {
    TrafficMeans result;
    std::vector<double> said;
    std::unordered_set<std::uint64_t> known;
    for (const SimulatedTraffic::Request& request : traffic.requests()) {
        const double prompt =
            double(request.input_tokens) + (request.follows ? said[*request.follows] : 0);
        said.push_back(prompt + double(request.output_tokens));
        std::size_t repeated = 0;
        while (repeated < request.pieces.size() && known.contains(request.pieces[repeated]))
            ++repeated;
        known.insert(request.pieces.begin(), request.pieces.end());
        result.prompt_tokens += prompt;
        result.output_tokens += double(request.output_tokens);
        result.repeated_tokens +=
            std::min(prompt - 1, double(repeated) * double(EngineCore::prefix_piece_tokens));
        result.last_at_seconds = std::max(result.last_at_seconds, request.at_seconds);
    }
    result.requests = traffic.requests().size();
    const auto n = double(result.requests);
    result.prompt_tokens /= n;
    result.output_tokens /= n;
    result.repeated_tokens /= n;
    return result;
}

QuickEstimate quick_estimate(const CostModel& cost, const TrafficMeans& traffic,
                             const Arrival& arrival) {
    const ServingSettings& settings = cost.settings();
    const EngineTraits& traits = cost.target().traits;
    const Replica replica(cost, traffic);
    const auto replicas = double(settings.data_parallel);
    const auto requests = double(traffic.requests);
    const double in_flight = arrival.kind == Arrival::Kind::concurrency
                                 ? std::min(double(arrival.in_flight), requests)
                                 : requests;
    const double most = std::min(replica.places(), std::max(1.0, in_flight / replicas));
    const double events = 1 + replica.decode_steps() / double(settings.stream_interval);
    const double front_seconds =
        traits.request_overhead_seconds + events * traits.chunk_overhead_seconds;
    const double front_most = front_seconds > 0 ? double(settings.front_ends) / front_seconds
                                                : std::numeric_limits<double>::infinity();

    Steady steady = replica.at(most);
    const auto inside_seconds = [&] {
        return (replica.decode_steps() + steady.prompt_steps) * steady.step_seconds;
    };
    const double capacity =
        std::min(front_most, replicas * steady.requests_per_step / steady.step_seconds);
    double rate = capacity;
    double waiting = 0;
    const std::optional<double> arriving = rate_of(arrival, traffic);
    if (arriving && *arriving < capacity) {
        rate = *arriving;
        double places = 1;
        constexpr int rounds = 12;  // each halves what is left to the fixed point
        for (int i = 0; i < rounds; ++i) {
            steady = replica.at(std::clamp(places, 0.05, most));
            places = 0.5 * places + 0.5 * std::min(most, rate / replicas * inside_seconds());
        }
    } else if (arriving) waiting = 0.5 * requests * (1 / capacity - 1 / *arriving);
    else if (arrival.kind == Arrival::Kind::concurrency)
        waiting = std::max(0.0, in_flight / capacity - inside_seconds());
    else waiting = std::max(0.0, 0.5 * (requests / capacity - inside_seconds()));

    QuickEstimate result;
    const double decoding_seconds = replica.decode_steps() * steady.step_seconds;
    result.time_to_first_token_seconds = traits.request_overhead_seconds +
                                         traits.request_latency_seconds + waiting +
                                         (0.5 + steady.prompt_steps) * steady.step_seconds;
    result.latency_seconds = result.time_to_first_token_seconds + decoding_seconds;
    if (traffic.output_tokens > 1)
        result.time_per_output_token_seconds = decoding_seconds / (traffic.output_tokens - 1);
    result.inter_token_latency_seconds = steady.step_seconds * double(settings.stream_interval);
    const double duration = requests / rate + 0.5 * inside_seconds();
    result.requests_per_second = requests / duration;
    result.input_tokens_per_second = result.requests_per_second * traffic.prompt_tokens;
    result.output_tokens_per_second = result.requests_per_second * traffic.output_tokens;
    return result;
}

std::optional<double> QuickEstimate::metric(std::string_view name) const {
    if (name == "requests_per_second") return requests_per_second;
    if (name == "input_tokens_per_second") return input_tokens_per_second;
    if (name == "output_tokens_per_second") return output_tokens_per_second;
    if (name == "total_tokens_per_second")
        return input_tokens_per_second + output_tokens_per_second;
    const auto statistic = [&](std::string_view family) {
        if (!name.starts_with(family)) return false;
        const std::string_view rest = name.substr(family.size());
        return rest == "_mean_seconds" || rest == "_p50_seconds" || rest == "_p90_seconds" ||
               rest == "_p95_seconds" || rest == "_p99_seconds";
    };
    if (statistic("time_to_first_token")) return time_to_first_token_seconds;
    if (statistic("inter_token_latency")) return inter_token_latency_seconds;
    if (statistic("latency")) return latency_seconds;
    if (statistic("time_per_output_token") && time_per_output_token_seconds > 0)
        return time_per_output_token_seconds;
    return std::nullopt;
}

}  // namespace servetune
