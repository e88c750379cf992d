// SPDX-License-Identifier: Apache-2.0
// From results of others to a study that replays them.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "results/written_study.hpp"
#include "servetune/error.hpp"
#include "servetune/result_file.hpp"
#include "study/table.hpp"
#include "study_file/yaml.hpp"

#include <algorithm>

using namespace servetune;
using namespace servetune::test;

namespace {

std::string printed_block(double rate, int input, int output, int requests = 100) {
    const double seconds = (input + output) * requests / rate;
    return "```\n============ Serving Benchmark Result ============\nSuccessful requests: " +
           std::to_string(requests) + "\nBenchmark duration (s): " + std::to_string(seconds) +
           "\nTotal input tokens: " + std::to_string(input * requests) +
           "\nTotal generated tokens: " + std::to_string(output * requests) +
           "\nTotal Token throughput (tok/s): " + std::to_string(rate) +
           "\n==================================================\n```\n";
}
std::string command(const std::string& text) { return "```bash\n" + text + "\n```\n"; }

/// Two engines, another checkpoint, a flag that is varied and one that is not in the engine file;
/// two workloads.
const std::string document =
    "# Tuning of a model\n\nOn one NVIDIA H100 SXM. vLLM: v0.17.0, SGLang: v0.5.9.\n\n## "
    "Engines\n" +
    command("vllm serve org/Model-8B --unheard-of x") + printed_block(1000, 512, 128) +
    command("python3 -m sglang.launch_server --model-path org/Model-8B") +
    printed_block(1100, 512, 128) + "## Weights\n" +
    command("vllm serve org/Model-8B-FP8 --unheard-of x") + printed_block(1500, 512, 128) +
    "## Sequences\n" + command("vllm serve org/Model-8B-FP8 --max-num-seqs 64 --unheard-of x") +
    printed_block(1400, 512, 128) +
    command("vllm serve org/Model-8B-FP8 --max-num-seqs 512 --unheard-of y") +
    printed_block(1700, 512, 128) + command("vllm serve org/Other-8B --unheard-of x") +
    printed_block(900, 512, 128) + "## Long prompts\n" +
    command("vllm serve org/Model-8B --unheard-of x") + printed_block(2000, 8192, 64, 50);

ResultSource source_of(const std::vector<std::pair<std::string, std::string>>& files) {
    ResultSource source;
    for (const auto& [name, text] : files) {
        for (PublishedResult& result : read_results(text, name, shipped_catalogue.engines())) {
            result.index = source.results.size();
            source.results.push_back(std::move(result));
            source.files.push_back(name);
        }
    }
    return source;
}

StudyRequest request_for(const std::string& workload, const std::vector<std::string>& facts = {}) {
    StudyRequest request{workload, {}};
    for (const std::string& fact : facts) request.facts.push_back(GivenFact::parse(fact));
    return request;
}

std::string serving_json(int max_concurrency, double rate, const std::string& more = "") {
    return "{\"date\": \"20260101-000000\", \"backend\": \"openai-chat\", \"model_id\": "
           "\"org/Model-8B\", \"num_prompts\": 100, "
           "\"max_concurrency\": " +
           std::to_string(max_concurrency) +
           ", \"duration\": 10.0, \"completed\": 100, \"total_input_tokens\": "
           "51200, \"total_output_tokens\": 12800, \"request_throughput\": 10.0, "
           "\"output_throughput\": 1280.0, "
           "\"total_token_throughput\": " +
           std::to_string(rate) + more + "}\n";
}

/// In the place of the study before it, which `write_study` would not replace.
WrittenStudy written_anew(const ResultSource& source, const StudyRequest& request,
                          const std::filesystem::path& file, const Catalogue& catalogue) {
    std::filesystem::remove(file);
    std::filesystem::remove(std::filesystem::path(file).replace_extension(".csv"));
    return write_study(source, request, file, catalogue);
}

std::string cell(const MeasuredTable& table, std::size_t row, const std::string& name) {
    const auto at = std::find(table.parameters.begin(), table.parameters.end(), name) -
                    table.parameters.begin();
    if (at == std::ptrdiff_t(table.parameters.size())) return "no column";
    return table.rows.at(row).cells.at(std::size_t(at)).value_or("");
}

}  // namespace

