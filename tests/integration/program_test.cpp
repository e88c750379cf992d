// SPDX-License-Identifier: Apache-2.0
// The program from outside: what a person or a script that calls it can rely on.
#include "support/autotune.hpp"
#include "support/published.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "study/table.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

using namespace servetune;
using namespace servetune::test;
namespace fs = std::filesystem;
using Json = nlohmann::json;

TEST_CASE("audit: tables and documents, what is found and what was not checked, exit codes") {
    const TemporaryFolder folder;
    const auto table = [](const char* name) { return (published / name).string(); };
    const Ran others = autotune({"audit", table("qwen3-8b-jetson-thor/other-models.csv"),
                                 "--hardware", "jetson-thor", "--json"},
                                folder.path());
    CHECK(others.code == 1);
    const Json rows = Json::parse(others.out);
    REQUIRE(rows.size() == 14);
    CHECK(rows[5]["verdict"] == "unsound");  // Qwen3-30B-A3B-FP8 at low load
    CHECK(rows[7]["verdict"] == "unsound");  // Qwen3-Coder-30B-A3B-Instruct-FP8 at low load
    CHECK(rows[5]["findings"][0]["id"] == "physics");
    CHECK(rows[1]["verdict"] == "suspect");  // Qwen3-32B-AWQ at low load
    CHECK(has(rows[1]["findings"][0]["cause"].get<std::string>(), "prefix cache"));
    CHECK(rows[13]["verdict"] == "suspect");
    for (const std::size_t high : {0U, 2U, 4U, 6U, 8U, 10U, 12U})
        CHECK(rows[high]["verdict"] != "unsound");
    CHECK(rows[0]["metrics"]["total_tokens_per_second"] == 471.78);
    CHECK(rows[0]["index"] == 0);

    // Nothing says what the table was measured on: physics is not checked, and that is said.
    const Ran unknown =
        autotune({"audit", table("qwen3-8b-jetson-thor/other-models.csv")}, folder.path());
    CHECK(unknown.code == 0);
    CHECK(has(unknown.out, "  not checked in 14: physics (the hardware is not known)\n"));

    // A row is held against the checkpoint that its columns say: FP8 reads half as many bytes a
    // token.
    folder.write("rows.csv",
                 "quantization,status,output_tokens,successful_requests,time_per_output_token_mean_"
                 "seconds\nfp8,ok,1280,10,0.0025\nnone,ok,"
                 "1280,10,0.0025\n");
    const Ran columns = autotune(
        {"audit", "rows.csv", "--study", table("qwen3-8b-h200/study.yaml")}, folder.path());
    INFO(columns.out);
    CHECK(columns.code == 1);
    CHECK_FALSE(has(columns.out, "   0  unsound"));
    CHECK(has(columns.out, "   1  unsound"));

    // What whoever measured a row said of it stands: the figures alone may not show it.
    folder.write(
        "said.csv",
        "seqs,status,output_tokens,duration_seconds,output_tokens_per_second,verdict,findings\n"
        "1,ok,1280,10,128,unsound,physics\n2,ok,1280,10,128,,\n");
    const Ran said = autotune({"audit", "said.csv"}, folder.path());
    CHECK(said.code == 1);
    CHECK(said.out.find("   0  unsound") == 0);
    CHECK(has(said.out, "\n   1  sound"));

    folder.write("d.md",
                 "# On a Jetson Thor\n### low\n```bash\nvllm serve "
                 "/models/Qwen/Qwen3-8B-FP8\n```\n============ Serving Benchmark Result "
                 "============\nSuccessful requests: 10\nBenchmark duration (s): 11.52\nTotal "
                 "input tokens: 20431\nTotal generated tokens: "
                 "1280\nMean TTFT (ms): 523.06\nMean TPOT (ms): 8.88\n====================\n");
    const Ran document = autotune({"audit", "d.md"}, folder.path());
    CHECK(document.code == 1);
    CHECK(document.out.find("   0  unsound  Qwen/Qwen3-8B fp8") == 0);
    CHECK(has(document.out,
              "  physics: mean TPOT = 8.88 ms; at least 30.01 ms: 8.192 GB of "
              "weights at 273 GB/s\n    impossible: a token would "
              "need 922.52 GB/s;"));
    CHECK(autotune({"audit", "d.md", "--hardware", "h100-sxm"}, folder.path()).code == 0);
    CHECK(has(autotune({"audit", "d.md", "--hardware", "h100-sx"}, folder.path()).err,
              "known: h100-sxm, "));
    folder.write("empty.md", "nothing");
    const Ran empty = autotune({"audit", "empty.md"}, folder.path());
    CHECK(empty.code == 5);
    CHECK(empty.err.starts_with("autotune: empty.md: no result in it: give the JSON"));
    const Ran some =
        autotune({"audit", "empty.md", "d.md", "none.md", "--hardware", "h100-sxm"}, folder.path());
    CHECK(some.code == 2);  // one cannot be read; the others are read all the same
    CHECK(has(some.out, "   0  sound    Qwen/Qwen3-8B fp8"));
    CHECK(some.err.find("autotune: empty.md: ") == 0);
    CHECK(has(some.err, "\nautotune: cannot read none.md: "));
    CHECK(has(some.err, "\nautotune: 2 of 3 files without results\n"));
    CHECK(autotune({"audit", "empty.md", "d.md"}, folder.path()).code ==
          1);  // an unsound result says more
    CHECK(autotune({"audit"}, folder.path()).code == 2);
}

