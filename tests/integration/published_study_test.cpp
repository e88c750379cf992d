// SPDX-License-Identifier: Apache-2.0
// The published studies by the program: what their documents say, and what their tables hold.
#include "support/autotune.hpp"
#include "support/published.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "servetune/sqlite_journal.hpp"
#include "study/table.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

using namespace servetune;
using namespace servetune::test;

namespace {

using Json = nlohmann::json;

Json run_study(const std::string& study, const fs::path& folder,
               std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"run",         (published / study).string(),
                                       "--directory", (folder / "study").string(),
                                       "--json",      "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Ran ran = autotune(arguments, folder);
    INFO(ran.err);
    REQUIRE(ran.code == 0);
    return Json::parse(ran.out);
}

double rounded(const Json& value, double scale) {
    return std::round(value.get<double>() * scale) / scale;
}

double metric_of(const std::vector<Trial>& trials, const Assignment& settings,
                 const char* metric = "total_tokens_per_second") {
    for (const Trial& trial : trials) {
        bool fits = trial.workload.empty() && trial.measurement() != nullptr;
        for (const auto& [name, value] : settings) {
            const Value* got = trial.configuration.find(name);
            fits = fits && got != nullptr && *got == value;
        }
        std::size_t beyond = 0;
        for (const auto& [name, value] : trial.configuration.entries())
            if (has(name, ".") && !is_unset(value) && value != Value("none") &&
                name != "vllm.num_speculative_tokens")
                ++beyond;
        if (fits && beyond == settings.size()) return trial.measurement()->metrics.at(metric).value;
    }
    return 0;
}

}  // namespace

