// SPDX-License-Identifier: Apache-2.0
// Whether a run that changes is told from one that is only noisy. The runs are made up by a model
// of an engine.
#include "support/made_up_runs.hpp"
#include "support/test.hpp"

#include "load/audit_parts.hpp"

#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

Arrival places(std::int64_t in_flight) {
    return {.kind = Arrival::Kind::concurrency, .in_flight = in_flight};
}
Arrival each_second(double requests) {
    return {.kind = Arrival::Kind::rate, .requests_per_second = requests};
}

struct Situation {
    const char* name;
    MadeUpLoad load;
    MadeUpEngine engine{};
};

/// Loops with few and many rounds, lockstep and natural lengths, Poisson arrivals up to an engine
/// that is nearly full, and noise that stays for many steps.
std::vector<Situation> situations() {
    MadeUpEngine noisy;
    noisy.noise = 0.08;
    MadeUpEngine slow_noise;
    slow_noise.noise = 0.05;
    slow_noise.noise_stays = 0.998;
    MadeUpEngine few_places;
    few_places.most_requests = 16;
    return {
        {"8 in flight, equal lengths", {places(8), 120, 64, 64}},
        {"8 in flight, lengths +- 50 %", {places(8), 120, 256, 64, 0.5}},
        {"8 in flight, natural lengths", {places(8), 120, 256, 64, 0.5, true}},
        {"64 in flight, equal lengths", {places(64), 300, 512, 128}},
        {"64 in flight, natural lengths", {places(64), 300, 512, 128, 0.5, true}},
        {"32 in flight, lengths +- 20 %", {places(32), 200, 1024, 128, 0.2}},
        {"one in flight", {places(1), 40, 256, 64, 0.3}},
        {"16 in flight, long run", {places(16), 1000, 512, 64, 0.5, true}},
        {"4 a second", {each_second(4), 200, 512, 64, 0.5, true}},
        {"20 a second", {each_second(20), 300, 512, 64, 0.5, true}},
        {"40 a second, nearly full", {each_second(40), 600, 512, 64, 0.5, true}},
        {"14 a second, 16 at once", {each_second(14), 400, 512, 64, 0.5, true}, few_places},
        {"8 in flight, 8 % noise", {places(8), 120, 256, 64, 0.5, true}, noisy},
        {"32 in flight, 8 % noise", {places(32), 200, 512, 64, 0.2}, noisy},
        {"8 in flight, slow noise", {places(8), 120, 256, 64, 0.5, true}, slow_noise},
        {"32 in flight, slow noise", {places(32), 400, 256, 64, 0.5, true}, slow_noise},
    };
}

double share_unsteady(const Situation& situation, double slow_share, double slow_times,
                      std::size_t runs) {
    MadeUpEngine engine = situation.engine;
    engine.slow_share = slow_share;
    engine.slow_times = slow_times;
    std::size_t found = 0;
    for (std::size_t seed = 0; seed < runs; ++seed)
        found += steadiness_of(made_up_run(engine, situation.load, 7 + 1000 * seed),
                               situation.load.arrival)
                         .finding
                     ? 1
                     : 0;
    return double(found) / double(runs);
}

Situation situation_called(const std::string& name) {
    for (const Situation& one : situations())
        if (one.name == name) return one;
    FAIL(name);
    return {"", {}};
}

}  // namespace

TEST_CASE(
    "steadiness: a first half that is 1.6 times slower is found, with both figures and what to do",
    "[steadiness]") {
    MadeUpEngine engine;
    engine.noise = 0.005;
    engine.slow_share = 0.5;
    engine.slow_times = 1.6;
    const MadeUpLoad load{places(8), 120, 64, 64};
    const Steadiness found = steadiness_of(made_up_run(engine, load, 1), load.arrival);
    REQUIRE(found.finding);
    CHECK(found.finding->id == "steady");
    CHECK(found.finding->left.starts_with("mean "));
    CHECK(has(found.finding->cause, "times slower than the rest"));
    CHECK(has(found.finding->cause, "still cold"));
    MadeUpEngine later = engine;  // it becomes slower: the other way round
    later.slow_times = 1 / 1.6;
    const Steadiness worse = steadiness_of(made_up_run(later, load, 1), load.arrival);
    REQUIRE(worse.finding);
    CHECK(has(worse.finding->cause, "became slower"));
}

TEST_CASE("steadiness: most runs with a slow first half are found, hardly a steady one",
          "[steadiness]") {
    double alarms = 0;
    for (const Situation& situation : situations()) {
        const double share = share_unsteady(situation, 0, 1, 10);
        alarms += share / double(situations().size());
    }
    CHECK(alarms <= 0.02);  // of 160 runs at most three
    CHECK(share_unsteady(situation_called("8 in flight, natural lengths"), 0.5, 1.6, 20) >= 0.95);
    CHECK(share_unsteady(situation_called("32 in flight, lengths +- 20 %"), 0.5, 1.6, 20) >= 0.95);
    CHECK(share_unsteady(situation_called("4 a second"), 0.5, 1.6, 20) >= 0.9);
    CHECK(share_unsteady(situation_called("8 in flight, natural lengths"), 0.5, 1.2, 20) >= 0.8);
}

TEST_CASE("steadiness: what cannot be compared is said", "[steadiness]") {
    const MadeUpEngine engine;
    for (const MadeUpLoad& load : {MadeUpLoad{places(8), 20}, MadeUpLoad{places(8), 8},
                                   MadeUpLoad{Arrival{}, 100}, MadeUpLoad{places(1), 0}}) {
        const Steadiness found = steadiness_of(made_up_run(engine, load, 1), load.arrival);
        CHECK_FALSE(found.finding);
        REQUIRE(found.not_checked);
        CHECK(found.not_checked->id == "steady");
    }
    CHECK(steadiness_of(made_up_run(engine, {Arrival{}, 100}, 1), {}).not_checked->reason ==
          "all_at_once has no steady state");
}

TEST_CASE("steadiness: at most one steady run in a hundred is called unsteady",
          "[.long][steadiness]") {
    double all = 0;
    for (const Situation& situation : situations()) {
        const double alarms = share_unsteady(situation, 0, 1, 1000);
        const double half = share_unsteady(situation, 0.5, 1.6, 100);
        const double little = share_unsteady(situation, 0.5, 1.2, 100);
        WARN(situation.name << ": false alarms " << alarms * 100 << " %, found 1.6 times "
                            << half * 100 << " %, 1.2 times " << little * 100 << " %");
        CHECK(alarms <= 0.02);
        all += alarms / double(situations().size());
    }
    CHECK(all <= 0.01);
}
