// SPDX-License-Identifier: Apache-2.0
#include "support/figures.hpp"
#include "support/test.hpp"

#include "handover/result_export.hpp"
#include "servetune/result_file.hpp"
#include "servetune/rng.hpp"
#include "servetune/value.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <sstream>

using namespace servetune;
using namespace servetune::test;

namespace {

PublishedResult read_one(const std::string& content) {
    const auto results = read_results(content, "f", {});
    REQUIRE(results.size() == 1);
    return results.front();
}

std::vector<std::string> lines_of_block(const std::string& block) {
    std::istringstream text(block);
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
}

/// A result with every figure, or about half of them.
BenchmarkResult some_result(Rng& rng, bool all) {
    BenchmarkResult result;
    for_each_figure(result, [&](const std::string&, std::optional<double>& figure) {
        const double number = rng.uniform() * std::pow(10.0, 8 * rng.uniform() - 4);
        if (all || rng.uniform() < 0.5) figure = number;
    });
    for (auto* count : {&result.requested_requests, &result.successful_requests,
                        &result.failed_requests, &result.input_tokens, &result.output_tokens,
                        &result.maximum_concurrency, &result.peak_concurrent_requests})
        if (*count) *count = std::floor(**count);
    if (result.successful_requests && result.failed_requests)
        result.requested_requests = *result.successful_requests + *result.failed_requests;
    else if (result.requested_requests < result.successful_requests)  // not believed
        result.requested_requests.reset();
    return result;
}

}  // namespace

TEST_CASE("export: the JSON of a result reads back equal, whatever figures it has") {
    Rng rng(20261121);
    for (int i = 0; i < 200; ++i) {
        const BenchmarkResult result = some_result(rng, i == 0);
        ExportContext context;
        context.model = "org/m";
        context.dataset = "sharegpt";
        context.date = "20261121-120000";
        const std::string json = vllm_json(result, context);
        CHECK_FALSE(has(json, "\n"));
        const PublishedResult read = read_one(json);
        CHECK(figures_of(read.result) == figures_of(result));
        CHECK(read.tool == "servetune");
        CHECK(read.model == "org/m");
        CHECK(read.date == "20261121-120000");
        CHECK(read.labels == std::vector<std::string>{"sharegpt"});
        CHECK(read.arguments_unknown);
    }
}

TEST_CASE("export: the verdict of the run is read back with what was found") {
    Rng rng(3);
    auto json = nlohmann::json::parse(vllm_json(some_result(rng, true), {}));
    CHECK(read_one(json.dump()).validity == Validity{});
    json["servetune"]["verdict"] = "unsound";
    json["servetune"]["findings"] = {
        {{"id", "physics"}, {"left", "1 ms"}, {"right", "19 ms"}, {"cause", "impossible"}}};
    CHECK(read_one(json.dump()).validity ==
          Validity{Verdict::unsound, {{"physics", "1 ms", "19 ms", "impossible"}}});
}

