// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/traffic/benchmark_result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// One result of a benchmark: a "Serving Benchmark Result" block and what the text around it says it belongs to, or a
/// result of a tool's JSON file (result_file.hpp).
struct PublishedResult {
    std::size_t index = 0;     ///< order in the document, from 0
    std::string tool;          ///< servetune vllm sglang guidellm gpustack genai-perf aiperf; empty: a block that does not say
    std::string tool_version;  ///< as the file says, or as its shape tells (guidellm 0.3: its TPOT means something else)
    std::string model;         ///< as the file names it; empty: it does not say, as the next two
    std::string dataset;
    std::string date;
    std::vector<std::string> sections;  ///< headings above it, outermost first
    std::vector<std::string> labels;    ///< what it may be called: profile, comment, list item, heading; nearest first
    std::string arguments;              ///< the serving command, or only its flags, as printed
    bool arguments_derived = false;     ///< no command is printed for it: made from an earlier one by the model's name
    bool arguments_unknown = false;     ///< nothing says how the engine was started; not the same as "no flags"
    std::string not_recognised;  ///< the command in its fence, where it begins with none of the launchers; then the arguments are unknown
    BenchmarkResult result;
    std::map<std::string, std::string> unread;  ///< what no figure has a place for: lines of a block, fields of a file
};

/// Finds every result block in Markdown or plain text, also where line breaks were lost (fields are found by their
/// names).
///
/// What belongs to a block is what stands last before it: a fenced or plain serving command (a line beginning with one
/// of `launchers`, or a fence of flags), changed by a comment of flags (`# --attention-backend=triton`); a profile
/// (`Profile: X`), a comment, a list item or a heading as labels. A fence whose command begins with none of the
/// launchers takes the command away from the blocks that follow it, until the next one that is recognised
/// (`not_recognised`); fences of benchmark clients and of downloads do not. A line that is one word and is followed by
/// no command names the served model when the model of the last command is of the same family (the same word before the
/// first `-`).
std::vector<PublishedResult> read_published(std::string_view text, const std::vector<std::string>& launchers);

}  // namespace servetune
