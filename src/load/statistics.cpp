// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/load/statistics.hpp"

#include "servetune/detail/base/ranges.hpp"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace servetune {
namespace {

constexpr double alpha = 0.05;                 ///< intervals are of 95 %, two tails
constexpr std::size_t requests_per_place = 6;  ///< see the header
constexpr std::size_t most_batches = 20;
constexpr std::size_t fewest_batches = 4;
constexpr double most_correlation = 0.2;

double sum_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0);
}
double mean_of(const std::vector<double>& values) { return sum_of(values) / double(values.size()); }

/// Sum of squared distances from the mean.
double squares_of(const std::vector<double>& values, double mean) {
    double sum = 0;
    for (const double value : values) sum += (value - mean) * (value - mean);
    return sum;
}

double lag_one_correlation(const std::vector<double>& values) {
    const double mean = mean_of(values);
    const double squares = squares_of(values, mean);
    if (!(squares > 0)) return 0;
    double sum = 0;
    for (std::size_t i = 1; i < values.size(); ++i)
        sum += (values[i] - mean) * (values[i - 1] - mean);
    return sum / squares;
}

/// Text tokens a piece from which pieces hold several tokens: the estimate of a text is off by less
/// (`estimated_tokens`).
constexpr double several_tokens_a_piece = 1.5;
/// An interval wider than this factor to either side says nothing.
constexpr double widest_factor = 10;

/// How the tokens are counted of answers that the server did not count.
enum class Uncounted { pieces, text };
Uncounted uncounted_by(const std::vector<const RequestRecord*>& successes) {
    double pieces = 0;
    double text = 0;
    for (const RequestRecord* record : successes) {
        if (record->output_tokens || !record->estimated_tokens) continue;
        pieces += record->chunks;
        text += *record->estimated_tokens;
    }
    return text > 0 && text >= several_tokens_a_piece * pieces ? Uncounted::text
                                                               : Uncounted::pieces;
}

double counted_tokens(const RequestRecord& record, Uncounted uncounted) {
    if (record.output_tokens) return double(*record.output_tokens);
    if (uncounted == Uncounted::text && record.estimated_tokens)
        return std::max(1.0, std::round(*record.estimated_tokens));
    return record.chunks;
}

/// The times of one successful request that were seen. `tokens`: those whose text came.
struct Times {
    std::optional<double> first{}, first_from_schedule{}, per_token{}, latency{};
};
Times seen_times(const RequestRecord& record, double tokens) {
    Times times;
    if (!record.unread_field.empty())
        return times;  // its first token, and its last one, may be where nothing is read
    if (record.first_token) {
        times.first = *record.first_token - record.sent;
        times.first_from_schedule = *record.first_token - record.scheduled;
    }
    if (record.last_token) times.latency = *record.last_token - record.sent;
    if (times.first && times.latency && tokens > 1 && record.chunks > 1)
        times.per_token = (*times.latency - *times.first) / (tokens - 1);
    return times;
}

/// The times of several requests, in their order.
struct TimesOfAll {
    std::vector<double> first{}, first_from_schedule{}, per_token{}, latency{};
    void add(const Times& times) {
        if (times.first) first.push_back(*times.first);
        if (times.first_from_schedule) first_from_schedule.push_back(*times.first_from_schedule);
        if (times.per_token) per_token.push_back(*times.per_token);
        if (times.latency) latency.push_back(*times.latency);
    }
};

/// Tokens at a moment.
struct Arrived {
    double at;
    double tokens;
};

class Summary {
public:
    Summary(const LoadRun& run, const Asked& asked) : run_(run), asked_(asked) {
        for (const RequestRecord& record : run.records)
            if (record.succeeded()) successes_.push_back(&record);
        stable_sort(successes_, [](const auto* a, const auto* b) { return a->sent < b->sent; });
        uncounted_ = uncounted_by(successes_);
    }

