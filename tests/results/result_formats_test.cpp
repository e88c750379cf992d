// SPDX-License-Identifier: Apache-2.0
// Formats of results that came after the first seven: sweeps of vLLM, AIPerf's configuration of
// 2026, its records and sweeps, GenAI-Perf's table.
#include "support/result_samples.hpp"

#include "results/import.hpp"
#include "study/table.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;

/// The third run of the sweep: the second combination of flags.
Figures third_run() {
    Figures want{{"requested_requests", 40},
                 {"successful_requests", 39},
                 {"failed_requests", 1},
                 {"duration_seconds", 8},
                 {"maximum_concurrency", 16},
                 {"peak_concurrent_requests", 16},
                 {"input_tokens", 3900},
                 {"output_tokens", 1950},
                 {"requests_per_second", 4.875},
                 {"output_tokens_per_second", 243.75},
                 {"peak_output_tokens_per_second", 292.5},
                 {"total_tokens_per_second", 731.25}};
    add_times(want, "time_to_first_token", 0.08);
    add_times(want, "time_per_output_token", 0.0125);
    add_times(want, "inter_token_latency", 0.0125);
    add_times(want, "latency", 0.6925);
    return want;
}

}  // namespace

TEST_CASE("result files of a sweep of vLLM: a list of runs, labelled by what they differ in") {
    const auto runs = sample_results("sweep-summary.json");
    REQUIRE(runs.size() == 3);
    check_figures(runs[2], third_run());
    CHECK(runs[2].tool == "vllm");
    CHECK(runs[2].model == "example/model-8b");
    CHECK(runs[2].date == "20260915-100016");
    CHECK(runs[0].labels.empty());
    CHECK(runs[0].run == "enable_prefix_caching=false, max_concurrency=8, max_num_seqs=8");
    CHECK(runs[1].run == runs[0].run);
    CHECK(runs[2].run == "enable_prefix_caching=true, max_concurrency=16, max_num_seqs=32");
    CHECK(runs[1].unread.at("run_number") == "1");
    CHECK(runs[2].unread.at("max_num_seqs") == "32");
    // The settings are the server's: a study can be made of them. Names may be spelled as flags.
    CHECK(runs[2].server_settings.at("max_num_seqs") == "32");
    CHECK(runs[2].server_settings_are_given);
    CHECK(runs[2].index == 2);
    Json spelled = Json::parse(sample_text("sweep-summary.json"));
    spelled[0]["max-num-batched-tokens"] = 2048;
    CHECK(results_in(spelled.dump())[0].server_settings.at("max_num_batched_tokens") == "2048");
    // A run's own file, and the one before the measurement.
    Json one = spelled[0];
    one["_benchmark_name"] = "small";
    CHECK(results_in(one.dump()).front().labels == std::vector<std::string>{"small"});
    one["run_number"] = -1;
    CHECK(results_in(one.dump()).front().labels == std::vector<std::string>{"small", "warm-up"});
}

TEST_CASE("result files of a sweep of vLLM: the table that pandas writes") {
    const std::string table = sample_text("sweep-summary.csv");
    const auto runs = results_in(table);
    REQUIRE(runs.size() == 3);
    check_figures(runs[2], third_run());
    CHECK(is_result_table(table));
    CHECK(runs[0].labels == std::vector<std::string>{"default"});
    CHECK(runs[0].run == "enable_prefix_caching=false, max_concurrency=8");
    CHECK_FALSE(runs[0].unread.contains("max_num_seqs"));
    CHECK(runs[1].unread.at("max_num_seqs") == "8");  // 8.0 in the file
    CHECK(runs[1].unread.at("enable_prefix_caching") == "false");
    CHECK(runs[0].result.latency.mean == Approx(0.54));
    CHECK(runs[2].index == 2);
    const std::string header = "duration,completed,request_throughput,model_id,latencies\n";
    CHECK(results_in("\xEF\xBB\xBF" + header + "2.0,2,1.0,7e5,\"[0.5, 0.25]\"\r\n").size() == 1);
    CHECK(results_in(header + "2.0,2,1.0,7e5,\n").front().model == "7e5");
    CHECK(refusal(header + "2.0,2,1.0\n") == "f:2: 5 cells wanted, got 3");
    CHECK(refusal(header + "2.0,x,1.0,m,\n")
              .starts_with("f:2: no run: numbers wanted in duration, completed"));
    CHECK(refusal(header) == "f: a table of `vllm bench sweep` without a row");
    CHECK(refusal(header + "2.0,2,1.0,\"m,\n").find("f:2:") == 0);
    CHECK_FALSE(is_result_table("index,duration,completed\n"));
    CHECK_FALSE(is_result_table(csv_of(runs)));
}

