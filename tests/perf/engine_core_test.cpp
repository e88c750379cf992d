// SPDX-License-Identifier: Apache-2.0
// The engine's steps: what each has of prefill and decoding, what it takes, and what cannot be
// served.
#include "support/test.hpp"

#include "servetune/detail/perf/engine_core.hpp"
#include "servetune/error.hpp"
#include "servetune/rng.hpp"
#include "support/small_engine.hpp"
#include "support/small_target.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

TEST_CASE("engine: steps of two requests, added up by hand") {
    ServingSettings settings = small_settings();
    settings.max_batched_tokens = 100;
    EngineCore core = core_of(settings);
    core.add(request(1, 150, 3));
    core.add(request(2, 30, 2));

    EngineStep step = core.step();  // 100 tokens of the first prompt
    CHECK(step.seconds == Approx(1000 * us).epsilon(1e-12));
    CHECK(step.work.prefill_tokens == 100);
    CHECK(step.work.prefill_pairs == 100 * 101 / 2);
    CHECK(step.work.prefill_context_tokens == 0);
    CHECK(step.work.prefill_finished == 0);
    CHECK(step.tokens.empty());
    CHECK(core.running() == 1);
    CHECK(core.waiting() == 1);

    step = core.step();  // its other 50, which read the first 100, and all of the second
    CHECK(step.seconds == Approx(1010 * us).epsilon(1e-12));
    CHECK(step.work.prefill_tokens == 80);
    CHECK(step.work.prefill_finished == 2);
    CHECK(step.work.prefill_pairs == 50 * 100 + 50 * 51 / 2 + 30 * 31 / 2);
    CHECK(step.work.prefill_context_tokens == 100);
    REQUIRE(step.tokens.size() == 2);
    CHECK(step.tokens[0].first);
    CHECK(step.cache_use == Approx((10 + 2) / 10000.0));

    step = core.step();
    CHECK(step.seconds == Approx(1018 * us).epsilon(1e-12));
    CHECK(step.work.decode_sequences == 2);
    CHECK(step.work.decode_context_tokens == 180);
    CHECK(step.tokens[1].finished);
    step = core.step();
    CHECK(step.seconds == Approx(1015.1 * us).epsilon(1e-12));
    CHECK(step.tokens[0].finished);
    CHECK(core.idle());
    CHECK(core.cache_use() == 0);

    const EngineCounters& counters = core.counters();
    CHECK(counters.steps == 4);
    CHECK(counters.requests_finished == 2);
    CHECK(counters.prompt_tokens == 180);
    CHECK(counters.generated_tokens == 5);
    CHECK(counters.busy_seconds == Approx(4043.1 * us).epsilon(1e-12));
    CHECK(message_of<UsageError>([&] { (void)core.step(); }) ==
          "an engine with nothing to do has no next step");
}

