// SPDX-License-Identifier: Apache-2.0
#include "support/test.hpp"

#include "load/failed_requests.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/rng.hpp"

#include <algorithm>
#include <cmath>
#include <queue>

using namespace servetune;
using namespace servetune::test;

namespace {

/// A success: sent, first token, then pieces after these gaps, done with the last.
RequestRecord success(double scheduled, double sent, double first, const std::vector<float>& gaps,
                      std::int64_t input, std::int64_t output) {
    RequestRecord record;
    record.end = RequestEnd::success;
    record.http_status = 200;
    record.scheduled = scheduled;
    record.sent = sent;
    record.first_token = first;
    double last = first;
    for (const float gap : gaps) last += double(gap);
    record.last_token = last;
    record.done = last;
    record.gaps = gaps;
    record.chunks = static_cast<std::uint32_t>(gaps.size() + 1);
    record.input_tokens = input;
    record.output_tokens = output;
    return record;
}

RequestRecord failed(RequestEnd end, double sent, double done) {
    RequestRecord record;
    record.end = end;
    record.sent = sent;
    record.done = done;
    return record;
}

LoadRun run_of(std::vector<RequestRecord> records, double duration) {
    LoadRun run;
    run.records = std::move(records);
    for (std::size_t i = 0; i < run.records.size(); ++i) run.records[i].index = i;
    run.duration_seconds = duration;
    return run;
}

Asked asked(std::size_t requests, Arrival arrival = {}) {
    return {.requests = requests, .arrival = arrival};
}
Arrival closed(std::int64_t places) {
    return {.kind = Arrival::Kind::concurrency, .in_flight = places};
}
Arrival open(double rate) { return {.kind = Arrival::Kind::rate, .requests_per_second = rate}; }

bool has_note(const LoadStatistics& statistics, const std::string& part) {
    return any_of(statistics.notes, [&](const std::string& note) { return has(note, part); });
}

/// A closed loop whose every request takes an exponential time of mean 1 s and gives `tokens`
/// tokens evenly, one piece each.
LoadRun simulated_loop(std::size_t places, std::size_t requests, int tokens, Rng& rng) {
    std::priority_queue<double, std::vector<double>, std::greater<>> free;
    for (std::size_t i = 0; i < places; ++i) free.push(0);
    std::vector<RequestRecord> records;
    double end = 0;
    for (std::size_t i = 0; i < requests; ++i) {
        const double sent = free.top();
        free.pop();
        const double time = rng.gamma(1);
        const float gap = static_cast<float>(time / tokens);
        records.push_back(success(sent, sent, sent + time / tokens,
                                  std::vector<float>(std::size_t(tokens - 1), gap), 10, tokens));
        records.back().done = sent + time;
        free.push(sent + time);
        end = std::max(end, sent + time);
    }
    return run_of(std::move(records), end);
}

}  // namespace

TEST_CASE("percentiles interpolate between order statistics as numpy does") {
    const std::vector<double> values{1, 2, 4, 8};
    CHECK(percentile(values, 0) == 1);
    CHECK(percentile(values, 0.5) == 3);
    CHECK(percentile(values, 0.9) == Approx(6.8));    // numpy.percentile([1, 2, 4, 8], 90)
    CHECK(percentile(values, 0.99) == Approx(7.88));  // ... 99
    CHECK(percentile(values, 1) == 8);
    CHECK(percentile(std::vector<double>{5}, 0.99) == 5);
}