TEST_CASE(
    "result files of AIPerf 0.10 to 0.13: the load and the model of the new configuration, what "
    "was in flight") {
    const PublishedResult result = sample_results("aiperf-0.13.json").front();
    Figures want{{"requested_requests", 42},      {"successful_requests", 40},
                 {"failed_requests", 2},          {"duration_seconds", 10},
                 {"maximum_concurrency", 8},      {"requested_rate_per_second", 4.2},
                 {"mean_concurrency", 2.2},       {"peak_concurrent_requests", 5},
                 {"input_tokens", 4000},          {"output_tokens", 2000},
                 {"requests_per_second", 4},      {"output_tokens_per_second", 200},
                 {"total_tokens_per_second", 600}};
    add_times(want, "time_to_first_token", 0.05, 1.15, 1.2);
    add_times(want, "time_per_output_token", 0.01, 1.15, 1.2);
    add_times(want, "inter_token_latency", 0.01, 1.15, 1.2);
    add_times(want, "latency", 0.54, 1.15, 1.2);
    check_figures(result, want);
    CHECK(result.model == "example/model-8b");
    CHECK(result.tool_version == "0.13.0");
    CHECK(result.unread == Unread{{"input_sequence_length", "100 tokens"},
                                  {"output_sequence_length", "50 tokens"},
                                  {"time_to_second_token", "10 ms"}});
    // Of two measured phases neither is the run's load; a schema from the future is read with a
    // note.
    Json changed = Json::parse(sample_text("aiperf-0.13.json"));
    changed["input_config"]["phases"].push_back(
        {{"name", "peak"}, {"kind", "profiling"}, {"concurrency", 64}});
    changed["schema_version"] = "2.0";
    const PublishedResult two = results_in(changed.dump()).front();
    CHECK_FALSE(two.result.maximum_concurrency);
    CHECK_FALSE(two.result.requested_rate_per_second);
    CHECK(two.unread.at("schema_version") == "2.0: newer than 1.5, read as 1.5");
    // Where every request failed the count of successes is left out.
    const auto failed = results_in(
        R"({"schema_version": "1.5", "error_request_count": {"unit": "requests", "avg": 9},
        "request_error_rate": {"unit": "%", "avg": 100.0}})");
    check_figures(failed.front(),
                  {{"successful_requests", 0}, {"failed_requests", 9}, {"requested_requests", 9}});
}

TEST_CASE("result files of AIPerf: the table beside the JSON has the same figures") {
    const std::string table = sample_text("aiperf.csv");
    const PublishedResult result = results_in(table).front();
    CHECK(result.tool == "aiperf");
    CHECK(result.arguments_unknown);
    check_figures(result, {{"requested_requests", 50},
                           {"successful_requests", 48},
                           {"failed_requests", 2},
                           {"duration_seconds", 12},
                           {"input_tokens", 9600},
                           {"output_tokens", 4800},
                           {"requests_per_second", 4},
                           {"output_tokens_per_second", 400},
                           {"total_tokens_per_second", 1200},
                           {"time_to_first_token_mean_seconds", 0.08025},
                           {"time_to_first_token_p50_seconds", 0.079},
                           {"time_to_first_token_p90_seconds", 0.0905},
                           {"time_to_first_token_p95_seconds", 0.095},
                           {"time_to_first_token_p99_seconds", 0.11},
                           {"time_to_first_token_standard_deviation_seconds", 0.008},
                           {"time_per_output_token_mean_seconds", 0.02},
                           {"time_per_output_token_p50_seconds", 0.0199},
                           {"time_per_output_token_p90_seconds", 0.0221},
                           {"time_per_output_token_p95_seconds", 0.0225},
                           {"time_per_output_token_p99_seconds", 0.023},
                           {"time_per_output_token_standard_deviation_seconds", 0.001},
                           {"latency_mean_seconds", 2.06},
                           {"latency_p50_seconds", 2.05},
                           {"latency_p90_seconds", 2.2},
                           {"latency_p95_seconds", 2.25},
                           {"latency_p99_seconds", 2.4},
                           {"latency_standard_deviation_seconds", 0.1}});
    CHECK(result.unread ==
          Unread{{"input_sequence_length", "200 tokens"}, {"telemetry of GPUs", "1 rows"}});
    CHECK(is_result_table(table));
    // Sections of one kind, lost cells, a metric twice.
    CHECK(results_in("Metric,Value\nError Request Count,9.00\n").front().result.failed_requests ==
          9);
    CHECK(refusal("Metric,Value\nRequest Count,9\nRequest Count,8\n") ==
          "f:3: 'Request Count' is there twice");
    CHECK(refusal("Metric,Value\nRequest Count,\nx\n") == "f:3: 2 cells wanted, got 1");
    CHECK(refusal("Metric,avg,sum,min,std\nRequest Latency (ms),1,1,1,0\n")
              .find("without a number of requests") != std::string::npos);
}