TEST_CASE(
    "engine: whatever the settings and the requests, each ends once with all its tokens, and no "
    "block is lost") {
    std::uint64_t preemptions = 0;
    std::uint64_t hits = 0;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        INFO("seed " << seed);
        Rng rng(seed);
        const auto in = [&](std::int64_t low, std::int64_t high) {
            return low + std::int64_t(rng.index(std::size_t(high - low + 1)));
        };
        ServingSettings settings = small_settings();
        const std::int64_t blocks[] = {1, 3, 8, 16, 24, 32};
        settings.block_tokens = blocks[rng.index(6)];
        settings.cache_tokens = in(64, 400);
        settings.max_sequences = in(1, 12);
        settings.max_batched_tokens = in(1, 150);
        settings.prefix_cache = in(0, 1) == 1;
        settings.chunked_prefill = in(0, 3) > 0;
        settings.mixed_steps = in(0, 1) == 1;
        const double shares[] = {0, 0, 0.3, 1};
        settings.reserved_share = shares[rng.index(4)];
        if (in(0, 2) == 0) settings.speculation = {.method = "ngram", .tokens = in(1, 5)};
        EngineCore core = core_of(settings, seed);

        std::map<std::size_t, EngineRequest> added;
        const std::int64_t count = in(1, 25);
        std::map<std::size_t, Got> got;
        std::int64_t input = 0;
        std::int64_t output = 0;
        for (std::int64_t i = 0; i < count; ++i) {
            EngineRequest one = request(std::size_t(i), in(1, 200), in(1, 80));
            one.pieces =
                pieces(rng.index(3), std::size_t((one.input_tokens + one.output_tokens) / 16));
            if (!core.refusal(one.input_tokens, one.output_tokens).empty()) continue;
            input += one.input_tokens;
            output += one.output_tokens;
            added[one.id] = one;
            core.add(std::move(one));
        }
        got = finish(core, 100'000);
        REQUIRE(got.size() == added.size());
        for (const auto& [id, one] : got) {
            REQUIRE(one.tokens == added[id].output_tokens);
            REQUIRE(one.firsts == 1);
            REQUIRE(one.ends == 1);
            REQUIRE(one.cached < added[id].input_tokens);
            REQUIRE(one.cached % 16 == 0);
        }
        const EngineCounters& counters = core.counters();
        REQUIRE(counters.requests_finished == added.size());
        REQUIRE(counters.prompt_tokens == std::uint64_t(input));
        REQUIRE(counters.generated_tokens == std::uint64_t(output));
        REQUIRE(counters.prefix_queried_tokens ==
                (settings.prefix_cache ? counters.prompt_tokens : 0));
        REQUIRE(counters.prefix_hit_tokens <= counters.prefix_queried_tokens);
        if (settings.reserved_share == 1) REQUIRE(counters.preemptions == 0);
        preemptions += counters.preemptions;
        hits += counters.prefix_hit_tokens;
    }
    CHECK(preemptions > 1000);  // the cases are hard enough to say something
    CHECK(hits > 10'000);
}

TEST_CASE("engine: requests that come and go while it runs leave nothing behind") {
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
        INFO("seed " << seed);
        Rng rng(seed);
        ServingSettings settings = small_settings(320);
        settings.max_batched_tokens = 40;
        settings.max_sequences = 6;
        EngineCore core = core_of(settings);
        std::size_t next = 0;
        for (int i = 0; i < 200; ++i) {
            if (rng.index(3) == 0) {
                const auto input = std::int64_t(1 + rng.index(100));
                core.add(request(next++, input, std::int64_t(1 + rng.index(60)),
                                 pieces(rng.index(2), 8)));
            }
            if (next > 0 && rng.index(8) == 0) core.cancel(rng.index(next));
            if (rng.index(50) == 0) core.clear_prefix_cache();
            if (!core.idle()) (void)core.step();
        }
        while (!core.idle()) (void)core.step();
        REQUIRE(core.cache_use() == 0);
        REQUIRE(core.counters().requests_finished <= next);
    }
}

TEST_CASE("engine: a cancelled request is gone, waiting or running, and its id is free again") {
    ServingSettings settings = small_settings();
    settings.max_sequences = 1;
    EngineCore core = core_of(settings);
    core.add(request(1, 100, 100));
    core.add(request(2, 100, 100));
    (void)core.step();
    CHECK(core.running() == 1);
    core.cancel(7);  // nobody
    core.cancel(2);
    CHECK(core.waiting() == 0);
    core.cancel(1);
    CHECK(core.idle());
    CHECK(core.cache_use() == 0);
    core.add(request(1, 10, 1));
    const auto got = finish(core);
    CHECK(got.at(1).tokens == 1);
    CHECK(core.counters().requests_finished == 1);
}

TEST_CASE("engine: what it cannot serve it refuses, and says why") {
    ServingSettings settings = small_settings(1600);
    settings.max_context_tokens = 3000;
    settings.max_batched_tokens = 512;
    EngineCore core = core_of(settings);
    CHECK(core.refusal(1000, 600).empty());
    CHECK(core.refusal(1000, 601) ==
          "the request has 1601 tokens (1000 of the prompt, 601 of the answer), the whole cache "
          "holds 1600");
    CHECK(core.refusal(2000, 1001) ==
          "the request has 3001 tokens (2000 of the prompt, 1001 of the answer), the longest "
          "context is 3000");
    CHECK(core.refusal(0, 5) ==
          "a prompt and an answer of at least one token each wanted, got 0 and 5");
    CHECK(core.refusal(5, 0) ==
          "a prompt and an answer of at least one token each wanted, got 5 and 0");
    settings.chunked_prefill = false;
    EngineCore whole = core_of(settings);
    CHECK(whole.refusal(512, 10).empty());
    CHECK(whole.refusal(513, 10) ==
          "the prompt has 513 tokens, a step at most 512, and prompts are not cut (chunked prefill "
          "is off)");
    CHECK(message_of<UsageError>([&] { whole.add(request(1, 513, 10)); }) ==
          whole.refusal(513, 10));
    whole.add(request(1, 5, 10));
    CHECK(message_of<UsageError>([&] { whole.add(request(1, 5, 10)); }) ==
          "request 1 is already in the engine");
    CHECK(core_of(small_settings(0)).refusal(1, 1) ==
          "the request has 2 tokens (1 of the prompt, 1 of the answer), the whole cache holds 0");
    CHECK_FALSE(message_of<UsageError>([] {
                    (void)core_of(small_settings(), 1, {.step_cv = -1});
                }).empty());
}

