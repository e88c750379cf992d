// SPDX-License-Identifier: Apache-2.0
// Tables that benchmarks print, as people paste them into documents. All figures are invented.
#include "support/figures.hpp"
#include "support/test.hpp"

#include "servetune/base/error.hpp"
#include "servetune/results/result_file.hpp"

#include <chrono>
#include <map>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

std::vector<PublishedResult> read_printed(const std::string& text) { return read_results(text, "f", {}); }

const std::string bench_header =
    "| model        |      size |   params | backend | ngl | n_ubatch | nkvo |          test |             t/s |\n"
    "| ------------ | --------: | -------: | ------- | --: | -------: | ---: | ------------: | --------------: |\n";
const std::string bench_row = "| toy 1B Q8_0  |  1.23 GiB |   1.24 B | CUDA    |  99 |     1024 |    1 |";

}  // namespace

TEST_CASE("printed tables: llama-bench's table says what its JSON says") {
    const auto printed =
        read_printed("# Title\n\n```\n" + bench_header + bench_row + "         pp512 | 1234.50 ± 6.70 |\n" + bench_row +
                     " tg128 @ d4096 | 56.71 ± 0.08 |\n" + bench_row + "   pp512+tg128 | 256.00 ± 1.10 |\n\nbuild: 0a1b2c3 (6789)\n```\n");
    const std::string same =
        R"("build_commit": "0a1b2c3", "build_number": 6789, "backends": "CUDA", "model_type": "toy 1B Q8_0", "model_size": "1.23 GiB",
           "model_n_params": "1.24 B", "n_gpu_layers": 99, "n_ubatch": 1024, "no_kv_offload": true, )";
    const auto json = read_printed("[{" + same + R"("n_prompt": 512, "n_gen": 0, "n_depth": 0, "avg_ts": 1234.5, "stddev_ts": 6.7}, {)" +
                                   same + R"("n_prompt": 0, "n_gen": 128, "n_depth": 4096, "avg_ts": 56.71, "stddev_ts": 0.08}, {)" + same +
                                   R"("n_prompt": 512, "n_gen": 128, "n_depth": 0, "avg_ts": 256, "stddev_ts": 1.1}])");
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
    CHECK(figures_of(json[1].result) == Figures{{"output_tokens", 128}, {"output_tokens_per_second", 56.71}});
}

TEST_CASE("printed tables: several of llama-bench, with logs between, quoted, bold, and rows without their header") {
    const auto printed =
        read_printed("## One\n" + bench_header + bench_row + " **pp 32** | **10.00 ± 1.00** |\n| = repacked | | | | | | | | |\n" +
                     "load_tensors: 1 buffer\n" + bench_row + " tg8@pp64 | 5.00 ± 0.10 |\n\nllama_perf: 1 ms\nbuild: abc (12)\n## Two\n> " +
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
    const std::string block = "==== Serving Benchmark Result ====\nSuccessful requests: 5\n==========\n";
    const auto mixed = read_printed("# A\n" + block + "# B\n" + bench_header + bench_row + " pp8 | 7.00 ± 0.00 |\n# C\n" + block);
    REQUIRE(mixed.size() == 3);
    CHECK(mixed[0].sections == std::vector<std::string>{"A"});
    CHECK(mixed[1].tool == "llama-bench");
    CHECK(mixed[1].sections == std::vector<std::string>{"B"});
    CHECK(mixed[2].sections == std::vector<std::string>{"C"});
    CHECK(mixed[2].result.successful_requests == 5);
    // A block that lost its last rule ends where a table begins.
    const auto cut =
        read_printed("==== Serving Benchmark Result ====\nSuccessful requests: 5\n" + bench_header + bench_row + " pp8 | 7.00 ± 0.00 |\n");
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
    CHECK(sweep[0].server_settings == std::map<std::string, std::string>{{"n_kv_max", "1024"}, {"n_batch", "512"}, {"n_threads", "4"}});
    CHECK(figures_of(sweep[0].result) == Figures{{"duration_seconds", 2}, {"input_tokens", 512}, {"input_tokens_per_second", 256}});
    CHECK(figures_of(sweep[1].result) == Figures{{"duration_seconds", 8}, {"output_tokens", 128}, {"output_tokens_per_second", 16}});
    // Own prompts, and one prompt that all four share.
    const auto batched = read_printed(
        "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n"
        "|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|\n"
        "|   100 |     50 |    4 |    600 |    2.000 |   200.00 |    4.000 |    50.00 |    6.000 |   100.00 |\n"
        "|   100 |     50 |    4 |    300 |    2.000 |    50.00 |    4.000 |    50.00 |    6.000 |    50.00 |\n");
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

TEST_CASE("printed tables: what people made of results, and tables without figures, are none") {
    for (const std::string& text :
         {bench_header, bench_header + bench_row + " pp512 | n/a |\n", bench_header + bench_row + " pp512 | nan ± nan |\n",
          bench_header + bench_row + " pp0 | 5.00 ± 0.00 |\n", bench_header + bench_row + " other | 5.00 ± 0.00 |\n",
          bench_header + bench_row + " pp512 | -5.00 ± 0.00 |\n", bench_header + bench_row + " pp512 | 1e999 ± 0.00 |\n",
          bench_header + bench_row + " pp99999999999999999999 | 5.00 ± 0.00 |\n",
          std::string("| Model | Size | Params | pp512 (t/s) | tg128 (t/s) |\n|---|---|---|---|---|\n| toy | 1 GiB | 1 B | 5.0 | 6.0 |\n"),
          std::string("| model | test | t/s |\n|---|---|---|\n| toy | pp512 | 5.0 |\n"),
          std::string("| PP | TG | N_KV | S_PP t/s | S_TG t/s |\n|---|---|---|---|---|\n| 0 | 0 | 0 | 0 | nan |\n"),
          std::string(1 << 20, '|'), "|" + std::string(1 << 20, '\n') + "|"}) {
        INFO(text.substr(0, 400));
        CHECK_THROWS_AS(read_printed(text), ParseError);
    }
    // A row with a cell more is counted, not guessed at.
    const auto longer = read_printed(bench_header + bench_row + " 3 | pp512 | 5.00 ± 0.00 |\n" + bench_row + " tg8 | 5.00 ± 0.00 |\n");
    REQUIRE(longer.size() == 2);
    CHECK(longer[0].result.input_tokens == 512);  // a row of its own kind: its columns have no names
    CHECK(longer[0].unread.at("columns without a name") == "99, 1024, 1, 3");
    const auto huge = read_printed(bench_header + bench_row + " pp512 | 1e308 ± 1e308 |\n");
    CHECK(huge.at(0).result.input_tokens_per_second == 1e308);
}

TEST_CASE("printed tables: a long document takes time in proportion") {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += bench_header + "log\n" + bench_row + " pp512 | n/a |\n\n";
    text += bench_row + " pp512 | 5.00 ± 0.00 |\n";
    const auto before = std::chrono::steady_clock::now();
    CHECK(read_printed(text).size() == 1);
    CHECK(std::chrono::steady_clock::now() - before < std::chrono::seconds(20));
}
