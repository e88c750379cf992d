// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"

#include "servetune/catalogue.hpp"
#include "servetune/load_test.hpp"

#include <string>

namespace autotune {

/// The load test that a command line asks for: server, workload, options, facts; the workload has
/// its own arrival. Throws UsageError, and IoError where the server does not say what it serves.
[[nodiscard]] servetune::LoadTest load_test_of(const LoadTestArguments& arguments, const servetune::Catalogue& catalogue);

/// How far a load test is, on standard error: on a terminal a line that is overwritten, elsewhere a
/// line now and then.
class LoadProgressLine {
public:
    explicit LoadProgressLine(bool shown);

    /// `what` stands before it.
    void show(const servetune::LoadProgress& at, const std::string& what = "");
    /// A line that stays.
    void say(const std::string& line);
    void end();

private:
    bool shown_;
    bool terminal_;
    double next_seconds_ = 0;
};

}  // namespace autotune
