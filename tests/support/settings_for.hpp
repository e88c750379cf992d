// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/perf/serving_settings.hpp"

#include <string>

namespace servetune::test {

/// An engine's settings, all by default but the quantization.
inline ServingSettings settings_for(const std::string& quantization) {
    ServingSettings settings;
    settings.quantization = quantization;
    return settings;
}

}  // namespace servetune::test
