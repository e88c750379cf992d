// SPDX-License-Identifier: Apache-2.0
// One sample of every format (tests/data/results): each figure against what it should be, and no
// figure more.
#include "support/result_samples.hpp"

#include "handover/result_export.hpp"
#include "results/import.hpp"
#include "servetune/audit.hpp"
#include "study/table.hpp"

#include <nlohmann/json.hpp>

#include <tuple>

using namespace servetune;
using namespace servetune::test;

namespace {

/// Whether the audit finds a figure in the first result that cannot be.
bool is_impossible(const std::string& content) {
    const Validity validity = audit(results_in(content).front().result);
    return validity.verdict == Verdict::unsound &&
           any_of(validity.findings,
                  [](const Finding& finding) { return finding.cause.starts_with("impossible"); });
}

/// A result of vLLM with more keys.
std::string vllm_result(const std::string& more = "") {
    return R"({"duration": 10.0, "completed": 4, "request_throughput": 0.4, "total_token_throughput": 100.5)" +
           more + "}";
}

}  // namespace

TEST_CASE("result files: every figure of every sample, and none that its file does not have") {
    // What the expectations leave to us: counts that follow from others, and what only the arrays
    // of a detailed file say.
    const std::map<std::string, std::vector<Figures>> more{
        {"vllm-0.9.json", {{{"requested_requests", 24}}}},
        {"vllm-new.json", {{{"requested_requests", 25}}}},
        {"vllm-detailed.json", {{{"requested_requests", 4}}}},
        {"sglang.jsonl",
         {{{"mean_concurrency", 15.58271737}}, {{"mean_concurrency", 7.868269606}}}},
        {"sglang-details.jsonl", {{{"mean_concurrency", 1.645922061}, {"requested_requests", 4}}}},
        {"guidellm-v1.json", {{{"requested_requests", 6}}, {{"requested_requests", 17}}}},
        {"guidellm-v2.json", {{{"requested_requests", 20}}}},
        {"genai-perf.json", {{}}},
        {"aiperf.json", {{{"requested_requests", 22}}}},
        {"guidellm-0.8.json", {{{"requested_requests", 114}}}},
        {"inference-perf-0.7.json", {{{"requested_requests", 20}}}},
        {"evalscope-1.6.json", {{{"requested_requests", 42}}}},
        {"evalscope-1.9.json", {{{"requested_requests", 42}}}},
        {"evalscope-1.10.json", {{{"requested_requests", 42}}}},
        {"evalscope-1.14.json", {{{"requested_requests", 16}}}},
        {"llm-d-0.2.1.yaml", {{{"requested_requests", 20}}}},
        {"llm-d-guidellm.yaml", {{{"requested_requests", 114}}}},
        {"llm-d-aiperf.yaml", {{{"requested_requests", 24}}}},
        {"inference-perf-closed.json", {{{"requested_requests", 24}}}},
    };
    const auto expected = nlohmann::json::parse(sample_text("expected.json"));
    CHECK(expected.size() == more.size());
    for (const auto& [file, results] : expected.items()) {
        INFO(file);
        const std::vector<PublishedResult> got = sample_results(file);
        REQUIRE(got.size() == results.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            Figures want = more.at(file).at(i);
            for (const auto& [name, value] : results[i]["figures"].items())
                want[name] = value.get<double>();
            INFO(i);
            check_figures(got[i], want);
            const auto& context = results[i]["context"];
            CHECK(got[i].model == context.value("model", ""));
            CHECK(got[i].tool == context.value("format", "guidellm"));
            if (got[i].tool != "guidellm") CHECK(got[i].date == context.value("date", ""));
            if (results[i].contains("name"))
                CHECK(got[i].labels.front() == results[i]["name"].get<std::string>());
            CHECK(got[i].index == i);
        }
    }
}

TEST_CASE("result files: the figures of each sample fit together as their tool means them") {
    for (const char* file :
         {"vllm-0.9.json", "vllm-new.json", "vllm-detailed.json", "sglang.jsonl",
          "sglang-details.jsonl", "guidellm-v1.json", "guidellm-v2.json", "aiperf.json"})
        for (const PublishedResult& published : sample_results(file)) {
            INFO(file << " " << published.index);
            const BenchmarkResult& r = published.result;
            CHECK(*r.requests_per_second ==
                  Approx(*r.successful_requests / *r.duration_seconds).epsilon(1e-6));
            const bool guidellm = published.tool == "guidellm";
            // GuideLLM's tokens a second have a window of their own, a few percent off in runs as
            // short as these.
            CHECK(*r.output_tokens_per_second ==
                  Approx(*r.output_tokens / *r.duration_seconds).epsilon(guidellm ? 0.05 : 1e-6));
            if (!r.latency.mean) continue;
            const double tokens = *r.output_tokens / *r.successful_requests;
            const double decode =
                guidellm
                    ? *r.time_per_output_token.mean * tokens  // it holds the first token
                    : *r.time_to_first_token.mean + *r.time_per_output_token.mean * (tokens - 1);
            CHECK(*r.latency.mean ==
                  Approx(decode).epsilon(
                      published.index == 0 && r.successful_requests < 5 ? 0.02 : 0.005));
        }
}