TEST_CASE("export: without our own part the JSON is one of vLLM, with its keys and units") {
    Rng rng(7);
    const BenchmarkResult result = some_result(rng, true);
    auto json = nlohmann::json::parse(vllm_json(result, {}));
    json.erase("servetune");
    const PublishedResult read = read_one(json.dump());
    CHECK(read.tool == "vllm");
    Figures want = figures_of(result);
    for (const char* ours : {"mean_concurrency", "input_tokens_per_second", "tokens_per_chunk"})
        want.erase(ours);
    std::erase_if(want, [](const auto& figure) {
        return figure.first.starts_with("client_") || figure.first.starts_with("server_") ||
               has(figure.first, "from_schedule");
    });
    const Figures got = figures_of(read.result);
    CHECK(got.size() == want.size());
    for (const auto& [name, value] : want) {
        INFO(name);
        REQUIRE(got.contains(name));
        CHECK(got.at(name) == Approx(value).epsilon(1e-12));
    }
    std::set<std::string> keys;
    for (const auto& [key, value] : json.items()) keys.insert(key);
    // serve.py of 2026-09 for --percentile-metrics ttft,tpot,itl,e2el --metric-percentiles
    // 90,95,99.
    std::set<std::string> vllm{"date",
                               "endpoint_type",
                               "backend",
                               "label",
                               "model_id",
                               "tokenizer_id",
                               "num_prompts",
                               "request_rate",
                               "burstiness",
                               "max_concurrency",
                               "duration",
                               "completed",
                               "failed",
                               "total_input_tokens",
                               "total_output_tokens",
                               "request_throughput",
                               "request_goodput",
                               "output_throughput",
                               "total_token_throughput",
                               "max_output_tokens_per_s",
                               "max_concurrent_requests",
                               "rtfx"};
    for (const char* family : {"ttft", "tpot", "itl", "e2el"})
        for (const char* statistic : {"mean_", "median_", "std_", "p90_", "p95_", "p99_"})
            vllm.insert(std::string(statistic) + family + "_ms");
    CHECK(keys == vllm);
    CHECK(json["completed"].is_number_integer());
    CHECK(json["duration"].is_number_float());
    CHECK(json["label"].is_null());
    const auto empty = nlohmann::json::parse(vllm_json({}, {}));
    CHECK(empty["request_rate"] == "inf");
    CHECK(empty["max_concurrency"].is_null());
    CHECK_FALSE(empty.contains("mean_ttft_ms"));
    CHECK_FALSE(empty.contains("completed"));
}

TEST_CASE("export: the block of a result, as vLLM prints it") {
    BenchmarkResult result;
    result.successful_requests = 1000;
    result.failed_requests = 3;
    result.maximum_concurrency = 64;
    result.duration_seconds = 12.345;
    result.input_tokens = 512000;
    result.peak_concurrent_requests = 64;
    result.total_tokens_per_second = 6595.66;
    result.time_to_first_token.mean = 0.01512;
    result.time_per_output_token.p99 = 0.0205;
    result.inter_token_latency.p50 = 0.01;
    result.latency.mean = 1.25;
    CHECK(text_block(result) ==
          "============ Serving Benchmark Result ============\n"
          "Successful requests:                     1000      \n"
          "Failed requests:                         3         \n"
          "Maximum request concurrency:             64        \n"
          "Benchmark duration (s):                  12.35     \n"
          "Total input tokens:                      512000    \n"
          "Peak concurrent requests:                64.00     \n"
          "Total token throughput (tok/s):          6595.66   \n"
          "---------------Time to First Token----------------\n"
          "Mean TTFT (ms):                          15.12     \n"
          "-----Time per Output Token (excl. 1st token)------\n"
          "P99 TPOT (ms):                           20.50     \n"
          "---------------Inter-token Latency----------------\n"
          "Median ITL (ms):                         10.00     \n"
          "----------------End-to-end Latency----------------\n"
          "Mean E2EL (ms):                          1250.00   \n"
          "==================================================\n");
}

TEST_CASE("export: the block of a result reads back equal, to its two decimals") {
    Rng rng(11);
    for (int i = 0; i < 200; ++i) {
        const BenchmarkResult result = some_result(rng, i == 0);
        const std::string block = text_block(result);
        const PublishedResult read = read_one(block);
        CHECK(read.unread.empty());
        // What prints as 0 and was not measured is absent; all else prints alike.
        const std::vector<std::string> before = lines_of_block(block),
                                       after = lines_of_block(text_block(read.result));
        for (const std::string& line : after)
            CHECK(std::count(before.begin(), before.end(), line) == 1);
        std::size_t absent = 0;
        for (const std::string& line : before) {
            if (std::count(after.begin(), after.end(), line) == 1 || line.starts_with("--"))
                continue;
            ++absent;
            INFO(line);
            CHECK((has(line, " 0.00 ") || has(line, " 0  ") || result.successful_requests == 0));
        }
        const Figures original = figures_of(result);
        for (const auto& [name, value] : figures_of(read.result)) {
            INFO(name);
            REQUIRE(original.contains(name));
            CHECK(value == Approx(original.at(name))
                               .margin(name.ends_with("_seconds") && name != "duration_seconds"
                                           ? 5.001e-6
                                           : 5.001e-3));
        }
        if (i == 0)
            CHECK(figures_of(read.result).size() + absent ==
                  14 + 4 * 5);  // requests sent are the sum of two
    }
}
