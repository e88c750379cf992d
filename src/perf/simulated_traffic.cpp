// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/perf/simulator.hpp"
#include "servetune/error.hpp"
#include "servetune/rng.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace servetune {
namespace {

constexpr auto piece_tokens = std::size_t(EngineCore::prefix_piece_tokens);
constexpr std::uint64_t no_text = 0x9ae16a3b2f90404fULL;  ///< the name of nothing; any number

/// FNV-1a goes on from what came before, so a name depends on all bytes up to its end; mixed,
/// because its last byte shows otherwise.
class Chain {
public:
    void add(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3ULL; }
    [[nodiscard]] std::uint64_t name() const { return mix64(hash_); }

private:
    std::uint64_t hash_ = 0xcbf29ce484222325ULL;
};

/// Of all texts of a plan together: the pieces of all of them have to end at the same places.
double bytes_per_token(const std::vector<PlannedRequest>& plan) {
    double bytes = 0;
    double tokens = 0;
    for (const PlannedRequest& request : plan) {
        bytes += double(request.text.size());
        tokens += request.text.empty() ? 0 : double(request.input_tokens);
    }
    return tokens > 0 ? std::max(bytes / tokens, 1.0 / piece_tokens) : 1;
}

void check_traffic(const std::vector<SimulatedTraffic::Request>& requests, const Arrival& arrival) {
    if (requests.empty()) throw UsageError("a load test needs at least one request");
    if (arrival.kind == Arrival::Kind::concurrency && arrival.in_flight < 1)
        throw UsageError("a load test needs at least one request in flight");
    std::vector<bool> followed(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) {
        const SimulatedTraffic::Request& request = requests[i];
        const std::string name = "request " + std::to_string(i);
        if (request.input_tokens < 1)
            throw UsageError(
                name + ": how many tokens its prompt has is not known, and a simulation needs to");
        if (request.output_tokens < 1)
            throw UsageError(name +
                             ": how many tokens to answer is not known, and a simulation needs to");
        if (!request.follows) continue;
        if (*request.follows >= i) throw UsageError(name + " follows one that is not before it");
        if (followed[*request.follows])
            throw UsageError("two requests follow request " + std::to_string(*request.follows));
        followed[*request.follows] = true;
    }
}

/// Gives every turn of a conversation the names of all that is said up to its end. What is said
/// after the first text is of this conversation alone.
void name_conversations(std::vector<SimulatedTraffic::Request>& requests) {
    std::vector<std::int64_t> said(requests.size());  // up to the end of its answer
    std::vector<std::size_t> root(requests.size());
    std::vector<bool> followed(requests.size());
    for (const SimulatedTraffic::Request& request : requests)
        if (request.follows) followed[*request.follows] = true;
    for (std::size_t i = 0; i < requests.size(); ++i) {
        SimulatedTraffic::Request& request = requests[i];
        said[i] = request.input_tokens + request.output_tokens +
                  (request.follows ? said[*request.follows] : 0);
        root[i] = request.follows ? root[*request.follows] : i;
        if (!request.follows && !followed[i]) continue;
        if (request.follows) request.pieces = requests[*request.follows].pieces;
        while (request.pieces.size() < std::size_t(said[i]) / piece_tokens)
            request.pieces.push_back(
                derive_seed(request.pieces.empty() ? no_text : request.pieces.back(), root[i]));
    }
}

/// A name that only one request has is never found again.
void keep_shared(std::vector<SimulatedTraffic::Request>& requests) {
    std::unordered_map<std::uint64_t, std::uint32_t> count;
    for (const SimulatedTraffic::Request& request : requests)
        for (const std::uint64_t name : request.pieces) ++count[name];
    for (SimulatedTraffic::Request& request : requests) {
        const auto alone =
            find_if(request.pieces, [&](std::uint64_t name) { return count.at(name) == 1; });
        request.pieces.erase(alone, request.pieces.end());
        request.pieces.shrink_to_fit();
    }
}

std::vector<SimulatedTraffic::Request> requests_of(const std::vector<PlannedRequest>& plan) {
    const double length = bytes_per_token(plan);
    std::vector<SimulatedTraffic::Request> requests;
    requests.reserve(plan.size());
    for (const PlannedRequest& planned : plan) {
        SimulatedTraffic::Request request{.input_tokens = planned.input_tokens,
                                          .output_tokens = planned.output_tokens,
                                          .at_seconds = planned.at_seconds,
                                          .follows = planned.follows};
        if (!planned.follows) request.pieces = prefix_pieces(planned.text, length);
        const auto whole =
            std::size_t(std::max<std::int64_t>(planned.input_tokens, 0)) / piece_tokens;
        if (request.pieces.size() > whole) request.pieces.resize(whole);
        requests.push_back(std::move(request));
    }
    return requests;
}

}  // namespace

std::vector<std::uint64_t> prefix_pieces(std::string_view text, double bytes_per_token) {
    const double length = bytes_per_token * double(piece_tokens);
    if (!(length >= 1))
        throw UsageError("pieces of at least one byte wanted, got " +
                         std::to_string(bytes_per_token) + " bytes per token");
    std::vector<std::uint64_t> names;
    Chain chain;
    const auto whole = std::size_t(double(text.size()) / length);
    std::size_t done = 0;
    while (names.size() < whole) {
        const auto end = std::size_t(double(names.size() + 1) * length);
        for (; done < std::min(end, text.size()); ++done)
            chain.add(static_cast<unsigned char>(text[done]));
        names.push_back(chain.name());
    }
    return names;
}

SimulatedTraffic::SimulatedTraffic(const std::vector<PlannedRequest>& plan, Arrival arrival)
    : requests_(requests_of(plan)), arrival_(arrival) {
    check_traffic(requests_, arrival_);
    name_conversations(requests_);
    keep_shared(requests_);
}

SimulatedTraffic::SimulatedTraffic(std::vector<Request> requests, Arrival arrival)
    : requests_(std::move(requests)), arrival_(arrival) {
    check_traffic(requests_, arrival_);
}

SimulatedTraffic SimulatedTraffic::under(const Arrival& arrival, std::size_t count) const {
    SimulatedTraffic result = *this;
    result.arrival_ = arrival;
    if (count < result.requests_.size())
        result.requests_.erase(result.requests_.begin() + std::ptrdiff_t(count),
                               result.requests_.end());
    const double rate = arrival.kind == Arrival::Kind::rate
                            ? arrival.requests_per_second
                            : std::numeric_limits<double>::infinity();
    for (Request& request : result.requests_) request.at_seconds /= rate;
    check_traffic(result.requests_, arrival);
    return result;
}

}  // namespace servetune
