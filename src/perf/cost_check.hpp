// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/engine_traits.hpp"
#include "servetune/detail/perf/hardware_spec.hpp"
#include "servetune/detail/perf/model_spec.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace servetune {

/// `dense` or `experts`.
std::string family_of(const ModelSpec& model);

/// The check whose rows are nearest to this model and chip; null: the engine was never checked.
const CostCheck* check_of(const EngineTraits& traits, const HardwareSpec& chip,
                          const ModelSpec& model);

/// What a prediction of this metric times the lowest and the highest factor of its check is: with
/// 90 % the truth. Nothing: the check says nothing of it.
std::optional<std::pair<double, double>> interval_of(const CostCheck* check,
                                                     std::string_view metric, double predicted);

/// Standard deviation of ln(measured / predicted) of output tokens/s between configurations of one
/// setup, or where that is not known of all rows.
std::optional<double> error_within(const CostCheck* check);

/// `2900 to 5600`, three digits that count; empty: none.
std::string interval_text(const std::optional<std::pair<double, double>>& interval);

/// `412 measured rows of Llama-3.1-8B, Qwen3-32B`, and where they are of another chip or of models
/// of another kind, that.
std::string rows_text(const CostCheck& check, const HardwareSpec& chip, const ModelSpec& model);

}  // namespace servetune
