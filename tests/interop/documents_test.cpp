// SPDX-License-Identifier: Apache-2.0
// Serving commands in documents as people write them (tests/data/documents): the right one, or none
// and why.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "results/import.hpp"
#include "servetune/audit.hpp"
#include "servetune/result_file.hpp"
#include "study/table.hpp"

#include <algorithm>

using namespace servetune;
using namespace servetune::test;

namespace {

/// What is expected of one result, in a line: the command, or `? why` not.
std::string said(const PublishedResult& result) {
    return result.not_recognised.empty() ? result.arguments : "? " + result.not_recognised;
}

std::vector<std::string> commands_in(const std::string& name) {
    std::vector<std::string> result;
    const auto file = std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/documents" / name;
    for (const PublishedResult& one : read_published(read_file(file), shipped_catalogue.engines()))
        result.push_back(said(one));
    return result;
}

using Lines = std::vector<std::string>;

StudyFile study_of_document(const TemporaryFolder& folder, const std::string& more) {
    return load_study(folder.write("study.yaml",
                                   "study: one\nmodel: org/Model-8B\n"
                                   "workloads: [{workload: chat, dataset: {kind: random, "
                                   "input_tokens: 512, output_tokens: 128}}]\n"
                                   "objective: {maximize: total_tokens_per_second}\nothers: "
                                   "default\nevaluator: {simulate: {}}\n"
                                   "hardware: {device: h100-sxm, count: 8}\n" +
                                       more),
                      shipped_catalogue);
}

}  // namespace

TEST_CASE(
    "documents: launchers with a prompt, an environment, wrappers and other programs before or "
    "behind them") {
    CHECK(
        commands_in("prefixes.md") ==
        Lines{"VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve org/Model-8B --max-num-seqs 64",
              "VLLM_ATTENTION_BACKEND=TRITON_ATTN vllm serve org/Model-8B",
              "vllm serve org/Model-8B", "vllm serve org/Model-8B --max-num-seqs=128",
              "vllm serve org/Model-8B --max-num-seqs=129",
              "vllm serve org/Model-8B --max-num-seqs 256",
              "vllm serve org/Model-8B --max-num-seqs 257", "/opt/venv/bin/vllm serve org/Model-8B",
              "python -m vllm.entrypoints.openai.api_server --model org/Model-8B --max-num-seqs 32",
              "sglang serve --model-path org/Model-8B --tp 2",
              "vllm serve org/Model-8B --max-num-seqs 33",
              "vllm serve org/Model-8B --max-num-seqs 34",
              "vllm serve org/Model-8B --max-num-seqs 35"});
}

TEST_CASE(
    "documents: containers run the engine of their image, or the command behind it, or are not "
    "recognised") {
    CHECK(
        commands_in("containers.md") ==
        Lines{
            "VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve --model org/Model-8B --max-num-seqs 512",
            "vllm serve --model org/Model-8B",
            "python3 -m sglang.launch_server --model-path org/Model-8B --tp-size 2",
            "? docker run --gpus all someone/server:1 --model org/Model-8B",
            "? none stands directly above it, the last one before it is: python3 -m "
            "sglang.launch_server --model-path org/Model-8B "
            "--tp-size 2",
            "vllm serve --model org/Model-8B --max-num-seqs 48"});
}

TEST_CASE(
    "documents: short spellings, copies of checkpoints on a disk and values off the study's grid") {
    const auto file = std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/documents/aliases.md";
    const auto results = read_published(read_file(file), shipped_catalogue.engines());
    CHECK(said(results.at(1)) ==
          "python3 -m sglang.launch_server --model org/Model-8B --tp 8 --dp 2 "
          "--enable-dp-attention --reasoning-parser deepseek-v3 "
          "--context-length=32768");
    const TemporaryFolder folder;
    const Imported imported = import_for_study(
        results,
        study_of_document(folder,
                          "engine: [vllm, sglang, tensorrt-llm]\nspace:\n  "
                          "vllm.tensor_parallel_size: {choice: [1, 4]}\n"
                          "  vllm.pipeline_parallel_size: {choice: [1, 2]}\n  vllm.max_num_seqs: "
                          "{choice: [engine, 100, 256]}\n"
                          "  sglang.tp_size: {choice: [1, 8]}\n  sglang.dp_size: {choice: [1, 2]}\n"
                          "  sglang.enable_dp_attention: {choice: [false, true]}\n  "
                          "sglang.reasoning_parser: {choice: [engine, deepseek-v3]}\n"
                          "  sglang.context_length: {choice: [engine, 32768]}\n"
                          "  tensorrt-llm.tp_size: {choice: [1, 8]}\n  tensorrt-llm.ep_size: "
                          "{choice: [engine, 8]}\n"));
    INFO(imported.csv);
    for (const Unplaced& unplaced : imported.unplaced)
        UNSCOPED_INFO(unplaced.result.index << " " << unplaced.reason);
    CHECK(imported.rows == 4);
    const MeasuredTable table = parse_table(imported.csv, "imported.csv");
    const auto cell = [&](std::size_t row, const std::string& name) {
        const auto at = std::find(table.parameters.begin(), table.parameters.end(), name) -
                        table.parameters.begin();
        return table.rows.at(row).cells.at(static_cast<std::size_t>(at)).value_or("");
    };
    CHECK(cell(0, "vllm.tensor_parallel_size") == "4");
    CHECK(cell(0, "vllm.pipeline_parallel_size") == "2");
    CHECK(cell(1, "sglang.tp_size") == "8");
    CHECK(cell(1, "sglang.enable_dp_attention") == "true");
    CHECK(cell(2, "tensorrt-llm.tp_size") == "8");
    CHECK(cell(3, "vllm.max_num_seqs") == "100");
    REQUIRE(imported.unplaced.size() == 2);
    CHECK(has(imported.unplaced[0].reason, "--max-num-seqs"));
    CHECK(has(imported.unplaced[1].reason, "--no-such-flag"));
}

