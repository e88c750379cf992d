// SPDX-License-Identifier: Apache-2.0
// Loads that did not arrive, servers that fell behind, and results of which nothing can be checked.
#include "support/test.hpp"

#include "load/capacity.hpp"
#include "servetune/audit.hpp"

#include <algorithm>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

/// 250 requests offered at one a second, of which a server ends one in six seconds.
BenchmarkResult a_sixth_served() {
    BenchmarkResult r;
    r.requested_requests = 250;
    r.successful_requests = 250;
    r.failed_requests = 0;
    r.requested_rate_per_second = 1;
    r.duration_seconds = 1470;
    r.input_tokens = 1050000;
    r.output_tokens = 122500;
    r.requests_per_second = 250 / 1470.0;
    r.output_tokens_per_second = 122500 / 1470.0;
    r.total_tokens_per_second = 1172500 / 1470.0;
    r.time_to_first_token.mean = 394;
    r.time_per_output_token.mean = 0.15;
    r.inter_token_latency.mean = 0.15;
    r.latency.mean = 467.35;
    return r;
}

/// 1000 requests at ten a second, answered in 2 s each by a server that keeps up.
BenchmarkResult rate_sustained() {
    BenchmarkResult r;
    r.successful_requests = 1000;
    r.failed_requests = 0;
    r.requested_rate_per_second = 10;
    r.duration_seconds = 103;
    r.output_tokens = 100000;
    r.requests_per_second = 1000 / 103.0;
    r.output_tokens_per_second = 100000 / 103.0;
    r.time_to_first_token.mean = 0.05;
    r.time_per_output_token.mean = 0.02;
    r.latency.mean = 2.03;
    return r;
}

const Finding* found(const Validity& validity, const std::string& id) {
    const auto at = find_if(validity.findings, [&](const Finding& one) { return one.id == id; });
    return at == validity.findings.end() ? nullptr : &*at;
}

AuditContext of_document() {
    AuditContext context;
    context.rate_is_intended = true;
    return context;
}

}  // namespace

TEST_CASE("audit: a rate that the server does not serve is found, and what it makes of TTFT") {
    const Validity validity = audit(a_sixth_served(), of_document());
    CHECK(validity.verdict == Verdict::suspect);
    const Finding* rate = found(validity, "rate");
    REQUIRE(rate != nullptr);
    CHECK(rate->left == "served: 0.1701 requests/s");
    CHECK(rate->right == "offered: 1 requests/s");
    CHECK(has(rate->cause, "394 s"));

    const Validity sound = audit(rate_sustained(), of_document());
    CHECK(found(sound, "rate") == nullptr);
    CHECK(found(sound, "sent_late") == nullptr);
    CHECK(sound.verdict == Verdict::sound);

    // all came before one was answered: the server is not slow, the run is short
    BenchmarkResult burst = a_sixth_served();
    burst.requested_rate_per_second = 50;
    burst.duration_seconds = 80;
    burst.time_to_first_token.mean = 1;
    burst.latency.mean = 74.35;
    CHECK(found(audit(burst, of_document()), "rate") == nullptr);

    BenchmarkResult one_straggler =
        rate_sustained();  // the run ends late for one answer: nobody waited
    one_straggler.duration_seconds = 130;
    CHECK(found(audit(one_straggler, of_document()), "rate") == nullptr);

    AuditContext searched = of_document();  // the largest rate is looked for: its limits judge it
    searched.rate_is_chosen = true;
    const Validity note = audit(a_sixth_served(), searched);
    CHECK(note.verdict == Verdict::sound);
    CHECK(found(note, "rate")->cause.starts_with("a note: "));
}