TEST_CASE("written study: numbers stand as the engine reads them, and equal ones are one") {
    const std::string text = "# Lengths\n\nOn one NVIDIA H100 SXM.\n\n" +
                             command(
                                 "vllm serve org/Model-8B --max-model-len auto "
                                 "--max-num-batched-tokens 8K --block-size 48") +
                             printed_block(1000, 512, 128) +
                             command(
                                 "vllm serve org/Model-8B --max-model-len -1 "
                                 "--max-num-batched-tokens 8192 --block-size 16") +
                             printed_block(1100, 512, 128) +
                             command(
                                 "vllm serve org/Model-8B --max-model-len 25.6k "
                                 "--max-num-batched-tokens 16k --block-size 48") +
                             printed_block(1200, 512, 128);
    const TemporaryFolder folder;
    const auto file = folder.path() / "lengths.yaml";
    const WrittenStudy written = written_anew(source_of({{"a.md", text}}),
                                              request_for("in512_out128"), file, shipped_catalogue);
    INFO(written.yaml);
    CHECK(written.imported.rows == 3);
    CHECK(has(written.yaml, "max_num_batched_tokens: {choice: [8192, 16000], ordered: true,"));
    CHECK(has(written.yaml, "max_model_len: {choice: [-1, 25600], ordered: true,"));
    CHECK(has(written.yaml, "block_size: {choice: [16, 48], ordered: true, default: 48}\n"));
    const StudySetup setup = set_up(load_study(file, shipped_catalogue));
    CHECK(setup.problem->feasible.size() == 3);
}

TEST_CASE("written study: a document becomes a study that replays its results") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "tuning.yaml";
    const WrittenStudy written = written_anew(
        source_of({{"a.md", document}}),
        request_for("in512_out128",
                    {"hardware=h100-sxm", "vllm.version=0.17.0", "sglang.version=0.5.9"}),
        file, shipped_catalogue);
    INFO(written.yaml);
    for (const Unplaced& one : written.imported.unplaced)
        UNSCOPED_INFO(one.result.index << ": " << one.reason);
    CHECK(written.table == folder.path() / "tuning.csv");
    CHECK(written.imported.rows == 6);
    REQUIRE(written.imported.unplaced.size() == 1);
    CHECK(written.imported.unplaced[0].reason == "another model: org/Other-8B");
    CHECK(has(written.yaml, "model: org/Model-8B\n"));
    CHECK(has(written.yaml, "hardware: h100-sxm\n"));
    CHECK(has(written.yaml, "engine_versions: {vllm: 0.17.0, sglang: 0.5.9}\n"));
    CHECK(has(written.yaml,
              "  quantization: {choice: [none, fp8], default: none, checkpoints: "
              "{fp8: org/Model-8B-FP8}}\n"));
    CHECK(has(written.yaml,
              "  vllm.max_num_seqs: {choice: [engine, 64, 512], ordered: true, "
              "default: engine}\n"));
    CHECK(has(written.yaml,
              "  vllm.unheard_of: {flag: \"--unheard-of\", choice: [x, \"y\"], "
              "default: x}\n"));

    const MeasuredTable table = read_table(written.table);
    CHECK(cell(table, 0, "engine") == "vllm");
    CHECK(cell(table, 1, "engine") == "sglang");
    CHECK(cell(table, 2, "quantization") == "fp8");
    CHECK(cell(table, 3, "quantization") == "fp8");
    CHECK(cell(table, 3, "vllm.max_num_seqs") == "64");
    CHECK(cell(table, 4, "vllm.unheard_of") == "y");
    CHECK(std::get<Measurement>(table.rows.at(4).outcome)
              .metrics.at("total_tokens_per_second")
              .value == 1700);
    CHECK(table.rows.at(5).workload == "in8192_out64");

    // It runs: all measured configurations of the one workload, the best of them the right one.
    StudySetup setup = set_up(load_study(file, shipped_catalogue));
    CHECK(setup.file.report_workloads.size() == 1);
    Configuration best = setup.problem->space.default_configuration();
    double most = 0;
    for (const MeasuredTable::Row& row : table.rows)
        if (const auto* measured = std::get_if<Measurement>(&row.outcome);
            measured != nullptr && row.workload == "in512_out128")
            most = std::max(most, measured->metrics.at("total_tokens_per_second").value);
    CHECK(most == 1700);
    CHECK(setup.command(best).text() == "vllm serve org/Model-8B --unheard-of=x");
}

