// SPDX-License-Identifier: Apache-2.0
#include "result_export.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cmath>

namespace servetune {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Figure = std::optional<double>;

/// What JSON can hold.
Figure finite(const Figure& figure) {
    return figure && std::isfinite(*figure) ? figure : std::nullopt;
}

/// vLLM's counts are integers in its files; ours may be fractions where a tool gave a mean.
OrderedJson count_json(double number) {
    constexpr double exact = 9007199254740992.0;  // 2^53: beyond, not every integer is a double
    if (number == std::floor(number) && std::abs(number) < exact) return std::int64_t(number);
    return number;
}

using B = BenchmarkResult;

/// A figure in vLLM's JSON and in its block, in the order of the block; an empty name: not there.
struct ExportRow {
    const char* key;
    const char* printed;
    Figure B::*figure;
    int decimals;  ///< 0: a count, an integer in the JSON
};
constexpr std::array<ExportRow, 13> export_rows{
    {{"completed", "Successful requests:", &B::successful_requests, 0},
     {"failed", "Failed requests:", &B::failed_requests, 0},
     {"", "Maximum request concurrency:", &B::maximum_concurrency, 0},
     {"", "Request rate configured (RPS):", &B::requested_rate_per_second, 2},
     {"duration", "Benchmark duration (s):", &B::duration_seconds, 2},
     {"total_input_tokens", "Total input tokens:", &B::input_tokens, 0},
     {"total_output_tokens", "Total generated tokens:", &B::output_tokens, 0},
     {"request_throughput", "Request throughput (req/s):", &B::requests_per_second, 2},
     {"", "Request goodput (req/s):", &B::goodput_requests_per_second, 2},
     {"output_throughput", "Output token throughput (tok/s):", &B::output_tokens_per_second, 2},
     {"max_output_tokens_per_s",
      "Peak output token throughput (tok/s):", &B::peak_output_tokens_per_second, 2},
     {"", "Peak concurrent requests:", &B::peak_concurrent_requests, 2},
     {"total_token_throughput", "Total token throughput (tok/s):", &B::total_tokens_per_second,
      2}}};
struct ExportFamily {
    const char* key;
    const char* printed;
    const char* title;
    TimeSummary B::*times;
};
constexpr std::array<ExportFamily, 4> export_families{
    {{"ttft_ms", "TTFT (ms):", "Time to First Token", &B::time_to_first_token},
     {"tpot_ms", "TPOT (ms):", "Time per Output Token (excl. 1st token)",
      &B::time_per_output_token},
     {"itl_ms", "ITL (ms):", "Inter-token Latency", &B::inter_token_latency},
     {"e2el_ms", "E2EL (ms):", "End-to-end Latency", &B::latency}}};
struct ExportStatistic {
    const char* key;
    const char* printed;
    Figure TimeSummary::*figure;
};
constexpr std::array<ExportStatistic, 6> export_statistics{
    {{"mean_", "Mean ", &TimeSummary::mean},
     {"median_", "Median ", &TimeSummary::p50},
     {"p90_", "P90 ", &TimeSummary::p90},
     {"p95_", "P95 ", &TimeSummary::p95},
     {"p99_", "P99 ", &TimeSummary::p99},
     {"std_", "", &TimeSummary::standard_deviation}}};

/// In milliseconds; nothing where that is not finite.
Figure milliseconds(const Figure& seconds) {
    return finite(seconds ? Figure(*seconds * 1e3) : std::nullopt);
}

}  // namespace

std::string vllm_json(const BenchmarkResult& result, const ExportContext& context) {
    OrderedJson json;
    const auto or_else = [](const Figure& figure, OrderedJson none) {
        const Figure value = finite(figure);
        return value ? OrderedJson(*value) : std::move(none);
    };
    json["date"] = context.date;
    json["endpoint_type"] = context.backend;
    json["backend"] = context.backend;
    json["label"] = nullptr;
    json["model_id"] = context.model;
    json["tokenizer_id"] = nullptr;
    if (const Figure value = finite(result.requested_requests))
        json["num_prompts"] = count_json(*value);
    json["request_rate"] = or_else(result.requested_rate_per_second, "inf");
    json["burstiness"] = or_else(context.burstiness, "inf");  // as of request_rate
    const Figure concurrency = finite(result.maximum_concurrency);
    json["max_concurrency"] = concurrency ? count_json(*concurrency) : OrderedJson();
    json["request_goodput"] = or_else(result.goodput_requests_per_second, nullptr);
    if (const Figure peak = finite(result.peak_concurrent_requests))
        json["max_concurrent_requests"] = count_json(*peak);
    for (const ExportRow& row : export_rows)
        if (const Figure value = finite(result.*row.figure); value && *row.key != '\0')
            json[row.key] = row.decimals == 0 ? count_json(*value) : OrderedJson(*value);
    json["rtfx"] = 0.0;  // audio only
    for (const ExportFamily& family : export_families)
        for (const ExportStatistic& one : export_statistics)
            if (const Figure value = milliseconds(result.*family.times.*one.figure))
                json[std::string(one.key) + family.key] = *value;
    OrderedJson& ours = json["servetune"];
    ours = {{"format", 1}};
    if (!context.dataset.empty()) ours["dataset"] = context.dataset;
    ours["figures"] = OrderedJson::object();
    for_each_figure(result, [&](const std::string& name, const Figure& figure) {
        if (const Figure value = finite(figure)) ours["figures"][name] = *value;
    });
    return json.dump(-1, ' ', false,
                     OrderedJson::error_handler_t::replace);  // an error's text may be any bytes
}

std::string text_block(const BenchmarkResult& result) {
    constexpr int width = 50;
    const auto row = [](const std::string& label, const Figure& figure, int decimals) {
        return finite(figure) ? fmt::format("{:<40} {:<10}\n", label,
                                            fmt::format("{:.{}f}", *figure, decimals))
                              : "";
    };
    std::string block = fmt::format("{:=^{}}\n", " Serving Benchmark Result ", width);
    for (const ExportRow& one : export_rows)
        block += row(one.printed, result.*one.figure, one.decimals);
    for (const ExportFamily& family : export_families) {
        std::string rows;
        for (const ExportStatistic& one : export_statistics)
            if (*one.printed != '\0')
                rows += row(std::string(one.printed) + family.printed,
                            milliseconds(result.*family.times.*one.figure), 2);
        if (!rows.empty()) block += fmt::format("{:-^{}}\n{}", family.title, width, rows);
    }
    return block + std::string(width, '=') + "\n";
}

}  // namespace servetune