TEST_CASE("audit: requests that were sent late are found, where the figures leave the wait out") {
    BenchmarkResult late;  // a summary without a duration: 200 a second asked for, 80 sent
    late.successful_requests = 6000;
    late.requested_rate_per_second = 200;
    late.requests_per_second = 75;
    late.output_tokens = 600000;
    late.client.send_lag_p50 = 20;
    late.client.send_lag_p99 = 26;
    late.time_to_first_token.mean = 4.02;
    late.time_per_output_token.mean = 0.02;
    late.latency.mean = 6;
    const Validity validity = audit(late, of_document());
    CHECK(validity.verdict == Verdict::suspect);
    REQUIRE(found(validity, "sent_late") != nullptr);
    CHECK(found(validity, "sent_late")->left ==
          "requests were sent 20 s (median) and 26 s (p99) after their schedule");
    CHECK(has(found(validity, "sent_late")->cause, "24.02 s, not 4.02 s"));
    CHECK(found(validity, "rate") != nullptr);
    for (const NotChecked& one : not_checked(late, of_document()))
        CHECK_FALSE((one.id == "load_bound" && one.reason == "no finite request rate is known"));

    BenchmarkResult capped =
        rate_sustained();  // a cap of four in flight: TTFT is of the few, the others wait in the client
    capped.client.send_lag_p50 = 3;
    capped.client.send_lag_p99 = 6.3;
    capped.time_to_first_token_from_schedule.mean = 3.1;
    REQUIRE(found(audit(capped, of_document()), "sent_late") != nullptr);
    CHECK(has(found(audit(capped, of_document()), "sent_late")->cause, "3.1 s, not 50 ms"));

    BenchmarkResult ordinary = rate_sustained();  // a busy machine's few milliseconds
    ordinary.client.send_lag_p50 = 0.0004;
    ordinary.client.send_lag_p99 = 0.02;
    CHECK(found(audit(ordinary, of_document()), "sent_late") == nullptr);

    AuditContext turns = of_document();
    turns.turns_wait_for_answers = true;
    CHECK(found(audit(late, turns), "sent_late") == nullptr);
}

TEST_CASE("audit: a result of which nothing can be checked is unchecked, not sound") {
    BenchmarkResult only_goal;
    only_goal.output_tokens_per_second = 1000;
    CHECK(audit(only_goal).verdict == Verdict::unchecked);
    BenchmarkResult images;  // a concurrency and nothing that can be held against it
    images.mean_concurrency = 1;
    CHECK(audit(images).verdict == Verdict::unchecked);
    CHECK(audit(BenchmarkResult{}).verdict == Verdict::unchecked);

    BenchmarkResult one_identity = only_goal;
    one_identity.output_tokens = 5000;
    one_identity.duration_seconds = 5;
    CHECK(audit(one_identity).verdict == Verdict::sound);
    BenchmarkResult ordered = only_goal;
    ordered.latency.p50 = 1;
    ordered.latency.p99 = 2;
    CHECK(audit(ordered).verdict == Verdict::sound);

    Validity worst{Verdict::sound, {}};
    add(worst, {Verdict::unchecked, {}});
    CHECK(worst.verdict == Verdict::unchecked);
    add(worst, {Verdict::suspect, {}});
    CHECK(worst.verdict == Verdict::suspect);
    add(worst, {Verdict::unchecked, {}});
    CHECK(worst.verdict == Verdict::suspect);
}

TEST_CASE(
    "capacity: a rate that the server does not serve is not sustained, though its limits hold") {
    Workload workload;
    workload.name = "w";
    workload.arrival = {.kind = Arrival::Kind::largest_rate};
    const std::vector<Limit> limits{Limit::parse("time_per_output_token_p95 <= 1s", true)};
    const auto found = find_capacity(
        workload, 200, limits, [](const Workload& at_level) -> std::variant<LoadPoint, Failure> {
            const double rate = at_level.arrival.kind == Arrival::Kind::rate
                                    ? at_level.arrival.requests_per_second
                                    : 1e9;
            LoadPoint point;
            point.metrics = {{"requests_per_second", {std::min(rate, 10.0)}},
                             {"time_per_output_token_p95_seconds", {rate > 1e8 ? 2 : 0.05}},
                             {"success_ratio", {1}}};
            if (rate > 10)
                point.validity.findings.push_back(
                    {"rate", "served: 10", "offered: more", "a note: it was not reached"});
            return point;
        });
    const auto& capacity = std::get<Capacity>(found);
    REQUIRE(capacity.low);
    CHECK(*capacity.low <= 10);
    CHECK(capacity.level < 11);
}