    LoadStatistics statistics() {
        counts();
        times();
        tokens();
        peak();
        concurrency();
        goodput();
        result().client = run_.client;
        result().server = run_.server;
        uncertainty();
        return std::move(statistics_);
    }

private:
    BenchmarkResult& result() { return statistics_.result; }
    void note(std::string text) { statistics_.notes.push_back(std::move(text)); }
    [[nodiscard]] std::optional<double> per_second(std::optional<double> amount) const {
        if (!amount || !(run_.duration_seconds > 0)) return std::nullopt;
        return *amount / run_.duration_seconds;
    }
    [[nodiscard]] double output_tokens_of(const RequestRecord& record) const {
        return counted_tokens(record, uncounted_);
    }
    [[nodiscard]] std::optional<double> input_tokens_of(const RequestRecord& record) const {
        if (record.input_tokens) return double(*record.input_tokens);
        if (record.index >= asked_.plan.size() || asked_.plan[record.index].input_tokens <= 0)
            return std::nullopt;
        return double(asked_.plan[record.index].input_tokens);
    }
    /// Output tokens whose text came.
    [[nodiscard]] double seen_tokens_of(const RequestRecord& record) const {
        return output_tokens_of(record) - double(record.hidden_tokens);
    }
    [[nodiscard]] Times times_of(const RequestRecord& record) const {
        return seen_times(record, seen_tokens_of(record));
    }
    [[nodiscard]] bool closed_loop() const {
        return asked_.arrival.kind == Arrival::Kind::concurrency && asked_.arrival.in_flight > 0;
    }
    [[nodiscard]] std::size_t places() const { return std::size_t(asked_.arrival.in_flight); }

    void counts() {
        result().requested_requests = double(asked_.requests);
        result().successful_requests = double(successes_.size());
        result().failed_requests = double(run_.records.size() - successes_.size());
        result().duration_seconds = run_.duration_seconds;
        result().requests_per_second = per_second(result().successful_requests);
        if (closed_loop()) result().maximum_concurrency = double(asked_.arrival.in_flight);
        if (asked_.arrival.kind == Arrival::Kind::rate)
            result().requested_rate_per_second = asked_.arrival.requests_per_second;
        if (run_.stopped) note("the run was stopped before its end");
    }

    void times() {
        TimesOfAll all;
        std::vector<double> gaps;
        std::size_t one_piece = 0;
        for (const RequestRecord* record : successes_) {
            all.add(times_of(*record));
            if (record->unread_field.empty())
                gaps.insert(gaps.end(), record->gaps.begin(), record->gaps.end());
            one_piece += record->chunks == 1 && seen_tokens_of(*record) > 1 ? 1 : 0;
        }
        result().time_to_first_token = summary_of(std::move(all.first));
        result().time_to_first_token_from_schedule = summary_of(std::move(all.first_from_schedule));
        result().time_per_output_token = summary_of(std::move(all.per_token));
        result().latency = summary_of(std::move(all.latency));
        result().inter_token_latency = summary_of(std::move(gaps));
        if (one_piece > 0)
            note(std::to_string(one_piece) +
                 " answers came in one piece: their first token is the whole answer, their time "
                 "per output token is not known");
    }

    /// What a total would vary by with other requests of this kind, sqrt(n) s: whether two runs did
    /// the same work.
    void add_error_of_total(const std::string& name, const std::vector<double>& lengths) {
        const auto n = double(lengths.size());
        if (n > 1)
            statistics_.standard_errors[name] =
                std::sqrt(n * squares_of(lengths, mean_of(lengths)) / (n - 1));
    }