TEST_CASE("result files: llama-bench") {
    const auto tests = sample_results("llama-bench.json");
    REQUIRE(tests.size() == 2);
    CHECK(tests[0].labels.front() == "pp512");
    CHECK(tests[0].model == "models/m.gguf");
    CHECK(figures_of(tests[0].result) == Figures{{"duration_seconds", 2},
                                                 {"input_tokens", 512},
                                                 {"input_tokens_per_second", 256}});
    CHECK(figures_of(tests[1].result) == Figures{{"duration_seconds", 8},
                                                 {"output_tokens", 128},
                                                 {"output_tokens_per_second", 16}});
    CHECK(tests[1].labels.front() == "tg128");
    CHECK(tests[1].unread.at("n_batch") == "2048");
    CHECK(results_in(R"({"avg_ts": 5, "n_prompt": 4, "n_gen": 2})"
                     "\n"
                     R"({"avg_ts": 6, "n_prompt": 4, "n_gen": 2})")
              .size() == 2);
    CHECK(figures_of(results_in(R"({"avg_ts": 5, "n_prompt": 4, "n_gen": 2})").front().result)
              .at("total_tokens_per_second") == 5);
}

TEST_CASE("result files: what is said beside the figures") {
    const PublishedResult vllm_result = sample_results("vllm-new.json").front();
    CHECK(vllm_result.arguments_unknown);
    CHECK(vllm_result.unread == Unread{{"endpoint_type", "openai"},
                                       {"backend", "openai"},
                                       {"tokenizer_id", "example/model-8b"},
                                       {"tensor_parallel", "1"},
                                       {"burstiness", "1"}});
    CHECK(sample_results("vllm-detailed.json").front().labels == std::vector<std::string>{"run a"});
    const auto sglang = sample_results("sglang.jsonl");
    CHECK(sglang[1].dataset == "random");
    CHECK(sglang[1].labels == std::vector<std::string>{"random"});
    CHECK(sglang[0].unread.at("total_output_tokens_retokenized") == "4095");
    const std::string csv = csv_of(sample_results("aiperf.json"));
    CHECK(csv.starts_with("block,label,tool,model,date,status,requested_requests,"));
    CHECK(parse_table(csv, "t.csv").rows.size() == 1);
}

TEST_CASE("result files: one object, one a line, and lines that were appended") {
    const std::string one = sample_text("vllm-new.json");
    const std::string two = sample_text("vllm-0.9.json");
    CHECK(results_in(one + "\n" + two).size() == 2);
    CHECK(results_in(" \n" + one + "\n").size() == 1);
    const auto mixed = results_in(two + "\r\n" + sample_text("sglang.jsonl") + "\n\n" + one);
    REQUIRE(mixed.size() == 4);
    CHECK(mixed[0].tool == "vllm");
    CHECK(mixed[2].tool == "sglang");
    CHECK(mixed[3].index == 3);
    CHECK(mixed[3].result.failed_requests == 1);
    // A document is not taken for JSON, nor JSON for a document.
    const std::string block =
        "==== Serving Benchmark Result ====\nSuccessful requests: 5\n==========\n";
    CHECK(
        results_in("[A link](https://example.org)\n" + block).front().result.successful_requests ==
        5);
    CHECK(results_in("{% raw %}\n" + block).front().result.successful_requests == 5);
    for (const char* none : {"plain text", ""})
        CHECK(refusal(none).starts_with("f: no result in it: give the JSON"));
}

TEST_CASE("result files: a printed block with both counts has as many requests as JSON with both") {
    const std::string block =
        "==== Serving Benchmark Result ====\nSuccessful requests: 96\nFailed requests: "
        "4\n==========\n";
    const auto printed = results_in(block);
    REQUIRE(printed.size() == 1);
    CHECK(printed[0].result.requested_requests == 100);
    CHECK(results_in(vllm_json(printed[0].result, {}))[0].result.requested_requests == 100);
    CHECK(results_in("==== Serving Benchmark Result ====\nSuccessful requests: 96\n")[0]
              .result.requested_requests == std::nullopt);
}

