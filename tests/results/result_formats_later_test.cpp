// SPDX-License-Identifier: Apache-2.0
// Formats of results that came after the first seven: InferenceX, evalscope, the newest of
// inference-perf, GuideLLM and llama-bench; and hostile files of every later format.
#include "support/result_samples.hpp"

#include "results/import.hpp"
#include "study/table.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;

}  // namespace

TEST_CASE(
    "result files of InferenceX: rates of all GPUs, times in seconds, a deployment of two phases") {
    const auto rows = sample_results("inferencex.json");
    REQUIRE(rows.size() == 2);
    Figures one{{"maximum_concurrency", 64},
                {"total_tokens_per_second", 6000},
                {"input_tokens_per_second", 3000},
                {"output_tokens_per_second", 3000}};
    Figures two{{"maximum_concurrency", 512},
                {"total_tokens_per_second", 252000},
                {"input_tokens_per_second", 224000},
                {"output_tokens_per_second", 28000}};
    add_times(one, "time_to_first_token", 0.25, 1.15);
    add_times(one, "time_per_output_token", 0.02, 1.15);
    add_times(one, "inter_token_latency", 0.02, 1.15);
    add_times(one, "latency", 20.71, 1.15);
    add_times(two, "time_to_first_token", 0.5, 1.15);
    add_times(two, "time_per_output_token", 0.04, 1.15);
    add_times(two, "inter_token_latency", 0.04, 1.15);
    add_times(two, "latency", 41.42, 1.15);
    check_figures(rows[0], one);
    check_figures(rows[1], two);
    CHECK(rows[0].tool == "inferencex");
    CHECK(rows[0].model == "example/model-8b");
    CHECK(rows[0].engine == "vllm");
    CHECK(rows[1].engine.empty());
    CHECK(rows[0].labels == std::vector<std::string>{"h200 vllm fp8 isl=1024 osl=1024 conc=64"});
    CHECK(rows[0].arguments_unknown);
    CHECK(rows[0].unread.at("isl") == "1024");
    CHECK(rows[0].unread.at("tp") == "8");
    CHECK_FALSE(rows[0].unread.contains("mean_intvty"));
}

