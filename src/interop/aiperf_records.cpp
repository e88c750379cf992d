// SPDX-License-Identifier: Apache-2.0
#include "aiperf_records.hpp"

#include "result_formats.hpp"
#include "servetune/detail/load/statistics.hpp"
#include "servetune/error.hpp"

#include <algorithm>
#include <cmath>

namespace servetune {
namespace {

using Json = nlohmann::json;

/// Adds a time of a record, one or several (`inter_chunk_latency`). Without a known unit it is
/// none.
void add_times_of_record(const Json& record, std::string_view metric, std::vector<double>& into) {
    const Json* value = node_at(record, {"metrics", metric, "value"});
    const auto exponent = time_exponent_of(text_at(record, {"metrics", metric, "unit"}));
    if (value == nullptr || !exponent) return;
    const auto add = [&](const Json& one) {
        if (const auto figure = figure_at(one, {}, *exponent)) into.push_back(*figure);
    };
    if (value->is_array()) std::for_each(value->begin(), value->end(), add);
    else add(*value);
}

std::optional<std::int64_t> nanoseconds_at(const Json& record, std::string_view name) {
    const Json* value = node_at(record, {"metadata", name});
    if (value == nullptr || !value->is_number_integer()) return std::nullopt;
    if (value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX) return std::nullopt;
    const auto number = value->get<std::int64_t>();
    return number < 0 ? std::nullopt : std::optional(number);
}

TimeSummary summary_of_times(const std::vector<double>& times) {
    if (times.empty()) return {};
    const TimeSummary found = summary_of(times);
    TimeSummary finite;
    for (auto figure : {&TimeSummary::mean, &TimeSummary::p50, &TimeSummary::p90, &TimeSummary::p95,
                        &TimeSummary::p99, &TimeSummary::standard_deviation})
        if (const auto& value = found.*figure; value && std::isfinite(*value))
            finite.*figure = value;
    return finite;
}

}  // namespace

bool AiperfRecords::recognises(const Json& value) {
    const Json* metrics = node_at(value, {"metrics"});
    return metrics != nullptr && metrics->is_object() &&
           nanoseconds_at(value, "request_start_ns") && nanoseconds_at(value, "request_end_ns");
}

void AiperfRecords::add(const Json& record) {
    const std::string phase = text_at(record, {"metadata", "benchmark_phase"});
    if (!phase.empty() && phase != "profiling") {
        ++warm_up_;
        return;
    }
    const Json* error = node_at(record, {"error"});
    if (error != nullptr && !error->is_null()) {
        ++failures_;
        const Json* cancelled = node_at(record, {"metadata", "was_cancelled"});
        if (cancelled != nullptr && *cancelled == true) ++cancelled_;
        return;
    }
    ++successes_;
    const auto start = nanoseconds_at(record, "request_start_ns"),
               end = nanoseconds_at(record, "request_end_ns");
    if (start && (!first_start_ || *start < *first_start_)) first_start_ = start;
    if (end && (!last_end_ || *end > *last_end_)) last_end_ = end;
    add_times_of_record(record, "time_to_first_token", time_to_first_token_);
    add_times_of_record(record, "inter_token_latency", time_per_output_token_);
    add_times_of_record(record, "inter_chunk_latency", inter_token_latency_);
    add_times_of_record(record, "request_latency", latency_);
    const auto count = [&](std::string_view metric, Tokens& tokens) {
        const auto value = figure_at(record, {"metrics", metric, "value"});
        if (!value || text_at(record, {"metrics", metric, "unit"}) != "tokens") return;
        tokens.sum += *value;
        ++tokens.counted;
    };
    count("input_sequence_length", input_);
    count("output_sequence_length", output_);
}

PublishedResult AiperfRecords::result() const {
    if (successes_ + failures_ == 0)
        throw ParseError(
            "records of AIPerf, all of them of its warm-up: those of the measurement wanted");
    PublishedResult result;
    result.tool = "aiperf";
    result.arguments_unknown = true;
    BenchmarkResult& figures = result.result;
    figures.successful_requests = static_cast<double>(successes_);
    figures.failed_requests = static_cast<double>(failures_);
    if (first_start_ && last_end_)
        figures.duration_seconds = static_cast<double>(*last_end_ - *first_start_) / 1e9;
    const auto total = [&](const Tokens& tokens) {
        return successes_ > 0 && tokens.counted == successes_ && std::isfinite(tokens.sum)
                   ? std::optional(tokens.sum)
                   : std::nullopt;
    };
    figures.input_tokens = total(input_);
    figures.output_tokens = total(output_);
    const auto a_second = [&](const std::optional<double>& amount) -> std::optional<double> {
        if (!amount || !figures.duration_seconds) return std::nullopt;
        const double rate = *amount / *figures.duration_seconds;
        return std::isfinite(rate) ? std::optional(rate) : std::nullopt;
    };
    figures.requests_per_second = a_second(figures.successful_requests);
    figures.output_tokens_per_second = a_second(figures.output_tokens);
    if (figures.input_tokens && figures.output_tokens)
        figures.total_tokens_per_second = a_second(*figures.input_tokens + *figures.output_tokens);
    figures.time_to_first_token = summary_of_times(time_to_first_token_);
    figures.time_per_output_token = summary_of_times(time_per_output_token_);
    figures.inter_token_latency = summary_of_times(inter_token_latency_);
    figures.latency = summary_of_times(latency_);
    if (warm_up_ > 0) result.unread["warm-up requests"] = std::to_string(warm_up_);
    if (cancelled_ > 0)
        result.unread["cancelled requests"] = std::to_string(cancelled_) + " of the failed";
    return result;
}

}  // namespace servetune
