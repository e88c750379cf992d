// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/perf/simulator.hpp"

#include "servetune/detail/base/number_text.hpp"
#include "base/present.hpp"
#include "servetune/rng.hpp"
#include "servetune/error.hpp"

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
    enum class Kind { send, enter, moved, step_end, answered, give_up, death };
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
    bool prefill = false;    ///< computes prompts for others
    std::size_t server = 0;  ///< of its kind
    EngineStep step{};
    bool busy = false;
    std::size_t requests = 0;  ///< that it has
};

/// The processes of one kind of server that take requests and write answers.
struct SimulatedFrontEnds {
    std::vector<double> free_at;  ///< each does one thing after the other
    double request_seconds = 0;
    double chunk_seconds = 0;
    std::size_t next = 0;

    SimulatedFrontEnds(const CostModel& cost, std::int64_t servers)
        : free_at(static_cast<std::size_t>(cost.settings().front_ends * servers), 0.0),
          request_seconds(cost.target().traits.request_overhead_seconds),
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
    std::size_t replica = nobody;
    std::size_t front_end = 0;
    std::size_t next_turn = nobody;
    bool sent = false;
    bool ended = false;
};

/// One simulated load test, from the first arrival to the last end.
class Simulation {
public:
    /// `apart`: null where one kind of server does both.
    Simulation(const CostModel& answering, std::int64_t servers, const RolesApart* apart,
               const SimulatedTraffic& traffic, const SimulationOptions& options);
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
    [[nodiscard]] std::size_t with_fewest(bool prefill) const;
    void prompt_computed(const SimulatedReplica& from, const TokenEvent& event);
    void start_steps();
    void end_step(SimulatedReplica& replica);
    void deliver(const TokenEvent& event);
    void answered(std::size_t index);
    void end(std::size_t index, RequestEnd how, std::string error);
    void follow(std::size_t index);
    void die(std::string cause, bool hangs);
    void cut_off(std::size_t index);
    SimulatedRun result();

    [[nodiscard]] bool closed_loop() const {
        return traffic_.arrival().kind == Arrival::Kind::concurrency;
    }
    [[nodiscard]] double first_arrival() const;

    void add_replicas(const CostModel& cost, std::int64_t servers, bool prefill);

    const RolesApart* apart_;
    const SimulatedTraffic& traffic_;
    const SimulationOptions& options_;
    const ServingSettings& settings_;
    std::vector<SimulatedReplica> replicas_;
    SimulatedFrontEnds answering_;  ///< of the servers that answer
    std::optional<SimulatedFrontEnds> prefilling_{};
    std::vector<double> sends_until_{},
        receives_until_{};  ///< of each prefill and decode server: the cache that is moved last
    std::vector<Flight> flights_;
    std::size_t left_;                  ///< requests that have not ended
    std::vector<std::size_t> queue_{};  ///< closed loop: first requests, in order
    std::size_t next_in_queue_ = 0;
    std::int64_t places_ = 0;  ///< closed loop: free ones
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_{};
    std::uint64_t order_ = 0;
    double now_ = 0;
    double running_sum_ = 0;
    bool dead_ = false;  ///< gone or hung
    bool hung_ = false;
    SimulatedRun run_{};
};

Simulation::Simulation(const CostModel& answering, std::int64_t servers, const RolesApart* apart,
                       const SimulatedTraffic& traffic, const SimulationOptions& options)
    : apart_(apart),
      traffic_(traffic),
      options_(options),
      settings_(answering.settings()),
      answering_(answering, servers),
      flights_(traffic.requests().size()),
      left_(traffic.requests().size()),
      places_(traffic.arrival().in_flight) {
    add_replicas(answering, servers, false);
    if (apart_ != nullptr) {
        add_replicas(apart_->prefill, apart_->prefill_servers, true);
        prefilling_.emplace(apart_->prefill, apart_->prefill_servers);
        sends_until_.assign(static_cast<std::size_t>(apart_->prefill_servers), 0.0);
        receives_until_.assign(static_cast<std::size_t>(servers), 0.0);
    }
    run_.records.resize(flights_.size());
    for (std::size_t i = 0; i < flights_.size(); ++i) {
        run_.records[i].index = i;
        if (const auto before = traffic.requests()[i].follows) flights_[*before].next_turn = i;
    }
}

void Simulation::add_replicas(const CostModel& cost, std::int64_t servers, bool prefill) {
    for (std::int64_t i = 0; i < servers * cost.settings().data_parallel; ++i)
        replicas_.push_back(
            {.core = EngineCore(cost, derive_seed(options_.seed, replicas_.size()), options_.noise),
             .prefill = prefill,
             .server = static_cast<std::size_t>(i / cost.settings().data_parallel)});
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
        start_steps();
    }
    return result();
}

