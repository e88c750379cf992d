// SPDX-License-Identifier: Apache-2.0
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "results/import.hpp"
#include "servetune/catalogue.hpp"
#include "servetune/result_file.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<Engine> launchers = shipped_catalogue.engines();

/// A block as the tools print it, on lines of its own.
std::string block(const std::string& total, const std::string& more = "") {
    return "============ Serving Benchmark Result ============\n"
           "Successful requests:                     1000\n" +
           more + "Total Token throughput (tok/s):          " + total +
           "\n"
           "---------------Time to First Token----------------\n"
           "Mean TTFT (ms):                          15.12\n"
           "P99 TTFT (ms):                           N/A\n"
           "==================================================\n";
}

std::string without_line_breaks(std::string text) {
    for (char& c : text)
        if (c == '\n') c = ' ';
    return text;
}

}  // namespace

TEST_CASE(
    "published: figures in our units, N/A and missing lines absent, what is not understood is "
    "kept") {
    const std::string text = block(
        "6595.66",
        "Failed requests: 3\nPeak concurrent requests: 512.00\nP95 ITL (ms): 0.12\nMean E2EL (ms): "
        "250\nFrobnication index: 7\nBackend: vllm\n");
    for (const std::string& document : {text, without_line_breaks(text)}) {
        const auto results = read_published(document, launchers);
        REQUIRE(results.size() == 1);
        const BenchmarkResult& result = results[0].result;
        CHECK(result.successful_requests == 1000);
        CHECK(result.failed_requests == 3);
        CHECK(result.peak_concurrent_requests == 512);
        CHECK(result.total_tokens_per_second == 6595.66);
        CHECK(result.time_to_first_token.mean ==
              0.01512);  // exactly the double nearest to the decimal
        CHECK_FALSE(result.time_to_first_token.p99.has_value());
        CHECK_FALSE(result.output_tokens.has_value());
        CHECK(result.inter_token_latency.p95 == 0.00012);
        CHECK(result.latency.mean == 0.25);
        CHECK(results[0].unread ==
              std::map<std::string, std::string>{{"frobnication index", "7"}, {"backend", "vllm"}});
    }
}

TEST_CASE("published: fenced commands, comments of flags and comments of workloads") {
    const auto results = read_published(
        "# Title\n## Engines\nvLLM\n```bash\nvllm serve org/Model-8B\n```\n```\n" + block("1") +
            "```\n"
            "## Backends\n```bash\npython3 -m sglang.launch_server --model-path org/Model-8B-FP8 "
            "--attention-backend=fa3\n```\n```\n# fa3\n" +
            block("2") + "\n# --attention-backend=triton\n" + block("3") +
            "```\n## Others\n```bash\nvllm serve org/Model-8B \\\n  "
            "--max-num-seqs=512\n```\n```bash\n# random 4K input\n" +
            block("4") + "```\n",
        launchers);
    REQUIRE(results.size() == 4);
    CHECK(results[0].arguments == "vllm serve org/Model-8B");
    CHECK(results[0].sections == std::vector<std::string>{"Title", "Engines"});
    CHECK(results[1].labels.front() == "fa3");
    CHECK(results[1].arguments ==
          "python3 -m sglang.launch_server --model-path org/Model-8B-FP8 --attention-backend=fa3");
    CHECK(
        results[2].arguments ==
        "python3 -m sglang.launch_server --model-path org/Model-8B-FP8 --attention-backend=triton");
    CHECK(results[2].labels.front() == "Backends");
    CHECK(results[3].arguments == "vllm serve org/Model-8B --max-num-seqs=512");
    CHECK(results[3].labels.front() == "random 4K input");
    CHECK(results[3].result.total_tokens_per_second == 4);
}

TEST_CASE("published: headings, profiles and fences of flags where all line breaks are lost") {
    const auto results = read_published(
        without_line_breaks("# Title ## Results ### Prefix Cache - Profile: `ShareGPT` - "
                            "Parameters: ```bash --enable-prefix-caching "
                            "--config={\"a\":1} ``` ??? info \"r\" ``` " +
                            block("1") +
                            " ``` - Summary: faster by 3 ### Max Seqs #### Seqs 512 - Profile: "
                            "`Long` ```bash --max-num-seqs=512 ``` ``` " +
                            block("2") +
                            " ``` #### Throughput Profile - Baseline ```bash --x=1 ``` ``` " +
                            block("3")),
        launchers);
    REQUIRE(results.size() == 3);
    CHECK(results[0].sections == std::vector<std::string>{"Title", "Results", "Prefix Cache"});
    CHECK(results[0].labels.front() == "ShareGPT");
    CHECK(results[0].arguments == "--enable-prefix-caching --config={\"a\":1}");
    CHECK(results[1].sections ==
          std::vector<std::string>{"Title", "Results", "Max Seqs", "Seqs 512"});
    CHECK(results[1].labels.front() == "Long");
    CHECK(results[2].labels.front() == "Throughput Profile");
}

