// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "commands.hpp"

#include "interop/deployment_model.hpp"
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
/// says something else) or `left_alone` (the file cannot be changed safely, or starts no such
/// engine). Throws UsageError where it starts several and `--at` names none.
int recommend_into(const RecommendArguments& arguments, const RecommendedHere& recommended);

}  // namespace autotune