TEST_CASE("result files of GenAI-Perf: its table, with commas in its numbers") {
    const std::string table = sample_text("genai-perf.csv");
    CHECK(is_result_table(table));
    const PublishedResult result = results_in(table).front();
    CHECK(result.tool == "genai-perf");
    CHECK(result.arguments_unknown);
    check_figures(result, {{"successful_requests", 1048},
                           {"requests_per_second", 14},
                           {"output_tokens_per_second", 1400},
                           {"goodput_requests_per_second", 9.5},
                           {"time_to_first_token_mean_seconds", 1.18025},
                           {"time_to_first_token_p50_seconds", 0.79},
                           {"time_to_first_token_p90_seconds", 1.9005},
                           {"time_to_first_token_p95_seconds", 1.95},
                           {"time_to_first_token_p99_seconds", 2.11},
                           {"time_per_output_token_mean_seconds", 0.02},
                           {"time_per_output_token_p50_seconds", 0.0199},
                           {"time_per_output_token_p90_seconds", 0.0221},
                           {"time_per_output_token_p95_seconds", 0.0225},
                           {"time_per_output_token_p99_seconds", 0.023},
                           {"latency_mean_seconds", 3.16025},
                           {"latency_p50_seconds", 3.05},
                           {"latency_p90_seconds", 4.2},
                           {"latency_p95_seconds", 4.25},
                           {"latency_p99_seconds", 4.4}});
    CHECK(result.unread == Unread{{"input_sequence_length", "2000 tokens"},
                                  {"output_sequence_length", "100 tokens"},
                                  {"time_to_second_token", "21 ms"},
                                  {"telemetry of GPUs", "2 rows"}});
    // Without streaming the latency stands for the time to the first token, too.
    const std::string header = "Metric,avg,min,max,p99,p95,p90,p75,p50,p25\n";
    const std::string rate = "\nMetric,Value\nRequest Throughput (per sec),1\n";
    const std::string all = ",4,3,5,5,5,5,4,4,3\n";
    const PublishedResult whole =
        results_in(header + "Time To First Token (ms)" + all + "Request Latency (ms)" + all +
                   "Inter Token Latency (ms)" + all + rate)
            .front();
    check_figures(whole, {{"requests_per_second", 1},
                          {"latency_mean_seconds", 0.004},
                          {"latency_p50_seconds", 0.004},
                          {"latency_p90_seconds", 0.005},
                          {"latency_p95_seconds", 0.005},
                          {"latency_p99_seconds", 0.005}});
    CHECK(whole.unread ==
          Unread{{"time_to_first_token", "the latency itself: the answers did not stream"}});
    // The first one counted in nanoseconds.
    CHECK(results_in(header + "Request Latency (ns),8,7,9,9,9,9,8,8,8\n" + rate)
              .front()
              .result.latency.mean == 8e-9);
    CHECK(refusal(header + "Request Latency (ms)" + all) ==
          "f: a table of GenAI-Perf without 'Request Throughput' or 'Request Latency'");
    for (const char* wrong : {"\"1,18\"", "\",118\"", "\"1180,250\"", "\"1,180,25\"", "\"1,,180\"",
                              "x", "\"1,180.2,5\""}) {
        INFO(wrong);
        CHECK(refusal(header + "Request Latency (ms)," + wrong + ",3,5,5,5,5,4,4,3\n" + rate)
                  .find("a number wanted") != std::string::npos);
    }
}

