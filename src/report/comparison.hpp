// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/base/redactor.hpp"

#include <string>
#include <vector>

namespace servetune {

/// One question of a gate: a goal or a limit on one workload, or whether both can be measured.
struct GateCheck {
    enum class End {
        passed,
        failed,
        undecided,  ///< more pairs would tell, or the measurements cannot be relied on
        not_judged  ///< the gate ended before, or the baseline breaks the limit too
    };
    std::string name;        ///< the same in every run, without figures: GitLab compares runs by it
    std::string workload{};  ///< empty: of all
    End end = End::undecided;
    std::string text{};                 ///< the figures or the reason, in one line
    std::vector<std::string> log{};     ///< of a failure: lines of the engine's log
    std::vector<std::string> a{}, b{};  ///< the figures that were compared, in pairs
};

/// What `autotune compare --gate` knows of a candidate B against a baseline A.
struct GateReport {
    std::string study{};     ///< of the baseline
    std::string headline{};  ///< the verdict in one sentence
    GateCheck::End end = GateCheck::End::undecided;
    std::vector<GateCheck> checks{};
    std::string a_command{}, b_command{};
    double seconds = 0;  ///< that all trials took
};

/// The gate as JUnit XML, as GitLab and Jenkins read it: one test case for each check, with
/// `failure` where it failed, `error` where it is undecided (GitLab shows `skipped` nowhere in a
/// merge request, and the job has failed), `skipped` where it was not judged. `secrets` are taken
/// out of all texts. Control characters, and bytes that are not UTF-8, stand as in `printable`.
std::string junit_xml(const GateReport& report, const Redactor& secrets);

/// The same for people: the verdict, a table of checks, the commands. For `$GITHUB_STEP_SUMMARY` or
/// a comment.
std::string gate_markdown(const GateReport& report, const Redactor& secrets);

}  // namespace servetune
