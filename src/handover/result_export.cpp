// SPDX-License-Identifier: Apache-2.0
#include "result_export.hpp"

#include "servetune/detail/load/statistics.hpp"
#include "servetune/value.hpp"

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
    if (number == std::floor(number) && std::abs(number) < exact)
        return static_cast<std::int64_t>(number);
    return number;
}

struct Family {
    const char* key;      ///< of vLLM's JSON
    const char* printed;  ///< in its block
    const char* title;
    TimeSummary BenchmarkResult::*times;
};
constexpr std::array<Family, 4> families{
    {{"ttft", "TTFT", "Time to First Token", &BenchmarkResult::time_to_first_token},
     {"tpot", "TPOT", "Time per Output Token (excl. 1st token)",
      &BenchmarkResult::time_per_output_token},
     {"itl", "ITL", "Inter-token Latency", &BenchmarkResult::inter_token_latency},
     {"e2el", "E2EL", "End-to-end Latency", &BenchmarkResult::latency}}};

/// The arrays of a detailed result in vLLM's order: index = request as issued, seconds, zeros for
/// what failed.
void write_records(OrderedJson& json, std::span<const RequestRecord> records) {
    for (const char* key : {"input_lens", "output_lens", "ttfts", "itls", "latencies",
                            "start_times", "queue_times", "generated_texts", "errors"})
        json[key] = OrderedJson::array();
    const std::vector<double> output_tokens = output_tokens_of(records);
    for (std::size_t i = 0; i < records.size(); ++i) {
        const RequestRecord& record = records[i];
        const bool good = record.succeeded();
        json["input_lens"].push_back(record.input_tokens.value_or(0));
        json["output_lens"].push_back(good ? count_json(output_tokens[i]) : OrderedJson(0));
        json["ttfts"].push_back(good && record.first_token ? *record.first_token - record.sent
                                                           : 0.0);
        OrderedJson gaps = OrderedJson::array();
        if (good)
            for (const float gap : record.gaps)
                gaps.push_back(
                    real_of(fmt::format("{}", gap)).value_or(0));  // 0.02, not 0.019999999552965164
        json["itls"].push_back(std::move(gaps));
        json["latencies"].push_back(good ? record.last_token.value_or(record.done) - record.sent
                                         : 0.0);
        json["start_times"].push_back(record.sent);
        json["queue_times"].push_back(record.sent - record.scheduled);
        json["generated_texts"].push_back("");
        std::string error = record.error;
        for (const auto& [end, name] : request_ends)
            if (!good && error.empty() && end == record.end) error = name;
        json["errors"].push_back(good ? "" : error);
    }
}

}  // namespace

