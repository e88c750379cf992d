// SPDX-License-Identifier: Apache-2.0
// docs/explanation/engines.md promises that an engine is a YAML file and a file of its version's
// flags. Here one is added that nobody knows: its flags, its program and its paths are its own.
// What stands behind it is simengine, started by the engine file itself.
#include "support/deployed_study.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;
using Json = nlohmann::json;

namespace {

namespace fs = std::filesystem;

/// The words of the engine become those of simengine; it lists its flags when it is asked.
const char* const engine_file = R"(# SPDX-License-Identifier: Apache-2.0
engine: quill
versions: ">=1.2"
launch:
  - sh
  - -c
  - |
    weights= port= rows=64
    while [ $# -gt 0 ]; do
      case "$1" in
        --weights) weights=$2 ;;
        --listen) port=$2 ;;
        --rows) rows=$2 ;;
        --help) printf '%s\n' '  --weights PATH' '  --listen PORT' '  --rows, -r N' '  --shards N' '  --number-format F' '  --guess-ahead N' '  --forget-prefixes'; exit 0 ;;
      esac
      shift; [ $# -eq 0 ] || shift
    done
    exec 'SIMENGINE' --start-scale 1000 --time-scale 12 python3 -m sglang.launch_server --model-path "$weights" --host 127.0.0.1 --port "$port" --max-running-requests "$rows"
  - quill
  - --weights
  - "{model}"
  - --listen
  - "{port}"
started_as: [[quill, up]]
aliases: {--split: shards}
flag_style: separate
ready: /health_generate
ready_within: 20s
server_info: /server_info
reported_as: {--rows: max_running_requests}
between_runs: {/flush_cache: {}}
failures:
  - {kind: rejected_flags, match: ["error: argument"]}
devices: [shards]
parameters:
  rows: {concept: max_concurrent_sequences, flag: --rows, choice: [2, 4, 64], default: 64, doc: "Requests at once.", source: "1.2"}
  shards: {concept: tensor_parallel_size, flag: --shards, int: {low: 1, high: 8, scale: log2}, default: 1, doc: "Devices.", source: "1.2"}
  number_format: {concept: quantization, flag: --number-format, choice: [none, fp8], default: none, doc: "Bytes.", source: "1.2"}
  guess_ahead: {concept: speculative_tokens, flag: --guess-ahead, int: {low: 1, high: 8}, default: engine, doc: "Guesses.", source: "1.2"}
  forget_prefixes: {concept: no_prefix_cache, flag: --forget-prefixes, bool: {}, default: false, doc: "No cache.", source: "1.2"}
)";
const char* const versions_file =
    R"({"engine": "quill", "version": "1.2", "source": "made up", "complete": true, "flags": {
  "--weights": {"type": "string", "short": "-w"}, "--listen": {"type": "int"}, "--rows": {"type": "int", "short": "-r"},
  "--shards": {"type": "int"}, "--number-format": {"type": "choice", "values": ["fp8"], "aliases": ["--format"]},
  "--guess-ahead": {"type": "int"}, "--forget-prefixes": {"type": "bool"}}})";

const std::string study_head =
    "study: s\nmodel: Qwen/Qwen3-8B\nhardware: h100-sxm\nengine: quill\nothers: default\nstrategy: "
    "exhaustive\nnoise_cv: 2%\nmin_gain: 5%\n"
    "workloads: [{workload: w, dataset: {kind: random, input_tokens: 64, output_tokens: 96}, "
    "requests: 32, arrival: {rate: inf}, "
    "ignore_eos: true}]\nobjective: {maximize: total_tokens_per_second}\nspace: {rows: {choice: "
    "[2, 64], default: 2}}\n";

/// The search spaces that ship, and two files more.
class AddedEngine {
public:
    AddedEngine() {
        fs::copy(fs::path(SERVETUNE_SOURCE) / "search_spaces", spaces(),
                 fs::copy_options::recursive);
        std::string engine = engine_file;
        engine.replace(engine.find("SIMENGINE"), 9, SIMENGINE_PROGRAM);
        folder_.write("spaces/engines/quill.yaml", engine);
        folder_.write("spaces/engines/versions/quill-1.2.json", versions_file);
    }
    ~AddedEngine() {
        (void)end_leftovers(fs::absolute(path() / "deployed").string(), std::chrono::seconds(1));
    }
    AddedEngine(const AddedEngine&) = delete;
    AddedEngine& operator=(const AddedEngine&) = delete;

    [[nodiscard]] const fs::path& path() const { return folder_.path(); }
    fs::path write(const std::string& name, const std::string& text) const {
        return folder_.write(name, text);
    }
    [[nodiscard]] Ran autotune(std::vector<std::string> words) const {
        words.insert(words.begin(), {"/usr/bin/env", "SERVETUNE_SEARCH_SPACES=" + spaces().string(),
                                     SERVETUNE_PROGRAM});
        return ran(words, path());
    }

private:
    [[nodiscard]] fs::path spaces() const { return path() / "spaces"; }
    TemporaryFolder folder_;
};

