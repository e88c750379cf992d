// SPDX-License-Identifier: Apache-2.0
// Sweeps of vLLM, AIPerf's configuration of 2026, InferenceX, evalscope, GuideLLM and llama-bench;
// and hostile files of each.
#include "support/result_samples.hpp"

#include "results/import.hpp"
#include "study/table.hpp"

#include <nlohmann/json.hpp>

#include <cmath>

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

TEST_CASE("result files: a benchmark that was cut short is not sound, in every format") {
    struct Cut {
        const char* sample;
        const char* place;
        Json value;
    };
    for (const auto& [sample, place, value] :
         {Cut{"vllm-new.json", "/num_prompts", 60}, Cut{"vllm-0.9.json", "/num_prompts", 60},
          Cut{"sweep-summary.json", "/0/num_prompts", 60},
          Cut{"aiperf-0.13.json", "/was_cancelled", true},
          Cut{"aiperf-0.13.json", "/input_config/phases/1/requests", 60},
          Cut{"aiperf.json", "/input_config/loadgen/request_count", 60},
          Cut{"genai-perf.json", "/input_config/perf_analyzer/measurement/num", 60},
          Cut{"evalscope-1.10.json", "/Total Requests", 60},
          Cut{"guidellm-v2.json", "/benchmarks/0/metrics/request_totals/incomplete", 5}}) {
        INFO(sample << place);
        const auto is_whole = [](const PublishedResult& result) {
            return result.validity == Validity{} &&
                   result.result.requested_requests.value_or(0) <=
                       *result.result.successful_requests +
                           result.result.failed_requests.value_or(0);
        };
        Json json = Json::parse(sample_text(sample));
        CHECK(is_whole(results_in(json.dump()).front()));
        json[Json::json_pointer(place)] = value;
        const PublishedResult cut = results_in(json.dump()).front();
        CHECK_FALSE(is_whole(cut));
        if (cut.validity == Validity{}) continue;  // the audit finds it by the figures
        CHECK(cut.validity.verdict == Verdict::suspect);
        CHECK(cut.validity.findings.front().id == "complete");
        CHECK(has(csv_of({cut}), ",ok,suspect,complete,"));
    }
}

TEST_CASE("result files of a sweep of vLLM: a list of runs") {
    const auto runs = sample_results("sweep-summary.json");
    REQUIRE(runs.size() == 3);
    check_figures(runs[2], third_run());
    CHECK(runs[2].tool == "vllm");
    CHECK(runs[2].model == "example/model-8b");
    CHECK(runs[2].date == "20260915-100016");
    CHECK(runs[0].labels.empty());
    CHECK(runs[1].unread.at("run_number") == "1");
    CHECK(runs[2].unread.at("max_num_seqs") == "32");
    CHECK(runs[2].index == 2);
    // A run's own file, and the one before the measurement.
    Json one = Json::parse(sample_text("sweep-summary.json"))[0];
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
    CHECK_FALSE(runs[0].unread.contains("max_num_seqs"));
    CHECK(runs[1].unread.at("max_num_seqs") == "8");  // 8.0 in the file
    CHECK(runs[1].unread.at("enable_prefix_caching") == "False");
    CHECK(runs[2].index == 2);
    const std::string header = "duration,completed,request_throughput,model_id,latencies\n";
    CHECK(results_in("\xEF\xBB\xBF" + header + "2.0,2,1.0,7e5,\"[0.5, 0.25]\"\r\n").size() == 1);
    CHECK(results_in(header + "2.0,2,1.0,7e5,\n").front().model == "7e5");
    CHECK(refusal(header + "2.0,2,1.0\n") == "f:2: 5 cells wanted, got 3");
    CHECK(refusal(header + "2.0,x,1.0,m,\n") == "f:2: a number wanted in completed");
    CHECK(refusal(header) == "f: a table of 1 to 20000 rows wanted, got 0");
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
    // Of two measured phases neither is the run's load.
    Json changed = Json::parse(sample_text("aiperf-0.13.json"));
    changed["input_config"]["phases"].push_back(
        {{"name", "peak"}, {"kind", "profiling"}, {"concurrency", 64}});
    const PublishedResult two = results_in(changed.dump()).front();
    CHECK_FALSE(two.result.maximum_concurrency);
    CHECK_FALSE(two.result.requested_rate_per_second);
    // Where every request failed the count of successes is left out.
    const auto failed = results_in(
        R"({"schema_version": "1.5", "error_request_count": {"unit": "requests", "avg": 9},
        "request_error_rate": {"unit": "%", "avg": 100.0}})");
    check_figures(failed.front(),
                  {{"successful_requests", 0}, {"failed_requests", 9}, {"requested_requests", 9}});
}

