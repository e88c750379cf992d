// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/fingerprint.hpp"
#include "servetune/detail/load/calibration.hpp"
#include "servetune/detail/trial/request_record.hpp"
#include "servetune/workload.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace servetune {

struct PlanOptions {
    /// Of this run. It goes into the first words of every prompt, so that no prefix cache answers
    /// from an earlier run, and changes no length. Prompts that share a prefix on purpose
    /// (shared_prefix, traces with hash_ids) keep sharing it within a run. Nothing: the same texts
    /// every time, and texts from files as they are.
    std::optional<std::uint64_t> salt{};
    Calibration calibration{};  ///< of the server that is asked; compared runs use one and the same
};

/// The requests of a workload, in the order in which they are sent.
struct Plan {
    std::vector<PlannedRequest> requests;
    bool lengths_exact = false;  ///< `input_tokens` are what the server counts; false: estimated
    std::string
        description{};  ///< for people: where the prompts are from and how their lengths are known
    std::optional<double> mean_input_tokens{};   ///< over the requests whose length is known
    std::optional<double> mean_output_tokens{};  ///< asked for, over the requests that ask
    Fingerprint
        fingerprint{};  ///< of prompts and lengths without the salt: equal fingerprint, equal work
};

/// What a workload sends, a function of the workload, its files, the calibration and the salt.
///
/// - `random`: words drawn one by one; no two prompts have more than a few words in common at their
///   start. Lengths are uniform over floor(n (1 - range_ratio)) .. ceil(n (1 + range_ratio)), as in
///   vLLM's load test.
/// - `sharegpt`: first and second turn of conversations in a JSON array of `{"conversations":
///   [{"from", "value"}, ...]}`. Kept: at least two turns, prompt and answer of at least
///   `min_tokens` (4), prompts of at most `max_prompt_tokens` (1024), together at most
///   `max_total_tokens` (2048): vLLM's filters, on estimated lengths. Drawn by the seed without
///   replacement; what is missing is drawn again from those kept.
/// - `trace`: lengths (and time stamps) of a CSV or JSONL file, in its order: see trace formats in
///   search_spaces/FORMAT.md.
/// - `prompts`: a JSONL file of `prompt`, `text` or `messages`, optionally `output_tokens`; from
///   the start again where it is too short.
/// - `shared_prefix`: `prefix_groups` (1) different prefixes of `prefix_tokens`, each followed by
///   `input_tokens` of its own.
/// - `multi_turn`: conversations of `turns` turns of `input_tokens` each; a turn follows the answer
///   to the one before. In a closed loop with k places k conversations go on at a time.
///
/// Throws UsageError for a workload that says too little or too much (at most a million requests,
/// 500 million tokens of prompts), IoError for a file that cannot be read, ParseError `file:line:`
/// for what is not its format. Files are read as a stream.
///
///     Plan plan = plan_requests(workload, {.salt = 7, .calibration = calibrate(count)});
Plan plan_requests(const Workload& workload, const PlanOptions& options = {});

/// Where a data set's file is: beside the file that names it, else as the current folder sees it.
std::filesystem::path file_of(const Dataset& dataset);

}  // namespace servetune