TEST_CASE(
    "result files of vLLM: zeros that were not measured, old spellings, text in a number's place") {
    const auto first = [](const std::string& more) {
        return results_in(vllm_result(more)).front().result;
    };
    const BenchmarkResult zeros = first(
        R"(, "mean_ttft_ms": 0.0, "median_ttft_ms": 0.0, "std_ttft_ms": 0.0, "p99_ttft_ms": 0.0,
        "mean_e2el_ms": 5.0, "median_e2el_ms": 5.0, "std_e2el_ms": 0.0, "max_output_tokens_per_s": 0.0, "max_concurrent_requests": 0)");
    CHECK(figures_of(zeros) == Figures{{"successful_requests", 4},
                                       {"duration_seconds", 10},
                                       {"requests_per_second", 0.4},
                                       {"total_tokens_per_second", 100.5},
                                       {"latency_mean_seconds", 0.005},
                                       {"latency_p50_seconds", 0.005},
                                       {"latency_standard_deviation_seconds", 0}});
    CHECK_FALSE(first(R"(, "max_concurrency": "8", "request_rate": "inf")").maximum_concurrency);
    CHECK(first(R"(, "input_throughput": 60.5)").input_tokens_per_second == 60.5);
    CHECK(first(R"(, "median_itl_ms": 7.5)").inter_token_latency.p50 == 0.0075);
    CHECK(first(R"(, "p99_e2el_ms": 7.5)").latency.p99 == 0.0075);
    CHECK(results_in(vllm_result(R"(, "p99.9_ttft_ms": 7.5)")).front().unread ==
          Unread{{"p99.9_ttft_ms", "7.5"}});
    // num_prompts is what was asked for: a figure only when nothing says how many failed, and never
    // below the successes.
    CHECK(first(R"(, "num_prompts": 6)").requested_requests == 6);
    CHECK(first(R"(, "num_prompts": 6, "failed": 1)").requested_requests == 5);
    CHECK_FALSE(first(R"(, "num_prompts": 3)").requested_requests);
    // All failed: the zeros are no latencies.
    const auto failed =
        results_in(
            R"({"duration": 1.5, "completed": 0, "failed": 3, "request_throughput": 0.0, "mean_ttft_ms": 1.0})")
            .front();
    CHECK(figures_of(failed.result) == Figures{{"successful_requests", 0},
                                               {"failed_requests", 3},
                                               {"requested_requests", 3},
                                               {"duration_seconds", 1.5},
                                               {"requests_per_second", 0}});
    // Pooling: requests and their latency only.
    CHECK(results_in(
              R"({"duration": 1.5, "completed": 3, "request_throughput": 2.0, "total_input": 5})")
              .front()
              .unread.contains("total_input"));
}

TEST_CASE("result files: bare words of Python are no figures, and stay in texts") {
    const auto result =
        results_in(
            vllm_result(
                R"(, "request_rate": Infinity, "mean_ttft_ms": NaN, "std_ttft_ms":-Infinity, "label": "NaN Infinity")"))
            .front();
    CHECK_FALSE(result.result.requested_rate_per_second);
    CHECK_FALSE(result.result.time_to_first_token.mean);
    CHECK_FALSE(result.result.time_to_first_token.standard_deviation);
    CHECK(result.labels == std::vector<std::string>{"NaN Infinity"});
}

TEST_CASE(
    "result files: a figure that cannot be reaches the audit, in every format, and a negative "
    "setting is none") {
    for (const char* changed :
         {R"({"duration": -5})", R"({"duration": 0})", R"({"mean_ttft_ms": -3})",
          R"({"mean_tpot_ms": -1})", R"({"std_itl_ms": -1})", R"({"completed": -1})",
          R"({"total_output_tokens": -7})", R"({"request_throughput": -1})",
          R"({"output_throughput": -1})"}) {
        INFO(changed);
        auto json = nlohmann::json::parse(sample_text("vllm-0.9.json"));
        CHECK_FALSE(is_impossible(json.dump()));
        json.update(nlohmann::json::parse(changed));
        CHECK(is_impossible(json.dump()));
    }
    using Case = std::tuple<const char*, const char*, int>;
    for (const auto& [file, pointer, value] :
         {Case{"sglang-details.jsonl", "/duration", -1},
          Case{"aiperf.json", "/benchmark_duration/avg", -1},
          Case{"genai-perf.json", "/request_latency/avg", -1},
          Case{"guidellm-v2.json", "/benchmarks/0/duration", -1},
          Case{"llama-bench.json", "/0/avg_ts", -1}, Case{"inferencex.json", "/0/tput_per_gpu", -1},
          Case{"evalscope-1.10.json", "/Avg Output Tokens", -1}}) {
        INFO(file << ' ' << pointer);
        std::string whole = sample_text(file);
        if (std::string_view(file).ends_with(".jsonl")) whole.resize(whole.find('\n'));
        if (const auto rate = whole.find("Infinity"); rate != std::string::npos)
            whole.replace(rate, 8, "null");
        auto json = nlohmann::json::parse(whole);
        const nlohmann::json::json_pointer at(pointer);
        REQUIRE(json.contains(at));
        CHECK_FALSE(is_impossible(json.dump()));
        json[at] = value;
        CHECK(is_impossible(json.dump()));
    }
    const BenchmarkResult unbounded =
        results_in(vllm_result(R"(, "max_concurrency": -1, "request_rate": -1)")).front().result;
    CHECK_FALSE(unbounded.maximum_concurrency);
    CHECK_FALSE(unbounded.requested_rate_per_second);
}