void Simulation::happen(const Event& event) {
    switch (event.kind) {
        case Kind::send: return send(event.index, event.at);
        case Kind::enter: return enter(event.index);
        case Kind::moved: {
            if (dead_) return;
            const SimulatedTraffic::Request& request = traffic_.requests()[event.index];
            return replicas_[flights_[event.index].replica].core.add(
                {.id = event.index,
                 .input_tokens = flights_[event.index].input_tokens,
                 .output_tokens = request.output_tokens,
                 .prompt_is_computed = true});
        }
        case Kind::step_end: return end_step(replicas_[event.index]);
        case Kind::answered: return answered(event.index);
        case Kind::give_up:
            return end(event.index, RequestEnd::stalled, "no byte of the answer for too long");
        case Kind::death: {
            if (dead_) return;
            return die((options_.hangs ? "hung " : "ended ") +
                           text_of(present(options_.dies_after_seconds)) + " s into the load",
                       options_.hangs);
        }
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
    if (options_.dies_after_seconds) push(now_ + *options_.dies_after_seconds, Kind::death, 0);
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
    if (dead_ && !hung_) return end(index, RequestEnd::not_connected, "connection refused");
    if (dead_)
        return push(now_ + options_.stall_timeout_seconds, Kind::give_up,
                    index);  // the system still accepts the connection
    flight.input_tokens = request.input_tokens;
    if (request.follows)
        flight.input_tokens += flights_[*request.follows].input_tokens +
                               traffic_.requests()[*request.follows].output_tokens;
    double taken_at = 0;
    std::tie(flight.front_end, taken_at) = (prefilling_ ? *prefilling_ : answering_).take(now_);
    push(taken_at, Kind::enter, index);
}

void Simulation::answered(std::size_t index) {
    if (dead_) return;
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
    if (dead_) return;
    const SimulatedTraffic::Request& request = traffic_.requests()[index];
    const bool apart = apart_ != nullptr;
    std::string why =
        replicas_.front().core.refusal(flight.input_tokens, request.output_tokens, apart);
    if (why.empty() && apart) why = replicas_.back().core.refusal(flight.input_tokens, 1);
    if (!why.empty()) {
        run_.records[index].http_status = 400;
        return end(index, RequestEnd::http_error, "status 400: " + why);
    }
    flight.replica = with_fewest(apart);
    ++replicas_[flight.replica].requests;
    replicas_[flight.replica].core.add({.id = index,
                                        .input_tokens = flight.input_tokens,
                                        .output_tokens = apart ? 1 : request.output_tokens,
                                        .pieces = request.pieces});
}

std::size_t Simulation::with_fewest(bool prefill) const {
    std::size_t best = nobody;
    for (std::size_t i = 0; i < replicas_.size(); ++i)
        if (replicas_[i].prefill == prefill &&
            (best == nobody || replicas_[i].requests < replicas_[best].requests))
            best = i;
    return best;
}

/// The cache of a prompt moves to the server that answers, behind what its sender sends and what
/// its receiver receives already.
void Simulation::prompt_computed(const SimulatedReplica& from, const TokenEvent& event) {
    Flight& flight = flights_[event.id];
    flight.cached_tokens = event.cached_tokens;
    flight.replica = with_fewest(false);
    SimulatedReplica& to = replicas_[flight.replica];
    ++to.requests;
    double taken_at = 0;
    std::tie(flight.front_end, taken_at) = answering_.take(now_);
    const double seconds = apart_->seconds_to_move(flight.input_tokens);
    double& sends_until = sends_until_[from.server];
    double& receives_until = receives_until_[to.server];
    sends_until = std::max(taken_at, sends_until) + seconds;
    receives_until = std::max(taken_at, receives_until) + seconds;
    push(std::max(sends_until, receives_until), Kind::moved, event.id);
}

void Simulation::start_steps() {
    if (dead_) return;
    for (std::size_t i = 0; i < replicas_.size(); ++i) {
        SimulatedReplica& replica = replicas_[i];
        if (replica.busy || replica.core.idle()) continue;
        replica.step = replica.core.step();
        replica.busy = true;
        running_sum_ += static_cast<double>(replica.step.work.decode_sequences +
                                            replica.step.work.prefill_sequences);
        run_.peak_cache_use = std::max(run_.peak_cache_use, replica.step.cache_use);
        push(now_ + replica.step.seconds, Kind::step_end, i);
    }
}

void Simulation::end_step(SimulatedReplica& replica) {
    if (dead_) return;
    replica.busy = false;
    if (replica.step.out_of_memory) {
        const StepWork& work = replica.step.work;
        return die("out of memory in a step of " + std::to_string(work.prefill_tokens) +
                       " prompt tokens and " + std::to_string(work.decode_sequences) +
                       " decoding sequences",
                   false);
    }
    for (const TokenEvent& event : replica.step.tokens) {
        if (replica.prefill) prompt_computed(replica, event);
        else deliver(event);
        replica.requests -= event.finished ? 1 : 0;
    }
}

/// Tokens of one request on their way to its client, through the front end that took it.
void Simulation::deliver(const TokenEvent& event) {
    Flight& flight = flights_[event.id];
    flight.unsent += event.tokens;
    if (event.first && apart_ == nullptr) flight.cached_tokens = event.cached_tokens;
    if (!event.first && !event.finished && flight.unsent < settings_.stream_interval) return;
    flight.unsent = 0;
    double& free_at = answering_.free_at[flight.front_end];
    free_at = std::max(free_at, now_) + answering_.chunk_seconds;

    RequestRecord& record = run_.records[event.id];
    if (record.last_token) record.gaps.push_back(static_cast<float>(free_at - *record.last_token));
    else {
        record.first_token = free_at;
        record.gaps.reserve(
            static_cast<std::size_t>(traffic_.requests()[event.id].output_tokens - 1));
    }
    record.last_token = free_at;
    ++record.chunks;
    if (event.finished) push(free_at, Kind::answered, event.id);
}

// -------------------------------------------------------------------------------------------------
// death

/// All replicas end together: they are one server to their clients.
void Simulation::die(std::string cause, bool hangs) {
    dead_ = true;
    hung_ = hangs;
    run_.death = std::move(cause);
    for (std::size_t i = 0; i < flights_.size(); ++i) {
        if (!flights_[i].sent || flights_[i].ended) continue;
        cut_off(i);
        const RequestRecord& record = run_.records[i];
        if (hung_)
            push(std::max(record.last_token.value_or(record.sent) + options_.stall_timeout_seconds,
                          now_),
                 Kind::give_up, i);
        else end(i, RequestEnd::reset, "the connection ended before the answer did");
    }
}

/// Takes back what the front end had not written yet.
void Simulation::cut_off(std::size_t index) {
    RequestRecord& record = run_.records[index];
    if (!record.first_token) return;
    record.http_status = 200;
    if (present(record.last_token) <= now_) return;
    std::size_t kept = 0;
    double last = *record.first_token;
    for (; kept < record.gaps.size() && last + static_cast<double>(record.gaps[kept]) <= now_;
         ++kept)
        last += static_cast<double>(record.gaps[kept]);
    record.gaps.resize(kept);
    record.chunks = static_cast<std::uint32_t>(kept + 1);
    record.last_token = last;
    if (last <= now_) return;
    record.first_token = record.last_token = std::nullopt;
    record.chunks = 0;
    record.http_status = 0;
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
    for (const SimulatedReplica& replica : replicas_) {
        EngineCounters one = replica.core.counters();
        if (replica.prefill)
            one.requests_finished = one.generated_tokens =
                0;  // the token behind a prompt is made again where it is answered
        all += one;
    }
    run_.mean_running = all.steps > 0 ? running_sum_ / static_cast<double>(all.steps) : 0;
    run_.server = {.input_tokens = static_cast<double>(all.prompt_tokens),
                   .output_tokens = static_cast<double>(all.generated_tokens),
                   .prefix_hit_tokens = static_cast<double>(all.prefix_hit_tokens),
                   .requests = static_cast<double>(all.requests_finished),
                   .preemptions = static_cast<double>(all.preemptions),
                   .drafted_tokens = static_cast<double>(all.drafted_tokens),
                   .accepted_tokens = static_cast<double>(all.accepted_tokens)};
    return std::move(run_);
}

}  // namespace