TEST_CASE("a run summarised by hand") {
    // Two successes, one failure; 4 s.
    const LoadRun run =
        run_of({success(0, 0.5, 1.0, {0.5F, 0.25F, 0.25F}, 100, 8),
                success(1, 1, 1.25, {0.75F}, 50, 4), failed(RequestEnd::http_error, 0.25, 3.5)},
               4);
    Asked what = asked(3);
    what.limits = {.time_to_first_token_seconds = 0.3,
                   .time_per_output_token_seconds = 0.25,
                   .latency_seconds = 1};
    const LoadStatistics statistics = statistics_of(run, what);
    const BenchmarkResult& r = statistics.result;
    CHECK(r.requested_requests == 3.0);
    CHECK(r.successful_requests == 2.0);
    CHECK(r.failed_requests == 1.0);
    CHECK(r.duration_seconds == 4.0);
    CHECK(r.requests_per_second == 0.5);
    CHECK(r.input_tokens == 150.0);
    CHECK(r.output_tokens == 12.0);
    CHECK(r.input_tokens_per_second == 37.5);
    CHECK(r.output_tokens_per_second == 3.0);
    CHECK(r.total_tokens_per_second == 40.5);
    CHECK(r.tokens_per_chunk == 2.0);
    CHECK(*r.time_to_first_token.mean == Approx(0.375));
    CHECK(*r.time_to_first_token.p50 == Approx(0.375));
    CHECK(*r.time_to_first_token.standard_deviation == Approx(0.125));
    CHECK(*r.time_to_first_token_from_schedule.mean == Approx(0.625));
    CHECK(*r.time_to_first_token_from_schedule.p99 == Approx(0.25 + 0.75 * 0.99));
    CHECK(*r.latency.mean == Approx(1.25));
    CHECK(*r.time_per_output_token.mean == Approx((1.0 / 7 + 0.75 / 3) / 2));
    CHECK(*r.inter_token_latency.mean == Approx((0.5 + 0.25 + 0.25 + 0.75) / 4));
    CHECK(*r.inter_token_latency.p50 == Approx(0.375));
    // Pieces: 2 tokens at 1, 1.5, 1.75, 2; 2 tokens at 1.25, 2. In [1.25, 2.25): 2 + 2 + 2 + 2 + 2;
    // [1, 2) has 8.
    CHECK(r.peak_output_tokens_per_second == 10.0);
    // In flight: 0.5-2, 1-2, 0.25-3.5.
    CHECK(r.peak_concurrent_requests == 3.0);
    CHECK(*r.mean_concurrency == Approx((1.5 + 1 + 3.25) / 4));
    CHECK(r.goodput_requests_per_second == 0.25);  // the first has a time to first token of 0.5
    CHECK_FALSE(r.maximum_concurrency);
    CHECK_FALSE(r.requested_rate_per_second);
    CHECK(statistics.intervals.empty());
    CHECK(has_note(statistics, "no intervals: all_at_once has no steady state"));
    const Metrics metrics = metrics_of(statistics);
    CHECK(metrics.at("success_ratio").value == Approx(2.0 / 3));
    CHECK(metrics.at("time_to_first_token_from_schedule_mean_seconds").value == Approx(0.625));
    CHECK_FALSE(metrics.contains("maximum_concurrency"));
}

TEST_CASE("what is not known is absent, and said") {
    LoadRun run = run_of({success(0, 0, 1, {}, 10, 5), success(0, 0, 1, {1.0F}, 10, 2)}, 2);
    run.records[1].input_tokens.reset();
    run.records[1].output_tokens.reset();
    Asked what = asked(2);
    what.limits.time_per_output_token_seconds = 1;
    const LoadStatistics statistics = statistics_of(run, what);
    CHECK_FALSE(statistics.result.input_tokens);
    CHECK_FALSE(statistics.result.total_tokens_per_second);
    CHECK(statistics.result.output_tokens == 7.0);  // 5 counted, 2 pieces
    CHECK(has_note(statistics, "no token count for 1 answers"));
    CHECK(*statistics.result.time_per_output_token.mean ==
          1.0);  // only of the second; 0 for the first would be invented
    CHECK(has_note(statistics, "1 answers came in one piece"));
    CHECK_FALSE(statistics.result.goodput_requests_per_second);
    CHECK(has_note(statistics, "no goodput"));
    // An answer of one token has no time per output token to keep.
    what.limits.latency_seconds = 1.5;
    CHECK(statistics_of(run_of({success(0, 0, 1, {}, 10, 1)}, 2), what)
              .result.goodput_requests_per_second == 0.5);
    CHECK_FALSE(statistics_of(run_of({success(0, 0, 0.5, {}, 10, 1)}, 0.5), what)
                    .result.peak_output_tokens_per_second);
}

TEST_CASE(
    "hidden tokens are no part of the time per token, and answers in an unread field have no "
    "times") {
    // 48 of 64 tokens are kept; the other 16 come every 10 ms from 0.53 s on.
    RequestRecord record = success(0, 0, 0.53, std::vector<float>(15, 0.01F), 10, 64);
    record.hidden_tokens = 48;
    const LoadStatistics hidden = statistics_of(run_of({record, record}, 1), asked(2));
    CHECK(*hidden.result.time_per_output_token.mean == Approx(0.01));
    CHECK(*hidden.result.time_to_first_token.mean == Approx(0.53));
    CHECK(hidden.result.output_tokens == 128.0);
    CHECK(hidden.result.tokens_per_chunk == 1.0);
    CHECK_FALSE(hidden.result
                    .peak_output_tokens_per_second);  // when the hidden ones were made is not known
    RequestRecord unread = success(0, 0, 0.5, {0.1F, 0.1F}, 10, 30);
    unread.unread_field = "thoughts";
    const LoadStatistics none = statistics_of(run_of({unread}, 1), asked(1));
    CHECK_FALSE(none.result.time_to_first_token.mean);
    CHECK_FALSE(none.result.time_per_output_token.mean);
    CHECK_FALSE(none.result.inter_token_latency.mean);
    CHECK_FALSE(none.result.latency.mean);
    CHECK(none.result.output_tokens == 30.0);
}

