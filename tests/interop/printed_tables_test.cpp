// SPDX-License-Identifier: Apache-2.0
// Tables that benchmarks print, as people paste them into documents. All figures are invented.
#include "support/figures.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "servetune/result_file.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

std::vector<PublishedResult> read_printed(const std::string& text) {
    return read_results(text, "f", {});
}

const std::string bench_header =
    "| model        |      size |   params | backend | ngl | n_ubatch | nkvo |          test |     "
    "        t/s |\n"
    "| ------------ | --------: | -------: | ------- | --: | -------: | ---: | ------------: | "
    "--------------: |\n";
const std::string bench_row =
    "| toy 1B Q8_0  |  1.23 GiB |   1.24 B | CUDA    |  99 |     1024 |    1 |";

}  // namespace

TEST_CASE("printed tables: llama-bench's table says what its JSON says") {
    const auto printed = read_printed(
        "# Title\n\n```\n" + bench_header + bench_row + "         pp512 | 1234.50 ± 6.70 |\n" +
        bench_row + " tg128 @ d4096 | 56.71 ± 0.08 |\n" + bench_row +
        "   pp512+tg128 | 256.00 ± 1.10 |\n\nbuild: 0a1b2c3 (6789)\n```\n");
    const std::string same =
        R"("build_commit": "0a1b2c3", "build_number": 6789, "backends": "CUDA", "model_type": "toy 1B Q8_0", "model_size": "1.23 GiB",
           "model_n_params": "1.24 B", "n_gpu_layers": 99, "n_ubatch": 1024, "no_kv_offload": true, )";
    const auto json = read_printed(
        "[{" + same +
        R"("n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 1234.5, "stddev_ts": 6.7}, {)" +
        same +
        R"("n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ts": 56.71, "stddev_ts": 0.08}, {)" +
        same + R"("n_prompt": 512, "n_gen": 128, "n_depth": 0, "avg_ts": 256, "stddev_ts": 1.1}])");
    REQUIRE(printed.size() == 3);
    REQUIRE(json.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
        CHECK(printed[i].index == i);
        CHECK(printed[i].tool == "llama-bench");
        CHECK(printed[i].tool_version == "b6789");
        CHECK(printed[i].model == json[i].model);
        CHECK(printed[i].labels.front() == json[i].labels.front());
        CHECK(figures_of(printed[i].result) == figures_of(json[i].result));
        CHECK(printed[i].server_settings == json[i].server_settings);
        CHECK(printed[i].unread == json[i].unread);
        CHECK(printed[i].sections == std::vector<std::string>{"Title"});
        CHECK(printed[i].arguments_unknown);
    }
    CHECK(json[1].labels.front() == "tg128 @ d4096");
    CHECK(json[2].labels.front() == "pp512+tg128");
    CHECK(figures_of(json[1].result) ==
          Figures{{"output_tokens", 128}, {"output_tokens_per_second", 56.71}});
}

TEST_CASE(
    "printed tables: several of llama-bench, with logs between, quoted, bold, and rows without "
    "their header") {
    const auto printed =
        read_printed("## One\n" + bench_header + bench_row +
                     " **pp 32** | **10.00 ± 1.00** |\n| = repacked | | | | | | | | |\n" +
                     "load_tensors: 1 buffer\n" + bench_row +
                     " tg8@pp64 | 5.00 ± 0.10 |\n\nllama_perf: 1 ms\nbuild: abc (12)\n## Two\n> " +
                     bench_row + " tg8 | 4.50 |\n");
    REQUIRE(printed.size() == 3);
    CHECK(printed[0].labels == std::vector<std::string>{"pp32", "One"});
    CHECK(printed[1].labels == std::vector<std::string>{"tg8 @ d64", "One"});
    CHECK(printed[1].result.output_tokens == 8);
    CHECK_FALSE(printed[1].result.input_tokens);
    CHECK(printed[1].tool_version == "b12");
    CHECK(printed[2].labels == std::vector<std::string>{"tg8", "Two"});
    CHECK(printed[2].tool_version.empty());
    CHECK(printed[2].unread.at("columns without a name") == "99, 1024, 1");
    CHECK_FALSE(printed[2].server_settings.contains("columns without a name"));
}

