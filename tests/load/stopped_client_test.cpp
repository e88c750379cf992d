// SPDX-License-Identifier: Apache-2.0
// A program that is stopped, or whose machine sleeps, measures nothing meanwhile: nobody is blamed
// for that time.
#include "support/test.hpp"

#include "base/waiting.hpp"
#include "load/capacity.hpp"
#include "servetune/audit.hpp"

#include <chrono>
#include <set>

using namespace servetune;
using namespace servetune::test;

namespace {

using namespace std::chrono_literals;
using Clock = PatientDeadline::Clock;

/// The audit of a run of 100 s with this health of the client.
Validity judged(const ClientHealth& health, double seconds = 100) {
    BenchmarkResult result;
    result.successful_requests = 100;
    result.duration_seconds = seconds;
    result.requests_per_second = 100 / seconds;
    result.client = health;
    return audit(result);
}
Verdict verdict_with(std::optional<double> lag_p99, std::optional<double> stop,
                     double seconds = 100) {
    ClientHealth health;
    health.loop_lag_p99 = lag_p99;
    health.loop_lag_max = stop;
    return judged(health, seconds).verdict;
}

}  // namespace

TEST_CASE("patient deadline: moves while nobody looks") {
    const Clock::time_point begin = Clock::now();
    PatientDeadline deadline(begin + 10s);
    Clock::time_point now = begin;
    for (; now < begin + 5s; now += 1s) CHECK_FALSE(deadline.passed(now));
    now += 3600s;  // stopped for an hour: six seconds are left
    CHECK_FALSE(deadline.passed(now));
    for (int i = 0; i < 4; ++i) CHECK_FALSE(deadline.passed(now += 1s));
    bool over = false;
    for (int i = 0; i < 4; ++i) over = deadline.passed(now += 1s);
    CHECK(over);
    PatientDeadline looked(begin);
    CHECK(looked.gap(begin + 1s) == 0s);
    CHECK(looked.gap(begin + 3600s) == 3599s);
    CHECK(looked.gap(begin + 3601s) == 0s);
}

TEST_CASE("audit: a finding far over its bound weighs more than one slightly over it") {
    CHECK(verdict_with(0.0001, {}) == Verdict::sound);
    CHECK(verdict_with(0.003, {}) == Verdict::suspect);
    CHECK(verdict_with(0.2, {}) == Verdict::suspect);
    CHECK(verdict_with(0.3, {}) == Verdict::unsound);
    CHECK(verdict_with(7.838, {}) == Verdict::unsound);
    BenchmarkResult result;  // Little's law: slightly over the cap, and far
    result.successful_requests = 100;
    result.duration_seconds = 10;
    AuditContext context;
    context.concurrency_cap = 8;
    result.latency.mean = 0.85;
    CHECK(audit(result, context).verdict == Verdict::suspect);
    result.latency.mean = 2.4;
    CHECK(audit(result, context).verdict == Verdict::unsound);
}

TEST_CASE(
    "audit: a client that stood still is a disturbance, and unsound where it moves the rates") {
    CHECK(verdict_with({}, 0.4) == Verdict::sound);
    CHECK(verdict_with({}, 0.6) == Verdict::suspect);      // of 100 s
    CHECK(verdict_with({}, 8) == Verdict::unsound);        // of 100 s
    CHECK(verdict_with({}, 0.6, 10) == Verdict::unsound);  // of 10 s
    for (const double stop : {0.6, 8.0}) {
        const Validity validity = judged({.loop_lag_max = stop});
        CHECK(validity.disturbed());  // measured again, and no verdict rests on it
        REQUIRE(validity.findings.size() == 1);
        CHECK(validity.findings[0].id == "client_stopped");
        CHECK(has(validity.findings[0].left, "the load generator stood still for "));
    }
    CHECK_FALSE(judged({.loop_lag_max = 0.4}).disturbed());
}

TEST_CASE("capacity: a load whose test was disturbed is measured once more") {
    Workload workload;
    workload.name = "w";
    workload.arrival.kind = Arrival::Kind::largest_concurrency;
    workload.arrival.search.points = 4;
    const std::vector<Limit> limits{Limit::parse("ttft_p95 <= 1 s", true)};
    int stops = 1;  // the first time only
    int calls = 0;
    const MeasureLoad measure = [&](const Workload& at_level) -> std::variant<LoadPoint, Failure> {
        ++calls;
        LoadPoint point;
        const bool stopped = stops-- > 0;
        const double ttft =
            stopped ? 9.0 : double(at_level.arrival.in_flight) / 40;  // 40 in flight keep the limit
        point.metrics = {{"time_to_first_token_p95_seconds", {ttft}},
                         {"success_ratio", {1}},
                         {"requests_per_second", {10}}};
        if (stopped) point.validity = {Verdict::unsound, {{"client_stopped"}}};
        return point;
    };
    const auto found = std::get<Capacity>(find_capacity(workload, 64, limits, measure));
    CHECK(calls == static_cast<int>(found.points.size()) + 1);
    for (const LoadPoint& point : found.points) CHECK_FALSE(point.validity.disturbed());
    CHECK_FALSE(measurement_of(found, workload.arrival).validity.disturbed());
    stops = 1000;  // always: then the result says so
    const auto bad = std::get<Capacity>(find_capacity(workload, 64, limits, measure));
    CHECK(measurement_of(bad, workload.arrival).validity.disturbed());
}
