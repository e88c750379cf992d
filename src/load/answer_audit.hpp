// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/request_record.hpp"
#include "servetune/outcome.hpp"

#include <span>

namespace servetune {

/// What only the single answers of a run show, beside `audit`: tokens that were counted and not
/// seen (`unseen`), tokens that the server keeps (`hidden_tokens`), times that run backwards
/// (`order`). O(requests and gaps).
Validity audit_answers(std::span<const RequestRecord> records);

}  // namespace servetune
