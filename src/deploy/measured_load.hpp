// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/configuration.hpp"
#include "servetune/load_test.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace servetune {

/// A load test of a trial that was not ended early, for whoever keeps its requests
/// (MeasureOptions::keep).
struct MeasuredLoad {
    std::uint64_t trial = 0;
    std::uint64_t seed = 0;  ///< the trial's
    std::size_t number =
        0;  ///< within the trial, from 0; 0 again where all is measured once more, which replaces what was before
    const Configuration& configuration;
    const std::string& model;  ///< what the server was told to serve
    const std::string&
        called;  ///< the workload's name; with `, load 2` behind it where its load is looked for
    const LoadTest& test;
    const LoadTestResult& result;
};

}  // namespace servetune
