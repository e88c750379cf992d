// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/perf/simulator.hpp"

#include "servetune/error.hpp"
#include "servetune/rng.hpp"

#include <algorithm>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>

namespace servetune {
namespace {

constexpr std::size_t nobody = ~std::size_t{0};

/// Something that happens at a moment. What happens at one moment happens in the order in which it
/// was decided.
struct Event {
    enum class Kind { send, enter, step_end, answered };
    double at;
    std::uint64_t order;
    Kind kind;
    std::size_t index;  ///< of the request or the replica

    friend bool operator>(const Event& a, const Event& b) {
        return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
};

struct SimulatedReplica {
    EngineCore core;
    EngineStep step{};
    bool busy = false;
    std::size_t requests = 0;  ///< that it has
};

/// The processes that take requests and write answers.
struct SimulatedFrontEnds {
    std::vector<double> free_at;  ///< each does one thing after the other
    double request_seconds = 0;
    double latency_seconds = 0;
    double chunk_seconds = 0;
    std::size_t next = 0;

    explicit SimulatedFrontEnds(const CostModel& cost)
        : free_at(std::size_t(cost.settings().front_ends), 0.0),
          request_seconds(cost.target().traits.request_overhead_seconds),
          latency_seconds(cost.target().traits.request_latency_seconds),
          chunk_seconds(cost.target().traits.chunk_overhead_seconds) {}

    /// The process that takes the next request, and when it has done so.
    std::pair<std::size_t, double> take(double now) {
        const std::size_t one = next++ % free_at.size();
        free_at[one] = std::max(free_at[one], now) + request_seconds;
        return {one, free_at[one]};
    }
};

/// A request under way.
struct Flight {
    std::int64_t input_tokens = 0;  ///< of the whole conversation so far
    std::int64_t unsent = 0;        ///< tokens that wait for others to be streamed together
    std::int64_t cached_tokens = 0;
    std::size_t front_end = 0;
    std::size_t next_turn = nobody;
    bool sent = false;
    bool ended = false;
};

/// One simulated load test, from the first arrival to the last end.
class Simulation {
public:
    Simulation(const CostModel& cost, const SimulatedTraffic& traffic,
               const SimulationOptions& options);
    SimulatedRun run();

private:
    using Kind = Event::Kind;

    void push(double at, Kind kind, std::size_t index) {
        events_.push({at, order_++, kind, index});
    }
    void happen(const Event& event);
    void plan_arrivals();
    void fill_places();
    void send(std::size_t index, double scheduled);
    void enter(std::size_t index);
    void start_steps();
    void end_step(SimulatedReplica& replica);
    void deliver(const TokenEvent& event);
    void answered(std::size_t index);
    void end(std::size_t index, RequestEnd how, std::string error);
    void follow(std::size_t index);
    void die(std::string cause);
    SimulatedRun result();

    [[nodiscard]] bool closed_loop() const {
        return traffic_.arrival().kind == Arrival::Kind::concurrency;
    }
    [[nodiscard]] double first_arrival() const;