TEST_CASE("printed tables: beside blocks, each with what belongs to it") {
    const std::string block =
        "==== Serving Benchmark Result ====\nSuccessful requests: 5\n==========\n";
    const auto mixed = read_printed("# A\n" + block + "# B\n" + bench_header + bench_row +
                                    " pp8 | 7.00 ± 0.00 |\n# C\n" + block);
    REQUIRE(mixed.size() == 3);
    CHECK(mixed[0].sections == std::vector<std::string>{"A"});
    CHECK(mixed[1].tool == "llama-bench");
    CHECK(mixed[1].sections == std::vector<std::string>{"B"});
    CHECK(mixed[2].sections == std::vector<std::string>{"C"});
    CHECK(mixed[2].result.successful_requests == 5);
    // A block that lost its last rule ends where a table begins.
    const auto cut = read_printed("==== Serving Benchmark Result ====\nSuccessful requests: 5\n" +
                                  bench_header + bench_row + " pp8 | 7.00 ± 0.00 |\n");
    REQUIRE(cut.size() == 2);
    CHECK(cut[0].result.successful_requests == 5);
    CHECK(cut[1].result.input_tokens_per_second == 7);
}

TEST_CASE("printed tables: both phases of llama-sweep-bench and llama-batched-bench") {
    const auto sweep = read_printed(
        "main: n_kv_max = 1024, n_batch = 512, n_threads = 4\n\n"
        "|    PP |     TG |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |\n"
        "|-------|--------|--------|----------|----------|----------|----------|\n"
        "|   512 |    128 |    512 |    2.000 |   256.00 |    8.000 |    16.00 |\n");
    REQUIRE(sweep.size() == 2);
    CHECK(sweep[0].tool == "llama-sweep-bench");
    CHECK(sweep[0].labels.front() == "pp512 @ d512");
    CHECK(sweep[1].labels.front() == "tg128 @ d512");
    CHECK(sweep[0].server_settings == std::map<std::string, std::string>{{"n_kv_max", "1024"},
                                                                         {"n_batch", "512"},
                                                                         {"n_threads", "4"}});
    CHECK(figures_of(sweep[0].result) == Figures{{"duration_seconds", 2},
                                                 {"input_tokens", 512},
                                                 {"input_tokens_per_second", 256}});
    CHECK(figures_of(sweep[1].result) == Figures{{"duration_seconds", 8},
                                                 {"output_tokens", 128},
                                                 {"output_tokens_per_second", 16}});
    // Own prompts, and one prompt that all four share.
    const auto batched = read_printed(
        "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s | "
        "   S t/s |\n"
        "|-------|--------|------|--------|----------|----------|----------|----------|----------|-"
        "---------|\n"
        "|   100 |     50 |    4 |    600 |    2.000 |   200.00 |    4.000 |    50.00 |    6.000 | "
        "  100.00 |\n"
        "|   100 |     50 |    4 |    300 |    2.000 |    50.00 |    4.000 |    50.00 |    6.000 | "
        "   50.00 |\n");
    REQUIRE(batched.size() == 4);
    CHECK(batched[0].tool == "llama-batched-bench");
    CHECK(batched[0].labels.front() == "pp100 x 4");
    CHECK(batched[1].labels.front() == "tg50 x 4 @ d100");
    CHECK(batched[0].result.input_tokens == 400);
    CHECK(batched[1].result.output_tokens == 200);
    CHECK(batched[1].result.maximum_concurrency == 4);
    CHECK(batched[0].unread.at("S t/s") == "100.00");
    CHECK(batched[2].result.input_tokens == 100);
}