TEST_CASE(
    "result files of InferenceX: old rows, GPUs that are not there, rates that do not add up") {
    const auto row = [](const std::string& more) {
        return R"({"hw": "h100", "conc": 4, "model": "m")" + more + "}";
    };
    const PublishedResult oldest =
        results_in(row(R"(, "tp": 2, "tput_per_gpu": 100.0, "mean_ttft": 0.5)")).front();
    check_figures(oldest, {{"maximum_concurrency", 4},
                           {"total_tokens_per_second", 200},
                           {"time_to_first_token_mean_seconds", 0.5}});
    const PublishedResult wider =
        results_in(
            row(R"(, "tp": 2, "pp": 2, "pcp_size": 2, "dcp_size": 4, "tput_per_gpu": 100.0)"))
            .front();
    CHECK(wider.result.total_tokens_per_second == 800);
    const PublishedResult without =
        results_in(row(R"(, "is_multinode": true, "tp": 2, "tput_per_gpu": 100.0)")).front();
    check_figures(without, {{"maximum_concurrency", 4}});
    CHECK(without.unread.at("tput_per_gpu") == "100");
    const PublishedResult apart =
        results_in(
            row(R"(, "tp": 4, "tput_per_gpu": 100.0, "output_tput_per_gpu": 90.0, "input_tput_per_gpu": 60.0)"))
            .front();
    check_figures(apart, {{"maximum_concurrency", 4}, {"total_tokens_per_second", 400}});
    CHECK(apart.unread.at("output_tput_per_gpu") == "90");
    // Both phases on the GPUs of one.
    const PublishedResult shared =
        results_in(row(R"(, "is_multinode": true, "num_prefill_gpu": 8, "num_decode_gpu": 0,
        "tput_per_gpu": 100.0, "output_tput_per_gpu": 40.0, "input_tput_per_gpu": 60.0)"))
            .front();
    CHECK(shared.result.output_tokens_per_second == 320);
    CHECK(refusal("[" + row(R"(, "tput_per_gpu": 1)") + ", {\"task\": \"gsm8k\"}]")
              .starts_with("f:1:1: value 2 of the list is no row of InferenceX: hw, conc and "
                           "tput_per_gpu wanted"));
}

TEST_CASE(
    "result files of evalscope: milliseconds of 1.10, seconds before 1.7, what did not stream or "
    "succeed") {
    const PublishedResult newest = sample_results("evalscope-1.10.json").front();
    check_figures(newest, {{"requested_requests", 42},
                           {"successful_requests", 40},
                           {"failed_requests", 2},
                           {"duration_seconds", 10},
                           {"maximum_concurrency", 8},
                           {"input_tokens", 4001},
                           {"output_tokens", 2000},
                           {"requests_per_second", 4},
                           {"output_tokens_per_second", 200},
                           {"total_tokens_per_second", 600.1},
                           {"time_to_first_token_mean_seconds", 0.05},
                           {"time_per_output_token_mean_seconds", 0.01},
                           {"inter_token_latency_mean_seconds", 0.01002},
                           {"latency_mean_seconds", 0.54}});
    CHECK(newest.tool == "evalscope");
    CHECK(newest.unread == Unread{{"KV Cache Hit Rate (%)", "12.5"},
                                  {"Non-Stream Requests", "0"},
                                  {"Stream Requests", "42"}});
    const auto seconds = [](const std::string& more) {
        return R"_({"Time taken for tests (s)": 5.0, "Number of concurrency": 4, "Total requests": 10, "Succeed requests": 10,
            "Failed requests": 0, "Request throughput (req/s)": 2.0, "Output token throughput (tok/s)": 100.0,
            "Average latency (s)": 1.5, "Average time to first token (s)": 0.2, "Average time per output token (s)": 0.025,
            "Average input tokens per request": 20.0, "Average output tokens per request": 50.0)_" +
               more + "}";
    };
    const PublishedResult middle =
        results_in(
            seconds(R"_(, "Average inter-token latency (s)": 0.0251, "Request rate (req/s)": 2)_"))
            .front();
    check_figures(middle, {{"requested_requests", 10},
                           {"successful_requests", 10},
                           {"failed_requests", 0},
                           {"duration_seconds", 5},
                           {"maximum_concurrency", 4},
                           {"requested_rate_per_second", 2},
                           {"input_tokens", 200},
                           {"output_tokens", 500},
                           {"requests_per_second", 2},
                           {"output_tokens_per_second", 100},
                           {"time_to_first_token_mean_seconds", 0.2},
                           {"time_per_output_token_mean_seconds", 0.025},
                           {"inter_token_latency_mean_seconds", 0.0251},
                           {"latency_mean_seconds", 1.5}});
    // Not streamed: the first token is the whole answer's time.
    Json changed = Json::parse(sample_text("evalscope-1.10.json"));
    changed["Avg TTFT (ms)"] = 540.0;
    changed["Avg TPOT (ms)"] = changed["Avg ITL (ms)"] = 0.0;
    changed["Concurrency"] = -1;
    const BenchmarkResult whole = results_in(changed.dump()).front().result;
    CHECK_FALSE(whole.time_to_first_token.mean);
    CHECK_FALSE(whole.time_per_output_token.mean);
    CHECK_FALSE(whole.inter_token_latency.mean);
    CHECK_FALSE(whole.maximum_concurrency);
    CHECK(whole.latency.mean == 0.54);
    // Nothing succeeded.
    for (const char* key :
         {"Avg Latency (s)", "Avg TTFT (ms)", "Avg TPOT (ms)", "Avg Input Tokens"})
        changed[key] = -1;
    changed["Success Requests"] = 0;
    const BenchmarkResult failed = results_in(changed.dump()).front().result;
    CHECK(failed.successful_requests == 0);
    CHECK_FALSE(failed.latency.mean);
    CHECK_FALSE(failed.input_tokens);
}

