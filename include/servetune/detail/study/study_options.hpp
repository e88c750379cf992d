// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace servetune {

struct StudyOptions {
    std::uint64_t seed = 0;
    std::vector<std::string>
        report_workloads{};  ///< measured for default and recommendation once the search is over
    /// Seconds since 1970 UTC; empty: the system's clock (`unix_seconds`).
    std::function<double()> now{};
    /// Monotonic seconds, arbitrary epoch, for the lengths of a run and of its trials: setting the
    /// wall clock does not change them. Empty: `now` if that is given, else the system's
    /// (`steady_seconds`).
    std::function<double()> steady{};
    /// Trials are measured in other processes: that this one dies, by `kill -9` say, tells nothing
    /// of them.
    bool measured_elsewhere = false;
    std::size_t default_again_every =
        0;  ///< after so many trials of others (`default_again_is_due`); 0: never
};

}  // namespace servetune
