// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "servetune/detail/load/statistics.hpp"
#include "servetune/detail/perf/simulator.hpp"
#include "servetune/error.hpp"
#include "support/small_target.hpp"

#include <algorithm>
#include <cmath>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

using Request = SimulatedTraffic::Request;

Approx at(double microseconds) { return Approx(microseconds * us).epsilon(1e-12); }

CostModel cost_of(const ServingSettings& settings, double request_overhead = 0,
                  double chunk_overhead = 0) {
    ServingTarget target = small_target();
    target.traits.request_overhead_seconds = request_overhead;
    target.traits.chunk_overhead_seconds = chunk_overhead;
    return CostModel(target, settings);
}

SimulatedTraffic at_once(std::size_t count, std::int64_t input, std::int64_t output) {
    return SimulatedTraffic(
        std::vector<Request>(count, {.input_tokens = input, .output_tokens = output}), {});
}

SimulatedTraffic closed_loop(std::size_t count, std::int64_t in_flight, std::int64_t input,
                             std::int64_t output) {
    return SimulatedTraffic(
        std::vector<Request>(count, {.input_tokens = input, .output_tokens = output}),
        {.kind = Arrival::Kind::concurrency, .in_flight = in_flight});
}

/// What must hold of every record of an engine that lives.
void check_success(const RequestRecord& record, const Request& request) {
    REQUIRE(record.succeeded());
    REQUIRE(record.error.empty());
    REQUIRE(record.http_status == 200);
    REQUIRE(record.finish_reason == "length");
    REQUIRE(record.output_tokens == request.output_tokens);
    REQUIRE(record.chunks >= 1);
    REQUIRE(record.chunks <= static_cast<std::uint32_t>(request.output_tokens));
    REQUIRE(record.gaps.size() + 1 == record.chunks);
    REQUIRE(record.first_token);
    REQUIRE(record.scheduled <= record.sent);
    REQUIRE(record.sent <= *record.first_token);
    REQUIRE(*record.first_token <= *record.last_token);
    REQUIRE(record.done == *record.last_token);
    double sum = 0;
    for (const float gap : record.gaps) {
        REQUIRE(gap >= 0);
        sum += double(gap);
    }
    REQUIRE(*record.first_token + sum == Approx(*record.last_token));
}

long most_in_flight(const std::vector<RequestRecord>& records) {
    std::vector<std::pair<double, int>> changes;
    for (const RequestRecord& record : records) {
        changes.emplace_back(record.sent, 1);
        changes.emplace_back(record.done, -1);
    }
    sort(changes);
    long now = 0;
    long most = 0;
    for (const auto& change : changes) most = std::max(most, now += change.second);
    return most;
}

std::size_t count_of(const SimulatedRun& run, RequestEnd end) {
    return std::size_t(
        count_if(run.records, [&](const RequestRecord& record) { return record.end == end; }));
}

}  // namespace

TEST_CASE("simulator: records of three requests, added up by hand") {
    ServingSettings settings = small_settings();
    settings.max_batched_tokens = 100;
    // Steps: 1000 us (100 tokens of the first prompt), 1010 (its other 50 read 100, and the
    // second), 1018 (contexts 150 and 30), 1015.1 (context 151, and the third prompt, which came in
    // the third step).
    const std::vector<Request> requests{
        {.input_tokens = 150, .output_tokens = 3},
        {.input_tokens = 30, .output_tokens = 2},
        {.input_tokens = 10, .output_tokens = 1, .at_seconds = 2500 * us}};
    const SimulatedTraffic traffic(requests, {.kind = Arrival::Kind::trace});
    const SimulatedRun run = simulate(cost_of(settings), traffic);
    for (std::size_t i = 0; i < 3; ++i) check_success(run.records[i], traffic.requests()[i]);
    CHECK(run.records[0].first_token == at(2010));
    REQUIRE(run.records[0].gaps.size() == 2);
    CHECK(run.records[0].gaps[0] == Approx(1018 * us));
    CHECK(run.records[0].gaps[1] == Approx(1015.1 * us));
    CHECK(run.records[0].done == at(4043.1));
    CHECK(run.records[1].first_token == at(2010));
    CHECK(run.records[1].done == at(3028));
    CHECK(run.records[2].scheduled == at(2500));
    CHECK(run.records[2].sent == at(2500));
    CHECK(run.records[2].first_token == at(4043.1));
    CHECK(run.duration_seconds == at(4043.1));
    CHECK(run.engine.steps == 4);
    CHECK(run.server.input_tokens == 190);
    CHECK(run.server.output_tokens == 6);
    CHECK(run.server.requests == 3);
    CHECK(run.death.empty());
}

