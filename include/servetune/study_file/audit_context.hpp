// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/evaluate/replay.hpp"
#include "servetune/load/audit.hpp"
#include "servetune/results/published.hpp"
#include "servetune/study_file/command_reader.hpp"
#include "servetune/study_file/study_file.hpp"
#include "servetune/traffic/benchmark_result.hpp"
#include "servetune/traffic/workload.hpp"
#include "servetune/trial/outcome.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

// What files, workloads and commands say for the audit (load/audit.hpp).

/// The figures among metrics, by their names; `requested_requests` also from a `success_ratio`.
BenchmarkResult result_of(const Metrics& metrics);

/// Of a serving command: model and quantization, devices, speculation, whether the prefix cache is off.
/// `model` is what is served when the command names none.
void describe(AuditContext& context, const CommandFacts& facts, const std::string& model, const std::vector<ModelSpec>& known);

/// Whether all goals are times: then a server that keeps up with the rate offered is measured as it should be.
bool compares_times(const Objective& objective);

/// The only model that the words of a text name; nothing when they name none or several.
std::optional<std::string> model_in(std::string_view text, const std::vector<ModelSpec>& known);

/// The same, of a document: nothing also where one of its commands (`serve X`, `--model X`, `--model-path X`) names
/// another model, as then the figures may be that model's. Words that stand for a name (`$MODEL`, `<model>`) name none.
std::optional<std::string> model_in_prose(std::string_view text, const std::vector<ModelSpec>& known);

/// Which results of a document are of one load and can be held against each other (`audit_together`): for each the
/// number of its group, from 0. Of one load are those under one label that is no heading, where their lengths, requests
/// in flight and rates may be the same; else, under one heading, those that sent as many requests with the same prompts
/// in the same way. A run that lost requests stays with those that it was sent like.
std::vector<std::size_t> comparable_runs(std::span<const PublishedResult> results);

/// Audits the measured rows of a study's table, each by itself and those of a workload together, and adds what it finds
/// to their validity. Throws as Catalogue.
void audit_rows(MeasuredTable& table, const StudyFile& study);

}  // namespace servetune