TEST_CASE("failed requests are counted by kind, answers that were broken off by their reason") {
    std::vector<RequestRecord> records{
        success(0, 0, 1, {}, 10, 5), failed(RequestEnd::not_finished, 0, 1),
        failed(RequestEnd::not_finished, 0, 1), failed(RequestEnd::not_finished, 0, 1),
        failed(RequestEnd::stalled, 0, 1)};
    records[1].finish_reason = records[3].finish_reason = "abort";
    records[2].finish_reason = "content_filter";
    records[1].error = "first";
    records[4].error = "no byte";
    CHECK(failed_requests_text(records) ==
          "4 of 5 requests failed: 1 stalled: no byte; 2 not_finished (abort): first; 1 "
          "not_finished (content_filter): ");
    CHECK(failed_requests_text({records.data(), 1}).empty());
}

TEST_CASE("intervals of positive quantities are positive, and too wide ones are a note") {
    std::vector<RequestRecord> records;
    for (int i = 0; i < 8; ++i)
        records.push_back(success(i, i, i + (i == 4 ? 30.0 : 0.01), {}, 10, 1));
    const LoadStatistics skewed = statistics_of(run_of(records, 40), asked(8, open(1)));
    const double mean = *skewed.result.latency.mean;
    const double error = skewed.standard_errors.at("latency_mean_seconds");
    const double t = 2.364624;      // of 7 degrees of freedom, 97.5 %
    REQUIRE(mean - t * error < 0);  // what an interval that is symmetric in seconds would give
    REQUIRE(std::exp(t * error / mean) > 10.0);  // one request decides: nothing is known
    CHECK_FALSE(skewed.intervals.contains("latency_mean_seconds"));
    CHECK(has_note(skewed, "no interval of latency_mean_seconds: the values differ too much"));

    records[4] = success(4, 4, 4.06, {}, 10, 1);
    const LoadStatistics wide = statistics_of(run_of(records, 8), asked(8, open(1)));
    const double width = t * wide.standard_errors.at("latency_mean_seconds");
    const Interval interval = wide.intervals.at("latency_mean_seconds");
    CHECK(interval.low ==
          Approx(*wide.result.latency.mean * std::exp(-width / *wide.result.latency.mean)));
    CHECK(interval.high ==
          Approx(*wide.result.latency.mean * std::exp(width / *wide.result.latency.mean)));
    for (const auto& [metric, one] : wide.intervals) CHECK(one.low > 0);
}

TEST_CASE(
    "tokens that the server did not count: pieces, or the text where pieces hold several, prompts "
    "as planned") {
    const auto uncounted = [](double text) {
        RequestRecord record = success(0, 0, 1, {0.5F, 0.5F, 0.5F}, 10, 4);
        record.input_tokens.reset();
        record.output_tokens.reset();
        record.estimated_tokens = text;
        return record;
    };
    std::vector<PlannedRequest> plan(2);
    plan[0].input_tokens = 30;
    plan[1].input_tokens = 50;
    Asked what = asked(2);
    what.plan = plan;
    const LoadStatistics pieces = statistics_of(run_of({uncounted(4.4), uncounted(5.9)}, 4), what);
    CHECK(pieces.result.output_tokens == 8.0);
    CHECK(pieces.result.input_tokens == 80.0);
    CHECK(has_note(pieces, "their pieces are counted instead"));
    CHECK(has_note(pieces, "2 prompts: their planned lengths"));
    const LoadRun grouped = run_of({uncounted(16.2), uncounted(4.0)}, 4);
    CHECK(statistics_of(grouped, what).result.output_tokens == 20.0);
    CHECK(output_tokens_of(grouped.records) == std::vector<double>{16, 4});
    CHECK(has_note(statistics_of(grouped, what), "estimated from their text"));
    plan[1].input_tokens = 0;  // a later turn: not known
    CHECK_FALSE(statistics_of(grouped, what).result.input_tokens);
    // What the server counted is never replaced.
    CHECK(statistics_of(run_of({success(0, 0, 1, {}, 10, 5), uncounted(4)}, 4), what)
              .result.output_tokens == 9.0);
}

