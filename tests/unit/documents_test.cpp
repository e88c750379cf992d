// SPDX-License-Identifier: Apache-2.0
// Serving commands in documents as people write them (tests/data/documents): the right one, or none
// and why.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "interop/import.hpp"
#include "servetune/audit.hpp"
#include "servetune/detail/interop/published.hpp"
#include "study/table.hpp"

#include <algorithm>

using namespace servetune;
using namespace servetune::test;

namespace {

/// What is expected of one result, in a line: the command; `? why`, `! kind: message`.
std::string said(const PublishedResult& result) {
    if (!result.failure.empty()) return "! " + result.failure + ": " + result.arguments;
    if (!result.not_recognised.empty()) return "? " + result.not_recognised;
    if (!result.doubt.empty()) return "?? " + result.doubt + ": " + result.arguments;
    return result.arguments + (result.quantization.empty() ? "" : " (" + result.quantization + ")");
}

std::vector<std::string> commands_in(const std::string& name) {
    std::vector<std::string> result;
    const auto file = std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/documents" / name;
    for (const PublishedResult& one : read_published(read_file(file), shipped_catalogue.engines())) result.push_back(said(one));
    return result;
}

using Lines = std::vector<std::string>;

StudyFile study_of_document(const TemporaryFolder& folder, const std::string& more) {
    return load_study(folder.write("study.yaml",
                                   "study: one\nmodel: org/Model-8B\n"
                                   "workloads: [{workload: chat, dataset: {kind: random, input_tokens: 512, output_tokens: 128}}]\n"
                                   "objective: {maximize: total_tokens_per_second}\nothers: default\nevaluator: {simulate: {}}\n"
                                   "hardware: {device: h100-sxm, count: 8}\n" +
                                       more),
                      shipped_catalogue);
}

}  // namespace

TEST_CASE("documents: launchers with a prompt, an environment, wrappers and other programs before or behind them") {
    CHECK(commands_in("prefixes.md") == Lines{"VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve org/Model-8B --max-num-seqs 64",
                                              "VLLM_ATTENTION_BACKEND=TRITON_ATTN vllm serve org/Model-8B", "vllm serve org/Model-8B",
                                              "vllm serve org/Model-8B --max-num-seqs=128", "vllm serve org/Model-8B --max-num-seqs=129",
                                              "vllm serve org/Model-8B --max-num-seqs 256", "vllm serve org/Model-8B --max-num-seqs 257",
                                              "/opt/venv/bin/vllm serve org/Model-8B",
                                              "python -m vllm.entrypoints.openai.api_server --model org/Model-8B --max-num-seqs 32",
                                              "sglang serve --model-path org/Model-8B --tp 2", "vllm serve org/Model-8B --max-num-seqs 33",
                                              "vllm serve org/Model-8B --max-num-seqs 34", "vllm serve org/Model-8B --max-num-seqs 35"});
}

TEST_CASE("documents: containers run the engine of their image, or the command behind it, or are not recognised") {
    CHECK(commands_in("containers.md") ==
          Lines{"VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve --model org/Model-8B --max-num-seqs 512", "vllm serve --model org/Model-8B",
                "python3 -m sglang.launch_server --model-path org/Model-8B --tp-size 2",
                "? docker run --gpus all someone/server:1 --model org/Model-8B",
                "? docker run --gpus all someone/server:1 --model org/Model-8B", "vllm serve --model org/Model-8B --max-num-seqs 48"});
}

TEST_CASE("documents: comments replace flags and values for the block below them, scripts' comments say nothing") {
    CHECK(commands_in("comments.md") == Lines{"vllm serve org/Model-8B --max-num-batched-tokens 4096 --max-num-seqs 64",
                                              "vllm serve org/Model-8B --max-num-batched-tokens=8192 --max-num-seqs 128",
                                              "vllm serve org/Model-8B --max-num-batched-tokens 2048 --max-num-seqs 64",
                                              "python3 -m sglang.launch_server --model-path org/Model-8B --attention-backend triton",
                                              "python3 -m sglang.launch_server --model-path org/Model-8B --attention-backend flashinfer",
                                              "python3 -m sglang.launch_server --model-path org/Model-8B --attention-backend flashinfer",
                                              "?? FLASHINFER: vllm serve org/Model-8B", "vllm serve org/Model-8B --max-num-seqs 65"});
    const auto file = std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/documents/comments.md";
    const auto results = read_published(read_file(file), shipped_catalogue.engines());
    CHECK(results.at(5).labels.front() == "random 4K input");
    CHECK(results.at(7).labels.front() == "The comment of a benchmark script is no label");
}