TEST_CASE("engine: chunks let decoding go on beside a long prompt, whole prompts make it wait") {
    ServingSettings settings = small_settings();
    settings.max_batched_tokens = 1000;
    settings.mixed_steps = true;
    EngineCore chunked = core_of(settings);
    chunked.add(request(1, 10, 50));
    (void)chunked.step();
    chunked.add(request(2, 1000, 1));
    EngineStep step = chunked.step();
    CHECK(step.work.decode_sequences == 1);
    CHECK(step.work.prefill_tokens == 999);
    CHECK(step.work.prefill_finished == 0);
    step = chunked.step();
    CHECK(step.work.prefill_tokens == 1);
    CHECK(step.work.prefill_finished == 1);

    settings.chunked_prefill = false;
    EngineCore whole = core_of(settings);
    whole.add(request(1, 10, 50));
    (void)whole.step();
    whole.add(request(2, 1000, 1));
    step = whole.step();  // does not fit beside one token
    CHECK(step.work.decode_sequences == 1);
    CHECK(step.work.prefill_tokens == 0);
    whole.cancel(1);
    CHECK(whole.step().work.prefill_finished == 1);
}

TEST_CASE("engine: where steps are not mixed prompts come first and decoding waits") {
    ServingSettings settings = small_settings();
    settings.max_batched_tokens = 100;
    settings.mixed_steps = false;
    EngineCore core = core_of(settings);
    core.add(request(1, 10, 50));
    (void)core.step();
    CHECK(core.step().work.decode_sequences == 1);
    core.add(request(2, 250, 5));
    for (const std::int64_t tokens : {100, 100, 50}) {
        const EngineStep step = core.step();
        CHECK(step.work.decode_sequences == 0);
        CHECK(step.work.prefill_tokens == tokens);
    }
    CHECK(core.step().work.decode_sequences == 2);

    settings.mixed_steps = true;
    EngineCore mixed = core_of(settings);
    mixed.add(request(1, 10, 50));
    (void)mixed.step();
    mixed.add(request(2, 250, 5));
    const EngineStep step = mixed.step();
    CHECK(step.work.decode_sequences == 1);
    CHECK(step.work.prefill_tokens == 99);
}