TEST_CASE("result files of GuideLLM: nothing measured, a run that was cut") {
    const std::string some =
        R"({"successful": {"mean": 20.0, "median": 19.0, "count": 2, "percentiles": {"p99": 30.0}}})";
    const std::string none =
        R"({"successful": {"mean": 0.0, "median": 0.0, "count": 0, "percentiles": {"p99": 0.0}}})";
    const auto cut =
        results_in(
            R"({"benchmarks": [{"config": {"strategy": {"type_": "throughput", "max_concurrency": 8}},
        "duration": 4.0, "cooldown_duration": 1.0, "start_time": 1e99, "metrics": {
        "request_totals": {"successful": 2, "errored": 1, "incomplete": 5, "total": 8}, "request_latency": )" +
            some + R"(, "time_to_first_token_ms": )" + some + R"(, "time_per_output_token_ms": )" +
            none + "}}]}")
            .front();
    CHECK(cut.labels == std::vector<std::string>{"throughput@8"});
    CHECK(cut.unread == Unread{{"incomplete requests", "5"}});
    CHECK(cut.result.requested_requests == 3);
    CHECK_FALSE(cut.result.duration_seconds);
    CHECK(cut.result.maximum_concurrency == 8);
    CHECK(cut.result.latency.p99 == 30);
    CHECK(cut.result.time_to_first_token.p50 == 0.019);
    CHECK_FALSE(cut.result.time_per_output_token.mean);
    CHECK(figures_of(results_in(R"({"benchmarks": [{"metrics": {}}]})").front().result).empty());
    CHECK(has(refusal(R"({"metadata": {"guidellm_version": "0.7.3"}, "benchmarks": []})"),
              "f:1:1: no benchmark's result"));
}

TEST_CASE("result files: what is not read says what is") {
    CHECK(refusal(R"({"benchmarks": [{"args": {}, "run_stats": {}, "metrics": {}}]})")
              .starts_with("f:1:1: a report of GuideLLM before 0.4"));
    for (const char* other :
         {R"_({"Succeed requests": 10, "Average latency (s)": 1.5})_",
          R"({"run_number": 1, "error_type": "E", "error": "e", "serve_overrides": {}})",
          R"({"metadata": {"request_start_ns": 1}, "metrics": {"a": 1}})",
          R"({"aggregation_type": "sweep", "per_combination_metrics": []})"})
        CHECK(has(refusal(other), "\n  vllm: duration, completed, request_throughput\n"));
    for (const char* other : {"| model | size | test | t/s |\n| a | 4 GiB | pp512 | 5.0 |\n",
                              "Metric,avg,min,max\nRequest Latency (ms),1,1,1\n"})
        CHECK(refusal(other).starts_with("f: no result in it: give the JSON"));
    CHECK(has(refusal("{\"completed\": 24,\n \"duration\": NaN}"), "are no figures"));
    CHECK_FALSE(has(refusal("{\"completed\": 24, \"label\": \"NaN\"}"), "no figures"));
}