TEST_CASE("documents: parameters that are printed as N/A are the bare command") {
    CHECK(commands_in("baseline.md") == Lines{"--tensor-parallel-size=8 --max-num-seqs=512", "", "--max-num-seqs=512",
                                              "vllm serve org/Model-8B --max-num-seqs=64", "vllm serve org/Model-8B"});
}

TEST_CASE("documents: a command that crashed is a failed row") {
    CHECK(commands_in("crashes.md") == Lines{"vllm serve org/Model-8B", "! unsupported: vllm serve org/Model-8B --quantization fp8",
                                             "! other: VLLM_ATTENTION_BACKEND=XFORMERS vllm serve org/Model-8B",
                                             "! out_of_memory: vllm serve org/Model-8B --max-model-len 131072",
                                             "! unsupported: vllm serve org/Model-8B --max-num-seqs 4096",
                                             "vllm serve org/Model-8B --max-num-seqs 512",
                                             "! out_of_memory: vllm serve org/Model-8B --max-num-seqs 8192"});
    const TemporaryFolder folder;
    const auto file = std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/documents/crashes.md";
    const auto results = read_published(read_file(file), shipped_catalogue.engines());
    const Imported imported =
        import_for_study(results, study_of_document(folder, "engine: vllm\nspace: {max_num_seqs: {choice: [engine, 512, 4096, 8192]}}\n"));
    CHECK(imported.rows == 4);
    const MeasuredTable table = parse_table(imported.csv, "imported.csv");
    CHECK(std::get<Failure>(table.rows.at(1).outcome).kind == FailureKind::unsupported);
    CHECK(std::get<Failure>(table.rows.at(1).outcome).message == "ValueError: the backend is not valid for this configuration");
    CHECK(std::get<Failure>(table.rows.at(3).outcome).kind == FailureKind::out_of_memory);
    CHECK(parse_table(csv_of(results), "all.csv").rows.size() == 7);
}

TEST_CASE("documents: a command that is not known, not printed, or one of several is never another's") {
    CHECK(commands_in("unknown.md") == Lines{"vllm serve org/Model-8B -tp 2", "? mindie serve org/Model-8B", "? mindie serve org/Model-8B",
                                             "? several commands: vllm serve org/Model-8B --port 8100 --max-num-seqs 8 | "
                                             "vllm serve org/Model-8B --port 8200 --max-num-seqs 16",
                                             "vllm serve org/Model-8B -tp 2", "? none is printed for sglang, the one before is of vllm",
                                             "? export VLLM_ATTENTION_BACKEND=FLASHMLA"});
    const auto file = std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/documents/unknown.md";
    const std::string csv = csv_of(read_published(read_file(file), shipped_catalogue.engines()));
    CHECK(has(csv, ",command not recognised: mindie serve org/Model-8B\n"));
}

TEST_CASE("documents: a title names the weights where no command is printed under it") {
    CHECK(commands_in("headings.md") == Lines{"vllm serve /srv/models/Model-8B", "vllm serve /srv/models/Model-8B (fp8)",
                                              "vllm serve /srv/models/Model-8B (awq)", "vllm serve /srv/models/Model-8B"});
    const TemporaryFolder folder;
    const auto file = std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/documents/headings.md";
    const Imported imported = import_for_study(read_published(read_file(file), shipped_catalogue.engines()),
                                               study_of_document(folder, "engine: vllm\nspace: {quantization: {choice: [none, fp8]}}\n"));
    CHECK(imported.rows == 3);
    REQUIRE(imported.unplaced.size() == 1);
    CHECK(imported.unplaced[0].reason == "the title says awq, which the command does not");
    CHECK(has(imported.csv, ",quantization as the title says: fp8\n"));
}