TEST_CASE("a finished study is not run again, one with a larger budget goes on") {
    const TemporaryFolder folder;
    const std::vector<std::string> base{"run", (published / "qwen3-14b-h100/study.yaml").string(),
                                        "--directory", "d", "--json"};
    auto with = [&](const char* trials) {
        auto arguments = base;
        arguments.insert(arguments.end(), {"--trials", trials});
        return autotune(arguments, folder.path());
    };
    const Json three = Json::parse(with("3").out);
    CHECK(three["stop_reason"] == "trials_spent");
    CHECK(three["recommended"]["metrics"]["total_tokens_per_second"] == 8403.97);
    const Json all = Json::parse(with("30").out);
    CHECK(all["recommended"]["metrics"]["total_tokens_per_second"] == 10426.27);
    const Ran again = with("30");
    CHECK(Json::parse(again.out)["trials"] == all["trials"]);
    CHECK(again.err ==
          "resuming after " + std::to_string(all["trials"]["told"].get<int>()) + " trials\n");
}

TEST_CASE("a changed study is refused until told to go on") {
    const TemporaryFolder folder;
    const std::string study = (published / "qwen3-14b-h100/study.yaml").string();
    CHECK(autotune({"run", study, "--directory", "d", "--quiet"}, folder.path()).code == 0);
    const Ran refused =
        autotune({"run", study, "--directory", "d", "--strategy", "exhaustive"}, folder.path());
    CHECK(refused.code == 2);
    CHECK(refused.err.find("autotune: the study has changed since d/study.db was written:") == 0);
    CHECK(has(refused.err, "\n  strategy: was 'staged', is 'exhaustive'"));
    // Reading it by another study is said too.
    for (const char* command : {"status", "report", "explain"}) {
        const Ran other = autotune({command, study, "--directory", "d", "--strategy", "exhaustive"},
                                   folder.path());
        CHECK(other.code == 0);
        CHECK(other.err.find(
                  "autotune: d/study.db was last written by a study that differs from this one:") ==
              0);
        CHECK(has(other.err, "\n  strategy: was 'staged', is 'exhaustive'"));
        CHECK(autotune({command, study, "--directory", "d"}, folder.path()).err.empty());
    }
    const Ran learning =
        autotune({"explain", study, "--directory", "d", "--learn-from", "d"}, folder.path());
    CHECK(learning.code == 2);
    CHECK(learning.err ==
          "autotune: --learn-from: the strategy 'staged' cannot learn from other studies, "
          "'bayesian' can\n");
    CHECK(autotune({"run", study, "--directory", "d", "--strategy", "exhaustive",
                    "--accept-changes", "--quiet"},
                   folder.path())
              .code == 0);
}