TEST_CASE(
    "documents: flags that two engines of a study share are taken for neither without a title") {
    const TemporaryFolder folder;
    const StudyFile study = study_of_document(
        folder, "engine: [vllm, sglang]\nspace: {reasoning_parser: {choice: [engine, qwen3]}}\n");
    const auto reason = [&](const std::string& title) {
        const auto results = read_published(
            "## " + title +
                "\n```bash\n--reasoning-parser=qwen3\n```\n```\nServing Benchmark Result\n"
                "Successful requests: 5\n```\n",
            shipped_catalogue.engines());
        const Imported imported = import_for_study(results, study);
        return imported.unplaced.empty() ? imported.csv : imported.unplaced[0].reason;
    };
    CHECK(has(reason("Results"), "flags alone, which vllm and sglang both have"));
    CHECK(has(reason("SGLang"), ",sglang,"));
    CHECK(has(reason("vLLM"), ",vllm,"));
    CHECK(has(reason("MindIE"), "the study has no mindie"));
}

TEST_CASE(
    "documents: the only command above a block says how many requests were sent, however many came "
    "back") {
    const std::vector<Engine> engines = shipped_catalogue.engines();
    for (const int successes : {1, 249, 330, 490}) {
        INFO(successes);
        const auto results = read_published(
            "# R\n\n```\nvllm serve acme/m-8B\n```\n\n```\nvllm bench serve --model acme/m-8B "
            "--dataset-name random --num-prompts 500 --max-concurrency 2\n```\n\n```\n"
            "============ Serving Benchmark Result ============\nSuccessful requests: " +
                std::to_string(successes) + "\nBenchmark duration (s): 60.00\n```\n",
            engines);
        REQUIRE(results.size() == 1);
        CHECK(results[0].planned_requests == 500);
        AuditContext context;
        context.requested_requests = results[0].planned_requests;
        const Validity validity = audit(results[0].result, context);
        CHECK(validity.verdict == Verdict::unsound);
        REQUIRE_FALSE(validity.findings.empty());
        CHECK(validity.findings.front().id == "complete");
    }
}

TEST_CASE(
    "documents: requests that the client's command sent and the block does not have are missed") {
    const auto planned = [](const std::string& client, const std::string& successes) {
        const auto results = read_published(
            "```bash\n" + client + "\n```\n```\nServing Benchmark Result\nSuccessful requests: " +
                successes + "\n```\n",
            shipped_catalogue.engines());
        return results.at(0).planned_requests;
    };
    const std::string both =
        "vllm bench serve --num-prompts 1000\nvllm bench serve --dataset-name random "
        "--num-prompts=500";
    CHECK(planned(both, "863") == 1000);
    CHECK(planned(both, "984") == 1000);
    CHECK(planned(both, "499") == 500);
    CHECK_FALSE(planned(both, "1000"));
    CHECK_FALSE(planned(both, "500"));
    CHECK_FALSE(planned(both, "100"));  // another run: nobody loses exactly that many
    CHECK_FALSE(planned(both, "96"));
    CHECK_FALSE(planned(both, "143"));  // fewer than half of any
    CHECK_FALSE(planned(both, "1003"));
    CHECK_FALSE(planned("curl http://127.0.0.1", "863"));
    CHECK(planned("total_requests: 1000", "514") == 1000);
}
