// SPDX-License-Identifier: Apache-2.0
// Pages of metrics as engines write them, and as nobody should: what is read, what is absent.
#include "load/metrics_page.hpp"
#include "load/server_window.hpp"

#include "base/files.hpp"
#include "servetune/catalogue.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include <filesystem>
#include <map>
#include <regex>
#include <string>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

/// Two engines of one server, as prometheus_client writes them.
const std::string two_engines =
    R"(# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="Qwen/Qwen3-8B"} 1.0e+03
vllm:prompt_tokens_total{engine="1",model_name="a}b\"c le=\"7\" "} 500.0 1700000000000
vllm:prompt_tokens_created{engine="0",model_name="Qwen/Qwen3-8B"} 1.7e+09
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.6
vllm:request_prompt_tokens_bucket{engine="0",le="1.0",model_name="m"} 0.0
vllm:request_prompt_tokens_bucket{engine="0",le="100.0",model_name="m"} 4.0
vllm:request_prompt_tokens_bucket{engine="0",le="+Inf",model_name="m"} 5.0
vllm:request_prompt_tokens_count{engine="0",model_name="m"} 5.0
vllm:request_prompt_tokens_sum{engine="0",model_name="m"} 700.0
vllm:request_prompt_tokens_bucket{engine="1",le="1.0",model_name="m"} 1.0
vllm:request_prompt_tokens_bucket{engine="1",le="100.0",model_name="m"} 1.0
vllm:request_prompt_tokens_bucket{engine="1",le="+Inf",model_name="m"} 1.0
vllm:request_prompt_tokens_count{engine="1",model_name="m"} 1.0
vllm:request_prompt_tokens_sum{engine="1",model_name="m"} 1.0
)";

Histogram histogram(std::vector<double> bounds, std::vector<double> counts, double sum) {
    Histogram result{std::move(bounds), std::move(counts), 0, sum};
    for (const double count : result.counts) result.count += count;
    return result;
}

std::string bucket_line(const std::string& le, const std::string& value) {
    return "h_bucket{le=\"" + le + "\"} " + value + "\n";
}

std::string small_histogram(const std::string& first_le, const std::string& first,
                            const std::string& last, const std::string& count) {
    return bucket_line(first_le, first) + bucket_line("+Inf", last) + "h_count " + count +
           "\nh_sum 1\n";
}

}  // namespace

TEST_CASE(
    "metrics page: values are summed over models and engines, whatever stands in their labels") {
    CHECK(metric_in(two_engines, "vllm:prompt_tokens_total") == 1500);
    CHECK(samples_in(two_engines, "vllm:kv_cache_usage_perc")->mean() == Approx(0.4));
    CHECK_FALSE(metric_in(two_engines, "vllm:prompt_tokens"));
    CHECK_FALSE(metric_in("", "x"));
    const auto prompts = histogram_in(two_engines, "vllm:request_prompt_tokens");
    REQUIRE(prompts);
    CHECK(prompts->bounds == std::vector<double>{1, 100});
    CHECK(prompts->counts == std::vector<double>{1, 4, 1});
    CHECK(prompts->count == 6);
    CHECK(prompts->mean() == Approx(701.0 / 6));
}

TEST_CASE(
    "metrics page: a number that cannot be makes its metric absent, and no line makes a reader of "
    "others") {
    for (const char* value : {"NaN", "-1", "+Inf", "-Inf", "1e999", "", "x", "0x10", "1,5"}) {
        INFO(value);
        CHECK_FALSE(metric_in("a 3\na{b=\"c\"} " + std::string(value) + "\n", "a"));
    }
    CHECK(metric_in("a{b=\"c 9\na 2\r\n# a 7\n{ 5\na{b=c} 4\n=\n", "a") ==
          2);  // labels that are not closed or quoted are no sample
    CHECK(metric_in(std::string(1'000'000, '{') + "\na{" + std::string(1'000'000, ',') + "} 3\n",
                    "a") == 3);
    CHECK_FALSE(histogram_in(small_histogram("1", "3", "2", "2"), "h"));    // falls
    CHECK_FALSE(histogram_in(small_histogram("1", "1", "2", "5"), "h"));    // other count
    CHECK_FALSE(histogram_in(small_histogram("NaN", "1", "2", "2"), "h"));  // no bound
    CHECK_FALSE(histogram_in(small_histogram("1", "-1", "2", "2"), "h"));
    CHECK_FALSE(
        histogram_in(small_histogram("1", "1", "2", "2") + "h_bucket{le=\"1\",engine=\"1\"} 1\n",
                     "h"));  // series differ
    CHECK_FALSE(
        histogram_in(bucket_line("1", "1") + "h_count 1\nh_sum 1\n", "h"));  // nothing above all
    CHECK(histogram_in(small_histogram("1", "1", "2", "2"), "h"));
    std::string many;
    for (int i = 0; i < 2000; ++i) many += bucket_line(std::to_string(i), "0");
    CHECK_FALSE(histogram_in(many + small_histogram("3000", "1", "2", "2"), "h"));
}