TEST_CASE("result files of AIPerf: one record a request make one result") {
    const auto results = sample_results("aiperf-records.jsonl");
    REQUIRE(results.size() == 1);
    const double duration = 0.65, gaps = 16;  // 1000 ms to 1650 ms; 4 + 2 + 10 gaps
    check_figures(results.front(),
                  {{"requested_requests", 4},
                   {"successful_requests", 3},
                   {"failed_requests", 1},
                   {"duration_seconds", duration},
                   {"input_tokens", 300},
                   {"output_tokens", 19},
                   {"requests_per_second", 3 / duration},
                   {"output_tokens_per_second", 19 / duration},
                   {"total_tokens_per_second", 319 / duration},
                   {"time_to_first_token_mean_seconds", 0.06},
                   {"time_to_first_token_p50_seconds", 0.06},
                   {"time_to_first_token_p90_seconds", 0.068},
                   {"time_to_first_token_p95_seconds", 0.069},
                   {"time_to_first_token_p99_seconds", 0.0698},
                   {"time_to_first_token_standard_deviation_seconds", 0.00816496580927726},
                   {"time_per_output_token_mean_seconds", 0.034 / 3},
                   {"time_per_output_token_p50_seconds", 0.01},
                   {"time_per_output_token_p90_seconds", 0.014},
                   {"time_per_output_token_p95_seconds", 0.0145},
                   {"time_per_output_token_p99_seconds", 0.0149},
                   {"time_per_output_token_standard_deviation_seconds", 0.0026246692913372703},
                   {"inter_token_latency_mean_seconds", 0.16 / gaps},
                   {"inter_token_latency_p50_seconds", 0.009},
                   {"inter_token_latency_p90_seconds", 0.011},
                   {"inter_token_latency_p95_seconds", 0.014},
                   {"inter_token_latency_p99_seconds", 0.0188},
                   {"inter_token_latency_standard_deviation_seconds", 0.002715695122800054},
                   {"latency_mean_seconds", 0.34 / 3},
                   {"latency_p50_seconds", 0.1},
                   {"latency_p90_seconds", 0.14},
                   {"latency_p95_seconds", 0.145},
                   {"latency_p99_seconds", 0.149},
                   {"latency_standard_deviation_seconds", 0.026246692913372703}});
    CHECK(results.front().tool == "aiperf");
    CHECK(results.front().unread ==
          Unread{{"cancelled requests", "1 of the failed"}, {"warm-up requests", "1"}});
    // A request whose tokens nobody counted leaves no total; a time without a known unit is none.
    const std::string lines = sample_text("aiperf-records.jsonl");
    const auto record = [](const std::string& metrics) {
        return R"({"metadata": {"request_start_ns": 1, "request_end_ns": 2000000001}, "metrics": {)" +
               metrics + "}}\n";
    };
    const auto mixed = results_in(lines + record("") + "\n").front().result;
    CHECK(mixed.successful_requests == 4);
    CHECK_FALSE(mixed.output_tokens);
    CHECK_FALSE(mixed.output_tokens_per_second);
    CHECK_FALSE(results_in(record(R"("request_latency": {"value": 5.0, "unit": "fortnights"})"))
                    .front()
                    .result.latency.mean);
    CHECK(results_in(record(R"("request_latency": {"value": 5000000.0, "unit": "ns"})"))
              .front()
              .result.latency.mean == 0.005);
    CHECK(results_in(record("")).front().result.requests_per_second == 0.5);
    // Only warm-up, huge stamps, and records among other results.
    const std::string warm_up = lines.substr(0, lines.find('\n'));
    CHECK(refusal("\n" + warm_up) ==
          "f:2:1: records of AIPerf, all of them of its warm-up: those of the measurement wanted");
    CHECK(
        refusal(
            R"({"metadata": {"request_start_ns": 1, "request_end_ns": 18446744073709551615}, "metrics": {}})")
            .find("no benchmark's result") != std::string::npos);
    CHECK(results_in(lines + sample_text("vllm-0.9.json")).size() == 2);
}

TEST_CASE("result files of AIPerf: means over the runs of a sweep, and of one combination") {
    const auto combinations = sample_results("aiperf-sweep.json");
    REQUIRE(combinations.size() == 2);
    check_figures(combinations[1], {{"successful_requests", 40},
                                    {"duration_seconds", 6.4},
                                    {"maximum_concurrency", 8},
                                    {"requests_per_second", 6.25},
                                    {"output_tokens_per_second", 312.5},
                                    {"time_to_first_token_mean_seconds", 0.08},
                                    {"time_to_first_token_p50_seconds", 0.0784},
                                    {"time_to_first_token_p99_seconds", 0.104},
                                    {"time_per_output_token_mean_seconds", 0.01},
                                    {"latency_mean_seconds", 0.54}});
    CHECK(combinations[1].labels == std::vector<std::string>{"concurrency=8"});
    CHECK(combinations[1].tool == "aiperf");
    CHECK(combinations[0].unread ==
          Unread{{"figures", "means over runs"}, {"phases.profiling.concurrency", "4"}});
    const auto runs = results_in(
        R"({"schema_version": "1.0", "aiperf_version": "0.13.0", "metadata": {"aggregation_type": "confidence",
        "num_profile_runs": 3, "num_successful_runs": 2}, "metrics": {"request_latency_p99": {"mean": 12.5, "unit": "ms"},
        "request_throughput": {"mean": 3.0, "unit": "requests/sec"}, "time_to_first_token_p50": {"mean": 1.0}, "x": 5}})");
    REQUIRE(runs.size() == 1);
    check_figures(runs.front(), {{"latency_p99_seconds", 0.0125}, {"requests_per_second", 3}});
    CHECK(runs.front().tool_version == "0.13.0");
    CHECK(runs.front().unread.at("num_successful_runs") == "2");
    CHECK(refusal(R"({"aggregation_type": "sweep", "per_combination_metrics": []})") ==
          "f:1:1: a file of aiperf without a result");
}
