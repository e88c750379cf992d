// SPDX-License-Identifier: Apache-2.0
// The load generator's time stamps against those of a server that knows what it sent when.
#include "support/stand_in.hpp"
#include "support/test.hpp"

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/load_generator.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

Endpoint counted_endpoint(const StandIn& server) {
    Endpoint endpoint{server.url(), "m"};
    endpoint.counters = {{"prompt_tokens", "vllm:prompt_tokens_total"},
                         {"generated_tokens", "vllm:generation_tokens_total"}};
    return endpoint;
}

std::vector<PlannedRequest> labelled_plan(std::size_t count, std::int64_t output_tokens = 6) {
    std::vector<PlannedRequest> plan(count);
    for (std::size_t i = 0; i < count; ++i) {
        plan[i].text = "r" + std::to_string(i) + " two three";
        plan[i].output_tokens = output_tokens;
    }
    return plan;
}

Arrival in_flight(std::int64_t places) {
    return {.kind = Arrival::Kind::concurrency, .in_flight = places};
}

/// Compares every stamp of a run with the time at which its token was sent, and returns the middle
/// error in seconds.
double compared_with_truth(const StandIn& server, const LoadRun& run) {
    std::map<std::string, simengine::ServedRequest> served;
    for (const simengine::ServedRequest& one : server.served()) served[one.label] = one;
    const auto seconds = [](simengine::TimePoint time) {
        return std::chrono::duration<double>(time.time_since_epoch()).count();
    };
    std::vector<double> errors;
    for (const RequestRecord& record : run.records) {
        REQUIRE(record.succeeded());
        const simengine::ServedRequest& sent = served.at("r" + std::to_string(record.index));
        REQUIRE(sent.sent.size() == record.chunks);
        double at = run.started_at_monotonic_seconds + *record.first_token;
        CHECK(record.sent >= record.scheduled);
        CHECK(*record.first_token >= record.sent);
        CHECK(*record.last_token >= *record.first_token);
        CHECK(record.done >= *record.last_token);
        CHECK(run.started_at_monotonic_seconds + record.sent <= seconds(sent.received));
        for (std::size_t i = 0; i < sent.sent.size(); ++i) {
            if (i > 0) at += record.gaps[i - 1];
            errors.push_back(at - seconds(sent.sent[i]));
        }
    }
    sort(errors);
    CHECK(errors.front() > -1e-5);  // nothing is received before it is sent; gaps are kept as float
    return errors[errors.size() / 2];
}

/// Threads that take every core they can get.
class BusyMachine {
public:
    explicit BusyMachine(std::size_t threads) {
        for (std::size_t i = 0; i < threads; ++i)
            threads_.emplace_back([](const std::stop_token& stop) {
                for (volatile unsigned spins = 0; !stop.stop_requested();) spins = spins + 1;
            });
    }

private:
    std::vector<std::jthread> threads_;
};

}  // namespace

TEST_CASE("load: stamps are those of the server, token by token") {
    const StandIn server({.first = 0.02, .gap = 0.005});
    const LoadRun run = generate_load(counted_endpoint(server), labelled_plan(40, 20), in_flight(8),
                                      {.ignore_eos = true});
    CHECK(compared_with_truth(server, run) <
          0.02);  // far more than it takes, far less than a wrong clock would give
    CHECK(run.server.output_tokens == 40 * 20);
    CHECK(run.server.input_tokens == 40 * (4 + StandIn::template_tokens));
    CHECK(run.client.connects == 0);  // all on warm connections
}

TEST_CASE("load: no stamp is older than what it stamps where the machine is busy") {
    const BusyMachine busy(8);
    const StandIn server(
        {.first = 0.0001, .gap = 0.0005});  // answers come while requests are written
    const LoadRun run = generate_load(counted_endpoint(server), labelled_plan(60, 4), in_flight(1),
                                      {.ignore_eos = true});
    (void)compared_with_truth(server, run);
}