TEST_CASE("written study: several workloads are never mixed, the message says which there are") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.yaml";
    const ResultSource source = source_of({{"a.md", document}});
    const auto error = [&](const std::string& workload) {
        return message_of<SpaceError>(
            [&] { (void)written_anew(source, request_for(workload), file, shipped_catalogue); });
    };
    CHECK(has(error(""),
              "the results are of several workloads; say with --workload which is searched:\n"
              "  in512_out128: 5 results (512 input tokens, 128 output tokens)\n"
              "  in8192_out64: 1 result (8192 input tokens, 64 output tokens)"));
    CHECK(
        has(error("nothing"), "--workload nothing: no such workload; there are:\n  in512_out128"));
    CHECK_FALSE(std::filesystem::exists(file));
    const WrittenStudy long_prompts =
        written_anew(source, request_for("in8192_out64"), file, shipped_catalogue);
    CHECK(has(long_prompts.yaml, "workloads:\n  - {workload: in8192_out64, "));
}

TEST_CASE(
    "written study: results under one label are of one workload, also one that lost requests") {
    ResultSource source;
    const auto add = [&](const std::string& label, const std::string& flags, double rate, int input,
                         int requests, int sent, int in_flight) {
        PublishedResult result = read_results(command("vllm serve org/Model-8B" + flags) +
                                                  printed_block(rate, input, 128, requests),
                                              "a.md", shipped_catalogue.engines())
                                     .front();
        result.index = source.results.size();
        result.labels = {label};
        result.result.requested_requests = sent;
        result.result.maximum_concurrency = in_flight;
        source.results.push_back(std::move(result));
        source.files.emplace_back("a.md");
    };
    add("high load", "", 1000, 512, 100, 100, 16);
    add("low load", "", 500, 512, 10, 10, 1);
    add("high load", " --max-num-seqs 64", 1200, 300, 63, 100, 16);
    add("high load", " --max-num-seqs 128", 1100, 512, 100, 100, 16);
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.yaml";
    const WrittenStudy written =
        written_anew(source, request_for("high load"), file, shipped_catalogue);
    CHECK(written.imported.rows == 4);
    CHECK(has(written.yaml, "workload: high_load"));
    CHECK(has(written.yaml, "printed_as: [high_load, \"high load\"]"));
    CHECK(has(written.yaml, "success_ratio >= 0.99"));
    const MeasuredTable table = read_table(written.table);
    CHECK(table.rows.at(2).workload == "high_load");
    CHECK(std::get<Measurement>(table.rows.at(2).outcome).metrics.at("success_ratio").value ==
          0.63);
    // Requests in flight that are known and differ keep workloads apart, whatever the label.
    source.results[1].labels = {"high load"};
    const auto error = message_of<SpaceError>(
        [&] { (void)written_anew(source, request_for(""), file, shipped_catalogue); });
    INFO(error);
    CHECK(has(error, "2 results (512 input tokens, 128 output tokens, 16 in flight)"));
    CHECK(has(error, "1 result (512 input tokens, 128 output tokens, 1 in flight)"));
}

TEST_CASE(
    "written study: what was not measured is no default, and what no result has is no objective") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.yaml";
    const auto written = [&](const std::string& text) {
        return written_anew(source_of({{"a.md", text}}), request_for(""), file, shipped_catalogue)
            .yaml;
    };
    const std::string two =
        written(command("vllm serve org/Model-8B -tp 8 --max-num-seqs 64 --unheard-of 1") +
                printed_block(1000, 512, 128) + command("vllm serve org/Model-8B -tp 4 --swap") +
                printed_block(900, 512, 128));
    INFO(two);
    CHECK(has(two, "tensor_parallel_size: {choice: [4, 8], ordered: true, default: 4}"));
    CHECK(has(two, "max_num_seqs: {choice: [engine, 64], ordered: true, default: engine}"));
    CHECK_NOTHROW(set_up(load_study(file, shipped_catalogue)));

    std::string block = printed_block(1000, 512, 128);
    const auto rate = block.find("Total Token throughput");
    const std::string none = block.substr(0, rate) + "```\n";
    block.replace(rate, 22, "Output token throughput");
    CHECK(has(written(command("vllm serve org/Model-8B") + block),
              "objective: {maximize: output_tokens_per_second}\n"));
    std::filesystem::remove(file);
    std::filesystem::remove(folder.path() / "study.csv");
    CHECK(has(
        message_of<SpaceError>([&] { (void)written(command("vllm serve org/Model-8B") + none); }),
        "print no rate to search by"));
    CHECK_FALSE(std::filesystem::exists(file));
    CHECK_FALSE(std::filesystem::exists(folder.path() / "study.csv"));
}