TEST_CASE("exit codes: usage and files 2, environment 3, nothing feasible 4, validate's no 1") {
    const TemporaryFolder folder;
    CHECK(autotune({}, folder.path()).code == 2);
    CHECK(autotune({"--version"}, folder.path()).code == 0);
    CHECK(autotune({"run"}, folder.path()).code == 2);
    const Ran missing = autotune({"run", "nowhere.yaml"}, folder.path());
    CHECK(missing.code == 2);
    CHECK(missing.err == "autotune: cannot read nowhere.yaml: No such file or directory\n");
    const Ran unread = autotune({"validate", "nowhere.yaml", "--json"},
                                folder.path());  // not an invalid study: none
    CHECK(unread.code == 2);
    CHECK(unread.out.empty());
    CHECK(unread.err == missing.err);

    const std::string study = (published / "qwen3-14b-h100/study.yaml").string();
    folder.write("a-file", "x");
    const Ran unwritable = autotune({"run", study, "--directory", "a-file/below"}, folder.path());
    CHECK(unwritable.code == 3);
    CHECK(unwritable.err ==
          "autotune: cannot make the study's folder a-file/below: Not a directory\n");

    const std::string failed =
        "quantization,status,total_tokens_per_second,message\nnone,out_of_memory,,no "
        "room\nfp8,out_of_memory,,no room\n";
    auto of = [](const std::string& metric) {
        return "study: s\nmodel: m\nengine: vllm\nworkloads: [{workload: w, dataset: {kind: "
               "random, input_tokens: 1, output_tokens: 1}}]\n"
               "objective: {maximize: " +
               metric +
               "}\nspace: {quantization: {choice: [none, fp8]}}\nothers: default\nevaluator: "
               "{replay: t.csv}\n";
    };
    folder.write("t.csv", failed + "awq,ok,1,\n");
    folder.write("s.yaml", of("total_tokens_per_sec"));
    const Ran unknown_metric = autotune({"run", "s.yaml"}, folder.path());
    CHECK(unknown_metric.code == 2);
    CHECK(unknown_metric.err ==
          "autotune: s.yaml: 'objective': t.csv has no metric 'total_tokens_per_sec'; it has: "
          "total_tokens_per_second\n");
    folder.write("t.csv", failed);  // where every row failed, the failures are the answer
    folder.write("s.yaml", of("total_tokens_per_second"));
    const Ran infeasible = autotune({"run", "s.yaml", "--quiet"}, folder.path());
    CHECK(infeasible.code == 4);
    CHECK(infeasible.out ==
          "Nothing can be recommended. No measured configuration passes. 2 trials failed, "
          "out_of_memory: no room. Mend that first; the "
          "report has the lines of the logs.\nreport: s/report.md\n        s/report.html\n");
}

TEST_CASE("validate says what the space is, status and report read a study that ran") {
    const TemporaryFolder folder;
    const std::string study = (published / "qwen3-14b-h100/study.yaml").string();
    const Ran valid = autotune({"validate", study}, folder.path());
    CHECK(valid.code == 0);
    CHECK(has(valid.out,
              "\n7 feasible configurations\nrun: at most 30 trials, then 8 with the "
              "report's workloads, less than 1 s (answers "
              "come from a table)\ndefault: vllm "
              "serve Qwen/Qwen3-14B\n"));
    CHECK(Json::parse(autotune({"validate", study, "--json"}, folder.path()).out)["size"] == 7);
    CHECK(autotune({"status", study}, folder.path()).err ==
          "autotune: there is no journal qwen3-14b-h100/study.db; has the study been run?\n");
    CHECK(autotune({"run", study, "--quiet"}, folder.path()).code == 0);
    CHECK(autotune({"status", study}, folder.path()).out ==
          "qwen3-14b-h100: 15 trials measured, none failed\n"
          "  so far: Recommended: +58.1 % over the default. One measurement each: no interval. "
          "Serve this.\n"
          "  python3 -m sglang.launch_server --model-path Qwen/Qwen3-14B-FP8\n");
    const std::string report = autotune({"report", study}, folder.path()).out;
    CHECK(report == read_file(folder.path() / "qwen3-14b-h100/report.md"));
    CHECK(report.find("# qwen3-14b-h100: Qwen/Qwen3-14B on one NVIDIA H100 SXM") == 0);
    CHECK(has(report, "| ended | strategy_finished |"));
    CHECK(Json::parse(autotune({"report", study, "--json"}, folder.path())
                          .out)["recommended"]["keep_default"] == false);
}