TEST_CASE("printed tables: AIPerf's says what its CSV says, with titles broken over lines") {
    const auto printed = read_printed(
        "# Run\n```\n                NVIDIA AIPerf | LLM Metrics\n"
        "┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━"
        "━━━┳━━━━━━┓\n"
        "┃                     Metric ┃      avg ┃    min ┃      max ┃      p99 ┃      p90 ┃      "
        "p50 ┃  std ┃\n"
        "┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━"
        "━━━╇━━━━━━┩\n"
        "│   Time to First Token (ms) │    50.25 │  30.00 │    60.00 │    59.00 │    55.00 │    "
        "50.00 │ 6.50 │\n"
        "│       Request Latency (ms) │ 1,250.50 │ 900.00 │ 1,700.00 │ 1,650.00 │ 1,500.00 │ "
        "1,200.00 │ 9.00 │\n"
        "│   Inter Token Latency (ms) │     4.00 │   3.00 │     5.00 │     5.00 │     4.50 │     "
        "4.00 │ 0.30 │\n"
        "│    Output Token Throughput │   250.00 │ 200.00 │   300.00 │   299.00 │   290.00 │   "
        "250.00 │ 2.00 │\n"
        "│ Per User (tokens/sec/user) │          │        │          │          │          │       "
        "   │      │\n"
        "│    Output Token Throughput │ 3,000.00 │    N/A │      N/A │      N/A │      N/A │      "
        "N/A │  N/A │\n"
        "│               (tokens/sec) │          │        │          │          │          │       "
        "   │      │\n"
        "│   Request Count (requests) │    40.00 │    N/A │      N/A │      N/A │      N/A │      "
        "N/A │  N/A │\n"
        "└────────────────────────────┴──────────┴────────┴──────────┴──────────┴──────────┴───────"
        "───┴──────┘\n```\n");
    REQUIRE(printed.size() == 1);
    CHECK(printed[0].tool == "aiperf");
    CHECK(printed[0].sections == std::vector<std::string>{"Run"});
    CHECK(figures_of(printed[0].result) ==
          Figures{{"successful_requests", 40},
                  {"output_tokens_per_second", 3000},
                  {"time_to_first_token_mean_seconds", 0.05025},
                  {"time_to_first_token_p50_seconds", 0.05},
                  {"time_to_first_token_p90_seconds", 0.055},
                  {"time_to_first_token_p99_seconds", 0.059},
                  {"time_to_first_token_standard_deviation_seconds", 0.0065},
                  {"time_per_output_token_mean_seconds", 0.004},
                  {"time_per_output_token_p50_seconds", 0.004},
                  {"time_per_output_token_p90_seconds", 0.0045},
                  {"time_per_output_token_p99_seconds", 0.005},
                  {"time_per_output_token_standard_deviation_seconds", 0.0003},
                  {"latency_mean_seconds", 1.2505},
                  {"latency_p50_seconds", 1.2},
                  {"latency_p90_seconds", 1.5},
                  {"latency_p99_seconds", 1.65},
                  {"latency_standard_deviation_seconds", 0.009}});
    CHECK(printed[0].unread == std::map<std::string, std::string>{
                                   {"Output Token Throughput Per User", "250 tokens/sec/user"}});
    const auto csv = read_printed(
        "Metric,avg,min,max,p99,p90,p50,std\nTime to First Token (ms),50.25,30,60,59,55,50,6.5\n"
        "Request Latency (ms),1250.50,900,1700,1650,1500,1200,9\nInter Token Latency "
        "(ms),4,3,5,5,4.5,4,0.3\n\n"
        "Metric,Value\nOutput Token Throughput (tokens/sec),3000\nRequest Count,40\n");
    REQUIRE(csv.size() == 1);
    CHECK(figures_of(csv[0].result) == figures_of(printed[0].result));
}