TEST_CASE("published: what is cut off, empty or no document") {
    CHECK(read_published("", launchers).empty());
    CHECK(read_published("no block here: 5", launchers).empty());
    const std::string whole = block("12345.67");
    for (std::size_t length = 0; length < whole.size(); ++length)
        CHECK(read_published(whole.substr(0, length), launchers).size() <= 1);
    CHECK(read_published("Serving Benchmark Result Serving Benchmark Result:", launchers).size() ==
          2);
}

TEST_CASE("published: SGLang's block: no cap, tokens counted anew, what only it prints") {
    const std::string text =
        "\n============ Serving Benchmark Result ============\n"
        "Backend:                                 sglang    \n"
        "Traffic request rate:                    inf       \n"
        "Max request concurrency:                 not set   \n"
        "Successful requests:                     32        \n"
        "Benchmark duration (s):                  2.81      \n"
        "Total input tokens:                      16384     \n"
        "Total input text tokens:                 16000     \n"
        "Total generated tokens:                  4096      \n"
        "Total generated tokens (retokenized):    4095      \n"
        "Total token throughput (tok/s):          7276.39   \n"
        "Concurrency:                             15.58     \n"
        "Accept length:                           2.50      \n"
        "----------------End-to-End Latency----------------\n"
        "Mean E2E Latency (ms):                   1370.59   \n"
        "P90 E2E Latency (ms):                    1396.65   \n"
        "---------------Inter-Token Latency----------------\n"
        "P95 ITL (ms):                            11.08     \n"
        "Max ITL (ms):                            12.00     \n"
        "----------------Cache Hit Details-----------------\n"
        "Total prompt tokens:                     99        \n"
        "  Device:                                5         \n"
        "Cache hit rate:                          12.3%     \n"
        "  Device:                                5.5%      \n"
        "==================================================\n";
    for (const std::string& document : {text, without_line_breaks(text)}) {
        const auto results = read_published(document, launchers);
        REQUIRE(results.size() == 1);
        CHECK(results[0].tool == "sglang");
        const BenchmarkResult& result = results[0].result;
        CHECK(result.successful_requests == 32);
        CHECK_FALSE(result.maximum_concurrency);
        CHECK_FALSE(result.requested_rate_per_second);
        CHECK(result.input_tokens == 16384);
        CHECK(result.output_tokens == 4096);
        CHECK(result.mean_concurrency == 15.58);
        CHECK(result.latency.mean == 1.37059);
        CHECK(result.latency.p90 == 1.39665);
        CHECK(result.inter_token_latency.p95 == 0.01108);
        CHECK(results[0].unread ==
              std::map<std::string, std::string>{{"backend", "sglang"},
                                                 {"total input text tokens", "16000"},
                                                 {"total generated tokens(retokenized)", "4095"},
                                                 {"accept length", "2.50"},
                                                 {"max itl(ms)", "12.00"},
                                                 {"total prompt tokens", "99"},
                                                 {"device", "5; 5.5%"},
                                                 {"cache hit rate", "12.3%"}});
    }
    CHECK(
        read_published(
            "Serving Benchmark Result\nMax reqeuest concurrency: 8\nTotal throughput (tok/s): 5\n",
            launchers)[0]
            .result.maximum_concurrency == 8);
}