TEST_CASE("render prints the exact command") {
    const TemporaryFolder folder;
    const std::string study = (published / "qwen3.5-9b-h100/study.yaml").string();
    const auto render = [&](std::vector<std::string> settings) {
        std::vector<std::string> arguments{"render", study};
        for (const std::string& setting : settings)
            arguments.insert(arguments.end(), {"--set", setting});
        return autotune(arguments, folder.path());
    };
    CHECK(render({}).out ==
          "vllm serve Qwen/Qwen3.5-9B --max-model-len=32768 --reasoning-parser=qwen3\n");
    CHECK(render({"speculative_method=mtp", "vllm.max_num_seqs=512"}).out ==
          "vllm serve Qwen/Qwen3.5-9B --max-num-seqs=512 --max-model-len=32768 "
          "--reasoning-parser=qwen3 "
          "'--speculative-config={\"method\":\"mtp\",\"num_speculative_tokens\":4}'\n");
    CHECK(render({"engine=sglang"}).out ==
          "python3 -m sglang.launch_server --model-path Qwen/Qwen3.5-9B --context-length=32768 "
          "--reasoning-parser=qwen3\n");
    CHECK(Json::parse(autotune({"render", study, "--set", "engine=sglang", "--json"}, folder.path())
                          .out)["argv"]
              .size() == 7);
    CHECK(render({"vllm.max_num_seqs"}).err ==
          "autotune: NAME=VALUE is wanted, such as max_num_seqs=64; got 'vllm.max_num_seqs'\n");
    CHECK(render({"vllm.max_num_seqs=300"}).err ==
          "autotune: 'vllm.max_num_seqs' = 300 is outside its domain (one of 256, 512, 768, 1024, "
          "2048, or engine)\n");
    CHECK(render({"max_num_seq=512"})
              .err.find("autotune: 'max_num_seq' is not a parameter of this study; known: "
                        "vllm.max_num_seqs") == 0);
    CHECK(has(render({"engine=sglang", "vllm.max_num_seqs=512"}).err,
              "'vllm.max_num_seqs' = 512 has no effect"));
    CHECK(render({"vllm.max_num_seqs=300"}).code == 2);
}

