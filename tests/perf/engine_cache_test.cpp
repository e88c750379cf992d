// SPDX-License-Identifier: Apache-2.0
// The engine's cache: prefixes that are found again, and who gives way where there is no room.
#include "support/test.hpp"

#include "servetune/detail/perf/engine_core.hpp"
#include "support/small_engine.hpp"
#include "support/small_target.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

using namespace servetune;
using namespace servetune::test;

TEST_CASE(
    "engine: a prefix that was computed before is not computed again, but the last token of a "
    "prompt always is") {
    EngineCore core = core_of(small_settings());
    core.add(request(1, 100, 2, pieces(9, 6)));
    core.add(request(2, 100, 2, pieces(9, 6)));  // in the same step
    const EngineStep step = core.step();
    CHECK(step.work.prefill_tokens == 100 + 4);
    CHECK(step.work.prefill_context_tokens == 96);
    CHECK(step.tokens[0].cached_tokens == 0);
    CHECK(step.tokens[1].cached_tokens == 96);
    CHECK(step.cache_use * 10000 == Approx(7 + 1));  // shared blocks are there once
    (void)finish(core);

    core.add(request(3, 100, 2, pieces(9, 4)));  // shares less
    core.add(request(4, 96, 2,
                     pieces(9, 6)));  // all of it: the last token is computed, and so its piece
    core.add(request(5, 100, 2, pieces(8, 6)));  // another text
    const auto got = finish(core);
    CHECK(got.at(3).cached == 64);
    CHECK(got.at(4).cached == 80);
    CHECK(got.at(5).cached == 0);
    CHECK(core.counters().prefix_queried_tokens == 496);
    CHECK(core.counters().prefix_hit_tokens == 96 + 64 + 80);

    core.clear_prefix_cache();
    core.add(request(6, 100, 2, pieces(9, 6)));
    CHECK(finish(core).at(6).cached == 0);

    ServingSettings off = small_settings();
    off.prefix_cache = false;
    EngineCore without = core_of(off);
    without.add(request(1, 100, 2, pieces(9, 6)));
    without.add(request(2, 100, 2, pieces(9, 6)));
    CHECK(finish(without).at(2).cached == 0);
    CHECK(without.counters().prefix_queried_tokens == 0);
}

TEST_CASE("engine: larger blocks find whole blocks only, smaller ones whole pieces") {
    const auto cached = [](std::int64_t block_tokens) {
        ServingSettings settings = small_settings();
        settings.block_tokens = block_tokens;
        EngineCore core = core_of(settings);
        core.add(request(1, 100, 1, pieces(9, 6)));
        (void)finish(core);
        core.add(request(2, 200, 1, pieces(9, 6)));
        return finish(core).at(2).cached;
    };
    CHECK(cached(1) == 96);
    CHECK(cached(16) == 96);
    CHECK(cached(32) == 96);
    CHECK(cached(64) == 64);
    CHECK(cached(128) == 0);
    CHECK(cached(24) == 96);  // 48 is the first that ends a block and a piece
}

TEST_CASE("engine: an answer is found again by the turn that repeats it") {
    EngineCore core = core_of(small_settings());
    core.add(request(1, 40, 60, pieces(5, 6)));
    (void)finish(core);
    core.add(request(2, 120, 5, pieces(5, 6)));
    CHECK(finish(core).at(2).cached == 96);
}

TEST_CASE("engine: the prefix unused for longest gives way when blocks are needed") {
    EngineCore core = core_of(small_settings(320));  // 20 blocks
    const auto serve = [&](std::size_t id, std::uint64_t text) {
        core.add(request(id, 97, 1, pieces(text, 6)));  // 7 blocks, 6 with names
        return finish(core).at(id).cached;
    };
    CHECK(serve(1, 1) == 0);
    CHECK(serve(2, 2) == 0);
    CHECK(serve(3, 1) == 96);  // used again: now 2 is the oldest
    CHECK(serve(4, 3) == 0);   // takes what was left and the first block of 2's end
    CHECK(serve(5, 1) == 96);
    CHECK(serve(6, 2) < 96);
}

TEST_CASE("engine: without room the youngest is preempted, starts again, and loses no token") {
    ServingSettings settings = small_settings(160);  // 10 blocks
    settings.prefix_cache = false;
    EngineCore core = core_of(settings);
    core.add(request(1, 48, 64));
    core.add(request(2, 48, 64));
    (void)core.step();
    for (int i = 0; i < 32; ++i) (void)core.step();  // 2 x 80 tokens fill the cache
    CHECK(core.counters().preemptions == 0);
    EngineStep step = core.step();
    CHECK(core.counters().preemptions == 1);
    CHECK(step.work.decode_sequences == 1);
    CHECK(core.running() == 1);
    CHECK(core.waiting() == 1);
    std::int64_t again = 0;
    std::map<std::size_t, std::int64_t> tokens;
    while (!core.idle()) {
        step = core.step();
        again += step.work.prefill_tokens;
        for (const TokenEvent& event : step.tokens) {
            CHECK_FALSE(event.first);
            tokens[event.id] += event.tokens;
        }
    }
    CHECK(again == 48 + 33);  // the prompt and the answer so far
    CHECK(tokens[1] == 64 - 34);
    CHECK(tokens[2] == 64 - 33);
    CHECK(core.counters().prompt_tokens == 96);
    CHECK(core.counters().generated_tokens == 128);

    settings.prefix_cache =
        true;  // what is still in the cache when it starts again is not computed again
    EngineCore remembering = core_of(settings);
    remembering.add(request(1, 48, 64));
    remembering.add(request(2, 48, 64));
    again = -96;
    while (!remembering.idle()) again += remembering.step().work.prefill_tokens;
    CHECK(remembering.counters().preemptions == 1);
    CHECK(again > 0);
    CHECK(again < 81);
    CHECK(remembering.counters().prefix_hit_tokens == 0);  // of the traffic
}

TEST_CASE(
    "engine: room reserved at admission for whole answers means that nothing is ever preempted, "
    "and fewer run") {
    const auto run = [](double share) {
        ServingSettings settings = small_settings(480);
        settings.reserved_share = share;
        EngineCore core = core_of(settings);
        for (std::size_t i = 0; i < 12; ++i) core.add(request(i, 40, 80));
        (void)core.step();
        const std::size_t admitted = core.running();
        (void)finish(core);
        return std::pair(admitted, core.counters().preemptions);
    };
    CHECK(run(0) == std::pair<std::size_t, std::uint64_t>(10, run(0).second));
    CHECK(run(0).second > 0);
    CHECK(run(1) ==
          std::pair<std::size_t, std::uint64_t>(3, 0));  // 30 blocks, 8 for 119 tokens each
    CHECK(run(0.5).first == 6);                          // 5 for 80
}
