// SPDX-License-Identifier: Apache-2.0
#include "warm_up.hpp"

#include "base/present.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/rng.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

constexpr double no_faster =
    1.05;  ///< than the best round before: rounds of a steady server differ by so much
constexpr std::size_t fewest_of_round = 4;    ///< requests: one alone has no rate
constexpr std::size_t rounds_of_a_burst = 4;  ///< that all its requests would make

class Rounds {
public:
    Rounds(LoadTest& test, std::size_t least, const std::stop_token& stop)
        : test_(test), least_(least * (1 + test.endpoint.replicas.size())), stop_(stop) {
        agree();
        const auto& requests = test_.workload.requests;
        most_ = std::max(least_,
                         requests ? std::size_t(*requests)
                                  : plan_requests(test_.workload, options_of(0)).requests.size());
    }

    WarmUp result() {
        const Arrival& arrival = test_.workload.arrival;
        const std::size_t half = std::max((least_ + 1) / 2, fewest_of_round);
        if (arrival.kind == Arrival::Kind::concurrency) {
            const auto places = std::size_t(arrival.in_flight);
            until_steady(std::max(places, half), arrival);
        } else if (arrival.kind == Arrival::Kind::rate) {
            send(std::max(least_, fewest_of_round), {});
            if (!latency_) return end();
            best_rate_.reset();  // of another load
            first_rate_.reset();
            best_per_token_.reset();
            const double in_flight =
                std::clamp(std::round(arrival.requests_per_second * *latency_), 1.0, double(most_));
            until_steady(
                std::max(std::size_t(in_flight), fewest_of_round),
                {.kind = Arrival::Kind::concurrency, .in_flight = std::int64_t(in_flight)});
        } else {
            until_steady(std::max(most_ / rounds_of_a_burst, half), {});
        }
        return end();
    }

private:
    /// What the server accepts and how it counts.
    void agree() {
        if (!test_.handshake)
            test_.handshake = try_request(test_.endpoint, test_.workload.ignore_eos, stop_);
        if (!test_.calibration && !stop_.stop_requested())
            test_.calibration = calibrated(as_agreed(test_.endpoint, *test_.handshake), stop_)
                                    .value_or(Calibration{});
    }

    [[nodiscard]] PlanOptions options_of(std::size_t round) const {
        return {derive_seed(test_.salt.value_or(0), round + 1),
                test_.calibration.value_or(Calibration{})};
    }

    void until_steady(std::size_t size, const Arrival& arrival) {
        while (!warm_.steady && found_.requests < most_ && !stop_.stop_requested()) {
            send(std::min(size, most_ - found_.requests), arrival);
            if (found_.successes == 0) return;
            warm_.steady = warm_.compared && !warm_.faster && found_.requests >= least_;
        }
    }

    /// One round. The first requests of the workload, so that all rounds have the same lengths.
    void send(std::size_t requests, const Arrival& arrival) {
        Workload few = test_.workload;
        few.requests = std::int64_t(requests);
        few.arrival = arrival;
        LoadOptions options = test_.options;
        options.ignore_eos = few.ignore_eos;
        const Plan plan = plan_requests(few, options_of(++found_.rounds));
        const LoadRun run = generate_load(as_agreed(test_.endpoint, present(test_.handshake)),
                                          plan.requests, arrival, options, stop_);
        found_.requests += plan.requests.size();
        found_.stopped = run.stopped;
        const BenchmarkResult round =
            statistics_of(run, {plan.requests.size(), arrival, {}, plan.requests}).result;
        found_.successes = std::size_t(round.successful_requests.value_or(0));
        found_.requests_per_second = round.requests_per_second;
        if (found_.successes == 0 && !run.records.empty()) found_.error = run.records.front().error;
        latency_ = round.latency.mean;
        compare(round.output_tokens.value_or(0) > 0 ? round.output_tokens_per_second
                                                    : round.requests_per_second,
                round.time_per_output_token.mean);
    }

    void compare(const std::optional<double>& rate, const std::optional<double>& per_token) {
        warm_.compared = best_rate_.has_value();
        warm_.faster = (rate && best_rate_ && *rate > *best_rate_ * no_faster) ||
                       (per_token && best_per_token_ && *per_token * no_faster < *best_per_token_);
        if (!first_rate_) first_rate_ = rate;
        if (rate) best_rate_ = std::max(best_rate_.value_or(0), *rate);
        if (per_token) best_per_token_ = std::min(best_per_token_.value_or(*per_token), *per_token);
    }

    WarmUp end() {
        found_.steady = warm_.steady;
        found_.text = "warm-up: " + counted_text(found_.requests, "request") + " in " +
                      counted_text(found_.rounds, "round");
        if (first_rate_ && best_rate_ && *first_rate_ > 0 && *best_rate_ > *first_rate_ * no_faster)
            found_.text += ", the first " + significant_text(*best_rate_ / *first_rate_, 3) +
                           " times slower than the best";
        if (found_.steady) found_.text += "; the server is steady";
        else if (!found_.stopped && found_.successes > 0)
            found_.text +=
                "; whether the server is steady is not known: no more are sent than the load test "
                "has";
        return std::move(found_);
    }

    struct State {
        bool compared = false;
        bool faster = false;
        bool steady = false;
    };

    LoadTest& test_;
    std::size_t least_;
    std::size_t most_ = 0;
    const std::stop_token& stop_;
    WarmUp found_{};
    State warm_{};
    std::optional<double> latency_{};
    std::optional<double> first_rate_{};
    std::optional<double> best_rate_{};
    std::optional<double> best_per_token_{};
};

}  // namespace

WarmUp warm_up(LoadTest& test, std::size_t least, const std::stop_token& stop) {
    return Rounds(test, least, stop).result();
}

}  // namespace servetune