TEST_CASE("simulator: the front end takes its time before and behind the engine") {
    // Both are sent at 0 and enter at 100 and 200. The first step begins at 100, the second at 1100
    // with both.
    const SimulatedRun one =
        simulate(cost_of(small_settings(), 100 * us, 10 * us), at_once(2, 10, 2));
    CHECK(one.records[0].first_token == at(1110));
    CHECK(one.records[0].done == at(2111));         // 1100 + 1001 + 10
    CHECK(one.records[1].first_token == at(2121));  // behind the other's
    CHECK(one.records[1].done == at(3112));

    ServingSettings two = small_settings();
    two.front_ends = 2;  // both enter at 100
    const SimulatedRun run = simulate(cost_of(two, 100 * us, 10 * us), at_once(2, 10, 2));
    CHECK(run.records[0].first_token == at(1110));
    CHECK(run.records[1].first_token == at(1110));
    CHECK(run.records[0].done == at(2112));
    CHECK(run.records[1].done == at(2112));
}

TEST_CASE("simulator: a front end that is too slow makes tokens late, not the engine") {
    ServingSettings settings = small_settings();
    const SimulatedRun run = simulate(cost_of(settings, 0, 300 * us), at_once(10, 10, 20));
    CHECK(run.engine.busy_seconds < 0.022);
    CHECK(run.duration_seconds == at(1000 + 200 * 300));  // from the first step on it is never idle
    settings.stream_interval = 10;
    const SimulatedRun together = simulate(cost_of(settings, 0, 300 * us), at_once(10, 10, 20));
    CHECK(together.duration_seconds < 0.028);
    CHECK(together.records[0].chunks == 3);  // 1 + 10 + 9
    CHECK(together.records[0].output_tokens == 20);
    check_success(together.records[0], {.input_tokens = 10, .output_tokens = 20});
}