TEST_CASE("a run without successes or without anything has no invented figures") {
    const LoadStatistics none = statistics_of(
        run_of({failed(RequestEnd::not_connected, 0, 1), failed(RequestEnd::stalled, 0.5, 2)}, 2),
        asked(2, open(1)));
    CHECK(none.result.requests_per_second == 0.0);
    CHECK(none.result.output_tokens == 0.0);
    CHECK_FALSE(none.result.latency.mean);
    CHECK_FALSE(none.result.time_to_first_token.p99);
    CHECK_FALSE(none.result.tokens_per_chunk);
    CHECK(none.result.peak_concurrent_requests == 1.0);  // one never was with the server
    CHECK(metrics_of(none).at("success_ratio").value == 0);
    const LoadStatistics empty = statistics_of(LoadRun{}, asked(0, closed(4)));
    CHECK_FALSE(empty.result.requests_per_second);
    CHECK_FALSE(empty.result.mean_concurrency);
    CHECK_FALSE(metrics_of(empty).contains("success_ratio"));
    BenchmarkResult printed;
    printed.successful_requests = 5;
    CHECK_FALSE(
        metrics_of(printed).contains("success_ratio"));  // how many were asked for is not known
    printed.failed_requests = 5;
    CHECK(metrics_of(printed).at("success_ratio").value == 0.5);
}

TEST_CASE("peaks and concurrency agree with brute force") {
    Rng rng(3);
    for (int round = 0; round < 20; ++round) {
        std::vector<RequestRecord> records;
        double end = 0;
        for (int i = 0; i < 40; ++i) {
            const double sent = rng.uniform() * 5;
            std::vector<float> gaps;
            for (std::size_t k = rng.index(12); k > 0; --k)
                gaps.push_back(static_cast<float>(rng.uniform() * 0.5));
            records.push_back(success(sent, sent, sent + rng.uniform(), gaps, 5,
                                      std::int64_t(rng.index(30) + 1)));
            if (rng.index(5) == 0) records.back().end = RequestEnd::truncated;
            end = std::max(end, records.back().done);
        }
        const BenchmarkResult result = statistics_of(run_of(records, end), asked(40)).result;
        std::vector<std::pair<double, double>> pieces;
        for (const RequestRecord& record : records) {
            if (!record.succeeded()) continue;
            double at = *record.first_token;
            const double each = double(*record.output_tokens) / record.chunks;
            pieces.emplace_back(at, each);
            for (const float gap : record.gaps) pieces.emplace_back(at += double(gap), each);
        }
        double peak = 0;
        double most = 0;
        for (const auto& [start, ignored] : pieces) {
            double inside = 0;
            for (const auto& [at, tokens] : pieces)
                inside += at >= start && at < start + 1 ? tokens : 0;
            peak = std::max(peak, inside);
        }
        for (const RequestRecord& start : records) {
            double now = 0;
            for (const RequestRecord& record : records)
                now += record.sent <= start.sent && record.done > start.sent ? 1 : 0;
            most = std::max(most, now);
        }
        double area = 0;  // by steps of a millisecond
        for (double t = 0.0005; t < end; t += 0.001)
            for (const RequestRecord& record : records)
                area += record.sent <= t && record.done > t ? 0.001 : 0;
        CHECK(*result.peak_output_tokens_per_second == Approx(peak));
        CHECK(*result.peak_concurrent_requests == most);
        CHECK(*result.mean_concurrency == Approx(area / end).epsilon(0.005));
        CHECK(*result.peak_output_tokens_per_second >= *result.output_tokens_per_second);
    }
}

