// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"

#include "handover/deploy_file.hpp"
#include "servetune/report.hpp"

#include <span>

namespace autotune {

/// What a study recommends, and all that a person is told of it.
struct RecommendedHere {
    const servetune::StudySetup& setup;
    std::span<const servetune::Trial> trials;
    const servetune::Headline& headline;
    const servetune::Recommendation& result;
    const servetune::DeploymentOptions& options;
};

/// `recommend --into FILE` and `--check FILE`. Returns `done`, `answer_is_no` (`--check`: the file
/// says something else), `undecided` (`--check`: it cannot be told), `left_alone` (the file cannot
/// be changed safely, or starts no such engine) or `environment_error` (it cannot be written).
/// Throws UsageError where it starts several and `--at` names none.
int recommend_into(const RecommendArguments& arguments, const RecommendedHere& recommended);

/// `--check http://HOST:PORT`: of a server that runs. Returns `done`, `answer_is_no`,
/// `environment_error` (it does not answer) or `undecided` (it does not tell all settings). Throws
/// UsageError where what is recommended is several servers, or the key's variable is not set.
int check_running(const RecommendArguments& arguments, const RecommendedHere& recommended,
                  const servetune::DeploymentModel& deployment, const servetune::DeploySpec& spec);

}  // namespace autotune