TEST_CASE(
    "simulator: whatever the settings and the traffic, every request ends once and the counters "
    "agree with the records") {
    for (std::uint64_t seed = 0; seed < 1500; ++seed) {
        INFO("seed " << seed);
        Rng rng(seed);
        const auto in = [&](std::int64_t low, std::int64_t high) {
            return low + std::int64_t(rng.index(std::size_t(high - low + 1)));
        };
        ServingSettings settings = small_settings(in(64, 500));
        settings.max_sequences = in(1, 10);
        settings.max_batched_tokens = in(8, 200);
        settings.chunked_prefill = in(0, 2) > 0;
        settings.mixed_steps = in(0, 1) == 1;
        settings.reserved_share = in(0, 2) == 0 ? 0.5 : 0;
        settings.stream_interval = in(1, 4);
        settings.front_ends = in(1, 3);
        if (in(0, 2) == 0) settings.speculation = {.method = "ngram", .tokens = in(1, 4)};
        Arrival arrival{.kind = in(0, 1) == 0 ? Arrival::Kind::concurrency : Arrival::Kind::trace,
                        .in_flight = in(1, 8)};
        std::vector<Request> requests(std::size_t(in(1, 30)));
        std::vector<bool> followed(requests.size());
        for (std::size_t i = 0; i < requests.size(); ++i) {
            requests[i] = {.input_tokens = in(1, 150),
                           .output_tokens = in(1, 60),
                           .at_seconds = rng.uniform() * 0.3};
            const std::size_t before = rng.index(i + 1);
            if (before < i && !followed[before] && in(0, 2) == 0) {
                requests[i].follows = before;
                followed[before] = true;
            }
        }
        const SimulatedTraffic traffic(requests, arrival);
        SimulationOptions options{.seed = seed, .noise = {.run_cv = 0.01, .step_cv = 0.05}};
        const SimulatedRun run =
            simulate(cost_of(settings, in(0, 1) == 0 ? 0 : 200 * us, in(0, 1) == 0 ? 0 : 50 * us),
                     traffic, options);
        REQUIRE(run.records.size() == requests.size());
        std::int64_t input = 0;
        std::int64_t output = 0;
        double last = 0;
        double first = 1e9;
        for (std::size_t i = 0; i < requests.size(); ++i) {
            const RequestRecord& record = run.records[i];
            REQUIRE(record.index == i);
            last = std::max(last, record.done);
            first = std::min(first, record.scheduled);
            if (record.end == RequestEnd::http_error) {
                REQUIRE(record.http_status == 400);
                REQUIRE(record.error.starts_with("status 400: the "));
                continue;
            }
            if (record.end == RequestEnd::cancelled) {
                REQUIRE(requests[i].follows);
                REQUIRE_FALSE(run.records[*requests[i].follows].succeeded());
                continue;
            }
            check_success(record, requests[i]);
            input += *record.input_tokens;
            output += *record.output_tokens;
            if (!requests[i].follows) {
                REQUIRE(record.input_tokens == requests[i].input_tokens);
                if (arrival.kind == Arrival::Kind::trace)
                    REQUIRE(record.sent == requests[i].at_seconds);
                continue;
            }
            const RequestRecord& before = run.records[*requests[i].follows];
            REQUIRE(record.sent >= before.done);
            REQUIRE(record.input_tokens ==
                    *before.input_tokens + *before.output_tokens + requests[i].input_tokens);
        }
        REQUIRE(run.duration_seconds == last - first);
        REQUIRE(run.engine.prompt_tokens == std::uint64_t(input));
        REQUIRE(run.engine.generated_tokens == std::uint64_t(output));
        REQUIRE(run.engine.requests_finished == count_of(run, RequestEnd::success));
        if (arrival.kind == Arrival::Kind::concurrency)
            REQUIRE(most_in_flight(run.records) <= arrival.in_flight);
    }
}

TEST_CASE("simulator: a closed loop keeps its places full and sends in a place that became free") {
    const SimulatedRun run = simulate(cost_of(small_settings()), closed_loop(40, 4, 20, 10));
    CHECK(most_in_flight(run.records) == 4);
    std::vector<double> ends;
    for (const RequestRecord& record : run.records) ends.push_back(record.done);
    sort(ends);
    for (std::size_t i = 4; i < run.records.size(); ++i) CHECK(run.records[i].sent == ends[i - 4]);
    const LoadStatistics statistics = statistics_of(
        {.records = run.records, .duration_seconds = run.duration_seconds},
        {.requests = 40, .arrival = {.kind = Arrival::Kind::concurrency, .in_flight = 4}});
    CHECK(statistics.result.mean_concurrency == Approx(4));
    CHECK(statistics.result.output_tokens == 400);
}

TEST_CASE(
    "simulator: a turn is sent in the place of the one before it, with all that was said, and "
    "finds it in the cache") {
    std::vector<PlannedRequest> plan;
    for (std::size_t i = 0; i < 6; ++i) {  // two conversations of three turns
        PlannedRequest request{
            .text = "turn " + std::to_string(i) + std::string(193, static_cast<char>('a' + i % 2)),
            .input_tokens = 50,
            .output_tokens = 30};
        if (i >= 2) request.follows = i - 2;
        plan.push_back(request);
    }
    const SimulatedTraffic traffic(plan, {.kind = Arrival::Kind::concurrency, .in_flight = 1});
    CHECK(traffic.requests()[0].pieces.size() == 5);   // of 80 tokens
    CHECK(traffic.requests()[2].pieces.size() == 10);  // of 160
    CHECK(traffic.requests()[4].pieces.size() == 10);  // nobody repeats the rest
    CHECK(traffic.requests()[0].pieces[0] != traffic.requests()[1].pieces[0]);
    const SimulatedRun run = simulate(cost_of(small_settings()), traffic);
    const std::int64_t inputs[] = {50, 50, 130, 130, 210, 210};
    for (std::size_t i = 0; i < 6; ++i) {
        CHECK(run.records[i].input_tokens == inputs[i]);
        // All but the last token of an answer is in the cache, which costs the piece that it ends.
        CHECK(run.records[i].cached_tokens == (i < 2 ? 0 : i < 4 ? 64 : 144));
    }
    CHECK(run.records[2].sent == run.records[0].done);  // before the other conversation begins
    CHECK(run.records[1].sent == run.records[4].done);
}