TEST_CASE(
    "written study: files that do not say how the engine was started are told by hand, each or "
    "all") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.yaml";
    const ResultSource source =
        source_of({{"runs/a.json", serving_json(8, 6400)}, {"runs/b.json", serving_json(8, 7000)}});
    const auto error = [&](const std::vector<std::string>& facts) {
        return message_of<SpaceError>(
            [&] { (void)written_anew(source, request_for("", facts), file, shipped_catalogue); });
    };
    CHECK(has(error({}),
              "no result says how its engine was started: the file does not say how the engine was "
              "started (--set engine="));
    CHECK(has(error({"engine=nothing"}), "--set engine=nothing: no such engine"));
    CHECK(has(error({"engine=vllm", "max_num_seq=5"}),
              "vllm has no such parameter; known: max_num_seqs"));
    for (const char* wrong : {"", "a", "=5", "a:=b"})
        CHECK_THROWS_AS(GivenFact::parse(wrong), SpaceError);
    CHECK(GivenFact::parse("r/a.json:x=1").file == "r/a.json");
    CHECK(GivenFact::parse("model=host:5/x=y").value == "host:5/x=y");
    CHECK(GivenFact::parse("model=host:5/x=y").file.empty());
    const WrittenStudy written =
        written_anew(source,
                     request_for("", {"engine=vllm", "hardware=h100-sxm", "b.json:max_num_seqs=64",
                                      "enable_prefix_caching=false"}),
                     file, shipped_catalogue);
    INFO(written.yaml);
    CHECK(written.imported.rows == 2);
    CHECK(has(written.yaml, "model: org/Model-8B\nhardware: h100-sxm\nengine: vllm\n"));
    CHECK(has(written.yaml,
              "max_num_seqs: {choice: [engine, 64], ordered: true, default: engine}\n"));
    CHECK(has(written.yaml, "enable_prefix_caching: false\n"));
    CHECK(has(written.yaml, "arrival: {concurrency: 8}"));
    const MeasuredTable table = read_table(written.table);
    CHECK(cell(table, 0, "max_num_seqs") == "engine");
    CHECK(cell(table, 1, "max_num_seqs") == "64");
}

TEST_CASE("written study: the version of a file counts for its results only") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.yaml";
    const ResultSource source =
        source_of({{"runs/a.json", serving_json(8, 6400)}, {"runs/b.json", serving_json(8, 7000)}});
    const std::vector<std::string> engines{"a.json:engine=vllm", "b.json:engine=sglang",
                                           "a.json:max_num_seqs=64", "b.json:tp_size=2"};
    const auto versions = [&](std::vector<std::string> facts) {
        facts.insert(facts.begin(), engines.begin(), engines.end());
        return written_anew(source, request_for("", facts), file, shipped_catalogue).yaml;
    };
    CHECK(has(versions({"a.json:version=0.17.0", "b.json:version=0.5.9"}),
              "engine_versions: {vllm: 0.17.0, sglang: 0.5.9}\n"));
    CHECK(has(versions({"b.json:version=0.5.9"}), "engine_versions: {sglang: 0.5.9}\n"));
    CHECK(has(versions({"vllm.version=0.17.0"}), "engine_versions: {vllm: 0.17.0}\n"));
    const auto error = message_of<SpaceError>([&] {
        (void)written_anew(
            source,
            request_for("", {"engine=vllm", "a.json:max_num_seqs=64", "b.json:max_num_seqs=128",
                             "a.json:version=0.17.0", "b.json:version=0.24.0"}),
            file, shipped_catalogue);
    });
    CHECK(has(error, "a study has one version of vllm, and its results are of 0.17.0 and 0.24.0"));
}

TEST_CASE("written study: a count that no integer holds is refused, never another number") {
    const TemporaryFolder folder;
    std::string huge = serving_json(8, 6400, ", \"random_input_len\": 1");
    huge.replace(huge.find("51200"), 5, "1e308");
    const auto error = message_of<SpaceError>([&] {
        (void)written_anew(source_of({{"a.json", huge}, {"b.json", huge}}),
                           request_for("", {"engine=vllm", "a.json:max_num_seqs=64"}),
                           folder.path() / "study.yaml", shipped_catalogue);
    });
    INFO(error);
    CHECK(has(error, "no such number of requests or tokens: 1e+306"));
}

