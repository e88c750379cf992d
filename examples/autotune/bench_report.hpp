// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/load_test.hpp"
#include "servetune/result_file.hpp"

#include <string>
#include <string_view>

namespace autotune {

/// What a load test says to people: the classic block, then what that block cannot say: intervals,
/// histograms, whether the numbers may be believed, how the client itself kept up, why requests
/// failed.
std::string bench_report(const servetune::LoadTestResult& result, const std::string& block);

/// What the audit found, a line each.
std::string findings_lines(const servetune::Validity& validity, std::string_view indent = "  ");

/// Another tool's or an earlier result beside this one.
std::string comparison(const servetune::LoadTestResult& result,
                       const servetune::PublishedResult& other, const std::string& name);

/// The JSON of a result with verdict, findings, intervals and the run's own facts added under
/// `servetune`.
std::string with_verdict(const std::string& json, const servetune::LoadTestResult& result,
                         std::uint64_t salt);

}  // namespace autotune
