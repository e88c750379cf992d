// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/detail/deploy/measure_options.hpp"

#include <string>
#include <vector>

namespace servetune {

/// What a trial measures, in its order: the workloads of the search, at the configuration's level
/// of load; or the one of this name (`asked`); or the loads of a stress (`stress_workload`): of
/// each workload its longest prompts and answers at all places, then of the busiest one a burst of
/// three times its load after an idle time, and twice its requests. Throws UsageError where there
/// is none.
///
/// Most requests in flight come first, then loads whose pace the client sets, then those whose load
/// is looked for: what is hopeless shows under load. The same for every trial of a study.
std::vector<Workload> workloads_of_trial(const StudyWorkloads& workloads, const std::string& asked,
                                         const Configuration& configuration);

}  // namespace servetune
