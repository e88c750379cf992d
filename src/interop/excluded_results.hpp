// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import.hpp"
#include "servetune/study_file.hpp"

#include <string>
#include <vector>

namespace servetune {

/// Which measured results the study does not search because a rule excludes them, one remark a
/// reason.
std::vector<std::string> excluded_by_rules(const std::vector<PublishedResult>& results,
                                           const Imported& imported, const StudySetup& setup);

}  // namespace servetune