TEST_CASE("documents: short spellings, copies of checkpoints on a disk and values off the study's grid") {
    const auto file = std::filesystem::path(SERVETUNE_SOURCE) / "tests/data/documents/aliases.md";
    const auto results = read_published(read_file(file), shipped_catalogue.engines());
    CHECK(said(results.at(1)) ==
          "python3 -m sglang.launch_server --model org/Model-8B --tp 8 --dp 2 --enable-dp-attention --reasoning-parser deepseek-v3 "
          "--context-length=32768");
    const TemporaryFolder folder;
    const Imported imported = import_for_study(
        results, study_of_document(
                     folder,
                     "engines: [vllm, sglang, tensorrt-llm]\nspace:\n  vllm.tensor_parallel_size: {choice: [1, 4]}\n"
                     "  vllm.pipeline_parallel_size: {choice: [1, 2]}\n  vllm.max_num_seqs: {choice: [engine, 100, 256]}\n"
                     "  sglang.tp_size: {choice: [1, 8]}\n  sglang.dp_size: {choice: [1, 2]}\n"
                     "  sglang.enable_dp_attention: {choice: [false, true]}\n  sglang.reasoning_parser: {choice: [engine, deepseek-v3]}\n"
                     "  sglang.context_length: {choice: [engine, 32768]}\n"
                     "  tensorrt-llm.tp_size: {choice: [1, 8]}\n  tensorrt-llm.ep_size: {choice: [engine, 8]}\n"));
    INFO(imported.csv);
    for (const Unplaced& unplaced : imported.unplaced) UNSCOPED_INFO(unplaced.result.index << " " << unplaced.reason);
    CHECK(imported.rows == 4);
    const MeasuredTable table = parse_table(imported.csv, "imported.csv");
    const auto cell = [&](std::size_t row, const std::string& name) {
        const auto at = std::find(table.parameters.begin(), table.parameters.end(), name) - table.parameters.begin();
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

TEST_CASE("documents: flags that two engines of a study share are taken for neither without a title") {
    const TemporaryFolder folder;
    const StudyFile study = study_of_document(folder, "engines: [vllm, sglang]\nspace: {reasoning_parser: {choice: [engine, qwen3]}}\n");
    const auto reason = [&](const std::string& title) {
        const auto results = read_published("## " + title +
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

TEST_CASE("documents: the only command above a block says how many requests were sent, however many came back") {
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

TEST_CASE("documents: settings in a file are part of the command, or the command is not read") {
    const std::vector<Engine> engines = shipped_catalogue.engines();
    const std::string figures = "```\nServing Benchmark Result\nSuccessful requests: 100\nBenchmark duration (s): 50\n```\n";
    const auto above = [&](const std::string& fence) {
        return read_published("# R\n\n```bash\n" + fence + "\n```\n\n" + figures, engines).at(0);
    };
    const std::string flat = "cat > cfg.yaml <<EOF\nmax-num-seqs: 64\nenable-chunked-prefill: true  # as it is\nEOF\n";
    CHECK(above(flat + "vllm serve org/M-8B --config cfg.yaml --seed 1").arguments ==
          "vllm serve org/M-8B --max-num-seqs 64 --enable-chunked-prefill --seed 1");
    CHECK(above(flat + "vllm serve org/M-8B --config=./cfg.yaml").arguments ==
          "vllm serve org/M-8B --max-num-seqs 64 --enable-chunked-prefill");
    CHECK(above(flat + "vllm serve org/M-8B --max_num_seqs 8 --config cfg.yaml").arguments ==  // the command line wins
          "vllm serve org/M-8B --max_num_seqs 8 --enable-chunked-prefill");
    CHECK(above("tee cfg.yaml << 'END'\nmax-num-seqs: 64\nEND\nvllm serve org/M-8B --config cfg.yaml").arguments ==
          "vllm serve org/M-8B --max-num-seqs 64");
    for (const std::string fence :
         {"vllm serve org/M-8B --config cfg.yaml", "cat > other.yaml <<EOF\nmax-num-seqs: 64\nEOF\nvllm serve org/M-8B --config cfg.yaml",
          "python3 -m sglang.launch_server --model-path org/M-8B --config cfg.yml",
          "cat > extra.yml <<EOF\nkv_cache_config:\n  dtype: fp8\nEOF\n"
          "trtllm-serve org/M-8B --extra_llm_api_options extra.yml"}) {
        INFO(fence);
        const PublishedResult result = above(fence);
        CHECK(result.arguments.empty());
        CHECK(result.arguments_unknown);
        CHECK(result.not_recognised.find("its settings are in the file ") != std::string::npos);
    }
    CHECK(above("vllm serve org/M-8B --chat-template chat.jinja --config '{\"a\":1}'").arguments ==
          "vllm serve org/M-8B --chat-template chat.jinja --config {\"a\":1}");
}

TEST_CASE("documents: requests that the client's command sent and the block does not have are missed") {
    const auto planned = [](const std::string& client, const std::string& successes) {
        const auto results =
            read_published("```bash\n" + client + "\n```\n```\nServing Benchmark Result\nSuccessful requests: " + successes + "\n```\n",
                           shipped_catalogue.engines());
        return results.at(0).planned_requests;
    };
    const std::string both = "vllm bench serve --num-prompts 1000\nvllm bench serve --dataset-name random --num-prompts=500";
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