TEST_CASE(
    "printed tables: GenAI-Perf's, new and of 2024, and the server that was started for each") {
    const std::string header =
        "┃ Statistic ┃ avg ┃ min ┃ max ┃ p99 ┃ p90 ┃ p75 ┃\n┡━━━╇━━━╇━━━╇━━━╇━━━╇━━━╇━━━┩\n";
    const auto printed = read_printed(
        "## New\n" + header +
        "│ Time To First Token (ms) │ 20.00 │ 1 │ 2 │ 25.00 │ 22.00 │ 21.00 │\n"
        "│ Request Latency (ms) │ 300.00 │ 1 │ 2 │ 350.00 │ 320.00 │ 310.00 │\n"
        "│ Request Throughput (per sec) │ 3.50 │ N/A │ N/A │ N/A │ N/A │ N/A │\n"
        "│ Request Count (count) │ 128.00 │ N/A │ N/A │ N/A │ N/A │ N/A │\n└───\n"
        "## Old\n" +
        header +
        "│ Time to first token (ns) │ 20,000,000 │ 1 │ 2 │ 25,000,000 │ 22,000,000 │ 21,000,000 │\n"
        "│ Inter token latency (ns) │ 2,000,000 │ 1 │ 2 │ 3 │ 3 │ 3 │\n"
        "│ Request latency (ns) │ 300,000,000 │ 1 │ 2 │ 3x │ 320,000,000 │ 3 │\n"
        "└───┴───┴───┴───┴───┴───┴───┘\nOutput token throughput (per sec): 1,284.50\n"
        "Request throughput (per sec): 2.50\nOther (per sec): 9\n");
    REQUIRE(printed.size() == 2);
    CHECK(printed[0].tool == "genai-perf");
    CHECK(printed[0].labels == std::vector<std::string>{"New"});
    CHECK(figures_of(printed[0].result) == Figures{{"successful_requests", 128},
                                                   {"requests_per_second", 3.5},
                                                   {"time_to_first_token_mean_seconds", 0.02},
                                                   {"time_to_first_token_p90_seconds", 0.022},
                                                   {"time_to_first_token_p99_seconds", 0.025},
                                                   {"latency_mean_seconds", 0.3},
                                                   {"latency_p90_seconds", 0.32},
                                                   {"latency_p99_seconds", 0.35}});
    CHECK(figures_of(printed[1].result) == Figures{{"requests_per_second", 2.5},
                                                   {"output_tokens_per_second", 1284.5},
                                                   {"time_to_first_token_mean_seconds", 0.02},
                                                   {"time_to_first_token_p90_seconds", 0.022},
                                                   {"time_to_first_token_p99_seconds", 0.025},
                                                   {"latency_mean_seconds", 0.3},
                                                   {"latency_p90_seconds", 0.32}});
    CHECK(printed[1].unread.at("inter_token_latency") ==
          "2000000.0 ns, of a version whose meaning is not known");
    CHECK(printed[1].unread.at("request_latency p99") == "3x");
    // Without streams the time to the first token is the latency: no figure.
    const auto whole = read_printed(header +
                                    "│ Time To First Token (ms) │ 30.00 │ 1 │ 2 │ 3 │ 3 │ 3 │\n"
                                    "│ Request Latency (ms) │ 30.00 │ 1 │ 2 │ 3 │ 3 │ 3 │\n");
    REQUIRE(whole.size() == 1);
    CHECK_FALSE(whole[0].result.time_to_first_token.mean);
    // A value that a narrow terminal broke is whole again; a row of GPUs, or one without numbers,
    // is no result.
    const auto narrow = read_printed(
        header + "│ Request Latency │ 1,2 │ 1 │ 2 │ 3 │ 3 │ 3 │\n│ (ms) │ 50.00 │ │ │ │ │ │\n");
    CHECK(narrow.at(0).result.latency.mean == 1.25);
    CHECK_THROWS_AS(read_printed(header), ParseError);
    CHECK_THROWS_AS(
        read_printed(header + "│ Request Latency (ms) │ N/A │ N/A │ N/A │ N/A │ N/A │ N/A │\n"),
        ParseError);
    CHECK_THROWS_AS(
        read_printed(
            "┃ Metric ┃ avg ┃ min ┃ max ┃\n│ GPU Power Usage (W) │ 300.00 │ 1.00 │ 2.00 │\n"),
        ParseError);
    // The serving command above belongs to a table as to a block.
    const std::vector<Engine> engines = shipped_catalogue.engines();
    const auto served = read_results(
        "# A\n```bash\nvllm serve org/toy-8B --max-num-seqs 64\n```\n```\n" + header +
            "│ Request Throughput (per sec) │ 3.50 │ N/A │ N/A │ N/A │ N/A │ N/A │\n```\n" +
            bench_header + bench_row + " pp512 | 5.00 ± 0.00 |\n",
        "f", engines);
    REQUIRE(served.size() == 2);
    CHECK(served[0].engine == "vllm");
    CHECK(served[0].arguments == "vllm serve org/toy-8B --max-num-seqs 64");
    CHECK_FALSE(served[0].arguments_unknown);
    CHECK(served[1].arguments_unknown);
    CHECK(served[1].arguments.empty());
}

