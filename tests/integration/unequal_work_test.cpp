// SPDX-License-Identifier: Apache-2.0
// An engine that answers half as long with one of its settings, under natural lengths: that is not
// faster.
#include "support/autotune.hpp"
#include "support/test.hpp"

#include "base/files.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>

using namespace servetune;
using namespace servetune::test;

namespace {

namespace fs = std::filesystem;

/// Both styles send a token each 2 ms; `shorty` ends its answers after 16 of 32.
const char* const short_engine = R"(engine: brief
launch:
  - sh
  - -c
  - |
    port= style=
    while [ $# -gt 0 ]; do
      case "$1" in
        --listen) port=$2 ;;
        --style) style=$2 ;;
      esac
      shift; [ $# -eq 0 ] || shift
    done
    tokens=32; [ "$style" != shorty ] || tokens=16
    exec 'SIMENGINE' --start-scale 1000 --model Qwen/Qwen3-8B --pace 0.004,0.002 --fault answer_tokens=$tokens \
      vllm serve test --port "$port"
  - brief
  - --weights
  - "{model}"
  - --listen
  - "{port}"
flag_style: separate
ready: /health
ready_within: 20s
failures: []
parameters:
  style: {flag: --style, choice: [plain, shorty], default: plain, doc: "How it answers.", source: "made up"}
)";

}  // namespace

TEST_CASE(
    "unequal work: a configuration whose answers are half as long is not recommended for its "
    "requests a second") {
    const TemporaryFolder folder;
    fs::copy(fs::path(SERVETUNE_SOURCE) / "search_spaces", folder.path() / "spaces",
             fs::copy_options::recursive);
    std::string engine = short_engine;
    engine.replace(engine.find("SIMENGINE"), 9, SIMENGINE_PROGRAM);
    folder.write("spaces/engines/brief.yaml", engine);
    std::string prompts;
    for (int i = 0; i < 40; ++i)
        prompts += R"({"prompt": "question )" + std::to_string(i) + "\"}\n";
    folder.write("p.jsonl", prompts);
    folder.write("study.yaml",
                 "study: s\nmodel: test\nengine: brief\nothers: default\nstrategy: exhaustive\n"
                 "workloads: [{workload: mine, dataset: {kind: prompts, path: p.jsonl, "
                 "output_tokens: 32}, requests: 40, arrival: "
                 "{concurrency: 4}}]\n"
                 "objective: {maximize: requests_per_second, limits: [\"success_ratio >= 0.99\"]}\n"
                 "space: {style: {choice: [plain, shorty]}}\nevaluator: {deploy: {watch: off, "
                 "warm_up: 4}}\n");
    const Ran run =
        ran({"/usr/bin/env", "SERVETUNE_SEARCH_SPACES=" + (folder.path() / "spaces").string(),
             SERVETUNE_PROGRAM, "run", "study.yaml", "--json"},
            folder.path());
    INFO(run.err);
    REQUIRE(run.code == 0);
    const auto report = nlohmann::json::parse(run.out);
    INFO(report.dump(1));
    CHECK(report["verdict"] == "inconclusive");
    CHECK(report["recommended"]["keep_default"] == true);
    CHECK(has(report["reason"].get<std::string>(),
              "16 output tokens a request, 32 with the default"));
    REQUIRE(report["other_work"].size() == 1);
    CHECK(report["other_work"][0]["configuration"]["style"] == "shorty");
    CHECK(report["results"][1]["metrics"]["requests_per_second"].get<double>() >
          1.5 * report["results"][0]["metrics"]["requests_per_second"].get<double>());
}
