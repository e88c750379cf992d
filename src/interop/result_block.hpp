// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/interop/published.hpp"

#include <string_view>

namespace servetune {

/// The figures between the title and the last rule of a "Serving Benchmark Result" block: each
/// `label: value` pair, whatever separates the pairs. All labels that vLLM, SGLang and GPUStack
/// ever printed; others go to `unread`.
void read_block(std::string_view block, PublishedResult& into);

}  // namespace servetune
