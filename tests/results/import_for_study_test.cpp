// SPDX-License-Identifier: Apache-2.0
// Result files as rows of a study: those whose command it knows.
#include "support/shipped.hpp"
#include "support/test.hpp"

#include "base/files.hpp"
#include "handover/result_export.hpp"
#include "results/import.hpp"
#include "servetune/result_file.hpp"
#include "servetune/study_file.hpp"
#include "study/table.hpp"

#include <nlohmann/json.hpp>

using namespace servetune;
using namespace servetune::test;

TEST_CASE(
    "import: a file that does not say how the engine was started is no row of a study, one that "
    "does is") {
    const StudyFile study =
        load_study(search_spaces / "published/qwen3-14b-h100/study.yaml", Catalogue(search_spaces));
    const std::vector<Engine> engines = shipped_catalogue.engines();
    const std::filesystem::path samples = SERVETUNE_SOURCE "/tests/data/results";
    std::vector<PublishedResult> results =
        read_results(read_file(samples / "vllm-new.json"), "f", engines);
    BenchmarkResult figures;
    figures.successful_requests = 9;
    figures.failed_requests = 1;
    auto json = nlohmann::json::parse(vllm_json(figures));
    for (const std::string& arguments : {"python3 -m sglang.launch_server --model-path " +
                                             study.model + " --attention-backend=fa3",
                                         std::string("--max-num-seqs=64")}) {
        json["servetune"]["arguments"] = arguments;
        results.push_back(read_results(json.dump(), "f", engines).front());
    }
    for (std::size_t i = 0; i < results.size(); ++i) results[i].index = i;
    const Imported imported = import_for_study(results, study);
    REQUIRE(imported.unplaced.size() == 2);
    CHECK(imported.unplaced[0].reason == "the file does not say how the engine was started");
    CHECK(imported.unplaced[1].reason == "the study does not know --max-num-seqs=64");
    REQUIRE(imported.rows == 1);
    const MeasuredTable table = parse_table(imported.csv, "t.csv");
    CHECK(std::get<Measurement>(table.rows[0].outcome).metrics.at("success_ratio").value == 0.9);
    CHECK(has(imported.csv, ",fa3,"));
}