std::string vllm_json(const BenchmarkResult& result, const ExportContext& context,
                      std::span<const RequestRecord> records) {
    OrderedJson json;
    const auto text = [](const std::string& value) {
        return value.empty() ? OrderedJson() : OrderedJson(value);
    };
    const auto number = [&](const char* key, const Figure& figure) {
        if (const Figure value = finite(figure)) json[key] = *value;
    };
    const auto integer = [&](const char* key, const Figure& figure) {
        if (const Figure value = finite(figure)) json[key] = count_json(*value);
    };
    json["date"] = context.date;
    json["endpoint_type"] = context.backend;
    json["backend"] = context.backend;
    json["label"] = text(context.label);
    json["model_id"] = context.model;
    json["tokenizer_id"] = text(context.tokenizer);
    integer("num_prompts", result.requested_requests);
    const Figure rate = finite(result.requested_rate_per_second);
    json["request_rate"] = rate ? OrderedJson(*rate) : OrderedJson("inf");
    json["burstiness"] = std::isfinite(context.burstiness)
                             ? OrderedJson(context.burstiness)
                             : OrderedJson("inf");  // as of request_rate
    const Figure concurrency = finite(result.maximum_concurrency);
    json["max_concurrency"] = concurrency ? count_json(*concurrency) : OrderedJson();
    number("duration", result.duration_seconds);
    integer("completed", result.successful_requests);
    integer("failed", result.failed_requests);
    integer("total_input_tokens", result.input_tokens);
    integer("total_output_tokens", result.output_tokens);
    number("request_throughput", result.requests_per_second);
    const Figure goodput = finite(result.goodput_requests_per_second);
    json["request_goodput"] = goodput ? OrderedJson(*goodput) : OrderedJson();
    number("output_throughput", result.output_tokens_per_second);
    number("total_token_throughput", result.total_tokens_per_second);
    if (!records.empty()) write_records(json, records);
    number("max_output_tokens_per_s", result.peak_output_tokens_per_second);
    integer("max_concurrent_requests", result.peak_concurrent_requests);
    json["rtfx"] = 0.0;  // audio only
    for (const Family& family : families) {
        const TimeSummary& times = result.*family.times;
        const std::string suffix = std::string(family.key) + "_ms";
        const auto milliseconds = [&](const char* statistic, const Figure& figure) {
            if (figure && std::isfinite(*figure * 1e3)) json[statistic + suffix] = *figure * 1e3;
        };
        milliseconds("mean_", times.mean);
        milliseconds("median_", times.p50);
        milliseconds("std_", times.standard_deviation);
        milliseconds("p90_", times.p90);
        milliseconds("p95_", times.p95);
        milliseconds("p99_", times.p99);
    }
    OrderedJson& ours = json["servetune"];
    ours = {{"format", 1}};
    if (!context.dataset.empty()) ours["dataset"] = context.dataset;
    if (context.arguments) ours["arguments"] = *context.arguments;
    ours["figures"] = OrderedJson::object();
    for_each_figure(result, [&](const std::string& name, const Figure& figure) {
        if (const Figure value = finite(figure)) ours["figures"][name] = *value;
    });
    return json.dump(-1, ' ', false,
                     OrderedJson::error_handler_t::replace);  // an error's text may be any bytes
}

std::string text_block(const BenchmarkResult& result) {
    constexpr int width = 50;
    std::string block = fmt::format("{:=^{}}\n", " Serving Benchmark Result ", width);
    const auto row = [&](const std::string& label, const Figure& figure, int decimals,
                         double scale = 1) {
        if (figure && std::isfinite(*figure * scale))
            block += fmt::format("{:<40} {:<10}\n", label,
                                 fmt::format("{:.{}f}", *figure * scale, decimals));
    };
    row("Successful requests:", result.successful_requests, 0);
    row("Failed requests:", result.failed_requests, 0);
    row("Maximum request concurrency:", result.maximum_concurrency, 0);
    row("Request rate configured (RPS):", result.requested_rate_per_second, 2);
    row("Benchmark duration (s):", result.duration_seconds, 2);
    row("Total input tokens:", result.input_tokens, 0);
    row("Total generated tokens:", result.output_tokens, 0);
    row("Request throughput (req/s):", result.requests_per_second, 2);
    row("Request goodput (req/s):", result.goodput_requests_per_second, 2);
    row("Output token throughput (tok/s):", result.output_tokens_per_second, 2);
    row("Peak output token throughput (tok/s):", result.peak_output_tokens_per_second, 2);
    row("Peak concurrent requests:", result.peak_concurrent_requests, 2);
    row("Total token throughput (tok/s):", result.total_tokens_per_second, 2);
    for (const Family& family : families) {
        const TimeSummary& times = result.*family.times;
        std::string rows;
        std::swap(rows, block);
        const auto milliseconds = [&](const char* statistic, const Figure& figure) {
            row(fmt::format("{} {} (ms):", statistic, family.printed), figure, 2, 1e3);
        };
        milliseconds("Mean", times.mean);
        milliseconds("Median", times.p50);
        milliseconds("P90", times.p90);
        milliseconds("P95", times.p95);
        milliseconds("P99", times.p99);
        std::swap(rows, block);
        if (!rows.empty()) block += fmt::format("{:-^{}}\n{}", family.title, width, rows);
    }
    return block + std::string(width, '=') + "\n";
}

}  // namespace servetune
