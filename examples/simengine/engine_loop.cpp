// SPDX-License-Identifier: Apache-2.0
#include "engine_loop.hpp"

#include "servetune/rng.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace simengine {

using servetune::EngineCounters;
using servetune::EngineRequest;
using servetune::TokenEvent;

namespace {

constexpr std::chrono::seconds most_behind{1};
constexpr std::size_t nowhere = ~std::size_t{0};  ///< no replica yet

}  // namespace

EngineLoop::EngineLoop(const servetune::CostModel& cost, const EngineLoopOptions& options,
                       Deliver deliver)
    : cost_(cost), options_(options), deliver_(std::move(deliver)) {
    front_end_free_at_.resize(std::size_t(std::max<std::int64_t>(1, cost.settings().front_ends)));
    make_cores();
}

void EngineLoop::make_cores() {
    cores_.clear();
    const auto replicas = std::size_t(std::max<std::int64_t>(1, cost_.settings().data_parallel));
    for (std::size_t i = 0; i < replicas; ++i)
        cores_.push_back({servetune::EngineCore(cost_, servetune::derive_seed(options_.seed, i),
                                                options_.noise)});
}

void EngineLoop::restart() {
    planned_ = {};
    requests_.clear();
    paced_ = {};
    in_front_ends_ = 0;
    front_end_free_at_.assign(front_end_free_at_.size(), {});
    make_cores();
}

Clock::duration EngineLoop::real(double engine_seconds) const {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(engine_seconds / options_.time_scale));
}

std::string EngineLoop::refusal(std::int64_t input_tokens, std::int64_t output_tokens,
                                bool prompt_is_computed) const {
    return cores_.front().core.refusal(input_tokens, output_tokens, prompt_is_computed);
}

TimePoint EngineLoop::through_front_end(std::size_t front_end, TimePoint at, double seconds) {
    TimePoint& free_at = front_end_free_at_[front_end];
    free_at = std::max(free_at, at) + real(seconds);
    return free_at;
}

void EngineLoop::plan(TimePoint at, What what, std::size_t replica, const TokenEvent& event) {
    planned_.push({at, next_order_++, what, replica, event});
}

void EngineLoop::submit(EngineRequest request, TimePoint now, double slower) {
    TokenEvent named;
    named.id = request.id;
    Request& kept = requests_[named.id] = {
        nowhere, named.id % front_end_free_at_.size(), std::move(request), false, {}, slower};
    if (options_.pace) return begin_pace(kept, now);
    ++in_front_ends_;
    plan(now, What::arrive, nowhere, named);
}

void EngineLoop::begin_pace(const Request& request, TimePoint now) {
    const Pace& pace = *options_.pace;
    double due =
        std::chrono::duration<double>(now - started_).count() + pace.first_seconds * request.slower;
    if (pace.kind == Pace::Kind::staggered) {
        // Multiples of the golden ratio spread evenly, however many there are.
        const double share = double(request.waiting.id) * 0.6180339887498949;
        due += (share - std::floor(share)) * pace.gap_seconds;
    } else if (pace.kind == Pace::Kind::lockstep && pace.gap_seconds > 0)
        due = std::ceil(due / pace.gap_seconds) * pace.gap_seconds;
    TokenEvent first;
    first.id = request.waiting.id;
    first.first = true;
    plan(started_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(due)),
         What::pace, nowhere, first);
}

/// Late tokens make those behind them late too, except on the ticks of a clock: there is no burst
/// that catches up.
void EngineLoop::send_at_pace(const Planned& planned) {
    const auto found = requests_.find(planned.event.id);
    if (found == requests_.end()) return;  // its client has left
    EngineRequest& request = found->second.waiting;
    TokenEvent event = planned.event;
    event.tokens = std::min(cost_.settings().stream_interval, request.output_tokens);
    request.output_tokens -= event.tokens;
    event.finished = request.output_tokens == 0;
    if (event.first) paced_.prompt_tokens += std::uint64_t(request.input_tokens);
    paced_.generated_tokens += std::uint64_t(event.tokens);
    if (event.finished) {
        ++paced_.requests_finished;
        requests_.erase(found);
    } else {
        TokenEvent next;
        next.id = event.id;
        const Pace& pace = *options_.pace;
        const TimePoint at =
            planned.at + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                             pace.gap_seconds * found->second.slower));
        plan(pace.kind == Pace::Kind::lockstep ? at : std::max(at, Clock::now()), What::pace,
             nowhere, next);
    }
    lateness_.add((Clock::now() - planned.at).count());
    deliver_(event);
}

void EngineLoop::cancel(std::size_t id) {
    const auto found = requests_.find(id);
    if (found == requests_.end()) return;
    if (found->second.replica == nowhere) in_front_ends_ -= options_.pace ? 0 : 1;
    else if (!found->second.finished) {
        Replica& replica = cores_[found->second.replica];
        replica.core.cancel(id);
        --replica.assigned;
    }
    requests_.erase(found);
}

