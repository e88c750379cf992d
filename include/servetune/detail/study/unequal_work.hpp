// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/standings.hpp"
#include "servetune/strategy.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

namespace servetune {

/// Whether a parameter changes what a model computes, and with it the answers.
inline bool changes_answers(const Parameter& parameter) {
    return parameter.concept_name == "quantization" || parameter.concept_name == "kv_cache_dtype";
}

/// The parameters by which a configuration may answer otherwise than the default, where no
/// measurement of it has compared the answers (`quality_drop`).
std::vector<std::string_view> unchecked_answers(const SearchSpace& space, const Standing& standing);

/// What would gain over the default if requests of other lengths were the same work, beyond three
/// deviations of one measurement; of several the largest gain. Null: nothing.
const Standing* gains_by_other_work(const Problem& problem, const Standings& standings,
                                    const Standing& base);

/// The configuration for whose other lengths a study is inconclusive; null: none. `chosen`: what
/// would be recommended. Where that is the default, one that only seems to gain. Else the chosen
/// one itself, if its answers have another length, it may compute otherwise and nobody compared the
/// answers: a broken quantization looks like that.
const Standing* doubted_for_work(const Problem& problem, const Standings& standings,
                                 const Standing& chosen, const Standing* base);

}  // namespace servetune