    void tokens() {
        double output = 0;
        double seen = 0;
        double chunks = 0;
        std::size_t uncounted = 0, planned = 0;
        std::optional<double> input = 0;
        std::vector<double> inputs, outputs;
        for (const RequestRecord* record : successes_) {
            outputs.push_back(output_tokens_of(*record));
            output += outputs.back();
            seen += seen_tokens_of(*record);
            chunks += record->chunks;
            uncounted += record->output_tokens ? 0 : 1;
            const std::optional<double> prompt = input_tokens_of(*record);
            planned += prompt && !record->input_tokens ? 1 : 0;
            inputs.push_back(prompt.value_or(0));
            if (!prompt) input.reset();
            else if (input) *input += *prompt;
        }
        result().output_tokens = output;
        result().input_tokens = input;
        add_error_of_total("output_tokens", outputs);
        if (input) add_error_of_total("input_tokens", inputs);
        if (chunks > 0) result().tokens_per_chunk = seen / chunks;
        result().output_tokens_per_second = per_second(output);
        result().input_tokens_per_second = per_second(input);
        if (input) result().total_tokens_per_second = per_second(*input + output);
        if (uncounted > 0)
            note("the server gave no token count for " + std::to_string(uncounted) + " answers: " +
                 (uncounted_ == Uncounted::text
                      ? "they are estimated from their text"
                      : "their pieces are counted instead, and one may hold several tokens"));
        if (planned > 0)
            note("the server gave no token count for " + std::to_string(planned) +
                 " prompts: their planned lengths are counted instead");
        if (run_.left_open > 0)
            note("the server did not end " + std::to_string(run_.left_open) +
                 " answers after [DONE]: their connections were dropped 0.25 s later, and their "
                 "places were taken so long");
    }

    /// When output tokens came; each piece holds as many as the others of its request.
    [[nodiscard]] std::vector<Arrived> arrived() const {
        std::vector<Arrived> result;
        for (const RequestRecord* record : successes_) {
            if (!record->first_token) continue;
            const double each = output_tokens_of(*record) / double(record->gaps.size() + 1);
            double at = *record->first_token;
            result.push_back({at, each});
            for (const float gap : record->gaps) result.push_back({at += double(gap), each});
        }
        sort(result, [](const Arrived& a, const Arrived& b) { return a.at < b.at; });
        return result;
    }

    void peak() {
        // When hidden tokens were made is not known.
        const bool hidden =
            any_of(successes_, [](const auto* record) { return record->hidden_tokens > 0; });
        if (run_.duration_seconds < 1 || hidden) return;
        const std::vector<Arrived> tokens = arrived();
        double inside = 0;
        double most = 0;
        for (std::size_t begin = 0, end = 0; end < tokens.size();
             ++end) {  // windows [t, t + 1) that end with a piece
            inside += tokens[end].tokens;
            while (tokens[end].at - tokens[begin].at >= 1) inside -= tokens[begin++].tokens;
            most = std::max(most, inside);
        }
        if (!tokens.empty()) result().peak_output_tokens_per_second = most;
    }

    void concurrency() {
        std::vector<std::pair<double, int>> changes;
        double together = 0;
        for (const RequestRecord& record : run_.records) {
            if (record.end == RequestEnd::not_connected || !(record.done > record.sent))
                continue;  // never was with the server
            changes.emplace_back(record.sent, 1);
            changes.emplace_back(record.done, -1);
            together += record.done - record.sent;
        }
        sort(changes);  // at one moment ends come before starts: -1 < 1
        long now = 0;
        long most = 0;
        for (const auto& [at, change] : changes) most = std::max(most, now += change);
        if (changes.empty()) return;
        result().peak_concurrent_requests = double(most);
        result().mean_concurrency = per_second(together);
    }

    void goodput() {
        const ServiceLimits& limits = asked_.limits;
        if (!limits.time_to_first_token_seconds && !limits.time_per_output_token_seconds &&
            !limits.latency_seconds)
            return;
        std::size_t good = 0;
        std::size_t unknown = 0;
        for (const RequestRecord* record : successes_) {
            const Times times = times_of(*record);
            bool kept = true;
            bool known = true;
            const auto keeps = [&](const std::optional<double>& limit,
                                   const std::optional<double>& value) {
                if (!limit) return;
                if (!value) known = false;
                else if (*value > *limit) kept = false;
            };
            keeps(limits.time_to_first_token_seconds, times.first);
            keeps(limits.latency_seconds, times.latency);
            if (seen_tokens_of(*record) > 1)
                keeps(limits.time_per_output_token_seconds, times.per_token);
            good += kept && known ? 1 : 0;
            unknown += kept && !known ? 1 : 0;
        }
        if (unknown == 0) result().goodput_requests_per_second = per_second(double(good));
        else
            note("no goodput: of " + std::to_string(unknown) +
                 " requests it is not known whether they kept the limits");
    }

