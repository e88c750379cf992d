// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"
#include "servetune/study_file.hpp"
#include "servetune/trial.hpp"

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <vector>

namespace servetune {

/// What a result file says beside the figures. Empty: not known.
struct ExportContext {
    std::string date{};                   ///< vLLM writes local time as YYYYmmdd-HHMMSS
    std::string backend = "openai-chat";  ///< vLLM's name for the API that was asked
    std::string model{};                  ///< as the server calls it
    std::string dataset{};
    double burstiness = 1;  ///< shape of the gamma distributed gaps between arrivals; 1: Poisson
};

/// One line of JSON, without a line break at the end, as `vllm bench serve --save-result` of 2026
/// writes it, with its keys and units: what reads vLLM's results reads this. `servetune.figures`
/// has every figure under our name, exactly. vLLM writes 0 for what was not measured; here its key
/// is left out, and figures that are not finite are.
std::string vllm_json(const BenchmarkResult& result, const ExportContext& context = {});

/// The "Serving Benchmark Result" block that vLLM prints, to two decimals, of the figures that it
/// has lines for.
std::string text_block(BenchmarkResult result);

/// The Benchmark Reports 0.2.1 of llm-d, one for each load that a trial measured and whose figures
/// are not unsound: file -> report. Each trial has a folder, as llm-d compares treatments, and
/// files are called as it looks for them. JSON is YAML.
std::map<std::string, nlohmann::ordered_json> llm_d_reports(const StudySetup& setup,
                                                            const std::vector<Trial>& trials);

}  // namespace servetune