TEST_CASE(
    "printed tables: evalscope's summary and percentiles are one result, of old and new versions") {
    const std::string rule = "+--------+--------+\n";
    std::string old = "Benchmarking summary:\n" + rule + "| Key | Value |\n+========+========+\n";
    for (const char* row :
         {"Time taken for tests (s) | 20.5", "Number of concurrency | 8", "Total requests | 42",
          "Succeed requests | 40", "Failed requests | 2",
          "Output token throughput (tok/s) | 195.122", "Average latency (s) | 2.5",
          "Average time to first token (s) | 0.5", "Average time per output token (s) | 0.02",
          "Average inter-token latency (s) | 0.021", "Average input tokens per request | 50.0",
          "Average output tokens per request | 100.0", "Result DB path | out/x.db"})
        old += "| " + std::string(row) + " |\n" + rule;
    const std::string percentiles =
        "2026-01-01 - INFO -\nPercentile results:\n" + rule +
        "| Percentiles | TTFT (s) | ITL (s) | TPOT (s) | Latency (s) | Input tokens |\n" + rule +
        "| 50% | 0.45 | 0.02 | 0.02 | 2.25 | 50 |\n| 99% | 0.75 | 0.04 | nan | 3.5 | 50 |\n" + rule;
    const auto printed = read_printed("# Run\n```\n" + old + percentiles + "```\n");
    REQUIRE(printed.size() == 1);
    CHECK(printed[0].tool == "evalscope");
    CHECK(printed[0].sections == std::vector<std::string>{"Run"});
    CHECK(figures_of(printed[0].result) == Figures{{"requested_requests", 42},
                                                   {"successful_requests", 40},
                                                   {"failed_requests", 2},
                                                   {"duration_seconds", 20.5},
                                                   {"maximum_concurrency", 8},
                                                   {"input_tokens", 2000},
                                                   {"output_tokens", 4000},
                                                   {"output_tokens_per_second", 195.122},
                                                   {"time_to_first_token_mean_seconds", 0.5},
                                                   {"time_to_first_token_p50_seconds", 0.45},
                                                   {"time_to_first_token_p99_seconds", 0.75},
                                                   {"time_per_output_token_mean_seconds", 0.02},
                                                   {"inter_token_latency_mean_seconds", 0.021},
                                                   {"inter_token_latency_p50_seconds", 0.02},
                                                   {"inter_token_latency_p99_seconds", 0.04},
                                                   {"latency_mean_seconds", 2.5},
                                                   {"latency_p50_seconds", 2.25},
                                                   {"latency_p99_seconds", 3.5}});
    CHECK(printed[0].unread.at("Result DB path") == "out/x.db");
    CHECK(read_printed(old + "\n" + old).size() == 2);

    const std::string recent =
        "┌───┬───┐\n│ Metric │ Value │\n├───┼───┤\n│ ── General ── │ │\n│ Test Duration (s) │ "
        "20.50 │\n"
        "│ Concurrency │ 8 │\n│ Request Rate (req/s) │ -1.00 │\n│ Total / Success / Failed │ 42 / "
        "40 / 2 │\n"
        "│ Avg Latency (s) │ 2.50 │\n│ Avg TTFT (ms) │ 500.00 │\n│ Avg TPOT (ms) │ 20.00 │\n│ Avg "
        "ITL (ms) │ 21.00 │\n"
        "└───┴───┘\nPercentile results:\n┌───┬───┬───┐\n│ Metric │ 50% │ 99% │\n├───┼───┼───┤\n"
        "│ Latency (s) │ 2.25 │ 3.50 │\n│ TTFT (ms) │ 450.00 │ 750.00 │\n│ TPOT (ms) │ 19.00 │ "
        "25.00 │\n└───┴───┴───┘\n";
    const auto newer = read_printed(recent);
    REQUIRE(newer.size() == 1);
    CHECK(figures_of(newer[0].result) == Figures{{"requested_requests", 42},
                                                 {"successful_requests", 40},
                                                 {"failed_requests", 2},
                                                 {"duration_seconds", 20.5},
                                                 {"maximum_concurrency", 8},
                                                 {"time_to_first_token_mean_seconds", 0.5},
                                                 {"time_to_first_token_p50_seconds", 0.45},
                                                 {"time_to_first_token_p99_seconds", 0.75},
                                                 {"time_per_output_token_mean_seconds", 0.02},
                                                 {"time_per_output_token_p50_seconds", 0.019},
                                                 {"time_per_output_token_p99_seconds", 0.025},
                                                 {"inter_token_latency_mean_seconds", 0.021},
                                                 {"latency_mean_seconds", 2.5},
                                                 {"latency_p50_seconds", 2.25},
                                                 {"latency_p99_seconds", 3.5}});
    // Other tables of keys and values are none.
    CHECK_THROWS_AS(
        read_printed(
            "| Key | Value |\n|---|---|\n| Concurrency | 8 |\n| Average latency (s) | 2 |\n"),
        ParseError);
    CHECK_THROWS_AS(read_printed("| Key | Value |\n" + std::string(1 << 20, '|')), ParseError);
}