    void uncertainty() {
        if (!closed_loop() && asked_.arrival.kind != Arrival::Kind::rate) {
            note("no intervals: " + std::string(name_in(arrival_kinds, asked_.arrival.kind)) +
                 " has no steady state; repeated runs tell");
            return;
        }
        const std::size_t skipped = closed_loop() ? std::min(places(), successes_.size()) : 0;
        TimesOfAll all;
        for (std::size_t i = skipped; i < successes_.size(); ++i) all.add(times_of(*successes_[i]));
        sample("time_to_first_token", all.first);
        sample("time_to_first_token_from_schedule", all.first_from_schedule);
        sample("time_per_output_token", all.per_token);
        sample("latency", all.latency);
        if (closed_loop()) steady_state();
    }

    /// Standard error and interval of the mean of times in the order of sending.
    void sample(const std::string& family, const std::vector<double>& values) {
        if (values.size() < 2) return;
        const auto n = double(values.size());
        const double mean = mean_of(values);
        const double r = std::clamp(lag_one_correlation(values), 0.0, 0.99);
        const double effective = n * (1 - r) / (1 + r);
        if (effective >= 2) {
            const double error = std::sqrt(squares_of(values, mean) / (n - 1) / effective);
            const double t =
                boost::math::quantile(boost::math::students_t(effective - 1), 1 - alpha / 2);
            statistics_.standard_errors[family + "_mean_seconds"] = error;
            interval(family + "_mean_seconds", mean, t * error);
        }
    }
    /// Of a positive quantity, symmetric on a logarithmic scale.
    void interval(const std::string& metric, double mean, double half_width) {
        const double factor = mean > 0 ? std::exp(half_width / mean) : widest_factor;
        if (mean > 0 && factor < widest_factor)
            statistics_.intervals[metric] = {mean / factor, mean * factor};
        else note("no interval of " + metric + ": the values differ too much");
    }

    void steady_state() {
        if (asked_.requests < requests_per_place * places()) {
            note("no interval of the throughput: a closed loop of " + std::to_string(places()) +
                 " places needs at least " + std::to_string(requests_per_place * places()) +
                 " requests to have a steady state");
            return;
        }
        std::vector<double> ends;
        double last_sent = 0;
        for (const RequestRecord& record : run_.records) {
            if (!(record.done > record.sent)) continue;  // never was sent
            ends.push_back(record.done);
            last_sent = std::max(last_sent, record.sent);
        }
        sort(ends);
        const std::optional<double>& mean_latency = result().latency.mean;
        if (ends.size() < places() || !mean_latency) return;
        SteadyState steady;
        steady.begin_seconds = ends[places() - 1];
        steady.end_seconds = last_sent;
        const double length = steady.end_seconds - steady.begin_seconds;
        steady.batches =
            length > 0 ? std::size_t(std::min(double(most_batches), length / *mean_latency)) : 0;
        if (steady.batches < fewest_batches) {
            note("no interval of the throughput: the steady state is too short for " +
                 std::to_string(fewest_batches) + " batches as long as a mean latency");
            return;
        }
        batch_means(steady);
    }

