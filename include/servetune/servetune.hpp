// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a tuning program needs: `Study`, the strategies, and a table as evaluator. Header-only but
// for `Bayesian` and `Study(StudySettings)`, which need servetune::search.
// docs/reference/headers.md lists all headers.

#include "servetune/bayesian.hpp"
#include "servetune/replay.hpp"
#include "servetune/simple_strategies.hpp"
#include "servetune/staged.hpp"
#include "servetune/study.hpp"