TEST_CASE("printed tables: what people made of results, and tables without figures, are none") {
    for (const std::string& text :
         {bench_header, bench_header + bench_row + " pp512 | n/a |\n",
          bench_header + bench_row + " pp512 | nan ± nan |\n",
          bench_header + bench_row + " pp0 | 5.00 ± 0.00 |\n",
          bench_header + bench_row + " other | 5.00 ± 0.00 |\n",
          bench_header + bench_row + " pp512 | -5.00 ± 0.00 |\n",
          bench_header + bench_row + " pp512 | 1e999 ± 0.00 |\n",
          bench_header + bench_row + " pp99999999999999999999 | 5.00 ± 0.00 |\n",
          std::string("| Model | Size | Params | pp512 (t/s) | tg128 (t/s) "
                      "|\n|---|---|---|---|---|\n| toy | 1 GiB | 1 B | 5.0 | 6.0 |\n"),
          std::string("| model | test | t/s |\n|---|---|---|\n| toy | pp512 | 5.0 |\n"),
          std::string("| PP | TG | N_KV | S_PP t/s | S_TG t/s |\n|---|---|---|---|---|\n| 0 | 0 | "
                      "0 | 0 | nan |\n"),
          std::string(1 << 20, '|'), "|" + std::string(1 << 20, '\n') + "|"}) {
        INFO(text.substr(0, 400));
        CHECK_THROWS_AS(read_printed(text), ParseError);
    }
    // A row with a cell more is counted, not guessed at.
    const auto longer = read_printed(bench_header + bench_row + " 3 | pp512 | 5.00 ± 0.00 |\n" +
                                     bench_row + " tg8 | 5.00 ± 0.00 |\n");
    REQUIRE(longer.size() == 2);
    CHECK(longer[0].result.input_tokens ==
          512);  // a row of its own kind: its columns have no names
    CHECK(longer[0].unread.at("columns without a name") == "99, 1024, 1, 3");
    const auto huge = read_printed(bench_header + bench_row + " pp512 | 1e308 ± 1e308 |\n");
    CHECK(huge.at(0).result.input_tokens_per_second == 1e308);
}

TEST_CASE("printed tables: a long document takes time in proportion") {
    std::string text;
    for (int i = 0; i < 20000; ++i)
        text += bench_header + "log\n" + bench_row + " pp512 | n/a |\n\n";
    text += bench_row + " pp512 | 5.00 ± 0.00 |\n";
    const auto before = std::chrono::steady_clock::now();
    CHECK(read_printed(text).size() == 1);
    CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(20));
}

TEST_CASE("printed tables: rows of llama-bench that cannot be read are counted") {
    const std::string head =
        "| model | size | params | backend | ngl | test | t/s |\n|---|---|---|---|---|---|---|\n";
    const auto results = read_published(
        head +
            "| qwen3 8B Q4_K | 4.68 GiB | 8.19 B | CUDA | 99 | pp512 | 5,012.30 ± 12.1 |\n"
            "| qwen3 8B Q4_K | 4.68 GiB | 8.19 B | CUDA | 99 | tg128 | 101.50 ± 0.20 |\n| qwen3 8B "
            "Q4_K | 99 | tg128 | 1 |\n",
        shipped_catalogue.engines());
    REQUIRE(results.size() == 1);
    CHECK(results[0].unread.at("rows that cannot be read") == "2");
}
