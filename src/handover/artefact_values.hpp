// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "deployment_model.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace servetune {

/// Before and behind the name of a variable in a word; no word has it otherwise.
inline const std::string variable_mark(1, '\0');

/// What every template may name: texts, words with variables in `variable_mark`, JSON as text, and
/// lists of these; `engines` has a row for each server, and the values of the first stand beside
/// it.
nlohmann::ordered_json values_of(const DeploymentModel& deployment);

// What templates of a cluster name beside that. All throw UsageError for an engine that the
// platform does not run, and for what it cannot carry. `beside`: further files; `left_out`: flags.
void add_pod(const DeploymentModel& deployment, nlohmann::ordered_json& values);
void add_llm_d(const DeploymentModel& deployment, nlohmann::ordered_json& values);
void add_kserve(const DeploymentModel& deployment, nlohmann::ordered_json& values);
void add_dynamo(const DeploymentModel& deployment, nlohmann::ordered_json& values);
void add_rayservice(const DeploymentModel& deployment, nlohmann::ordered_json& values);
void add_gpustack(const DeploymentModel& deployment, nlohmann::ordered_json& values);

/// Fills a template of an artefact. Its escapes: `shell`; `unit`, `unit_value` (of Environment=),
/// `unit_program` (of ExecStart=); `yaml`, `json` for words without variables; `compose`,
/// `kubernetes`; `comment`; `go_template`; `raw` for text that is JSON already. A place without one
/// takes plain words. Each throws UsageError for what it cannot hold.
std::string filled_artefact(std::string_view text, const nlohmann::ordered_json& values);
std::string shell_place(const std::string& word);
/// Throws UsageError for what is not UTF-8.
std::string json_text(const nlohmann::ordered_json& value, int blanks = -1);

}  // namespace servetune
