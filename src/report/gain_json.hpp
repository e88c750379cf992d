// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/decision.hpp"

#include <nlohmann/json.hpp>

namespace servetune {

/// A gain as it is stated. An interval that is not known is null.
inline nlohmann::ordered_json gain_json(const Gain& gain) {
    const FigureScale& scale = gain.scale;
    nlohmann::ordered_json result{
        {"value", scale.stated(gain.value)}, {"low", nullptr}, {"high", nullptr}};
    if (!gain.has_interval()) return result;
    result["low"] = scale.stated(gain.low);
    result["high"] = scale.stated(gain.high);
    return result;
}

}  // namespace servetune