Json answer_of(const Ran& ran) {
    INFO(ran.code << ran.out << ran.err);
    REQUIRE((ran.code == 0 || ran.code == 1));
    return Json::parse(ran.out);
}

/// 10 answers of 100 tokens, one after the other, 2 ms a token: faster than one H100 can read 16
/// bits of each weight of 8B.
std::string measured(const std::vector<std::string>& commands) {
    std::string table =
        "status,successful_requests,requested_requests,duration_seconds,maximum_concurrency,input_"
        "tokens,output_tokens,"
        "requests_per_second,output_tokens_per_second,total_tokens_per_second,time_to_first_token_"
        "mean_seconds,"
        "time_per_output_token_mean_seconds,arguments\n";
    for (const std::string& command : commands)
        table += "ok,10,10,2.48,1,10000,1000,4.032,403.2,4435.5,0.05,0.002," + command + "\n";
    return table;
}

}  // namespace

TEST_CASE(
    "an engine is added by one YAML file and one versions file, without C++: it is listed, checked "
    "and rendered") {
    const AddedEngine quill;
    quill.write("study.yaml", study_head + "evaluator: {deploy: {}}\n");
    const Ran listed = quill.autotune({"engines"});
    CHECK(listed.out.find("quill") != std::string::npos);
    CHECK(quill.autotune({"engines", "quill"}).out.find("rows (--rows)") != std::string::npos);
    const Ran valid = quill.autotune({"validate", "study.yaml"});
    INFO(valid.out << valid.err);
    CHECK(valid.code == 0);
    CHECK(valid.out.find("not consulted") ==
          std::string::npos);  // it was asked for its flags, and has them all
    const Ran rendered = quill.autotune({"render", "study.yaml", "--set", "rows=64"});
    INFO(rendered.out << rendered.err);
    CHECK(rendered.code == 0);
    CHECK(rendered.out.find("quill --weights Qwen/Qwen3-8B") != std::string::npos);
    const Ran two = quill.autotune({"render", "study.yaml", "--set", "rows=2"});
    CHECK(two.out.find("--rows 2") != std::string::npos);
}

TEST_CASE(
    "an engine is added by one YAML file and one versions file, without C++: the audit reads its "
    "commands") {
    const AddedEngine quill;
    quill.write("table.csv", measured({"quill up --weights Qwen/Qwen3-8B",
                                       "/opt/quill up -w Qwen/Qwen3-8B --shards 4",
                                       "quill up --weights=Qwen/Qwen3-8B --split 4",
                                       "quill up -w Qwen/Qwen3-8B --guess-ahead 4",
                                       "quill up -w Qwen/Qwen3-8B --number-format none",
                                       "quill up -w Qwen/Qwen3-8B --format fp8"}));
    const Json rows =
        answer_of(quill.autotune({"audit", "table.csv", "--hardware", "h100-sxm", "--json"}));
    REQUIRE(rows.size() == 6);
    const std::vector<std::string> expected{"unsound", "sound", "sound", "sound", "unsound"};
    for (std::size_t i = 0; i < expected.size(); ++i) {
        INFO(rows[i].dump());
        CHECK(rows[i].at("verdict") == expected[i]);
        CHECK(rows[i].at("label").get<std::string>().find("Qwen/Qwen3-8B bf16") !=
              std::string::npos);
    }
    CHECK(rows[5].at("label").get<std::string>().find("Qwen/Qwen3-8B fp8") != std::string::npos);
}

TEST_CASE(
    "an engine is added by one YAML file and one versions file, without C++: measured tables are "
    "replayed") {
    const AddedEngine quill;
    quill.write("table.csv",
                "workload,rows,status,total_tokens_per_second,success_ratio\nw,2,ok,100,1\nw,64,ok,"
                "300,1\n");
    quill.write("study.yaml",
                study_head + "evaluator: {replay: {table: table.csv, unmeasured: exclude}}\n");
    const Json report = answer_of(
        quill.autotune({"run", "study.yaml", "--directory", "replayed", "--json", "--quiet"}));
    INFO(report.dump());
    CHECK(report.at("recommended").dump().find("--rows 64") ==
          std::string::npos);  // its default is passed by no flag
    CHECK(report.at("recommended").at("configuration").dump().find("64") != std::string::npos);
}

TEST_CASE(
    "an engine is added by one YAML file and one versions file, without C++: it is started, "
    "measured and ended") {
    const AddedEngine quill;
    quill.write("study.yaml",
                study_head +
                    "audit: report\ndecision: published\nbudget: {trials: 4}\nevaluator: {deploy: "
                    "{ready_within: 20s, stop_within: 2s, warm_up: 1, "
                    "watch: off}}\n");
    const Ran run =
        quill.autotune({"run", "study.yaml", "--directory", "deployed", "--json", "--quiet"});
    const Json report = answer_of(run);
    INFO(report.dump());
    CHECK(report.at("trials").at("failed").get<int>() == 0);
    CHECK(report.at("trials").at("told").get<int>() >= 2);
    CHECK(report.at("recommended").at("configuration").dump().find("64") != std::string::npos);
    CHECK(leftovers(fs::absolute(quill.path() / "deployed").string()).empty());
}
