// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/audit.hpp"

#include <vector>

namespace servetune {

/// The findings `sent_late` (the client sent requests after their schedule) and `rate` (the server
/// ended long after the last arrival). Notes where the load is what is looked for.
Validity falling_behind(const BenchmarkResult& result, const AuditContext& context);

/// Whether every identity lacks a figure that it needs.
bool nothing_checked(const BenchmarkResult& result, const std::vector<NotChecked>& skipped);

}  // namespace servetune
