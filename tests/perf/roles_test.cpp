// SPDX-License-Identifier: Apache-2.0
// Prefill and decode apart on paper: times that can be added up by hand, and known limits.
#include "support/test.hpp"

#include "perf/quick_estimate.hpp"
#include "base/present.hpp"
#include "servetune/detail/perf/simulator.hpp"
#include "servetune/error.hpp"
#include "support/small_target.hpp"

#include <algorithm>

using namespace servetune;
using namespace servetune::test;

namespace {

using Request = SimulatedTraffic::Request;

Approx at_seconds(double seconds) { return Approx(seconds).epsilon(1e-9); }

/// A prompt takes 1 ms and so does a step of decoding; a token of cache is 100 kB.
CostModel free_front_end(const ServingSettings& settings = small_settings()) {
    return CostModel(small_target(), settings);
}

/// Times are those of weights alone where contexts are short against them: 0.1 us a token.
RolesApart apart(std::int64_t prefill, std::int64_t decode, double bytes_per_second,
                 double seconds = 0) {
    return {free_front_end(), prefill, free_front_end(), decode, bytes_per_second, seconds};
}

SimulatedTraffic one_request(std::int64_t input, std::int64_t output) {
    return SimulatedTraffic(
        std::vector<Request>(1, {.input_tokens = input, .output_tokens = output}), {});
}

constexpr double no_time = 1e30;  ///< bytes a second

}  // namespace

TEST_CASE(
    "roles apart: a request takes its prompt, the move of its cache, and a step for each token") {
    // Moved: 10 tokens of 100 kB at 1 GB/s are 1 ms, and 0.5 ms before the first byte.
    const SimulatedRun run = simulate(apart(1, 1, 1e9, 0.5e-3), one_request(10, 3));
    const RequestRecord& record = run.records.front();
    REQUIRE(record.succeeded());
    // Prompt 1 ms, move 1.5 ms, the prompt's last token again 1 ms and 9 tokens of its cache read.
    CHECK(present(record.first_token) == at_seconds(1e-3 + 1.5e-3 + 1e-3 + 9 * 1e-7));
    REQUIRE(record.gaps.size() == 2);
    CHECK(static_cast<double>(record.gaps[0]) == Approx(1e-3 + 10 * 1e-7).epsilon(1e-5));
    CHECK(static_cast<double>(record.gaps[1]) == Approx(1e-3 + 11 * 1e-7).epsilon(1e-5));
    CHECK(run.duration_seconds == at_seconds(5.5e-3 + 30 * 1e-7));
}

TEST_CASE(
    "roles apart: with a move of no time one request takes what one server takes, and one step "
    "more") {
    const SimulatedRun together = simulate(free_front_end(), one_request(100, 20));
    const SimulatedRun moved = simulate(apart(1, 1, no_time), one_request(100, 20));
    CHECK(moved.duration_seconds - together.duration_seconds == at_seconds(1e-3 + 99 * 1e-7));
}

TEST_CASE("roles apart: a prompt does not wait for answers, nor an answer for prompts") {
    // Ten prompts of 1 ms each arrive in the first 10 ms, while a long answer is made.
    std::vector<Request> requests{{.input_tokens = 1, .output_tokens = 100}};
    for (int i = 0; i < 10; ++i)
        requests.push_back(
            {.input_tokens = 8000, .output_tokens = 1, .at_seconds = 0.02 + i * 0.01});
    ServingSettings one_by_one = small_settings();
    one_by_one.mixed_steps = false;  // together, prompts stop decoding
    const CostModel cost = free_front_end(one_by_one);
    const SimulatedTraffic traffic(requests, {});
    const auto longest_gap = [](const SimulatedRun& run) {
        const auto& gaps = run.records.front().gaps;
        return static_cast<double>(*std::max_element(gaps.begin(), gaps.end()));
    };
    CHECK(longest_gap(simulate(cost, traffic)) > 1.9e-3);
    CHECK(longest_gap(simulate(RolesApart{cost, 1, cost, 1, no_time, 0}, traffic)) <
          2.9e-3);  // a step with one more token
    CHECK(longest_gap(simulate(RolesApart{cost, 1, cost, 2, no_time, 0}, traffic)) <
          1.1e-3);  // which another server takes
}

