// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/command_reader.hpp"
#include "servetune/audit.hpp"
#include "servetune/benchmark_result.hpp"
#include "servetune/outcome.hpp"
#include "servetune/study_file.hpp"

#include <string_view>

namespace servetune {

// What files, workloads and commands say for the audit (audit.hpp).

/// The figures among metrics, by their names; `requested_requests` also from a `success_ratio`.
BenchmarkResult result_of(const Metrics& metrics);

/// Of a serving command: model and quantization, devices, speculation, whether the prefix cache is
/// off. `model` is what is served when the command names none.
///
/// The concepts that it reads: `quantization`, `prefix_cache`, `no_prefix_cache`, `draft_model` and
/// all that begin with `speculative`; of these `speculative_tokens`, `speculative_tree_tokens` and
/// `speculative_ngram_tokens` say how many tokens are guessed. A flag that no engine file has
/// counts as speculation where `speculative` is a part of its name.
void describe(AuditContext& context, const CommandSettings& command, const std::string& model,
              const std::vector<ModelSpec>& known);

/// Whether all goals are times: then a server that keeps up with the rate offered is measured as it
/// should be.
bool compares_times(const Objective& objective);

/// The command that each row of a table was measured with; without words: the row lies outside the
/// study's space. Nothing at all where the table has a parameter that the study does not have.
std::vector<Command> commands_of(const MeasuredTable& table, const StudyFile& study);

/// Audits the measured rows of a study's table, each by itself and those of a workload together,
/// and adds what it finds to their validity. Throws as Catalogue.
void audit_rows(MeasuredTable& table, const StudyFile& study);

}  // namespace servetune
