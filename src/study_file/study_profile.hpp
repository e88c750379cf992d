// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/study_file.hpp"

#include <map>
#include <string>

namespace servetune {

/// `profile.version` where nothing tells an engine's version.
inline const std::string unknown_version = "unknown";

/// The class of a study's workloads: of each the kind of data, input and output tokens and the load
/// to the nearest power of two, and the kind of arrival, such as `random 64 to 128 tokens,
/// concurrency 16`. Lengths that the data decide are left out.
[[nodiscard]] std::string workload_class(const std::vector<Workload>& workloads);

/// Adds `profile.*` (sqlite_journal.hpp) to the definition of a study that load-tests a server: of
/// which machine, model, engine, version and class of workloads its results are. Of a study that is
/// only read it is as its journal has it. Others have none.
void add_profile(const StudySetup& setup, std::map<std::string, std::string>& definition);

}  // namespace servetune
