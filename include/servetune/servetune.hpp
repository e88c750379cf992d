// SPDX-License-Identifier: Apache-2.0
#pragma once

// The core, whole: header-only, standard library, Boost headers and Eigen. See README.md, "Headers: start here".

#include "servetune/evaluate/replay.hpp"
#include "servetune/space/neighbours.hpp"
#include "servetune/strategy/bayesian.hpp"
#include "servetune/strategy/exhaustive.hpp"
#include "servetune/strategy/local_search.hpp"
#include "servetune/strategy/quasi_random.hpp"
#include "servetune/strategy/random.hpp"
#include "servetune/strategy/staged.hpp"
#include "servetune/study/study.hpp"