TEST_CASE(
    "metrics page: a quantile lies in its bucket, which is said, and above the last bound only "
    "that is known") {
    const Histogram times = histogram({0.1, 0.2, 0.4}, {0, 8, 0, 2}, 3);
    const auto median = quantile_of(times, 0.5);
    REQUIRE(median);
    CHECK(median->value == Approx(0.1 + 0.1 * 5 / 8));
    CHECK(median->low == 0.1);
    CHECK(median->high == 0.2);
    const auto worst = quantile_of(times, 0.99);
    REQUIRE(worst);
    CHECK(worst->value == 0.4);
    CHECK_FALSE(worst->high);
    CHECK_FALSE(quantile_of(histogram({1}, {0, 0}, 0), 0.5));
}

TEST_CASE("metrics page: a window is the difference of two readings, and a restart is none") {
    const std::map<std::string, std::string> names{{"prompt_tokens", "p"},
                                                   {"prefix_queried_tokens", "p + c"},
                                                   {"prefix_hit_tokens", "c"},
                                                   {"running_requests", "r"},
                                                   {"latency_seconds", "h"}};
    const auto page = [](int prompt, int cached, int running, int requests, double start) {
        return "p " + std::to_string(prompt) + "\nc " + std::to_string(cached) + "\nr " +
               std::to_string(running) + "\n" +
               small_histogram("1", std::to_string(requests), std::to_string(requests),
                               std::to_string(requests)) +
               "process_start_time_seconds " + std::to_string(start) + "\n";
    };
    const ServerReading before = ServerReading::of(page(100, 10, 4, 2, 5), names, 10);
    const auto window =
        ServerWindow::between(before, ServerReading::of(page(400, 110, 6, 12, 5), names, 20));
    REQUIRE(window);
    CHECK(window->seconds == 10);
    CHECK(window->per_second("prompt_tokens") == 30);
    CHECK(window->hit_share() == 0.25);
    CHECK(window->gauge("running_requests") == 5);
    CHECK(window->requests() == 10);
    CHECK_FALSE(ServerWindow::between(
        before, ServerReading::of(page(99, 10, 4, 2, 5), names, 20)));  // a counter fell
    CHECK_FALSE(ServerWindow::between(
        before, ServerReading::of(page(400, 110, 6, 12, 9), names, 20)));  // another start
    CHECK_FALSE(ServerWindow::between(before, before));
    // A counter that was not there before counts since nobody knows when.
    CHECK_FALSE(ServerWindow::between(ServerReading::of("r 1\n", names, 1), before)
                    ->counter("prompt_tokens"));
    CHECK(ServerReading::of("<html>503</html>", names, 0).empty());
}

TEST_CASE(
    "metrics page: every shipped engine with counters names what a watch needs, or nothing of its "
    "kind") {
    for (const Engine& engine : shipped_catalogue.engines()) {
        INFO(engine.name);
        if (engine.counters.empty()) continue;
        for (const char* name : {"url", "prompt_tokens", "generated_tokens", "prefix_hit_tokens",
                                 "running_requests", "waiting_requests"})
            CHECK(engine.counters.contains(name));
        std::size_t histograms = 0;
        for (const std::string_view name : watched_histograms)
            histograms += engine.counters.contains(std::string(name)) ? 1 : 0;
        CHECK((histograms == 0 || histograms == watched_histograms.size()));
    }
}