TEST_CASE("open loop: nineteen of twenty intervals of a mean cover the truth") {
    int mean = 0;
    constexpr int rounds = 400;
    Rng rng(17);
    for (int round = 0; round < rounds; ++round) {
        std::vector<RequestRecord> records;
        for (int i = 0; i < 700; ++i) records.push_back(success(i, i, i + rng.gamma(1), {}, 10, 1));
        const LoadStatistics statistics =
            statistics_of(run_of(std::move(records), 701), asked(700, open(1)));
        const auto covers = [&](const std::string& metric, double truth) {
            const Interval interval =
                statistics.intervals.at("time_to_first_token_" + metric + "_seconds");
            return interval.low <= truth && truth <= interval.high ? 1 : 0;
        };
        mean += covers("mean", 1);
    }
    // 95 % of 400 is 380, with a standard deviation of 4.4.
    CHECK(mean >= 365);
    CHECK(mean <= 398);
    std::vector<RequestRecord> few;
    for (int i = 0; i < 200; ++i) few.push_back(success(i, i, i + rng.gamma(1), {}, 10, 1));
    const LoadStatistics statistics = statistics_of(run_of(few, 201), asked(200, open(1)));
    CHECK(statistics.result.time_to_first_token.p99);
    CHECK(statistics.result.requested_rate_per_second == 1.0);
    CHECK_FALSE(statistics.steady);
    CHECK(metrics_of(statistics).at("latency_mean_seconds").standard_error);
}

TEST_CASE("neighbours that are alike widen the interval") {
    int with = 0;
    Rng rng(23);
    constexpr int rounds = 300;
    for (int round = 0; round < rounds; ++round) {
        // AR(1) around 5 with correlation 0.6.
        std::vector<RequestRecord> records;
        double value = rng.normal() / 0.8;
        for (int i = 0; i < 500; ++i) {
            value = 0.6 * value + rng.normal();
            records.push_back(success(10 * i, 10 * i, 10 * i + 50 + value, {}, 10, 1));
        }
        const Interval interval =
            statistics_of(run_of(std::move(records), 5000), asked(500, open(0.1)))
                .intervals.at("latency_mean_seconds");
        with += interval.low <= 50 && 50 <= interval.high ? 1 : 0;
    }
    CHECK(with >= 270);  // taken as independent about 0.67 of them would cover
    CHECK(with <= 297);
}

TEST_CASE("closed loop: batch means cover the true throughput, short loops say that they cannot") {
    int tokens = 0;
    int requests = 0;
    constexpr int rounds = 300;
    Rng rng(29);
    for (int round = 0; round < rounds; ++round) {
        const LoadStatistics statistics =
            statistics_of(simulated_loop(8, 240, 5, rng), asked(240, closed(8)));
        REQUIRE(statistics.steady);
        CHECK(statistics.steady->batches >= 4);
        CHECK(statistics.steady->batches <= 20);
        CHECK(statistics.result.maximum_concurrency == 8.0);
        const Interval of_tokens = statistics.intervals.at("output_tokens_per_second");
        const Interval of_requests = statistics.intervals.at("requests_per_second");
        tokens += of_tokens.low <= 40 && 40 <= of_tokens.high
                      ? 1
                      : 0;  // 8 places, 5 tokens a second each
        requests += of_requests.low <= 8 && 8 <= of_requests.high ? 1 : 0;
    }
    CHECK(tokens >= 255);  // 85 %: batches of a mean latency are not quite independent
    CHECK(tokens <= 298);
    CHECK(requests >= 255);
    CHECK(requests <= 298);
    const LoadStatistics few = statistics_of(simulated_loop(8, 47, 5, rng), asked(47, closed(8)));
    CHECK_FALSE(few.steady);
    CHECK(has_note(few, "needs at least 48 requests"));
    CHECK_FALSE(metrics_of(few).at("output_tokens_per_second").standard_error);
}

TEST_CASE(
    "closed loop: the steady state begins with the last end of the first places and ends when the "
    "last is sent") {
    // 2 places, 14 requests of exactly 1 s that start half a second apart: ends at 1, 1.5, 2, ...
    std::vector<RequestRecord> records;
    for (int i = 0; i < 14; ++i)
        records.push_back(success(0.5 * i, 0.5 * i, 0.5 * i + 0.5, {0.5F}, 6, 4));
    const LoadStatistics statistics = statistics_of(run_of(records, 7.5), asked(14, closed(2)));
    REQUIRE(statistics.steady);
    CHECK(statistics.steady->begin_seconds == 1.5);
    CHECK(statistics.steady->end_seconds == 6.5);
    CHECK(statistics.steady->batches == 5);
    const Metrics metrics = metrics_of(statistics);
    CHECK(metrics.at("output_tokens_per_second").standard_error == 0.0);  // every batch is the same
    CHECK(statistics.intervals.at("output_tokens_per_second").low == Approx(8));
    CHECK(statistics.intervals.at("total_tokens_per_second").high == Approx(20));
    CHECK(metrics.at("output_tokens_per_second").value ==
          Approx(56 / 7.5));  // with the empty places of start and end
}