TEST_CASE(
    "result files of InferenceX: rates of all GPUs, times in seconds, a deployment of two phases") {
    const auto rows = sample_results("inferencex.json");
    REQUIRE(rows.size() == 2);
    Figures one{{"maximum_concurrency", 64},
                {"total_tokens_per_second", 6000},
                {"input_tokens_per_second", 3000},
                {"output_tokens_per_second", 3000}};
    Figures two{{"maximum_concurrency", 512}};
    add_times(one, "time_to_first_token", 0.25, 1.15);
    add_times(one, "time_per_output_token", 0.02, 1.15);
    add_times(one, "inter_token_latency", 0.02, 1.15);
    add_times(one, "latency", 20.71, 1.15);
    add_times(two, "time_to_first_token", 0.5, 1.15);
    add_times(two, "time_per_output_token", 0.04, 1.15);
    add_times(two, "inter_token_latency", 0.04, 1.15);
    add_times(two, "latency", 41.42, 1.15);
    check_figures(rows[0], one);
    check_figures(rows[1], two);  // over several nodes: of how many GPUs a rate is, is not said
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
    CHECK(refusal("[" + row(R"(, "tput_per_gpu": 1)") + ", {\"task\": \"gsm8k\"}]")
              .starts_with("f:1:1: value 2 of the list is no result, as those before it are"));
}

TEST_CASE("result files: a total is no mean, where the mean beside it is missing") {
    Json total = Json::parse(sample_text("inference-perf-0.7.json"));
    total["successes"].erase("output_len");
    total["successes"]["output_tokens"]["total"] = 320;
    CHECK(results_in(total.dump()).front().result.output_tokens == 320);
}

TEST_CASE("result files of evalscope: what did not stream or succeed") {
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

TEST_CASE("result files: hostile ones of every format end with our errors") {
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
    for (const char* file :
         {"sweep-summary.json", "aiperf-0.13.json", "inferencex.json", "evalscope-1.10.json",
          "llama-bench.json", "vllm-new.json", "sglang-details.jsonl", "guidellm-v2.json",
          "aiperf.json", "genai-perf.json", "inference-perf-0.7.json"}) {
        INFO(file);
        const std::string whole = sample_text(file);
        for (std::size_t length = 1; length < whole.size(); length += 41)
            survives(whole.substr(0, length));
        const Json json = Json::parse(whole, nullptr, false);
        if (json.is_discarded()) continue;
        // Every value, at any depth: missing, or of another kind.
        const Json flat = json.flatten();
        for (const auto& [path, value] : flat.items()) {
            Json::json_pointer pointer(path);
            for (const Json& other : others) {
                Json changed = json;
                changed[pointer] = other;
                survives(changed.dump());
                changed[pointer.parent_pointer()] = other;
                survives(changed.dump());
            }
            Json changed = json;
            Json& parent = changed[pointer.parent_pointer()];
            if (parent.is_object()) parent.erase(pointer.back());
            else parent.clear();
            survives(changed.dump());
        }
    }
    const std::string whole = sample_text("sweep-summary.csv");
    for (std::size_t at = 1; at < whole.size(); at += 5) {
        survives(whole.substr(0, at));
        std::string changed = whole;
        changed[at] = whole[(at * 7919) % whole.size()];
        survives(changed);
    }
    survives("duration,completed,request_throughput,x\n1e308,1e308,1e308,\"[[[[[[\"\n");
}
