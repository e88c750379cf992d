// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"
#include "servetune/engine.hpp"
#include "servetune/outcome.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// One result of a benchmark, and what its file says it belongs to. Empty: the file does not say.
struct PublishedResult {
    std::size_t index = 0;  ///< order in the file, from 0
    std::string tool;       ///< as in docs/reference/result-formats.md
    std::string model;
    std::string dataset;
    std::string date;
    std::vector<std::string> labels;  ///< what its load or its run may be called, nearest first
    std::string arguments;            ///< the serving command, or only its flags, as printed
    std::string engine;               ///< that the command starts, in lower case
    bool arguments_unknown =
        false;  ///< nothing says how the engine was started; not the same as "no flags"
    std::string not_recognised;  ///< why no command is taken; then the arguments are unknown
    BenchmarkResult result;
    Validity validity{};  ///< of our own files: the audit's, which knew more of the run
    std::map<std::string, std::string>
        unread;  ///< what no figure has a place for: lines of a block, fields of a file
};

/// The largest content that is read. Results with every request and every gap of a long run have
/// hundreds of megabytes.
inline constexpr std::size_t largest_result_bytes = std::size_t{1} << 28;

/// Reads what a benchmark wrote: the JSON, JSON Lines and CSV of the tools in
/// docs/reference/result-formats.md; else text with the "Serving Benchmark Result" blocks that vLLM
/// and SGLang print. The content tells the format, never the name.
///
/// A block has the serving command that stands directly above it: in the fence above, in its own
/// fence, or in the lines above; `not_recognised` says why there is none.
///
/// Figures keep the meaning that their tool gives them, under our name for that meaning. What was
/// not measured is absent, also where the tool writes 0. At least one result. Throws ParseError,
/// which begins with `name`, for content that is broken, unknown, without a result or too large.
std::vector<PublishedResult> read_results(std::string_view content, const std::string& name,
                                          const std::vector<Engine>& engines);

/// Whether a CSV file is a table that `read_results` reads: summary.csv of `vllm bench sweep`.
/// Other tables are those of measured configurations (search_spaces/FORMAT.md).
bool is_result_table(std::string_view content);

}  // namespace servetune
