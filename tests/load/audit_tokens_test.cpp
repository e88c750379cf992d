// SPDX-License-Identifier: Apache-2.0
// What the audit says of times below zero, of chunks of hardly more than a token, and of tokens
// that were not sent.
#include "support/test.hpp"

#include "servetune/audit.hpp"

#include <optional>
#include <set>
#include <string>
#include <string_view>

using namespace servetune;
using namespace servetune::test;

namespace {

/// 8 in flight, 800 answers of 100 tokens each, 10 ms apart.
BenchmarkResult flawless_answers() {
    BenchmarkResult r;
    r.successful_requests = 800;
    r.failed_requests = 0;
    r.time_to_first_token = {0.1, 0.1, 0.11, 0.12, 0.13};
    r.time_per_output_token = {0.01, 0.01, 0.011, 0.012, 0.013};
    r.inter_token_latency = {0.01, 0.01, 0.011, 0.012, 0.013};
    r.latency = {1.09, 1.09, 1.1, 1.11, 1.12};
    r.duration_seconds = 109.5;
    r.output_tokens = 80'000;
    r.output_tokens_per_second = 80'000 / 109.5;
    return r;
}
AuditContext of_equal_lengths() {
    AuditContext c;
    c.requested_requests = 800;
    c.equal_output_lengths = true;
    return c;
}

std::set<std::string> ids_of(const Validity& validity) {
    std::set<std::string> result;
    for (const Finding& finding : validity.findings) result.insert(finding.id);
    return result;
}
Finding the_finding(const Validity& validity, std::string_view id) {
    for (const Finding& finding : validity.findings)
        if (finding.id == id) return finding;
    return {};
}

}  // namespace

TEST_CASE("audit: a time below zero is unsound, in every family and statistic") {
    for (TimeSummary BenchmarkResult::*times :
         {&BenchmarkResult::time_to_first_token, &BenchmarkResult::time_per_output_token,
          &BenchmarkResult::inter_token_latency, &BenchmarkResult::latency})
        for (std::optional<double> TimeSummary::*statistic :
             {&TimeSummary::mean, &TimeSummary::p50, &TimeSummary::p99}) {
            BenchmarkResult r;
            (r.*times).*statistic = -0.00003;
            CHECK(audit(r).verdict == Verdict::unsound);
            CHECK(ids_of(audit(r)) == std::set<std::string>{"order"});
            CHECK(the_finding(audit(r), "order").right == "no time is negative");
        }
}

TEST_CASE("audit: a negative count, rate or duration is unsound, and a run that takes no time") {
    for (std::optional<double> BenchmarkResult::*amount :
         {&BenchmarkResult::duration_seconds, &BenchmarkResult::failed_requests,
          &BenchmarkResult::input_tokens, &BenchmarkResult::output_tokens,
          &BenchmarkResult::requests_per_second, &BenchmarkResult::peak_output_tokens_per_second}) {
        BenchmarkResult r;
        r.*amount = -1;
        CHECK(audit(r).verdict == Verdict::unsound);
        CHECK(ids_of(audit(r)) == std::set<std::string>{"order"});
    }
    BenchmarkResult timeless;
    timeless.duration_seconds = 0;
    CHECK(audit(timeless).verdict == Verdict::unchecked);  // nothing succeeded, or nobody counted
    timeless.successful_requests = 1;
    CHECK(the_finding(audit(timeless), "order").left == "duration = 0 s");
}

TEST_CASE(
    "audit: chunks of hardly more than a token are a note where the server counts, of several "
    "tokens suspect") {
    BenchmarkResult r = flawless_answers();
    r.inter_token_latency.mean = 0.011;  // characters of several tokens are sent whole
    r.tokens_per_chunk = 1.1;
    Validity found = audit(r, of_equal_lengths());
    CHECK(found.verdict == Verdict::sound);
    CHECK(ids_of(found) == std::set<std::string>{"chunks"});
    CHECK(the_finding(found, "chunks").cause.starts_with("a note: "));
    AuditContext estimated = of_equal_lengths();
    estimated.tokens_are_estimated = true;  // then TPOT is not known any better
    CHECK_FALSE(has(the_finding(audit(r, estimated), "chunks").cause, "a note"));
    r.tokens_per_chunk.reset();  // of another tool it is not known how it counts
    CHECK(audit(r, of_equal_lengths()).verdict == Verdict::suspect);
    r.inter_token_latency.mean = 0.03;
    r.tokens_per_chunk = 3;
    found = audit(r, of_equal_lengths());
    CHECK(found.verdict == Verdict::suspect);
    CHECK(has(the_finding(found, "chunks").cause, "about 3 tokens came in each (speculation"));
    r.tokens_per_chunk = 1;  // the figures contradict each other
    CHECK(audit(r, of_equal_lengths()).verdict == Verdict::suspect);
}

TEST_CASE("audit: hidden tokens explain the times, failures are named where requests are missing") {
    BenchmarkResult r =
        flawless_answers();  // 48 of 64 tokens are kept, the other 16 come 10 ms apart
    r.output_tokens = 800 * 64;
    r.output_tokens_per_second = 800 * 64 / 109.5;
    r.time_to_first_token = {0.94, 0.94, 0.95, 0.96, 0.97};
    AuditContext c = of_equal_lengths();
    CHECK_FALSE(audit(r, c) == Validity{});
    c.hidden_output_tokens = 800 * 48;
    CHECK(audit(r, c) == Validity{});
    r = flawless_answers();
    r.successful_requests = 700;
    r.failed_requests = 100;
    c = of_equal_lengths();
    c.failures = "100 of 800 requests failed: 100 not_finished (abort): x";
    CHECK(the_finding(audit(r, c), "complete")
              .cause.ends_with("; 100 of 800 requests failed: 100 not_finished (abort): x"));
}

TEST_CASE(
    "audit: what makes a result unsound stands before warnings, in whatever order they were "
    "found") {
    Validity validity;
    add(validity, {Verdict::suspect, {{"client", "0.2 s", "0.1 s", "late"}}});
    add(validity, {Verdict::unsound, {{"physics", "9", "3", "too fast"}}});
    add(validity, {Verdict::suspect, {{"peak", "2", "1"}}});
    CHECK(validity == Validity{Verdict::unsound,
                               {{"physics", "9", "3", "too fast"},
                                {"client", "0.2 s", "0.1 s", "late"},
                                {"peak", "2", "1"}}});
    // Of a table only the ids are known: a finding with figures takes the place of one without.
    Validity said{Verdict::unsound, {{"physics"}, {"client"}}};
    add(said, validity);
    CHECK(said.findings.size() == 3);
    CHECK(said.findings.front().left == "9");
    add(said, {Verdict::suspect, {{"physics"}}});
    CHECK(said.findings.size() == 3);
}
