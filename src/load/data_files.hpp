// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/workload.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

/// Of one prompt or one answer; the longest contexts that engines offer have 10 million.
inline constexpr std::int64_t most_length_tokens = std::int64_t{1} << 24U;

// The filters of vLLM's load test (vllm/benchmarks/datasets.py, is_valid_sequence).
inline constexpr std::int64_t sharegpt_min_tokens = 4;
inline constexpr std::int64_t sharegpt_max_prompt_tokens = 1024;
inline constexpr std::int64_t sharegpt_max_total_tokens = 2048;  ///< prompt and answer together

/// A prompt from a file, and the length of the answer that it asks for (0: not said).
struct FilePrompt {
    std::string text;
    double tokens = 0;  ///< estimated
    std::int64_t output_tokens = 0;
};

struct FilePrompts {
    std::vector<FilePrompt> prompts;
    std::size_t read = 0;  ///< conversations in the file
    std::size_t kept = 0;  ///< of these: different ones among the prompts
};

/// A row of a trace: when, and how long.
struct TraceRow {
    std::optional<double> seconds{};  ///< since the first row
    std::int64_t input_tokens = 0;
    std::int64_t output_tokens = 0;
    std::vector<std::uint64_t>
        blocks{};  ///< names of the blocks that the prompt begins with, where the trace has them
    std::int64_t block_tokens =
        512;  ///< of each (Mooncake, "Kimi's KVCache-centric architecture", 2024, trace format)
    std::uint64_t session = 0;  ///< a hash of the conversation's name; 0: not said
};

/// `count` conversations of a ShareGPT file that pass the data set's filters, drawn by the seed
/// (Dataset::Kind::sharegpt). `scale`: true tokens per estimated one.
FilePrompts read_conversations(const std::string& file, const Dataset& dataset, std::size_t count,
                               std::uint64_t seed, double scale);
/// The first `most` prompts of a JSONL file.
FilePrompts read_prompts(const std::string& file, std::size_t most, double scale);
/// The first `most` rows of a trace.
std::vector<TraceRow> read_trace(const std::string& file, std::size_t most);

/// A log of requests in the form of a trace, with lines of other things between.
struct LoggedRequests {
    std::vector<TraceRow> rows{};  ///< as the file has them; `seconds`: by its clock
    std::size_t unread = 0;        ///< lines without time or lengths
    std::size_t first_unread = 0;  ///< its number, from 1
};
/// Throws IoError, and ParseError for a line of more than 16 MiB.
LoggedRequests read_requests(const std::string& file);

}  // namespace servetune