TEST_CASE("simulator: a turn fails with the one before it") {
    std::vector<Request> requests{
        {.input_tokens = 100, .output_tokens = 60},
        {.input_tokens = 100, .output_tokens = 60, .follows = 0},  // together 320 tokens: too long
        {.input_tokens = 1, .output_tokens = 1, .follows = 1},
        {.input_tokens = 10, .output_tokens = 10}};
    for (const auto kind : {Arrival::Kind::all_at_once, Arrival::Kind::concurrency}) {
        const SimulatedRun run =
            simulate(cost_of(small_settings(304), 100 * us),
                     SimulatedTraffic(requests, {.kind = kind, .in_flight = 1}));
        CHECK(run.records[0].succeeded());
        CHECK(run.records[1].end == RequestEnd::http_error);
        CHECK(run.records[1].error ==
              "status 400: the request has 320 tokens (260 of the prompt, 60 of the answer), the "
              "whole cache holds 304");
        CHECK(run.records[1].done == Approx(run.records[0].done + 100 * us));
        CHECK_FALSE(run.records[1].first_token);
        CHECK(run.records[2].end == RequestEnd::cancelled);
        CHECK(run.records[2].error == "the turn before it failed");
        CHECK(run.records[3].succeeded());
    }
}

TEST_CASE("simulator: replicas share the requests and the work") {
    ServingSettings settings = small_settings();
    settings.max_sequences = 8;
    const SimulatedTraffic traffic = at_once(64, 20, 30);
    const SimulatedRun one = simulate(cost_of(settings), traffic);
    settings.data_parallel = 4;
    ServingTarget target = small_target();
    target.hardware.link_bytes_per_second = 1e12;
    target.traits.link_efficiency = 1;
    const SimulatedRun four = simulate(CostModel(target, settings), traffic);
    CHECK(count_of(four, RequestEnd::success) == 64);
    CHECK(four.duration_seconds == Approx(one.duration_seconds / 4).epsilon(0.01));
    CHECK(four.engine.generated_tokens == 64 * 30);
    CHECK(four.engine.steps == Approx(double(one.engine.steps)).epsilon(0.01));
}