    const SimulatedTraffic& traffic_;
    const ServingSettings& settings_;
    std::vector<SimulatedReplica> replicas_;
    SimulatedFrontEnds front_ends_;
    std::vector<Flight> flights_;
    std::size_t left_;                  ///< requests that have not ended
    std::vector<std::size_t> queue_{};  ///< closed loop: first requests, in order
    std::size_t next_in_queue_ = 0;
    std::int64_t places_ = 0;  ///< closed loop: free ones
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_{};
    std::uint64_t order_ = 0;
    double now_ = 0;
    SimulatedRun run_{};
};

Simulation::Simulation(const CostModel& cost, const SimulatedTraffic& traffic,
                       const SimulationOptions& options)
    : traffic_(traffic),
      settings_(cost.settings()),
      front_ends_(cost),
      flights_(traffic.requests().size()),
      left_(traffic.requests().size()),
      places_(traffic.arrival().in_flight) {
    for (std::int64_t i = 0; i < cost.settings().data_parallel; ++i)
        replicas_.push_back(
            {.core = EngineCore(cost, derive_seed(options.seed, replicas_.size()), options.noise)});
    run_.records.resize(flights_.size());
    for (std::size_t i = 0; i < flights_.size(); ++i) {
        run_.records[i].index = i;
        if (const auto before = traffic.requests()[i].follows) flights_[*before].next_turn = i;
    }
}

SimulatedRun Simulation::run() {
    plan_arrivals();
    while (left_ > 0) {
        // All that happens at one moment happens before a step begins: it sees every request that
        // is there.
        now_ = events_.top().at;
        while (left_ > 0 && !events_.empty() && events_.top().at == now_) {
            const Event event = events_.top();
            events_.pop();
            happen(event);
        }
        if (left_ > 0) start_steps();
    }
    return result();
}

void Simulation::happen(const Event& event) {
    switch (event.kind) {
        case Kind::send: return send(event.index, event.at);
        case Kind::enter: return enter(event.index);
        case Kind::step_end: return end_step(replicas_[event.index]);
        case Kind::answered: return answered(event.index);
    }
}

// -------------------------------------------------------------------------------------------------
// client

double Simulation::first_arrival() const {
    double first = closed_loop() ? 0 : traffic_.requests().front().at_seconds;
    for (const SimulatedTraffic::Request& request : traffic_.requests())
        if (!closed_loop() && !request.follows) first = std::min(first, request.at_seconds);
    return first;
}

void Simulation::plan_arrivals() {
    now_ = first_arrival();
    for (std::size_t i = 0; i < flights_.size(); ++i) {
        const SimulatedTraffic::Request& request = traffic_.requests()[i];
        if (request.follows) continue;
        if (closed_loop()) queue_.push_back(i);
        else push(request.at_seconds, Kind::send, i);
    }
    if (closed_loop()) fill_places();
}

void Simulation::fill_places() {
    for (; places_ > 0 && next_in_queue_ < queue_.size(); --places_)
        push(now_, Kind::send, queue_[next_in_queue_++]);
}

void Simulation::send(std::size_t index, double scheduled) {
    const SimulatedTraffic::Request& request = traffic_.requests()[index];
    Flight& flight = flights_[index];
    RequestRecord& record = run_.records[index];
    record.scheduled = scheduled;
    record.sent = now_;
    flight.sent = true;
    flight.input_tokens = request.input_tokens;
    if (request.follows)
        flight.input_tokens += flights_[*request.follows].input_tokens +
                               traffic_.requests()[*request.follows].output_tokens;
    double taken_at = 0;
    std::tie(flight.front_end, taken_at) = front_ends_.take(now_);
    push(taken_at + front_ends_.latency_seconds, Kind::enter, index);
}

void Simulation::answered(std::size_t index) {
    RequestRecord& record = run_.records[index];
    record.http_status = 200;
    record.finish_reason = "length";
    record.input_tokens = flights_[index].input_tokens;
    record.cached_tokens = flights_[index].cached_tokens;
    record.output_tokens = traffic_.requests()[index].output_tokens;
    end(index, RequestEnd::success, {});
}

void Simulation::end(std::size_t index, RequestEnd how, std::string error) {
    Flight& flight = flights_[index];
    RequestRecord& record = run_.records[index];
    record.end = how;
    record.error = std::move(error);
    record.done = now_;
    flight.ended = true;
    --left_;
    if (flight.next_turn != nobody && how == RequestEnd::success) return follow(flight.next_turn);
    for (std::size_t turn = flight.next_turn; turn != nobody;
         turn = flights_[turn].next_turn) {  // a conversation ends with its first failure
        RequestRecord& lost = run_.records[turn];
        lost.scheduled = lost.sent = lost.done = now_;
        lost.error = "the turn before it failed";
        flights_[turn].ended = true;
        --left_;
    }
    if (!closed_loop()) return;
    ++places_;
    fill_places();
}

/// The next turn of a conversation: in the place of the one before it, or when it is scheduled and
/// that one was answered.
void Simulation::follow(std::size_t index) {
    push(closed_loop() ? now_ : std::max(traffic_.requests()[index].at_seconds, now_), Kind::send,
         index);
}

// -------------------------------------------------------------------------------------------------
// front end and engine

void Simulation::enter(std::size_t index) {
    Flight& flight = flights_[index];
    const SimulatedTraffic::Request& request = traffic_.requests()[index];
    if (const std::string why =
            replicas_.front().core.refusal(flight.input_tokens, request.output_tokens);
        !why.empty()) {
        run_.records[index].http_status = 400;
        return end(index, RequestEnd::http_error, "status 400: " + why);
    }
    SimulatedReplica& fewest =
        *std::min_element(replicas_.begin(), replicas_.end(),
                          [](const SimulatedReplica& a, const SimulatedReplica& b) {
                              return a.requests < b.requests;
                          });
    ++fewest.requests;
    fewest.core.add({.id = index,
                     .input_tokens = flight.input_tokens,
                     .output_tokens = request.output_tokens,
                     .pieces = request.pieces});
}

void Simulation::start_steps() {
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
        SimulatedReplica& replica = replicas_[i];
        if (replica.busy || replica.core.idle()) continue;
        replica.step = replica.core.step();
        replica.busy = true;
        push(now_ + replica.step.seconds, Kind::step_end, i);
    }
}

void Simulation::end_step(SimulatedReplica& replica) {
    replica.busy = false;
    if (replica.step.out_of_memory) {
        const StepWork& work = replica.step.work;
        return die("out of memory in a step of " + std::to_string(work.prefill_tokens) +
                   " prompt tokens and " + std::to_string(work.decode_sequences) +
                   " decoding sequences");
    }
    for (const TokenEvent& event : replica.step.tokens) {
        deliver(event);
        replica.requests -= event.finished ? 1 : 0;
    }
}

/// Tokens of one request on their way to its client, through the front end that took it.
void Simulation::deliver(const TokenEvent& event) {
    Flight& flight = flights_[event.id];
    flight.unsent += event.tokens;
    if (event.first) flight.cached_tokens = event.cached_tokens;
    if (!event.first && !event.finished && flight.unsent < settings_.stream_interval) return;
    flight.unsent = 0;
    double& free_at = front_ends_.free_at[flight.front_end];
    free_at = std::max(free_at, now_) + front_ends_.chunk_seconds;

    RequestRecord& record = run_.records[event.id];
    if (record.last_token) record.gaps.push_back(static_cast<float>(free_at - *record.last_token));
    else {
        record.first_token = free_at;
        record.gaps.reserve(std::size_t(traffic_.requests()[event.id].output_tokens - 1));
    }
    record.last_token = free_at;
    ++record.chunks;
    if (event.finished) push(free_at, Kind::answered, event.id);
}

/// All replicas end together: they are one server to their clients.
void Simulation::die(std::string cause) {
    run_.death = std::move(cause);
    left_ = 0;
    for (std::size_t i = 0; i < flights_.size(); ++i) {
        if (flights_[i].ended) continue;
        RequestRecord& record = run_.records[i];
        if (!flights_[i].sent) record.scheduled = record.sent = now_;
        record.end = RequestEnd::reset;
        record.error = "the connection ended before the answer did";
        record.done = now_;
    }
}

SimulatedRun Simulation::result() {
    double first = run_.records.front().scheduled;
    double last = 0;
    for (const RequestRecord& record : run_.records) {
        first = std::min(first, record.scheduled);
        last = std::max(last, record.done);
    }
    run_.duration_seconds = last - first;
    EngineCounters& all = run_.engine;
    for (const SimulatedReplica& replica : replicas_) all += replica.core.counters();
    run_.server = {.input_tokens = double(all.prompt_tokens),
                   .output_tokens = double(all.generated_tokens),
                   .prefix_hit_tokens = double(all.prefix_hit_tokens),
                   .requests = double(all.requests_finished),
                   .preemptions = double(all.preemptions),
                   .drafted_tokens = double(all.drafted_tokens),
                   .accepted_tokens = double(all.accepted_tokens)};
    return std::move(run_);
}

}  // namespace

SimulatedRun simulate(const CostModel& cost, const SimulatedTraffic& traffic,
                      const SimulationOptions& options) {
    check_options("the simulation", options.why_invalid());
    return Simulation(cost, traffic, options).run();
}

}  // namespace servetune
