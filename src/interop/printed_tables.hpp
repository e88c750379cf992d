// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace servetune {

/// A table that a benchmark printed into a text, from its first line to behind its last, and its
/// results.
struct PrintedTable {
    std::size_t begin = 0, end = 0;
    std::vector<PublishedResult> results;
    bool measures_server = true;  ///< else the serving commands of the text say nothing of it
};

/// Whose tables are read, for messages.
inline constexpr std::string_view printed_table_tools =
    "llama-bench, AIPerf, GenAI-Perf or evalscope";

/// All tables of known tools in a document, in order: llama-bench, llama-sweep-bench,
/// llama-batched-bench, AIPerf, GenAI-Perf, evalscope. A table is known by the names of its columns
/// as its tool writes them, in a fence or outside; tables that people made are none. Linear in the
/// text.
std::vector<PrintedTable> printed_tables(std::string_view text);

/// The readers of one tool each. `at` is the begin of a line; nothing where no table of theirs
/// begins there. A table without a row has no results.
std::optional<PrintedTable> read_llama_bench_table(std::string_view text,
                                                   std::size_t at);  // llama_bench_table.cpp
std::optional<PrintedTable> read_llama_sweep_table(std::string_view text,
                                                   std::size_t at);  // llama_sweep_table.cpp
std::optional<PrintedTable> read_perf_console(std::string_view text,
                                              std::size_t at);  // perf_console.cpp
std::optional<PrintedTable> read_evalscope_console(std::string_view text,
                                                   std::size_t at);  // evalscope_console.cpp

}  // namespace servetune
