// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "report_view.hpp"

#include <string>

namespace servetune {

/// The unsound measurements one by one, the suspect ones by what was found. Empty: the audit found
/// nothing.
std::string audit_section(const ReportView& view);

/// What the cost model said before any trial, and once it was fitted to what was measured. Empty:
/// it said nothing.
std::string predicted_section(const ReportView& view);

}  // namespace servetune