TEST_CASE(
    "written study: results of one configuration that differ too much are no repeats: they are "
    "left out, the rest is searched") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.yaml";
    const auto written = [&](double first, double second) {
        return written_anew(
            source_of({{"a.md", command("vllm serve org/Model-8B") + printed_block(1000, 512, 128) +
                                    command("vllm serve org/Model-8B --max-num-seqs 64") +
                                    printed_block(first, 512, 128) + "With the patch:\n" +
                                    command("vllm serve org/Model-8B --max-num-seqs 64") +
                                    printed_block(second, 512, 128) +
                                    command("vllm serve org/Model-8B --max-num-seqs 128") +
                                    printed_block(1300, 512, 128)}}),
            request_for(""), file, shipped_catalogue);
    };
    CHECK(written(1000, 1160).imported.unplaced.empty());  // as published repeats do
    const WrittenStudy apart = written(1000, 2000);
    CHECK(apart.imported.rows == 2);
    REQUIRE(apart.imported.unplaced.size() == 2);
    CHECK(apart.imported.unplaced[0].result.index == 1);
    CHECK(apart.imported.unplaced[1].result.index == 2);
    CHECK(has(apart.imported.unplaced[0].reason,
              "blocks 1 and 2 have one configuration and one workload, and their "
              "total_tokens_per_second go from 1000 to 2000 (2 times, repeats up to 1.25)"));
    const MeasuredTable table = read_table(apart.table);
    REQUIRE(table.rows.size() == 2);
    CHECK(cell(table, 1, "max_num_seqs") == "128");
    CHECK(set_up(load_study(file, shipped_catalogue))
              .problem->space.default_configuration()
              .find("max_num_seqs") != nullptr);
}

TEST_CASE(
    "written study: where nothing of the searched workload is left, the message says why and there "
    "is no file") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.yaml";
    const std::string serve = command("vllm serve org/Model-8B");
    const auto error = message_of<SpaceError>([&] {
        (void)written_anew(source_of({{"a.md", serve + printed_block(1000, 512, 128) + serve +
                                                   printed_block(3000, 512, 128) + serve +
                                                   printed_block(500, 4096, 128)}}),
                           request_for("in512_out128"), file, shipped_catalogue);
    });
    CHECK(has(error,
              "no result of workload in512_out128 is a row of the study: blocks 0 and 1 have one "
              "configuration"));
    CHECK(has(error, "go from 1000 to 3000 (3 times"));
    CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("written study: what a rule excludes is in the table, and said") {
    const TemporaryFolder folder;
    const auto file = folder.path() / "study.yaml";
    const std::string launch =
        "python3 -m sglang.launch_server --model-path org/Model-8B --tp-size=8";
    const WrittenStudy written =
        written_anew(source_of({{"a.md", command(launch) + printed_block(1000, 512, 128) +
                                             command(launch + " --max-running-requests=64") +
                                             printed_block(2000, 512, 128) +
                                             command(launch + " --enable-dp-attention") +
                                             printed_block(1010, 512, 128)}}),
                     request_for(""), file, shipped_catalogue);
    INFO(written.yaml);
    REQUIRE(read_table(written.table).rows.size() == 3);
    std::string remarks;
    for (const std::string& remark : written.remarks) remarks += remark + "\n";
    INFO(remarks);
    CHECK(has(remarks,
              "block 2 is in the table, and the study does not search it: it breaks the rule: "
              "require not enable_dp_attention (with one copy"));
    CHECK_FALSE(has(remarks, "block 1 is in the table"));
    CHECK_NOTHROW(set_up(load_study(file, shipped_catalogue)));
}

TEST_CASE("written study: the settings of a data set are no name of a workload") {
    const TemporaryFolder folder;
    ResultSource source =
        source_of({{"a.md", command("vllm serve org/Model-8B") + printed_block(1000, 512, 128)}});
    source.results.at(0).dataset = R"({"kind": "synthetic_text", "delay": null})";
    CHECK(has(
        written_anew(source, request_for(""), folder.path() / "study.yaml", shipped_catalogue).yaml,
        "{workload: in512_out128, "));
    CHECK(text_of(Constraint(Allow{{}, {{}}, ""})) == "only the one configuration that there is");
}