SimulatedRun simulate(const CostModel& cost, const SimulatedTraffic& traffic,
                      const SimulationOptions& options) {
    check_options("the simulation", options.why_invalid());
    return Simulation(cost, 1, nullptr, traffic, options).run();
}

RolesApart RolesApart::joined(CostModel prefill, std::int64_t prefill_servers, CostModel decode,
                              std::int64_t decode_servers) {
    const std::int64_t pairs =
        std::min(prefill.settings().tensor_parallel * prefill.settings().pipeline_parallel,
                 decode.settings().tensor_parallel * decode.settings().pipeline_parallel);
    const double begins =
        prefill.target().traits.all_reduce_seconds;  // one exchange between devices
    RolesApart result{
        std::move(prefill), prefill_servers, std::move(decode), decode_servers, 0, begins};
    result.transfer_bytes_per_second =
        result.prefill.link(result.devices()) * static_cast<double>(pairs);
    return result;
}

SimulatedRun simulate(const RolesApart& roles, const SimulatedTraffic& traffic,
                      const SimulationOptions& options) {
    check_options("the simulation", options.why_invalid());
    if (!(roles.transfer_bytes_per_second > 0) || !(roles.transfer_seconds >= 0) ||
        roles.prefill_servers < 1 || roles.decode_servers < 1)
        throw UsageError(
            "roles apart: at least one server of each, a speed of more than 0 bytes a second and "
            "no negative time wanted");
    return Simulation(roles.decode, roles.decode_servers, &roles, traffic, options).run();
}

}  // namespace servetune