    void batch_means(SteadyState steady) {
        std::vector<Arrived> output = arrived();
        std::vector<Arrived> input;
        std::vector<Arrived> ended;
        for (const RequestRecord* record : successes_) {
            if (const auto prompt = input_tokens_of(*record); record->first_token && prompt)
                input.push_back({*record->first_token, *prompt});
            ended.push_back({record->done, 1});
        }
        const auto rates = [&](const std::vector<Arrived>& events) {
            const double width =
                (steady.end_seconds - steady.begin_seconds) / double(steady.batches);
            std::vector<double> rate(steady.batches, 0.0);
            for (const Arrived& event : events)
                if (event.at >= steady.begin_seconds && event.at < steady.end_seconds)
                    rate[std::min(steady.batches - 1,
                                  std::size_t((event.at - steady.begin_seconds) / width))] +=
                        event.tokens / width;
            return rate;
        };
        while (steady.batches >= 2 * fewest_batches &&
               lag_one_correlation(rates(output)) > most_correlation)
            steady.batches /= 2;
        steady.lag_one_correlation = lag_one_correlation(rates(output));
        const auto rate = [&](const std::string& metric, const std::vector<double>& batches) {
            const double mean = mean_of(batches);
            const auto n = double(batches.size());
            const double error = std::sqrt(squares_of(batches, mean) / (n - 1) / n);
            const double t = boost::math::quantile(boost::math::students_t(n - 1), 1 - alpha / 2);
            statistics_.standard_errors[metric] = error;
            interval(metric, mean, t * error);
        };
        rate("output_tokens_per_second", rates(output));
        rate("requests_per_second", rates(ended));
        if (result().input_tokens) {
            rate("input_tokens_per_second", rates(input));
            output.insert(output.end(), input.begin(), input.end());
            rate("total_tokens_per_second", rates(output));
        }
        statistics_.steady = steady;
    }

    const LoadRun& run_;
    const Asked& asked_;
    std::vector<const RequestRecord*> successes_;  ///< in the order of sending
    Uncounted uncounted_ = Uncounted::pieces;
    LoadStatistics statistics_;
};

}  // namespace

LoadStatistics statistics_of(const LoadRun& run, const Asked& asked) {
    return Summary(run, asked).statistics();
}

std::vector<double> output_tokens_of(std::span<const RequestRecord> records) {
    std::vector<const RequestRecord*> successes;
    for (const RequestRecord& record : records)
        if (record.succeeded()) successes.push_back(&record);
    const Uncounted uncounted = uncounted_by(successes);
    std::vector<double> result;
    for (const RequestRecord& record : records) result.push_back(counted_tokens(record, uncounted));
    return result;
}

TimeSummary summary_of(std::vector<double> values) {
    TimeSummary result;
    if (values.empty()) return result;
    result.mean = mean_of(values);
    result.standard_deviation = std::sqrt(squares_of(values, *result.mean) / double(values.size()));
    sort(values);
    result.p50 = percentile(values, 0.50);
    result.p90 = percentile(values, 0.90);
    result.p95 = percentile(values, 0.95);
    result.p99 = percentile(values, 0.99);
    return result;
}

Metrics metrics_of(const BenchmarkResult& result) {
    Metrics metrics;
    for_each_figure(result, [&](const std::string& name, const std::optional<double>& field) {
        if (field) metrics[name] = Metric{*field};
    });
    std::optional<double> requested = result.requested_requests;
    if (!requested && result.successful_requests && result.failed_requests)
        requested = *result.successful_requests + *result.failed_requests;
    if (requested && *requested > 0 && result.successful_requests)
        metrics["success_ratio"] = Metric{*result.successful_requests / *requested};
    return metrics;
}

Metrics metrics_of(const LoadStatistics& statistics) {
    Metrics metrics = metrics_of(statistics.result);
    if (const auto& per_token = statistics.result.time_per_output_token.mean;
        per_token && *per_token > 0)
        metrics[std::string(tokens_per_second_per_user)] = Metric{1 / *per_token};
    for (const auto& [name, error] : statistics.standard_errors)
        if (auto* found = entry_in(metrics, name)) found->standard_error = error;
    return metrics;
}

double percentile(std::span<const double> sorted, double q) {
    const double at = q * double(sorted.size() - 1);
    const auto below = std::min(std::size_t(at), sorted.size() - 1);
    const auto above = std::min(below + 1, sorted.size() - 1);
    return sorted[below] + (at - double(below)) * (sorted[above] - sorted[below]);
}

}  // namespace servetune