void EngineLoop::clear_prefix_cache() {
    for (Replica& replica : cores_) replica.core.clear_prefix_cache();
}

std::optional<TimePoint> EngineLoop::next() const {
    if (planned_.empty() || hangs_) return std::nullopt;
    return planned_.top().at;
}

void EngineLoop::run(TimePoint now, int most_deliveries) {
    while (!hangs_ && !planned_.empty() && planned_.top().at <= now && most_deliveries > 0) {
        const Planned planned = planned_.top();
        planned_.pop();
        switch (planned.what) {
            case What::arrive: arrive(planned); break;
            case What::admit: admit(planned); break;
            case What::step_end: end_step(planned, now); break;
            case What::send:
                --most_deliveries;
                send(planned);
                break;
            case What::pace:
                --most_deliveries;
                send_at_pace(planned);
                break;
        }
    }
}

/// In the order of time among all else that the front end does.
void EngineLoop::arrive(const Planned& planned) {
    const auto found = requests_.find(planned.event.id);
    if (found == requests_.end()) return;  // its client has left
    const servetune::EngineTraits& traits = cost_.target().traits;
    const TimePoint taken =
        through_front_end(found->second.front_end, planned.at, traits.request_overhead_seconds);
    plan(taken + real(traits.request_latency_seconds), What::admit, nowhere, planned.event);
}

void EngineLoop::admit(const Planned& planned) {
    const auto found = requests_.find(planned.event.id);
    if (found == requests_.end()) return;
    const auto fewest = std::min_element(
        cores_.begin(), cores_.end(),
        [](const Replica& a, const Replica& b) { return a.assigned < b.assigned; });
    --in_front_ends_;
    ++fewest->assigned;
    found->second.replica = std::size_t(fewest - cores_.begin());
    fewest->core.add(std::move(found->second.waiting));
    if (!fewest->stepping) begin_step(found->second.replica, planned.at);
}

void EngineLoop::begin_step(std::size_t index, TimePoint at) {
    Replica& replica = cores_[index];
    const servetune::EngineStep step = replica.core.step();
    out_of_memory_ = out_of_memory_ || step.out_of_memory;
    replica.made.assign(step.tokens.begin(), step.tokens.end());
    replica.stepping = true;
    plan(at + real(step.seconds), What::step_end, index, {});
}

void EngineLoop::end_step(const Planned& planned, TimePoint now) {
    Replica& replica = cores_[planned.replica];
    replica.stepping = false;
    for (const TokenEvent& event : replica.made) hand_over(event, planned.at);
    if (out_of_memory_) hangs_ = true;  // whoever looks at it ends the process
    if (!replica.core.idle())
        begin_step(planned.replica, now - planned.at > most_behind ? now : planned.at);
}

/// Tokens from the engine to the front end: sent at once, or with later ones.
void EngineLoop::hand_over(TokenEvent event, TimePoint at) {
    const auto found = requests_.find(event.id);
    if (found == requests_.end()) return;
    Request& request = found->second;
    event.tokens += request.held.tokens;
    event.first = event.first || request.held.first;
    event.cached_tokens = std::max(event.cached_tokens, request.held.cached_tokens);
    request.held = {};
    if (event.finished) {
        --cores_[request.replica].assigned;
        request.finished = true;
    }
    if (!event.first && !event.finished && event.tokens < cost_.settings().stream_interval) {
        request.held = event;
        return;
    }
    plan(through_front_end(request.front_end, at, cost_.target().traits.chunk_overhead_seconds),
         What::send, request.replica, event);
}

void EngineLoop::send(const Planned& planned) {
    const auto found = requests_.find(planned.event.id);
    if (found == requests_.end()) return;
    if (planned.event.finished) requests_.erase(found);
    lateness_.add((Clock::now() - planned.at).count());
    deliver_(planned.event);
}

EngineCounters EngineLoop::counters() const {
    EngineCounters sum = paced_;
    for (const Replica& replica : cores_) sum += replica.core.counters();
    return sum;
}

std::size_t EngineLoop::running() const {
    std::size_t sum = options_.pace ? requests_.size() : 0;
    for (const Replica& replica : cores_) sum += replica.core.running();
    return sum;
}

std::size_t EngineLoop::waiting() const {
    std::size_t sum = in_front_ends_;
    for (const Replica& replica : cores_) sum += replica.core.waiting();
    return sum;
}

double EngineLoop::cache_use() const {
    double sum = 0;
    for (const Replica& replica : cores_) sum += replica.core.cache_use();
    return sum / double(cores_.size());
}

}  // namespace simengine