TEST_CASE("result files of GuideLLM and llama-bench: what their newest versions add") {
    const std::string times = R"({"successful": {"mean": 20.0, "median": 19.0, "count": 2}})";
    const auto report = [&](const std::string& metadata, const std::string& more) {
        return results_in(
                   R"({"metadata": )" + metadata +
                   R"(, "benchmarks": [{"config": {"strategy": {"type_": "trace"}}, "metrics":
            {"request_latency": )" +
                   times + R"(, "time_to_first_token_ms": )" + times + more + "}}]}")
            .front();
    };
    const PublishedResult reasoning =
        report(R"({"version": 2, "guidellm_version": "0.7.3"})",
               R"(, "time_to_first_output_token_ms": {"successful": {"mean": 900.0, "count": 2}})");
    CHECK(reasoning.unread == Unread{{"time_to_first_output_token mean", "0.9 s"}});
    CHECK(reasoning.labels == std::vector<std::string>{"trace"});
    CHECK(reasoning.tool_version == "0.7.3");
    CHECK(report(R"({"version": 3})", R"(, "time_to_first_output_token_ms": )" + times).unread ==
          Unread{{"metadata.version", "3: newer than 2, read as 2"}});
    const auto depth =
        results_in(R"({"avg_ts": 5, "n_prompt": 0, "n_gen": 128, "n_depth": 4096})").front();
    CHECK(depth.labels == std::vector<std::string>{"tg128 @ d4096"});
}

TEST_CASE("result files: hostile ones of every later format end with our errors") {
    const std::vector<Json> others{
        Json(),      Json("x"),  Json("1e999"),        Json(-1),
        Json(1e308), Json(true), Json::array({1, {}}), Json{{"avg", 1e308}},
        Json(9.3e18)};
    const auto survives = [](const std::string& content) {
        try {
            for (const PublishedResult& result : results_in(content)) {
                for (const auto& [name, value] : figures_of(result.result)) {
                    INFO(name);
                    CHECK(std::isfinite(value));
                }
                (void)csv_of({result});
            }
        } catch (const Error&) {
            return;
        }
    };
    for (const char* file : {"sweep-summary.json", "aiperf-0.13.json", "aiperf-sweep.json",
                             "inferencex.json", "evalscope-1.10.json", "llama-bench.json"}) {
        INFO(file);
        const std::string whole = sample_text(file);
        for (std::size_t length = 1; length < whole.size(); length += 41)
            survives(whole.substr(0, length));
        const Json json = Json::parse(whole);
        // Every value, at any depth: missing, or of another kind.
        const Json flat = json.flatten();
        for (const auto& [path, value] : flat.items()) {
            Json::json_pointer pointer(path);
            for (const Json& other : others) {
                Json changed = json;
                changed[pointer] = other;
                survives(changed.dump());
            }
            Json changed = json;
            Json& parent = changed[pointer.parent_pointer()];
            if (parent.is_object()) parent.erase(pointer.back());
            else parent.clear();
            survives(changed.dump());
        }
    }
    for (const char* file :
         {"sweep-summary.csv", "aiperf.csv", "genai-perf.csv", "aiperf-records.jsonl"}) {
        const std::string whole = sample_text(file);
        for (std::size_t at = 1; at < whole.size(); at += 5) {
            survives(whole.substr(0, at));
            std::string changed = whole;
            changed[at] = whole[(at * 7919) % whole.size()];
            survives(changed);
        }
    }
    survives("duration,completed,request_throughput,x\n1e308,1e308,1e308,\"[[[[[[\"\n");
}