TEST_CASE("roles apart: the rate of prompts is that of the prefill servers") {
    // A step takes one prompt whole, so a prefill server gives 1000 prompts a second.
    ServingSettings whole = small_settings(10'000'000);
    whole.max_batched_tokens = 1000;
    const CostModel cost = free_front_end(whole);
    const SimulatedTraffic traffic(
        std::vector<Request>(400, {.input_tokens = 1000, .output_tokens = 1}), {});
    const auto rate = [&](std::int64_t servers) {
        return 400 /
               simulate(RolesApart{cost, servers, cost, 1, no_time, 0}, traffic).duration_seconds;
    };
    CHECK(rate(1) == Approx(1000).epsilon(0.02));
    CHECK(rate(2) == Approx(2000).epsilon(0.02));
    CHECK(rate(4) == Approx(4000).epsilon(0.03));
}

TEST_CASE("roles apart: a slow link is the bound, one cache after the other") {
    // 100 prompts of 100 MB each over 1 GB/s: 10 s, whatever the servers do.
    ServingSettings large = small_settings(10'000'000);
    const CostModel cost = free_front_end(large);
    const SimulatedTraffic traffic(
        std::vector<Request>(100, {.input_tokens = 1000, .output_tokens = 1}), {});
    CHECK(simulate(RolesApart{cost, 1, cost, 1, 1e9, 0}, traffic).duration_seconds ==
          Approx(10).epsilon(0.01));
    CHECK(simulate(RolesApart{cost, 2, cost, 1, 1e9, 0}, traffic).duration_seconds ==
          Approx(10).epsilon(0.01));  // one receives
    CHECK(simulate(RolesApart{cost, 2, cost, 2, 1e9, 0}, traffic).duration_seconds ==
          Approx(5).epsilon(0.02));
}

TEST_CASE(
    "roles apart: prompts are counted where they are computed, answers where they are made, "
    "prefixes are found before") {
    std::vector<std::uint64_t> pieces(6);
    for (std::size_t i = 0; i < pieces.size(); ++i) pieces[i] = 1 + i;
    const std::vector<Request> twice{
        {.input_tokens = 100, .output_tokens = 5, .pieces = pieces},
        {.input_tokens = 100, .output_tokens = 7, .at_seconds = 1, .pieces = pieces}};
    const SimulatedRun run = simulate(apart(1, 1, no_time), SimulatedTraffic(twice, {}));
    CHECK(run.server.requests == 2);
    CHECK(run.server.input_tokens == 200);
    CHECK(run.server.output_tokens == 12);
    CHECK(run.server.prefix_hit_tokens == 96);
    CHECK(present(run.records[1].cached_tokens) == 96);
    CHECK(run.engine.steps == 2 + 5 + 7);
}

TEST_CASE("roles apart: the same seed gives the same records, another gives others") {
    const SimulatedTraffic traffic(
        std::vector<Request>(50, {.input_tokens = 500, .output_tokens = 20}), {});
    const RolesApart roles = apart(2, 3, 1e10, 1e-5);
    const StepNoise noise{.run_cv = 0.05, .step_cv = 0.1};
    const auto last = [&](std::uint64_t seed) {
        return simulate(roles, traffic, {.seed = seed, .noise = noise}).duration_seconds;
    };
    CHECK(last(1) == last(1));
    CHECK(last(1) != last(2));
}

TEST_CASE(
    "roles apart: what either kind of server refuses is refused, and the death of one is the end "
    "of all") {
    const SimulatedRun refused =
        simulate(RolesApart{free_front_end(), 1, free_front_end(small_settings(64)), 1, no_time, 0},
                 one_request(100, 10));
    CHECK(refused.records.front().http_status == 400);
    CHECK(refused.records.front().error.find("the whole cache holds 64") != std::string::npos);
    const SimulatedRun died =
        simulate(apart(1, 1, 1e9), one_request(1000, 100), {.dies_after_seconds = 0.05});
    CHECK(died.records.front().end == RequestEnd::reset);
    CHECK_THROWS_AS(simulate(apart(0, 1, 1e9), one_request(1, 1)), UsageError);
    CHECK_THROWS_AS(simulate(apart(1, 1, 0), one_request(1, 1)), UsageError);
}

