// SPDX-License-Identifier: Apache-2.0
#pragma once

// All of servetune::core: header-only, the standard library and Boost headers. Not in it: the strategies of
// servetune::optimizer (strategy/bayesian.hpp, strategy/quasi_random.hpp). docs/reference/headers.md says where to
// start.

#include "servetune/evaluate/replay.hpp"
#include "servetune/space/neighbours.hpp"
#include "servetune/strategy/exhaustive.hpp"
#include "servetune/strategy/local_search.hpp"
#include "servetune/strategy/random.hpp"
#include "servetune/strategy/staged.hpp"
#include "servetune/study/study.hpp"