TEST_CASE(
    "engine: speculation gives as many tokens in a step as the formula says, from as many places "
    "in it") {
    for (const std::int64_t guesses : {1, 3, 6}) {
        ServingSettings settings = small_settings();
        settings.speculation = {.method = "ngram", .tokens = guesses};
        EngineCore core = core_of(settings, std::uint64_t(guesses));
        for (std::size_t i = 0; i < 8; ++i) core.add(request(i, 10, 10'000));
        double steps = 0;
        double tokens = 0;
        std::map<std::int64_t, double> counts;
        while (core.counters().generated_tokens < 60'000) {
            for (const TokenEvent& event : core.step().tokens) {
                if (event.first) continue;
                steps += 1;
                tokens += double(event.tokens);
                counts[event.tokens] += 1;
            }
        }
        const double a = 0.7;
        const double mean = (1 - std::pow(a, double(guesses + 1))) / (1 - a);
        CHECK(core.cost().tokens_per_step() == Approx(mean));
        CHECK(std::abs(tokens / steps - mean) < 4 * double(guesses) / 2 / std::sqrt(steps));
        CHECK(std::abs(counts[1] / steps - (1 - a)) < 4 * 0.5 / std::sqrt(steps));
    }
    ServingSettings narrow = small_settings();
    narrow.speculation = {.method = "ngram", .tokens = 3};
    narrow.max_batched_tokens = 10;
    EngineCore core = core_of(narrow);
    for (std::size_t i = 0; i < 5; ++i) core.add(request(i, 1, 100));
    (void)core.step();
    CHECK(core.step().work.decode_sequences == 3);  // 4 + 4 + 2 places
}

TEST_CASE("engine: contexts are cut at the sliding window") {
    ServingTarget target = small_target();
    target.model.sliding_window = 100;
    target.model.sliding_layers = 5;
    ServingSettings settings = small_settings();
    settings.max_batched_tokens = 80;
    EngineCore core(CostModel(target, settings), 1);
    core.add(request(1, 200, 2));
    EngineStep step = core.step();
    CHECK(step.work.prefill_windowed_pairs == step.work.prefill_pairs);
    step = core.step();  // tokens 81 to 160: the first 20 attend to at most 100
    double pairs = 0;
    for (int i = 81; i <= 160; ++i) pairs += std::min(i, 100);
    CHECK(step.work.prefill_windowed_pairs == pairs);
    step = core.step();
    CHECK(step.work.prefill_windowed_pairs == 40 * 100);
    step = core.step();
    CHECK(step.work.decode_context_tokens == 200);
    CHECK(step.work.decode_windowed_context_tokens == 100);
}

TEST_CASE("engine: one stream is never faster with a longer context") {
    const auto seconds = [](std::int64_t input) {
        EngineCore core = core_of(small_settings());
        core.add(request(1, input, 40));
        (void)finish(core);
        return core.counters().busy_seconds;
    };
    double before = 0;
    for (std::int64_t input = 1; input < 100'000; input = input * 3 / 2 + 1) {
        const double now = seconds(input);
        CHECK(now >= before);
        before = now;
    }
}

TEST_CASE("engine: a step that needs more memory than is left ends it, and gives nothing") {
    ServingTarget target = small_target();
    target.traits.activation_bytes_per_token_and_width = 1000;  // 1 MB a token
    target.hardware.memory_bytes = 1e9 + 160'000 * 1e5 + 50e6;
    target.traits.fraction_of = EngineTraits::FractionOf::weights_cache;
    ServingSettings settings = small_settings();
    settings.memory_fraction = 1;
    settings.cache_bytes = 160'000 * 1e5;
    settings.max_batched_tokens = 1000;
    EngineCore core(CostModel(target, settings), 1);
    core.add(request(1, 50, 10));
    CHECK_FALSE(core.step().out_of_memory);
    core.add(request(2, 50, 10));
    const EngineStep step = core.step();
    CHECK(step.out_of_memory);
    CHECK(step.tokens.empty());
    CHECK(step.seconds > 0);
    CHECK(core.counters().generated_tokens == 1);
}

TEST_CASE("engine: steps vary as much as they are told to") {
    const auto cv = [](const std::vector<double>& values) {
        const auto n = double(values.size());
        const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
        double squares = 0;
        for (const double value : values) squares += (value - mean) * (value - mean);
        return std::pair(std::sqrt(squares / n) / mean, mean);
    };
    const auto factors = [](EngineCore& core, std::size_t count) {
        std::vector<double> result;
        core.add(request(1, 1, 100'000));
        for (std::size_t i = 0; i < count; ++i) {
            const EngineStep step = core.step();
            result.push_back(step.seconds / step.time.total);
        }
        return result;
    };
    const double n = 20'000;
    EngineCore steps = core_of(small_settings(), 3, {.step_cv = 0.1});
    const auto [step_cv, step_mean] = cv(factors(steps, 20'000));
    CHECK(std::abs(step_cv - 0.1) < 4 * 0.1 / std::sqrt(2 * n));
    CHECK(std::abs(step_mean - 1) < 4 * 0.1 / std::sqrt(n));

    std::vector<double> runs;
    for (std::uint64_t seed = 0; seed < 4000; ++seed) {
        EngineCore one = core_of(small_settings(), seed, {.run_cv = 0.05});
        const std::vector<double> same = factors(one, 2);
        REQUIRE(same[0] == Approx(same[1]).epsilon(1e-12));
        runs.push_back(same[0]);
    }
    const auto [run_cv, run_mean] = cv(runs);
    CHECK(std::abs(run_cv - 0.05) < 4 * 0.05 / std::sqrt(2 * 4000.0));
    CHECK(std::abs(run_mean - 1) < 4 * 0.05 / std::sqrt(4000.0));
}

TEST_CASE("engine: same seed and calls, same steps, another seed, others") {
    const auto run = [](std::uint64_t seed) {
        ServingSettings settings = small_settings(640);
        settings.speculation = {.method = "ngram", .tokens = 2};
        EngineCore core = core_of(settings, seed, {.run_cv = 0.01, .step_cv = 0.05});
        for (std::size_t i = 0; i < 20; ++i)
            core.add(request(i, 30 + std::int64_t(i), 40, pieces(i % 2, 2)));
        std::vector<double> seconds;
        while (!core.idle()) seconds.push_back(core.step().seconds);
        return seconds;
    };
    CHECK(run(1) == run(1));
    CHECK(run(1) != run(2));
}