TEST_CASE("published: Qwen3-14B on H100, engine then quantization then attention backend") {
    const TemporaryFolder folder;
    const Json result = run_study("qwen3-14b-h100/study.yaml", folder.path());
    CHECK(result["default"]["metrics"]["total_tokens_per_second"] == 6595.66);
    CHECK(result["recommended"]["metrics"]["total_tokens_per_second"] == 10426.27);
    CHECK(rounded(result["recommended"]["gain"]["value"], 1000) == 0.581);
    CHECK(result["recommended"]["argv"] ==
          Json({"python3", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-14B-FP8"}));
    CHECK(result["recommended"]["keep_default"] == false);
    CHECK(result["best_observed"]["metrics"]["total_tokens_per_second"] == 10434.44);
    CHECK(result["best_observed"]["configuration"]["sglang.attention_backend"] == "fa3");
    CHECK(result["trials"] == Json({{"told", 15}, {"failed", 0}, {"unsound", 0}}));
    CHECK(result["stop_reason"] == "strategy_finished");
    const std::vector<std::tuple<std::string, double, double>> workloads{
        {"short_prompt", 5796.73, 16884.75},
        {"medium_prompt", 10597.19, 14764.26},
        {"long_prompt", 9218.03, 12257.62},
        {"very_long_prompt", 8298.56, 10014.29}};
    for (const auto& [workload, before, after] : workloads) {
        CHECK(result["report_workloads"][workload]["default"]["total_tokens_per_second"] == before);
        CHECK(result["report_workloads"][workload]["recommended"]["total_tokens_per_second"] ==
              after);
    }
    const std::string report = read_file(folder.path() / "study/report.md");
    for (const char* line :
         {"| engine=sglang | 8404 | +27.4 % | 235 ms | 9.23 s | **carried on** |",
          "| engine=tensorrt-llm | 8315 | +26.1 % |",
          "| sglang.attention_backend=fa3 | 10434 | +0.08 % | 243 ms | 7.30 s |",
          "| sglang.attention_backend=flashinfer | 9123 | -12.5 % |",
          "| sglang.attention_backend=triton | 10055 | -3.56 % |",
          "| quantization | 10426 | +24.1 % | +23.8% |", "| sharegpt | 6596 | 10426 | +58.1 % |",
          "Quality not measured: quantization = fp8", "8424.86"}) {
        INFO(line);
        CHECK(has(report, line));
    }
}

TEST_CASE(
    "published: exhaustive finds the table's optimum, and still recommends the smaller command") {
    const TemporaryFolder folder;
    const Json result =
        run_study("qwen3-14b-h100/study.yaml", folder.path(), {"--strategy", "exhaustive"});
    CHECK(result["strategy"] == "exhaustive");
    CHECK(result["best_observed"]["metrics"]["total_tokens_per_second"] == 10434.44);
    CHECK(result["recommended"]["command"] ==
          "python3 -m sglang.launch_server --model-path Qwen/Qwen3-14B-FP8");
    CHECK(has(read_file(folder.path() / "study/report.md"),
              "The highest figure measured is 10434 (engine = sglang, quantization = fp8, "
              "sglang.attention_backend = fa3), "
              "+0.08 % over the recommended one"));
}

TEST_CASE("published: Qwen3.5-9B on H100, every stage against one baseline") {
    const TemporaryFolder folder;
    const Json result = run_study("qwen3.5-9b-h100/study.yaml", folder.path());
    CHECK(result["default"]["metrics"]["total_tokens_per_second"] == 11527.14);
    CHECK(result["recommended"]["metrics"]["total_tokens_per_second"] == 11768.22);
    CHECK(rounded(result["recommended"]["gain"]["value"], 10000) == 0.0209);
    CHECK(result["recommended"]["command"] ==
          "vllm serve Qwen/Qwen3.5-9B --performance-mode=throughput --max-num-seqs=512 "
          "--max-model-len=32768 --reasoning-parser=qwen3");
    REQUIRE(result["refused"].size() == 1);
    CHECK(result["refused"][0]["configuration"]["vllm.speculative_method"] == "mtp");
    CHECK(result["refused"][0]["reason"] == "limit success_ratio >= 0.99 broken: 0.514");

    const std::vector<Trial> trials = SqliteJournal::read(folder.path() / "study").trials();
    const std::int64_t s256 = 256, s512 = 512, s768 = 768, s1024 = 1024, s2048 = 2048, t24 = 24576,
                       t32 = 32768, t48 = 49152;
    const std::vector<std::pair<Assignment, double>> document{
        {{{"vllm.enable_prefix_caching", true}}, 11224.70},
        {{{"vllm.speculative_method", "mtp"}}, 15059.89},
        {{{"vllm.performance_mode", "throughput"}}, 11496.39},
        {{{"vllm.max_num_seqs", s512}}, 11464.53},
        {{{"vllm.max_num_seqs", s1024}}, 11532.64},
        {{{"vllm.max_num_seqs", s2048}}, 11388.13},
        {{{"vllm.performance_mode", "throughput"}, {"vllm.max_num_batched_tokens", t24}}, 11512.90},
        {{{"vllm.performance_mode", "throughput"}, {"vllm.max_num_batched_tokens", t32}}, 11672.72},
        {{{"vllm.performance_mode", "throughput"}, {"vllm.max_num_seqs", s256}}, 11019.18},
        {{{"vllm.performance_mode", "throughput"}, {"vllm.max_num_seqs", s512}}, 11768.22},
        {{{"vllm.performance_mode", "throughput"},
          {"vllm.max_num_seqs", s512},
          {"vllm.max_num_batched_tokens", t32}},
         11333.89},
        {{{"vllm.performance_mode", "throughput"},
          {"vllm.max_num_seqs", s512},
          {"vllm.max_num_batched_tokens", t48}},
         11573.41},
        {{{"vllm.performance_mode", "throughput"},
          {"vllm.max_num_seqs", s768},
          {"vllm.max_num_batched_tokens", t48}},
         11628.47}};
    for (const auto& [settings, figure] : document) {
        INFO(Configuration::of(settings).text());
        CHECK(metric_of(trials, settings) == figure);
    }
    const std::string report = read_file(folder.path() / "study/report.md");
    for (const char* row :
         {"| engine | 11527 | +0.00 % | +0.00% |", "| prefix cache | 11225 | -2.62 % | -2.62% |",
          "| speculative decoding | 15060 (refused) | +30.6 % | success rate 51.5%, skipped |",
          "| performance mode | 11496 | -0.27 % | -0.27% |",
          "| max-num-seqs | 11533 | +0.05 % | +0.05% |",
          "| max-num-batched-tokens and performance mode | 11673 | +1.26 % | +1.26% |",
          "| max-num-seqs and performance mode | 11768 | +2.09 % | +2.09% |",
          "| max-num-seqs and max-num-batched-tokens | 11334 | -1.68 % | -1.68% |",
          "| all three | 11628 | +0.88 % | +0.88% |", "| throughput | 29822 | 34470 | +15.6 % |",
          "| long_context | 32417 | 32659 | +0.75 % |",
          "| generation_heavy | 2973 | 3025 | +1.74 % |"}) {
        INFO(row);
        CHECK(has(report, row));
    }
}

TEST_CASE("published: Qwen3-8B on Jetson Thor, nine checkpoints at high and at low load") {
    for (const auto& [study, before, after] :
         {std::tuple{"study.yaml", 1438.24, 5052.48},
          std::tuple{"study-low-load.yaml", 266.09, 1885.21}}) {
        const TemporaryFolder folder;
        const Json result = run_study(std::string("qwen3-8b-jetson-thor/") + study, folder.path());
        CHECK(result["default"]["metrics"]["total_tokens_per_second"] == before);
        CHECK(result["recommended"]["metrics"]["total_tokens_per_second"] == after);
        CHECK(result["recommended"]["command"] ==
              "vllm serve /models/Qwen/Qwen3-8B-FP8 --served-model-name qwen3");
        CHECK(result["trials"]["told"] == 11);
        // The audit is not enforced, so every output says what the verdict rests on.
        const std::string doubt = "Its measurement is unsound (physics): mean TPOT = ";
        CHECK(has(result["reason"].get<std::string>(), doubt));
        // At low load the default's prompts are read faster than the device can.
        const bool of_default = has(result["reason"].get<std::string>(),
                                    "The default's measurement is suspect (physics)");
        CHECK(of_default == (std::string(study) == "study-low-load.yaml"));
        CHECK(result["advice"] == "Find out why before you serve this.");
        for (const char* report : {"report.md", "report.html"})
            CHECK(has(read_file(folder.path() / "study" / report),
                      "measurement is unsound (physics)"));
        const Ran shell =
            autotune({"recommend", (published / "qwen3-8b-jetson-thor" / study).string(),
                      "--directory", (folder.path() / "study").string(), "--as", "shell"},
                     folder.path());
        INFO(shell.err);
        CHECK(shell.out.find(" over the default. " + doubt) < shell.out.find("exec vllm serve"));
    }
}

TEST_CASE(
    "published: Qwen3-8B on H200, this project's own measurement, FP8 against the default, and "
    "four loads") {
    const TemporaryFolder folder;
    const Json result = run_study("qwen3-8b-h200/study.yaml", folder.path());
    CHECK(rounded(result["default"]["metrics"]["output_tokens_per_second"], 100) == 5847.98);
    CHECK(result["default"]["verdict"] == "sound");
    CHECK(rounded(result["recommended"]["metrics"]["output_tokens_per_second"], 100) == 7730.79);
    CHECK(rounded(result["recommended"]["gain"]["value"], 1000) == 0.322);
    CHECK(result["recommended"]["command"] ==
          "vllm serve Qwen/Qwen3-8B --quantization=fp8 --load-format=dummy --max-model-len=8192");
    CHECK(result["trials"] == Json({{"told", 2}, {"failed", 0}, {"unsound", 0}}));
    REQUIRE(result["audit"].size() == 1);  // FP8: several tokens a chunk
    CHECK(result["audit"][0]["verdict"] == "suspect");
    CHECK(result["audit"][0]["findings"][0]["id"] == "chunks");
    CHECK(has(read_file(folder.path() / "study/report.md"), "The study that ran was inconclusive"));

    const TemporaryFolder four;
    const Json loads = run_study("qwen3-8b-h200/study-loads.yaml", four.path());
    CHECK(rounded(loads["default"]["metrics"]["output_tokens_per_second"], 100) == 5759.02);
    CHECK(loads["recommended"]["keep_default"] == true);
    CHECK(loads["audit"].empty());
    for (const auto& [workload, measured] :
         {std::pair{"alone", 187.91}, {"light", 3454.55}, {"heavy", 5576.32}}) {
        INFO(workload);
        CHECK(rounded(loads["report_workloads"][workload]["default"]["output_tokens_per_second"],
                      100) == measured);
    }

    // What the cost model predicts is on docs/explanation/simulator.md, beside what was measured.
    const TemporaryFolder paper;
    const Json predicted = run_study("qwen3-8b-h200/study-predicted.yaml", paper.path());
    CHECK(predicted["default"]["metrics"]["output_tokens_per_second"].get<double>() ==
          Approx(6577).epsilon(0.01));
    CHECK(predicted["report_workloads"]["alone"]["default"]["output_tokens_per_second"]
              .get<double>() == Approx(195.1).epsilon(0.01));
}

TEST_CASE("published: what can be concluded when the audit is enforced and noise decides") {
    const TemporaryFolder thor;
    const Json high = run_study("qwen3-8b-jetson-thor/study-audited.yaml", thor.path());
    CHECK(high["recommended"]["metrics"]["total_tokens_per_second"] == 2921.73);
    CHECK(high["recommended"]["command"] ==
          "vllm serve /models/Qwen/Qwen3-8B-FP4 --served-model-name qwen3");
    CHECK(high["not_distinguishable"].empty());
    REQUIRE(high["refused"].size() == 1);
    CHECK(high["refused"][0]["reason"] == "unsound measurement: physics");
    const std::string report = read_file(thor.path() / "study/report.md");
    CHECK(has(report, "| physics | 1 | "));
    CHECK(has(report, "quantization = fp8: mean TPOT = 22.59 ms; at least 30.01 ms"));
    REQUIRE_FALSE(high["audit"].empty());
    CHECK(high["audit"][0]["findings"][0]["cause"].get<std::string>().starts_with(
        "impossible: a token would need 362.64 GB/s"));

    const TemporaryFolder low_folder;
    const Json low =
        run_study("qwen3-8b-jetson-thor/study-low-load-audited.yaml", low_folder.path());
    CHECK(low["recommended"]["metrics"]["total_tokens_per_second"] == 730.96);
    std::set<std::string> tied;
    for (const Json& configuration : low["not_distinguishable"])
        tied.insert(configuration["quantization"].get<std::string>());
    CHECK(tied == std::set<std::string>{"awq", "int4-w4a16"});

    const TemporaryFolder sound;
    const Json choice = run_study("qwen3-14b-h100/study-audited.yaml", sound.path());
    CHECK(choice["recommended"]["metrics"]["total_tokens_per_second"] == 10426.27);
    CHECK(choice["trials"]["unsound"] == 0);
    CHECK(choice["default"]["verdict"] == "sound");

    const TemporaryFolder nothing;
    const Json none = run_study("qwen3.5-9b-h100/study-audited.yaml", nothing.path());
    CHECK(none["default"]["verdict"] == "unsound");
    CHECK(none["recommended"]["keep_default"] == true);
    CHECK(none["recommended"]["gain"].is_null());
    CHECK(none["best_observed"]["configuration"]["engine"] ==
          "sglang");  // the only one that can be believed
    CHECK(none["refused"].size() == none["trials"]["told"].get<std::size_t>() - 1 -
                                        3);  // three report workloads of the default
    CHECK(has(read_file(nothing.path() / "study/report.md"),
              "**Inconclusive.**\n\nThe default's measurement cannot be believed (unsound "
              "measurement: "));
    CHECK(none["verdict"] == "inconclusive");
}

TEST_CASE("published: the tables hold every block of their documents") {
    CHECK(read_table(published / "qwen3.5-9b-h100/results.csv").rows.size() == 24);
    CHECK(read_table(published / "qwen3-14b-h100/results.csv").rows.size() == 15);
    CHECK(read_table(published / "qwen3-8b-jetson-thor/results.csv").rows.size() == 18);
    CHECK(read_table(published / "qwen3-8b-jetson-thor/other-models.csv").rows.size() == 14);
    CHECK(read_table(published / "qwen3-8b-h200/results.csv").rows.size() == 2);
    CHECK(read_table(published / "qwen3-8b-h200/loads.csv").rows.size() == 4);
    // What a document does not print is absent: the success ratio of workloads whose number of
    // requests is not given.
    const MeasuredTable table = read_table(published / "qwen3-14b-h100/results.csv");
    CHECK(std::get<Measurement>(table.rows[0].outcome).metrics.at("success_ratio").value == 1);
    CHECK_FALSE(std::get<Measurement>(table.rows[7].outcome).metrics.contains("success_ratio"));
}