TEST_CASE(
    "roles apart: caches move over the link of a node, over the network where a node is too "
    "small") {
    ServingTarget target = small_target();
    target.hardware.link_bytes_per_second = 2e11;  // both directions
    target.traits.link_efficiency = 0.5;
    target.traits.all_reduce_seconds = 1e-5;
    ServingSettings two = small_settings();
    two.tensor_parallel = 2;
    ServingSettings four = small_settings();
    four.tensor_parallel = 4;
    const auto joined = [&] {
        return RolesApart::joined(CostModel(target, two), 2, CostModel(target, four), 1);
    };
    CHECK(joined().transfer_bytes_per_second ==
          Approx(2e11 / 2 * 0.5 * 2));  // two pairs of devices
    CHECK(joined().transfer_seconds == 1e-5);
    target.hardware.devices_per_node = 8;
    CHECK(joined().transfer_bytes_per_second == Approx(1e11));
    target.hardware.devices_per_node = 4;
    CHECK_THROWS_AS(joined(), UsageError);
    target.hardware.network_bytes_per_second = 1e10;
    CHECK(joined().transfer_bytes_per_second == Approx(1e10 * 0.5 * 2));
}

TEST_CASE("cost model: a layout of more devices than a node has sends over the network") {
    ServingTarget target = small_target();
    target.hardware.link_bytes_per_second = 2e12;
    target.traits.link_efficiency = 1;
    target.traits.all_reduce_seconds = 0;
    ServingSettings eight = small_settings();
    eight.tensor_parallel = 8;
    const StepWork prompt{.prefill_sequences = 1, .prefill_finished = 1, .prefill_tokens = 1000};
    const double within = CostModel(target, eight).step(prompt).communication;
    CHECK(within == Approx(20 * 1000 * 1000 * 2.0 * 2 * 7 / 8 / 1e12));  // 10 layers, twice
    target.hardware.devices_per_node = 4;
    CHECK_THROWS_AS(CostModel(target, eight), UsageError);
    target.hardware.network_bytes_per_second = 1e10;
    CHECK(CostModel(target, eight).step(prompt).communication == Approx(within * 100));
    ServingSettings stages = small_settings();
    stages.tensor_parallel = 4,
    stages.pipeline_parallel = 2;  // only what stages hand over leaves a node
    CHECK(CostModel(target, stages).step(prompt).communication ==
          Approx(20 * 1000 * 1000 * 2.0 * 2 * 3 / 4 / 1e12 + 1000 * 1000 * 2.0 / 1e10));
}

TEST_CASE("roles apart: the closed form is near the simulator") {
    ServingTarget target = small_target();
    target.hardware.flops_per_second["bf16"] = 1e14;  // a prompt of 1000 tokens takes 10 ms
    ServingSettings settings = small_settings(1'000'000);
    settings.max_sequences = 64;
    const CostModel cost(target, settings);
    const std::vector<Request> requests(600, {.input_tokens = 1000, .output_tokens = 50});
    std::vector<Request> spread = requests;
    for (std::size_t i = 0; i < spread.size(); ++i)
        spread[i].at_seconds = static_cast<double>(i) / 150;
    const std::vector<SimulatedTraffic> loads{
        SimulatedTraffic(requests, {.kind = Arrival::Kind::concurrency, .in_flight = 32}),
        SimulatedTraffic(requests, {.kind = Arrival::Kind::concurrency, .in_flight = 2}),
        SimulatedTraffic(requests, {}),
        SimulatedTraffic(spread, {.kind = Arrival::Kind::rate, .requests_per_second = 150}),
    };
    for (const SimulatedTraffic& load : loads)
        for (const auto& [prefill, decode] : {std::pair{1, 1}, {2, 1}, {1, 3}}) {
            const RolesApart roles{cost, prefill, cost, decode, 1e11, 1e-5};
            const SimulatedRun run = simulate(roles, load);
            const double rate = static_cast<double>(run.records.size()) / run.duration_seconds;
            const QuickEstimate quick =
                quick_estimate(roles, TrafficMeans::of(load), load.arrival());
            INFO(prefill << " prefill, " << decode << " decode, "
                         << static_cast<int>(load.arrival().kind) << " "
                         << load.arrival().in_flight);
            CHECK(quick.requests_per_second == Approx(rate).epsilon(0.25));
        }
}