TEST_CASE("import: every block becomes a row or is reported") {
    const TemporaryFolder folder;
    const std::string block =
        "============ Serving Benchmark Result ============\nSuccessful requests: 1000\nTotal "
        "Token throughput (tok/s): "
        "100\n====================\n";
    folder.write("d.md", "```bash\nvllm serve Qwen/Qwen3-14B\n```\n" + block +
                             "```bash\nvllm serve Qwen/Qwen3-32B\n```\n" + block);
    const std::string study = (published / "qwen3-14b-h100/study.yaml").string();
    const Ran lost =
        autotune({"import", "d.md", "--study", study, "--output", "t.csv"}, folder.path());
    CHECK(lost.code == 1);
    CHECK(lost.err ==
          "d.md: 2 results, 1 row\n  result 1 is no row: the study does not know "
          "Qwen/Qwen3-32B\n");
    CHECK(read_table(folder.path() / "t.csv").rows.size() == 1);
    CHECK(Json::parse(autotune({"import", "d.md", "--json"}, folder.path()).out)["rows"] == 2);
    folder.write("empty.md", "nothing");
    CHECK(autotune({"import", "empty.md"}, folder.path())
              .err.starts_with("autotune: empty.md: no result in it: give the JSON"));
    const std::string results = SERVETUNE_SOURCE "/tests/data/results/";
    const Ran lines = autotune(
        {"import", results + "sglang.jsonl", "--output", "lines.csv", "--json"}, folder.path());
    CHECK(Json::parse(lines.out)["rows"] == 2);
    CHECK(read_table(folder.path() / "lines.csv").rows.size() == 2);
    const Ran rows =
        autotune({"import", results + "inferencex.json", "--output", "rows.csv"}, folder.path());
    CHECK(has(rows.err,
              "  results 0 and 1: the file does not say how the engine was started (say it with "
              "--command, or with --write-study and --set)\n"));
    const Ran unplaced =
        autotune({"import", results + "vllm-new.json", "--study", study}, folder.path());
    CHECK(unplaced.code == 1);
    CHECK(
        has(unplaced.err, "result 0 is no row: the file does not say how the engine was started"));
    CHECK(autotune({"import", results + "expected.json"}, folder.path()).code == 5);
    // A study of the results, which replays them.
    const auto result = [](const char* rate) {
        return "```\n============ Serving Benchmark Result ============\nSuccessful requests: "
               "100\nTotal input tokens: 51200\n"
               "Total generated tokens: 12800\nTotal Token throughput (tok/s): " +
               std::string(rate) + "\n==========\n```\n";
    };
    folder.write("tuned.md", "On an H100 SXM.\n```bash\nvllm serve Qwen/Qwen3-8B\n```\n" +
                                 result("1000") +
                                 "```bash\nvllm serve Qwen/Qwen3-8B --max-num-seqs 64 &\n```\n" +
                                 result("2000"));
    const Ran wrote =
        autotune({"import", "tuned.md", "--write-study", "tuned.yaml"}, folder.path());
    CHECK(wrote.code == 0);
    CHECK(wrote.out.empty());
    CHECK(has(wrote.err, "tuned.yaml and tuned.csv are written: autotune run tuned.yaml\n"));
    const Ran replayed = autotune({"run", "tuned.yaml", "--quiet", "--json"}, folder.path());
    CHECK(replayed.code == 0);
    CHECK(has(replayed.out, "--max-num-seqs=64"));
    CHECK(autotune({"import", "tuned.md", "--write-study", "x.yaml", "--workload", "y"},
                   folder.path())
              .code == 2);
    CHECK(autotune({"import", "tuned.md", "--workload", "y"}, folder.path()).code == 2);
    CHECK(
        autotune({"import", "tuned.md", "--write-study", "x.yaml", "--study", study}, folder.path())
            .code == 2);
    CHECK_FALSE(std::filesystem::exists(folder.path() / "x.yaml"));
    const Ran both = autotune(
        {"import", "empty.md", "d.md", "none.md", results + "sglang.jsonl", "--output", "both.csv"},
        folder.path());
    CHECK(both.code == 2);  // one cannot be read
    CHECK(autotune({"import", "none.md"}, folder.path()).code == 2);
    CHECK(autotune({"audit", "none.md"}, folder.path()).code == 2);
    CHECK(autotune({"import", "empty.md", results + "sglang.jsonl", "--output", "few.csv"},
                   folder.path())
              .code == 5);
    folder.write("cut.json", R"({"duration": 4, "completed": 24, "request_thr)");
    CHECK_FALSE(has(autotune({"import", "cut.json"}, folder.path()).err, "--objective"));
    CHECK(read_table(folder.path() / "both.csv").rows.size() == 4);
    CHECK(both.err.find("autotune: empty.md: ") == 0);
    CHECK(has(both.err, "autotune: cannot read none.md: "));
    CHECK(has(both.err, "4 documents: 4 results, 4 rows\n"));
}