TEST_CASE(
    "result files of GenAI-Perf and AIPerf: units as given, what is left out of a clean run, no "
    "streaming") {
    const auto metric = [](const std::string& unit, const std::string& value) {
        return R"({"unit": ")" + unit + R"(", "avg": )" + value + "}";
    };
    const std::string rate = R"("request_throughput": )" + metric("requests/sec", "2.0");
    const auto first = [&](const std::string& more) {
        return results_in("{" + rate + ", " + more + "}").front().result;
    };
    CHECK(first(R"("request_latency": )" + metric("ns", "2500000.0")).latency.mean == 0.0025);
    CHECK(first(R"("request_latency": )" + metric("us", "2500")).latency.mean == 0.0025);
    CHECK(first(R"("request_latency": )" + metric("sec", "2.5")).latency.mean == 2.5);
    CHECK_FALSE(first(R"("request_latency": )" + metric("fortnights", "2.5")).latency.mean);
    CHECK_FALSE(first(R"("request_goodput": )" + metric("requests/sec", "-1.0") +
                      R"(, "request_latency": )" + metric("ms", "1"))
                    .goodput_requests_per_second);
    const BenchmarkResult whole =
        first(R"("request_latency": )" + metric("ms", "5.0") + R"(, "time_to_first_token": )" +
              metric("ms", "5.0") + R"(, "input_config": {"endpoint": {"streaming": false}})");
    CHECK(whole.latency.mean == 0.005);
    CHECK_FALSE(whole.time_to_first_token.mean);
    const std::string count = R"("request_count": )" + metric("requests", "9.0");
    CHECK_FALSE(first(count + R"(, "schema_version": "1.5")").failed_requests);
    CHECK(first(count + R"(, "schema_version": "1.5", "error_summary": [])").failed_requests == 0);
    CHECK(first(count + R"(, "schema_version": "1.5", "request_error_rate": )" + metric("%", "0"))
              .requested_requests == 9);
    CHECK(results_in(R"({"schema_version": "1.5", "error_request_count": )" +
                     metric("requests", "4") + "}")
              .front()
              .result.failed_requests == 4);
}

TEST_CASE("result files: what is no result is refused with what was found and what is known") {
    const std::string unknown = refusal(R"({"one": 1, "two": {"three": 3}})");
    CHECK(
        unknown.starts_with("f:1:1: no benchmark's result: an object with the keys one, two; "
                            "known:\n  servetune: servetune.figures\n"));
    CHECK(has(unknown, "\n  vllm: duration, completed, request_throughput"));
    CHECK(refusal(R"([{"metric": "latency"}, {}])")
              .starts_with("f:1:1: no benchmark's result: a list of 2 values; known:\n"));
    CHECK(has(refusal("[]"), "a list of 0 values"));
    CHECK(has(refusal("{}"), "nothing with a key"));
    CHECK(refusal(vllm_result() + "\n" + vllm_result() + "\n{\"a\": 1}\n")
              .starts_with("f:3:1: no benchmark's result: an object with the keys a;"));
    CHECK(refusal(vllm_result() + "\nand text").starts_with("f:2:1: a JSON object wanted"));
    CHECK(has(refusal(R"({"experiments": [], "version": 1})"), "keys experiments, version"));
    CHECK(refusal("{\"a\": 1,\n \"b\" 2}") == "f:2:6: not JSON, or cut off");
    CHECK(refusal("{\"a\": 1, \"b\" 2} {}") == "f:1:14: not JSON");
}

TEST_CASE("result files: hostile ones end with our errors") {
    const std::string whole = sample_text("vllm-detailed.json");
    for (std::size_t length = 1; length < whole.size(); length += 7)
        CHECK_FALSE(refusal(whole.substr(0, length)).empty());
    CHECK(has(refusal(std::string(10'000, '[')), "no result in it"));
    CHECK(refusal("[" + std::string(10'000, '{')).find("f:1:101: JSON nested more than 100 deep") ==
          0);
    std::string deep = "{\"a\": ";
    for (int i = 0; i < 10'000; ++i) deep += "[";
    CHECK(has(refusal(deep), "JSON nested more than 100 deep"));
    CHECK(refusal(vllm_result(R"(, "x": 1e999)")).starts_with("f:1:1: not readable: "));
    CHECK(has(refusal(vllm_result(", \"x\": \"\xFF\"")), "not JSON"));
    CHECK(has(refusal(vllm_result(R"(, "x": "\ud800")")), "not JSON"));
    CHECK(has(refusal("}"), "no result in it"));
    CHECK(refusal(std::string(largest_result_bytes + 1, ' ')) ==
          "f: results have at most 268435456 bytes, got 268435457");
    // Names are one line of bounded length: they go into tables.
    const PublishedResult named =
        results_in(vllm_result(R"(, "model_id": "a\u0000b\nc", "label": ")" +
                               std::string(10'000, 'x') + "\xC3\xA9\""))
            .front();
    CHECK(named.model == "a b c");
    CHECK(named.labels.front().size() == 500);
    CHECK(results_in(vllm_result(R"(, "label": ")" + std::string(499, 'x') + "\xC3\xA9\""))
              .front()
              .labels.front()
              .size() == 499);
    CHECK(parse_table(csv_of({named}), "t.csv").rows.size() == 1);
}
