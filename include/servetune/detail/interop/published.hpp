// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"
#include "servetune/engine.hpp"
#include "servetune/outcome.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// One result of a benchmark: a "Serving Benchmark Result" block and what the text around it says
/// it belongs to, or a result of a tool's JSON file (result_file.hpp).
struct PublishedResult {
    std::size_t index = 0;  ///< order in the document, from 0
    std::string tool;  ///< as in docs/reference/result-formats.md; empty: a block that does not say
    std::string
        tool_version;  ///< as the file says, or as its shape tells (guidellm 0.3: its TPOT means something else)
    std::string model;  ///< as the file names it; empty: it does not say, as the next two
    std::string dataset;
    std::string date;
    std::vector<std::string> sections;  ///< headings above it, outermost first
    std::vector<std::string>
        labels;  ///< what it may be called: profile, comment, list item, heading; nearest first
    std::string arguments;  ///< the serving command, or only its flags, as printed
    std::string engine;  ///< that the command starts, or the nearest title names; empty: not known
    bool arguments_unknown =
        false;  ///< nothing says how the engine was started; not the same as "no flags"
    std::map<std::string, std::string>
        server_settings;  ///< of the server, as a result file says them: name -> value
    bool server_settings_are_given =
        false;  ///< a person wrote these few; else the server reported all, as it resolved them
    std::string not_recognised;  ///< why no command is taken; then the arguments are unknown
    std::string failure;         ///< of a run without figures: a name of FailureKind
    std::string failure_message;
    BenchmarkResult result;
    Validity validity{};  ///< of our own files: the audit's, which knew more of the run
    std::optional<double>
        planned_requests;  ///< where the text above says that more were sent than the block has successes
    std::map<std::string, std::string>
        unread;  ///< what no figure has a place for: lines of a block, fields of a file
};

/// Finds every result block in Markdown or plain text, also where line breaks were lost (fields are
/// found by their names). Also the tables that llama-bench, AIPerf, GenAI-Perf and evalscope print,
/// a result or a result a row.
///
/// A result has the serving command (serving_command.hpp) of its fence, or of the fence directly
/// above: only blank lines and titles of boxes (`??? info "..."`, `<summary>`) may stand between. A
/// fence of flags counts as a command without its engine, which the nearest heading may name. All
/// results of a fence have one command; a comment of flags (`# --max-num-seqs 512`) changes it for
/// the result below. Any other result has no command, and `not_recognised` says why if the document
/// has one elsewhere. Profiles (`Profile: X`), comments, list items and headings are labels.
///
/// Commands and settings of clients (`--num-prompts 1000`, `total_requests: 1000`) say how many
/// requests were sent. A block with fewer, but not fewer than half, and with a number that nobody
/// plans (863) has `planned_requests`; where the text since the block before names one number
/// alone, so has one with a multiple of 16 or a power of two.
///
/// A block ends with its rule; where that is missing, with its fence, at a heading or at HTML.
///
/// They also say the load of the block directly below (`--request-rate 8`, `--max-concurrency 16`),
/// as do lines printed before its title (`Traffic request rate: 8.0`), where the block itself does
/// not.
std::vector<PublishedResult> read_published(std::string_view text,
                                            const std::vector<Engine>& engines);

}  // namespace servetune