TEST_CASE(
    "import: a person's own table becomes a study in one command, and its winner is found in "
    "another") {
    const TemporaryFolder folder;
    const std::string table = "threads,backend,score\n1,x,3\n1,x,3.1\n2,x,4\n2,y,7\n4,x,6\n";
    folder.write("results.csv", table);
    const std::vector<std::string> words{"import",         "results.csv",   "--objective",
                                         "maximize:score", "--write-study", "tune.yaml"};
    const Ran wrote = autotune(words, folder.path());
    CHECK(wrote.code == 0);
    CHECK(has(wrote.err, "parameters: threads, backend\n"));
    CHECK(has(wrote.err, "tune.yaml and tune.csv are written: autotune run tune.yaml\n"));
    const Ran found = autotune({"run", "tune.yaml", "--quiet"}, folder.path());
    CHECK(found.code == 0);
    CHECK(has(found.out, "# backend=y threads=2\n"));
    // What is there is neither replaced nor removed, also where the study would be called like the
    // table.
    const Ran again = autotune(words, folder.path());
    CHECK(again.code == 2);
    CHECK(has(again.err, "tune.yaml is there already"));
    CHECK(has(read_file(folder.path() / "tune.yaml"), "strategy: exhaustive"));
    CHECK(
        autotune({"import", "results.csv", "--objective", "maximize:score", "--write-study",
                  "results.yaml"},
                 folder.path())
            .code == 0);
    CHECK(read_file(folder.path() / "results.csv") == table);
    CHECK(has(read_file(folder.path() / "results.yaml"), "table: results.table.csv"));
    CHECK(has(autotune({"import", "results.csv"}, folder.path()).err, "--objective COLUMN"));
}

TEST_CASE(
    "import and audit: a sweep of vLLM becomes a study, and files of other tools are audited") {
    const TemporaryFolder folder;
    const std::string results = SERVETUNE_SOURCE "/tests/data/results/";
    // A study: the sweep's table names the settings that it changed.
    const Ran wrote = autotune(
        {"import", results + "sweep-summary.csv", "--objective", "maximize:total_token_throughput",
         "--parameter", "max_concurrency", "--parameter", "enable_prefix_caching", "--write-study",
         (folder.path() / "sweep.yaml").string()},
        folder.path());
    INFO(wrote.err);
    CHECK(wrote.code == 0);
    const Ran replayed = autotune({"run", "sweep.yaml", "--quiet", "--json"}, folder.path());
    INFO(replayed.err);
    CHECK(replayed.code == 0);
    // Its table is one of results for the audit too, as other tables are not.
    const Ran audited = autotune({"audit", results + "sweep-summary.csv", "--json"}, folder.path());
    const Json runs = Json::parse(audited.out);
    REQUIRE(runs.size() == 3);
    CHECK(runs[2]["metrics"]["latency_mean_seconds"] == 0.6925);
    CHECK(read_table(folder.path() / "sweep.csv").rows.size() == 3);
    // The successes of those that were sent: 40 of 42.
    for (const char* file : {"evalscope-1.10.json", "aiperf-0.13.json"}) {
        INFO(file);
        const Ran partly = autotune({"audit", results + file, "--json"}, folder.path());
        const Json one = Json::parse(partly.out);
        REQUIRE(one.size() == 1);
        bool complete = false;
        for (const Json& finding : one[0]["findings"])
            complete = complete || finding["id"] == "complete";
        CHECK(complete);
    }
}

