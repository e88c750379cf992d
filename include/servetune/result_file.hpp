// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// The largest content that is read. Results with every request and every gap of a long run have
/// hundreds of megabytes.
inline constexpr std::size_t largest_result_bytes = std::size_t{1} << 28;

/// Reads what a benchmark wrote, whatever it is: vLLM's JSON (one object, one a line, or a sweep's
/// list or table), SGLang's JSONL, reports of GuideLLM, benchmarks of GPUStack, exports, tables and
/// records of AIPerf, exports of GenAI-Perf, aggregates of InferenceX, summaries of evalscope and
/// inference-perf, llama-bench, our own (result_export.hpp); else text or Markdown with result
/// blocks, printed tables of benchmarks, and the serving commands of `engines` (published.hpp). The
/// format is told by the content, never by the name (docs/reference/result-formats.md).
///
/// Figures keep the meaning that their tool gives them (docs/reference/result-formats.md), under
/// our name for that meaning: the inter-token latency of GenAI-Perf and AIPerf is our time per
/// output token. What was not measured is absent, also where the tool writes 0; what is not finite
/// or negative is no figure.
///
/// At least one result. Throws ParseError, which begins with `name` (`name:line:column:` where that
/// is known), for content that is broken, unknown, without a result, larger than
/// `largest_result_bytes`, or of over 20000 results.
std::vector<PublishedResult> read_results(std::string_view content, const std::string& name,
                                          const std::vector<Engine>& engines);

/// Whether a CSV file is a table that `read_results` reads: summary.csv of `vllm bench sweep`,
/// AIPerf's profile_export_aiperf.csv. Other tables are those of measured configurations
/// (study/table.hpp).
bool is_result_table(std::string_view content);

}  // namespace servetune