TEST_CASE("published: vLLM's sections that look like others, GPUStack's latency in seconds") {
    const auto results = read_published(
        "============ Serving Benchmark Result ============\n"
        "Failed requests:                         1         \n"
        "Total Token throughput (tok/s):          5.00      \n"
        "------------------Probe Requests------------------\n"
        "Probe requests failed:                   7         \n"
        "Median probe E2EL (ms):                  8.00      \n"
        "----------------End-to-end Latency----------------\n"
        "P99.9 E2EL (ms):                         9.00      \n"
        "Mean E2EL (ms):                          250.00    \n"
        "--------Queue-inclusive End-to-end Latency--------\n"
        "Mean E2EL incl. Client Queue (ms):       400.00    \n"
        "---------------Speculative Decoding---------------\n"
        "Acceptance rate (%):                     71.20     \n"
        "Per-position acceptance (%):\n"
        "  Position 0:                            80.00     \n"
        "==================================================\n"
        "============ Serving Benchmark Result ============\n"
        "Successful requests:                     20\n"
        "Maximum request concurrency:             N/A\n"
        "Peak output token throughput (tok/s):    21900.04\n"
        "----------------------Latency---------------------\n"
        "Mean Latency(s):                          0.68\n"
        "P95 Latency(s):                           N/A\n"
        "P99 Latency(s):                           -1\n"
        "==================================================\n",
        launchers);
    REQUIRE(results.size() == 2);
    CHECK(results[0].tool.empty());
    CHECK(results[0].result.failed_requests == 1);
    CHECK(results[0].result.latency.mean == 0.25);
    CHECK_FALSE(results[0].result.latency.p50);
    CHECK_FALSE(results[0].result.latency.p99);
    CHECK(results[0].unread ==
          std::map<std::string, std::string>{{"probe requests failed", "7"},
                                             {"median probe e2el(ms)", "8.00"},
                                             {"p99.9 e2el(ms)", "9.00"},
                                             {"mean e2el incl. client queue(ms)", "400.00"},
                                             {"acceptance rate(%)", "71.20"},
                                             {"position 0", "80.00"}});
    CHECK(results[1].tool == "gpustack");
    CHECK(results[1].result.latency.mean == 0.68);
    CHECK_FALSE(results[1].result.latency.p95);
    CHECK_FALSE(results[1].result.latency.p99);
    CHECK(results[1].unread ==
          std::map<std::string, std::string>{
              {"p99 latency(s)", "-1"},
              {"peak output token throughput(tok/s), over an instant", "21900.04"}});
    CHECK_FALSE(results[1].result.peak_output_tokens_per_second);
    CHECK_FALSE(results[1].result.maximum_concurrency);
}

TEST_CASE(
    "import: a study with one workload takes no blocks of several, and says what tells them "
    "apart") {
    const TemporaryFolder folder;
    const Catalogue catalogue(std::filesystem::path(SERVETUNE_SOURCE) / "search_spaces");
    const auto study = [&](const std::string& printed_as) {
        return load_study(folder.write("study.yaml",
                                       "study: one\nmodel: org/Model-8B\nengine: vllm\n"
                                       "workloads: [{workload: chat, dataset: {kind: random, "
                                       "input_tokens: 512, output_tokens: 64}" +
                                           printed_as +
                                           "}]\nobjective: {maximize: total_tokens_per_second}\n"
                                           "space: {max_num_seqs: {choice: [engine, "
                                           "128]}}\nothers: default\nevaluator: {simulate: {}}\n"
                                           "hardware: h100-sxm\n"),
                          catalogue);
    };
    const auto of = [](const std::string& label, int input_tokens, int in_flight) {
        return "- " + label + "\n```bash\nvllm serve org/Model-8B\n```\n" +
               block("1", "Maximum request concurrency: " + std::to_string(in_flight) +
                              "\nTotal input tokens: " + std::to_string(1000 * input_tokens) +
                              "\nTotal generated tokens: 64000\n");
    };
    const auto imported = [&](const std::string& document, const std::string& printed_as = "") {
        return import_for_study(read_published(document, launchers), study(printed_as));
    };
    CHECK(imported(of("first", 512, 8) + of("second", 530, 8)).rows ==
          2);  // another draw of the same
    for (const std::string& document :
         {of("short", 512, 8) + of("long", 4096, 8), of("low", 512, 1) + of("high", 512, 64)}) {
        const Imported mixed = imported(document);
        CHECK(mixed.rows == 0);
        REQUIRE(mixed.unplaced.size() == 2);
        CHECK(has(mixed.unplaced[1].reason,
                  "blocks without a known label are of several workloads (block 0: 512 input "
                  "tokens, 64 output tokens"));
        CHECK(has(mixed.unplaced[1].reason,
                  "say what the document calls the blocks of 'chat' (printed_as)"));
    }
    const Imported named =
        imported(of("short", 512, 8) + of("long", 4096, 8), ", printed_as: short");
    CHECK(named.rows == 1);
    CHECK(named.unplaced.size() == 1);
    const Imported unknown =
        imported("```bash\nKERNELS=1 vllm serve org/Model-8B\n```\n" + block("1"));
    CHECK(unknown.rows == 0);
    CHECK(unknown.unplaced.at(0).reason == "the study does not know KERNELS=1");
}