TEST_CASE("metrics page: the dashboard asks for metrics that an engine file names") {
    std::string names;
    for (const Engine& engine : shipped_catalogue.engines())
        for (const auto& [ours, theirs] : engine.counters) names += " " + theirs + " ";
    const std::string text =
        read_file(fs::path(SERVETUNE_SOURCE) / "packaging" / "grafana" / "servetune.json");
    const std::regex metric("(vllm|sglang|llamacpp):([a-z0-9_]+)");
    std::size_t found = 0;
    for (std::sregex_iterator at(text.begin(), text.end(), metric), end; at != end; ++at, ++found) {
        INFO(at->str());
        const std::string whole =
            std::regex_replace(at->str(), std::regex("_(bucket|count|sum)$"), "");
        CHECK((has(names, " " + at->str() + " ") || has(names, " " + whole + " ")));
    }
    CHECK(found > 50);
}

TEST_CASE("metrics page: pages of SGLang and llama.cpp are read under the shipped names") {
    const auto counters_of = [](const std::string& name) {
        for (const Engine& engine : shipped_catalogue.engines())
            if (engine.name == name) return engine.counters;
        FAIL("no engine " << name);
        return std::map<std::string, std::string>{};
    };
    // As 0.5.23 writes them: labels of the scheduler, of streaming and of the cache's source.
    const std::string labels =
        R"({engine_type="unified",model_name="Qwen/Qwen3-8B",moe_ep_rank="0",pp_rank="0",tp_rank="0"})";
    const std::string sglang = "# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs" +
                               labels + " 3.0\nsglang:num_queue_reqs" + labels +
                               " 1.0\nsglang:token_usage" + labels + R"( 0.07
sglang:prompt_tokens_total{is_streaming="true",model_name="Qwen/Qwen3-8B"} 900.0
sglang:prompt_tokens_total{is_streaming="false",model_name="Qwen/Qwen3-8B"} 100.0
sglang:generation_tokens_total{is_streaming="true",model_name="Qwen/Qwen3-8B"} 64.0
sglang:cached_tokens_total{cache_source="device",model_name="Qwen/Qwen3-8B"} 200.0
sglang:cached_tokens_total{cache_source="host",model_name="Qwen/Qwen3-8B"} 50.0
sglang:e2e_request_latency_seconds_sum{is_streaming="true",model_name="Qwen/Qwen3-8B"} 4.5
sglang:e2e_request_latency_seconds_bucket{is_streaming="true",le="0.1",model_name="Qwen/Qwen3-8B"} 0.0
sglang:e2e_request_latency_seconds_bucket{is_streaming="true",le="2.0",model_name="Qwen/Qwen3-8B"} 4.0
sglang:e2e_request_latency_seconds_bucket{is_streaming="true",le="+Inf",model_name="Qwen/Qwen3-8B"} 4.0
sglang:e2e_request_latency_seconds_count{is_streaming="true",model_name="Qwen/Qwen3-8B"} 4.0
)";
    const ServerReading of_sglang = ServerReading::of(sglang, counters_of("sglang"), 0);
    CHECK(of_sglang.counters.at("prompt_tokens") == 1000);
    CHECK(of_sglang.counters.at("prefix_hit_tokens") == 250);
    CHECK(of_sglang.gauges.at("running_requests") == 3);
    CHECK(of_sglang.gauges.at("cache_used_share") == Approx(0.07));
    CHECK(of_sglang.histograms.at("latency_seconds").mean() == Approx(1.125));
    CHECK_FALSE(of_sglang.counters.contains("preemptions"));  // there from the first one on
    const std::string llama =
        R"(# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 300
llamacpp:prompt_tokens_cached_total 100
llamacpp:tokens_predicted_total 80
llamacpp:requests_processing 2
llamacpp:requests_deferred 0
)";
    const ServerReading of_llama = ServerReading::of(llama, counters_of("llama.cpp"), 0);
    CHECK(of_llama.counters.at("prefix_queried_tokens") == 400);
    CHECK(of_llama.counters.at("prefix_hit_tokens") == 100);
    CHECK(of_llama.gauges.at("running_requests") == 2);
    CHECK(of_llama.histograms.empty());
}

TEST_CASE("metrics page: a number that no server counts to is not read") {
    CHECK(samples_in("a 9007199254740992\n", "a")->sum == 9007199254740992);
    for (const char* value : {"1e16", "1e308", "1e400", "NaN", "+Inf", "-1"})
        CHECK_FALSE(samples_in(std::string("a ") + value + "\n", "a"));
}