TEST_CASE(
    "validate and run look for a model file before an engine is started, and warn of versions "
    "nobody checked") {
    const TemporaryFolder folder;
    const auto study = [](const std::string& model, const std::string& more) {
        return "study: s\nmodel: " + model + "\n" + more +
               "others: default\nworkloads: [{use: random}]\n" +
               "objective: {maximize: output_tokens_per_second}\nevaluator: {deploy: {}}\n";
    };
    folder.write("s.yaml", study("./nowhere.gguf", "engine: llama.cpp\n"));
    const std::string said =
        "autotune: s.yaml: the model './nowhere.gguf' does not exist: looked for " +
        (folder.path() / "./nowhere.gguf").string() + "\n";
    const Ran refused = autotune({"validate", "s.yaml"}, folder.path());
    CHECK(refused.code == 1);
    CHECK(refused.err == said);
    const Ran not_run = autotune({"run", "s.yaml"}, folder.path());
    CHECK(not_run.code == 2);
    CHECK(not_run.err == said);
    folder.write("nowhere.gguf", "x");
    CHECK(has(
        autotune({"validate", "s.yaml"}, folder.path()).err,
        "engines run in their trial's folder: write " + (folder.path() / "nowhere.gguf").string()));
    folder.write("s.yaml", study((folder.path() / "nowhere.gguf").string(), "engine: llama.cpp\n"));
    CHECK(autotune({"validate", "s.yaml"}, folder.path()).code == 0);

    folder.write("v.yaml", study("org/m", "engine: vllm\nengine_versions: {vllm: \"0.34\"}\n"));
    const Ran newer = autotune({"validate", "v.yaml"}, folder.path());
    CHECK(newer.code == 0);
    CHECK(has(newer.out, "warning: vllm 0.34 is newer than 0.33"));
    CHECK(Json::parse(autotune({"validate", "v.yaml", "--no-installed", "--json"}, folder.path())
                          .out)["warnings"]
              .size() == 1);

    folder.write("t.yaml", study("org/m",
                                 "engine: llama.cpp\nspace: {checked: {flag: --check-tensors, "
                                 "bool: {}, default: engine}}\n"));
    CHECK(has(autotune({"validate", "t.yaml", "--no-installed"}, folder.path()).out,
              "warning: 'checked': false and engine give the same command, so they are one "
              "configuration: engine\n"));
}

TEST_CASE("validate asks an engine that is on the PATH for its --help, and only then") {
    const TemporaryFolder folder;
    const auto install = [&](const std::string& body) {
        const fs::path file = folder.write("llama-server", "#!/bin/sh\n" + body);
        fs::permissions(file, fs::perms::owner_all);
    };
    folder.write(
        "s.yaml",
        "study: s\nmodel: m.gguf\nengine: llama.cpp\nothers: default\nworkloads: [{use: random}]\n"
        "objective: {maximize: total_tokens_per_second}\nspace: {poll: {choice: [0, 50]}, prio: "
        "{choice: [-1, 0]}}\n"
        "evaluator: {replay: t.csv}\n");
    folder.write("t.csv", "poll,prio,status,total_tokens_per_second\n50,0,ok,1\n");
    const auto validate = [&](std::vector<std::string> more = {}) {
        std::vector<std::string> words{"/usr/bin/env",
                                       "PATH=" + folder.path().string() + ":/usr/bin:/bin",
                                       SERVETUNE_PROGRAM, "validate", "s.yaml"};
        words.insert(words.end(), more.begin(), more.end());
        return ran(words, folder.path());
    };
    const std::string launch = "--model M\n--host H\n--port P\n--metrics\n";

    const Ran absent = validate();
    CHECK(absent.code == 0);
    CHECK(absent.out.ends_with(
        "\nllama-server is not installed here: its --help was not consulted\n"));

    install("cat <<END\n" + launch + "--poll N\n--prio N\nEND\n");
    const Ran known = validate();
    CHECK(known.err.empty());
    CHECK(known.code == 0);
    CHECK(known.out.ends_with("\n'llama-server --help' lists 6 flags\n"));
    CHECK(Json::parse(validate({"--json"}).out)["installed"] ==
          Json{"'llama-server --help' lists 6 flags"});

    install("cat <<END\n" + launch + "--polls N\n--prio N\nEND\n");
    const Ran lacking = validate();
    CHECK(lacking.code == 1);
    CHECK(lacking.err ==
          "autotune: llama.cpp as installed here has no flag --poll; nearest: --polls, --port\n");
    CHECK(validate({"--no-installed"}).code == 0);

    install("touch ran; echo 'no device found' >&2; exit 2\n");
    CHECK(validate({"--no-installed"}).code == 0);
    CHECK_FALSE(fs::exists(folder.path() / "ran"));
    const Ran failing = validate();
    CHECK(failing.code == 0);
    CHECK(
        failing.out.ends_with("\n'llama-server --help' ended with exit code 2, saying: no device "
                              "found: it was not consulted\n"));
    CHECK(fs::exists(folder.path() / "ran"));
}
