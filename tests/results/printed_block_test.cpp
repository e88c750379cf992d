// SPDX-License-Identifier: Apache-2.0
// The "Serving Benchmark Result" block: its figures, where it ends, and whose command it has.
#include "support/figures.hpp"
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "results/import.hpp"
#include "results/printed_block.hpp"
#include "servetune/audit.hpp"
#include "servetune/error.hpp"

using namespace servetune;
using namespace servetune::test;

namespace {

const std::vector<Engine>& known_engines() {
    static const std::vector<Engine> engines = shipped_catalogue.engines();
    return engines;
}
std::vector<PublishedResult> blocks_in(const std::string& document) {
    return read_printed_blocks(document, known_engines());
}

const std::string rule = std::string(50, '=') + "\n";
/// A block with a rate and more lines.
std::string block_of(const std::string& rate, const std::string& more = "") {
    return "============ Serving Benchmark Result ============\nSuccessful requests:     1000\n" +
           more + "Total Token throughput (tok/s):          " + rate +
           "\n---------------Time to First Token----------------\n"
           "Mean TTFT (ms):                          15.12\nP99 TTFT (ms):       N/A\n" +
           rule;
}
std::string fenced(const std::string& text) { return "```\n" + text + "\n```\n"; }
std::string without_line_breaks(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

/// The only block's command, or `?` and why it has none.
std::string command_above(const std::string& document) {
    const auto results = blocks_in(document);
    REQUIRE(results.size() == 1);
    CHECK(results[0].arguments_unknown == results[0].arguments.empty());
    CHECK(results[0].arguments_unknown == !results[0].not_recognised.empty());
    return results[0].arguments_unknown ? "?" + results[0].not_recognised : results[0].arguments;
}

}  // namespace

TEST_CASE("printed block: figures in our units, absent ones absent, the rest kept") {
    const std::string text = block_of(
        "6595.66",
        "Failed requests: 3\nPeak concurrent requests: 512.00\nP95 ITL (ms): 0.12\nMean E2EL (ms): "
        "250\nFrobnication index: 7\nBackend: vllm\n");
    for (const std::string& document : {text, without_line_breaks(text)}) {
        const auto results = blocks_in(document);
        REQUIRE(results.size() == 1);
        CHECK(figures_of(results[0].result) ==
              Figures{{"successful_requests", 1000},
                      {"failed_requests", 3},
                      {"peak_concurrent_requests", 512},
                      {"total_tokens_per_second", 6595.66},
                      {"time_to_first_token_mean_seconds", 0.01512},
                      {"inter_token_latency_p95_seconds", 0.00012},
                      {"latency_mean_seconds", 0.25}});
        CHECK(results[0].unread ==
              std::map<std::string, std::string>{{"frobnication index", "7"}, {"backend", "vllm"}});
    }
    const std::string whole = block_of("12345.67");
    for (std::size_t length = 0; length < whole.size(); ++length)
        CHECK(blocks_in(whole.substr(0, length)).size() <= 1);
    CHECK(blocks_in("Serving Benchmark Result Serving Benchmark Result:").size() == 2);
}

TEST_CASE("printed block: what SGLang, vLLM and GPUStack print, and what only looks alike") {
    const auto results = blocks_in(
        "============ Serving Benchmark Result ============\n"
        "Backend:                                 sglang    \n"
        "Traffic request rate:                    inf       \n"
        "Max request concurrency:                 not set   \n"
        "Successful requests:                     32        \n"
        "Total input tokens:                      16384     \n"
        "Total input text tokens:                 16000     \n"
        "Total generated tokens:                  4096      \n"
        "Total generated tokens (retokenized):    4095      \n"
        "Concurrency:                             15.58     \n"
        "Mean E2E Latency (ms):                   1370.59   \n"
        "Max ITL (ms):                            12.00     \n"
        "  Device:                                5         \n"
        "  Device:                                5.5%      \n" +
        rule +
        "============ Serving Benchmark Result ============\n"
        "Failed requests:                         1         \n"
        "Probe requests failed:                   7         \n"
        "Median probe E2EL (ms):                  8.00      \n"
        "P99.9 E2EL (ms):                         9.00      \n"
        "Mean E2EL (ms):                          250.00    \n"
        "Mean E2EL incl. Client Queue (ms):       400.00    \n" +
        rule +
        "============ Serving Benchmark Result ============\n"
        "Maximum request concurrency:             N/A\n"
        "Peak output token throughput (tok/s):    21900.04\n"
        "Mean Latency(s):                          0.68\n"
        "P99 Latency(s):                           -1\n" +
        rule +
        "Serving Benchmark Result\nMax reqeuest concurrency: 8\nTotal throughput (tok/s): 5\n");
    REQUIRE(results.size() == 4);
    CHECK(results[0].tool == "sglang");
    CHECK(figures_of(results[0].result) == Figures{{"successful_requests", 32},
                                                   {"input_tokens", 16384},
                                                   {"output_tokens", 4096},
                                                   {"mean_concurrency", 15.58},
                                                   {"latency_mean_seconds", 1.37059}});
    CHECK(results[0].unread ==
          std::map<std::string, std::string>{{"backend", "sglang"},
                                             {"total input text tokens", "16000"},
                                             {"total generated tokens(retokenized)", "4095"},
                                             {"max itl(ms)", "12.00"},
                                             {"device", "5; 5.5%"}});
    CHECK(results[1].tool.empty());
    CHECK(figures_of(results[1].result) ==
          Figures{{"failed_requests", 1}, {"latency_mean_seconds", 0.25}});
    CHECK(results[1].unread.size() == 4);
    CHECK(results[2].tool == "gpustack");
    CHECK(figures_of(results[2].result) == Figures{{"latency_mean_seconds", 0.68}});
    CHECK(results[2].unread ==
          std::map<std::string, std::string>{
              {"p99 latency(s)", "-1"},
              {"peak output token throughput(tok/s), over an instant", "21900.04"}});
    CHECK(figures_of(results[3].result) ==
          Figures{{"maximum_concurrency", 8}, {"total_tokens_per_second", 5}});
}

TEST_CASE("printed block: zeros of what was not measured, and two values of one figure, are none") {
    struct Row {
        const char* lines;
        Figures figures;
    };
    const Row rows[] = {
        {"Successful requests: 10\nTotal input tokens: 0\nMean TTFT (ms): 9000.00\n"
         "Mean ITL (ms): 0.00\nP99 ITL (ms): 0.00\n",
         {{"successful_requests", 10}, {"time_to_first_token_mean_seconds", 9}}},
        // A median of nothing beside a mean of something is a finding, so it stays.
        {"Mean TTFT (ms): 9000.00\nMedian TTFT (ms): 0.00\n",
         {{"time_to_first_token_mean_seconds", 9}, {"time_to_first_token_p50_seconds", 0}}},
        {"Mean TPOT (ms): 42.50\nMean ITL (ms): 0.00\n",
         {{"time_per_output_token_mean_seconds", 0.0425}, {"inter_token_latency_mean_seconds", 0}}},
        {"Successful requests: 0\nMean TTFT (ms): 120.00\n", {{"successful_requests", 0}}},
        {"Request throughput (req/s): 5 -> 6\nMean ITL (ms): 3\n",
         {{"inter_token_latency_mean_seconds", 0.003}}},
        {"Request throughput (req/s): 5\nRequest throughput (req/s): 6\nMean ITL (ms): 3\n",
         {{"inter_token_latency_mean_seconds", 0.003}}},
    };
    for (const Row& row : rows) {
        INFO(row.lines);
        CHECK(figures_of(blocks_in("= Serving Benchmark Result =\n" + std::string(row.lines) + rule)
                             .at(0)
                             .result) == row.figures);
    }
    const Validity validity = audit(
        blocks_in("= Serving Benchmark Result =\nSuccessful requests: 0\n" + rule)[0].result, {});
    CHECK(validity.verdict == Verdict::unsound);
    CHECK(validity.findings.at(0).id == "complete");
}

TEST_CASE("printed block: one whose rule is missing ends with its fence, a heading or HTML") {
    const std::string open = "= Serving Benchmark Result =\nRequest throughput (req/s): 2\n";
    for (const char* end : {"```\nOf other runs. ", "\n# Later\n", "\n</details>\n"}) {
        INFO(end);
        const auto one = blocks_in("```\n" + open + end + "Mean ITL (ms): 3\n");
        REQUIRE(one.size() == 1);
        CHECK(figures_of(one[0].result) == Figures{{"requests_per_second", 2}});
    }
    const auto two = blocks_in(fenced("vllm serve org/a-8b --max-num-seqs 8") + "```\n" + open +
                               "```\n" + fenced("vllm serve org/b-70b") + fenced(open + rule));
    REQUIRE(two.size() == 2);
    CHECK(two[0].arguments == "vllm serve org/a-8b --max-num-seqs 8");
    CHECK(two[1].arguments == "vllm serve org/b-70b");
}

TEST_CASE("printed block: its command stands directly above it, in a fence or in lines") {
    const std::string block = block_of("1"), launch = "vllm serve org/M-8B -tp 2";
    for (const std::string& above :
         {fenced(launch) + "```\n", fenced("$ " + launch) + "\n\n```text\n", launch + "\n",
          "```bash\n" + launch + "\n", fenced("# first\nHF_TOKEN=$T " + launch) + "```\n",
          fenced("vllm serve org/M-8B \\\n  -tp 2 2>&1 &") + "```\n", "Prose.\n\n" + fenced(launch),
          "````\n```\n````\n" + fenced(launch)}) {
        INFO(above);
        CHECK(command_above(above + block) == launch);
    }
    // Its environment stays in front, and quotes are read as a shell does.
    CHECK(command_above(fenced("VLLM_X=1 CUDA_VISIBLE_DEVICES=0 Y='a b' vllm serve m") +
                        fenced(block)) == "VLLM_X=1 'Y=a b' vllm serve m");
    CHECK(command_above(fenced("vllm serve m --j '{\"a\": 1}' --k={\"b\":2}") + fenced(block)) ==
          "vllm serve m --j '{\"a\": 1}' '--k={\"b\":2}'");
    // The fence of the result says another one.
    CHECK(command_above(fenced(launch) + "```\n$ vllm serve org/M-8B -tp 4\n" + block) ==
          "vllm serve org/M-8B -tp 4");
    const auto sglang =
        blocks_in(fenced("python3 -m sglang.launch_server --model-path m") + fenced(block));
    CHECK(sglang[0].engine == "sglang");
}

TEST_CASE("printed block: where anything else stands above it, it has no command and says why") {
    const std::string block = block_of("1"), launch = fenced("vllm serve org/M-8B -tp 2");
    struct Row {
        std::string above;
        const char* why;
    };
    const Row rows[] = {
        {"", "no command stands directly above it"},
        {launch + "Again:\n", "starts no engine: Again:"},
        {launch + "## Results\n", "no command stands directly above it"},
        {launch + "- high load\n", "starts no engine: - high load"},
        {launch + fenced("pip install vllm"), "starts no engine: pip install vllm"},
        {launch + "```\nsome output\n", "starts no engine: some output"},
        {fenced("vllm serve m\nvllm serve n"), "several commands: vllm serve n"},
        {fenced("vllm serve m\nvllm bench serve"), "starts no engine: vllm bench serve"},
        {fenced("sudo vllm serve m"), "starts no engine: sudo"},
        {fenced("docker run vllm/vllm-openai --model m"), "starts no engine: docker run"},
        {fenced("--max-num-seqs=64"), "starts no engine: --max-num-seqs=64"},
        {fenced("vllm serve $MODEL"), "known only where it runs: vllm serve $MODEL"},
        {fenced("vllm serve m --seed $(date)"), "known only where it runs"},
        {fenced("export A=$B\nvllm serve m"), "starts no engine: export A=$B"},
        {fenced("vllm serve m --config all.yaml"), "its settings are in a file"},
        {fenced("vllm serve 'm"), "a quote ' is not closed"},
        {"It is `vllm serve m`.\n", "starts no engine: It is"},
    };
    for (const Row& row : rows) {
        INFO(row.above);
        const std::string said = command_above(row.above + fenced(block));
        INFO(said);
        CHECK(said.starts_with("?"));
        CHECK(has(said, row.why));
    }
    // A command is of the block below it alone.
    const auto several = blocks_in(launch + fenced(block + block) + fenced(block));
    REQUIRE(several.size() == 3);
    CHECK_FALSE(several[0].arguments_unknown);
    CHECK(several[1].arguments_unknown);
    CHECK(several[2].arguments_unknown);
}

TEST_CASE("printed block: --command is for those that have none") {
    auto results =
        blocks_in(fenced("vllm serve m") + fenced(block_of("1")) + fenced(block_of("2")));
    give_command(results, "$ vllm serve org/M-8B -tp 2", known_engines());
    CHECK(results[0].arguments == "vllm serve m");
    CHECK(results[1].arguments == "vllm serve org/M-8B -tp 2");
    CHECK(results[1].engine == "vllm");
    CHECK_FALSE(results[1].arguments_unknown);
    CHECK_THROWS_AS(give_command(results, "ls -l", known_engines()), UsageError);
}

TEST_CASE("import: a study with one workload takes no results of several") {
    const TemporaryFolder folder;
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
                          shipped_catalogue);
    };
    const auto of = [](const std::string& label, int input_tokens, int in_flight) {
        PublishedResult result =
            blocks_in(
                fenced("vllm serve org/Model-8B") +
                block_of("1", "Maximum request concurrency: " + std::to_string(in_flight) +
                                  "\nTotal input tokens: " + std::to_string(1000 * input_tokens) +
                                  "\nTotal generated tokens: 64000\n"))
                .at(0);
        result.labels = {label};
        return result;
    };
    const auto imported = [&](std::vector<PublishedResult> results, const std::string& as = "") {
        for (std::size_t i = 0; i < results.size(); ++i) results[i].index = i;
        return import_for_study(results, study(as));
    };
    CHECK(imported({of("first", 512, 8), of("second", 530, 8)}).rows ==
          2);  // another draw of the same
    for (const auto& other : {of("long", 4096, 8), of("high", 512, 64)}) {
        const Imported mixed = imported({of("short", 512, 8), other});
        CHECK(mixed.rows == 0);
        REQUIRE(mixed.unplaced.size() == 2);
        CHECK(has(mixed.unplaced[1].reason,
                  "of several workloads (result 0: 512 input tokens, 64 output tokens"));
    }
    const Imported named =
        imported({of("short", 512, 8), of("long", 4096, 8)}, ", printed_as: short");
    CHECK(named.rows == 1);
    CHECK(named.unplaced.size() == 1);
    const auto unknown =
        imported(blocks_in(fenced("KERNELS=1 vllm serve org/Model-8B") + fenced(block_of("1"))));
    CHECK(unknown.unplaced.at(0).reason == "the study does not know KERNELS=1");
}