TEST_CASE("simulator: an engine that runs out of memory in a step ends") {
    ServingTarget target = small_target();
    target.traits.activation_bytes_per_token_and_width = 1000;
    target.hardware.memory_bytes = 1e9 + 16'000 * 1e5 + 1e9;  // room for 1000 tokens in a step
    target.traits.fraction_of = EngineTraits::FractionOf::weights_cache;
    ServingSettings settings = small_settings(16'000);
    settings.memory_fraction = 1;
    settings.cache_bytes = 16'000 * 1e5;
    settings.max_batched_tokens = 4000;
    const SimulatedRun run = simulate(CostModel(target, settings), at_once(11, 100, 5));
    CHECK(run.death == "out of memory in a step of 1100 prompt tokens and 0 decoding sequences");
    CHECK(count_of(run, RequestEnd::reset) == 11);
    CHECK(simulate(CostModel(target, settings), at_once(10, 100, 5)).death.empty());
}

TEST_CASE("simulator: same arguments, same records, another seed, others") {
    ServingSettings settings = small_settings(3200);
    settings.speculation = {.method = "ngram", .tokens = 3};
    settings.data_parallel = 1;
    const SimulationOptions noisy{.seed = 4, .noise = {.run_cv = 0.01, .step_cv = 0.02}};
    const auto dones = [&](const SimulationOptions& options) {
        std::vector<double> result;
        const SimulatedRun run =
            simulate(cost_of(settings, 50 * us, 5 * us), closed_loop(60, 12, 40, 50), options);
        for (const RequestRecord& record : run.records) {
            result.push_back(record.done);
            result.insert(result.end(), record.gaps.begin(), record.gaps.end());
        }
        return result;
    };
    CHECK(dones(noisy) == dones(noisy));
    SimulationOptions other = noisy;
    other.seed = 5;
    CHECK(dones(noisy) != dones(other));
}

TEST_CASE("simulator: traffic that cannot be sent is refused") {
    const auto refused = [](std::vector<Request> requests, Arrival arrival = {}) {
        return message_of<UsageError>(
            [&] { (void)SimulatedTraffic(std::move(requests), arrival); });
    };
    CHECK(refused({}) == "a load test needs at least one request");
    CHECK(refused({{.input_tokens = 0, .output_tokens = 1}}) ==
          "request 0: how many tokens its prompt has is not known, and a simulation needs to");
    CHECK(refused({{.input_tokens = 1, .output_tokens = 0}}) ==
          "request 0: how many tokens to answer is not known, and a simulation needs to");
    CHECK(refused({{.input_tokens = 1, .output_tokens = 1, .follows = 0}}) ==
          "request 0 follows one that is not before it");
    CHECK(refused({{.input_tokens = 1, .output_tokens = 1},
                   {.input_tokens = 1, .output_tokens = 1, .follows = 0},
                   {.input_tokens = 1, .output_tokens = 1, .follows = 0}}) ==
          "two requests follow request 0");
    CHECK(refused({{.input_tokens = 1, .output_tokens = 1}},
                  {.kind = Arrival::Kind::concurrency, .in_flight = 0}) ==
          "a load test needs at least one request in flight");
}

TEST_CASE("simulator: equal beginnings of texts have equal names, however they go on") {
    const std::string text(1000, 'x');
    const auto names = prefix_pieces(text, 4.5);  // pieces of 72 bytes
    CHECK(names.size() == 13);
    CHECK(std::set<std::uint64_t>(names.begin(), names.end()).size() == 13);
    const auto other = prefix_pieces(text.substr(0, 500) + std::string(77, 'y'), 4.5);
    REQUIRE(other.size() == 8);
    for (std::size_t i = 0; i < 8; ++i) CHECK((other[i] == names[i]) == (i < 6));
    CHECK(prefix_pieces(text.substr(0, 71), 4.5).empty());
    CHECK(prefix_pieces(text.substr(0, 72), 4.5).size() == 1);
    CHECK_FALSE(message_of<UsageError>([&] { (void)prefix_pieces(text, 0.01); }).empty());
}

TEST_CASE(
    "simulator: requests share what their texts share, and keep only names that others have too") {
    std::vector<PlannedRequest> plan;
    for (std::size_t i = 0; i < 10; ++i) {
        // Of different lengths in bytes, as texts of equally many tokens are.
        const std::string own(400 + 3 * i, static_cast<char>('a' + i));
        plan.push_back({.text = std::string(i < 6 ? 800 : 0, 'p') + own,
                        .input_tokens = i < 6 ? 300 : 100,
                        .output_tokens = 5});
    }
    const SimulatedTraffic traffic(plan, {});
    for (std::size_t i = 0; i < 10; ++i)
        CHECK(double(traffic.requests()[i].pieces.size()) ==
              Approx(i < 6 ? 800 / 4.1 / 16 : 0).margin(1));
}

TEST_CASE("simulator: more work takes longer, whatever else") {
    ServingSettings settings = small_settings(32'000);
    double before = 0;
    for (std::int64_t output = 1; output < 400; output += 40) {
        const double seconds =
            simulate(cost_of(settings, 20 * us, 5 * us), at_once(100, 100, output))
                .duration_seconds;
        CHECK(seconds > before);
        before = seconds;
    }
    const SimulatedRun run =
        simulate(cost_of(settings, 20 * us, 5 * us), closed_loop(200, 1, 50, 20));
    const SimulatedRun many =
        simulate(cost_of(settings, 20 * us, 5 * us), closed_loop(200, 50, 50, 20));
    CHECK(many.duration_seconds < run.duration_seconds / 10);
}
