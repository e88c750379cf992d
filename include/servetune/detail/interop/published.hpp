// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"
#include "servetune/engine.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// One result of a benchmark: a "Serving Benchmark Result" block and what the text around it says
/// it belongs to, or a result of a tool's JSON file (result_file.hpp).
struct PublishedResult {
    std::size_t index = 0;     ///< order in the document, from 0
    std::string tool;          ///< as in docs/reference/result-formats.md; empty: a block that does not say
    std::string tool_version;  ///< as the file says, or as its shape tells (guidellm 0.3: its TPOT means something else)
    std::string model;         ///< as the file names it; empty: it does not say, as the next two
    std::string dataset;
    std::string date;
    std::vector<std::string> sections;                   ///< headings above it, outermost first
    std::vector<std::string> labels;                     ///< what it may be called: profile, comment, list item, heading; nearest first
    std::string arguments;                               ///< the serving command, or only its flags, as printed
    std::string engine;                                  ///< that the command starts, or the nearest title names; empty: not known
    bool arguments_derived = false;                      ///< no command is printed for it: made from an earlier one by the model's name
    bool arguments_inherited = false;                    ///< no command is printed for it: that of an earlier result
    bool arguments_unknown = false;                      ///< nothing says how the engine was started; not the same as "no flags"
    std::map<std::string, std::string> server_settings;  ///< of the server, as a result file says them: name -> value
    bool server_settings_are_given = false;              ///< a person wrote these few; else the server reported all, as it resolved them
    std::string not_recognised;  ///< why the command that stands there is none that we know; then the arguments are unknown
    std::string quantization;    ///< that a title names, in lower case, where the command says nothing of it; empty: none does
    std::string doubt;           ///< what stands above it and contradicts the command
    std::string failure;         ///< of a command that is printed with a crash and no figures: a name of FailureKind
    std::string failure_message;
    BenchmarkResult result;
    std::optional<double> planned_requests;     ///< where the text above says that more were sent than the block has successes
    std::map<std::string, std::string> unread;  ///< what no figure has a place for: lines of a block, fields of a file
};

/// Finds every result block in Markdown or plain text, also where line breaks were lost (fields are
/// found by their names). Also the tables that llama-bench, AIPerf, GenAI-Perf and evalscope print,
/// a result or a result a row.
///
/// What belongs to a block, or to a table of a server's figures, is what stands last before it: a
/// serving command of one of `engines` in a fence or on a line (serving_command.hpp), or a fence of
/// flags; changed by a comment in the fence of the block (`# --max-num-seqs 512`, or one word that
/// the command's flag could have: `# triton`). "Parameters: N/A" takes the flags away. A profile
/// (`Profile: X`), a comment, a list item or a heading are labels.
///
/// Never the command of another block: a command that we do not know, several in one fence, or a
/// title that names another engine leave the blocks behind them without one (`not_recognised`),
/// until the next command that is recognised. Fences of benchmark clients and of downloads say
/// nothing. A line that is one word and is followed by no command names the served model when the
/// model of the last command is of the same family (the same word before the first `-`).
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
///
/// A command whose fence of results has the words of a crash, or an engine's own, and no block
/// becomes a result with `failure` and without figures.
std::vector<PublishedResult> read_published(std::string_view text, const std::vector<Engine>& engines);

}  // namespace servetune
