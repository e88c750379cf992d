// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/space/configuration.hpp"
#include "servetune/trial/outcome.hpp"

#include <nlohmann/json.hpp>

namespace servetune {

nlohmann::ordered_json to_json(const Value& value);
nlohmann::ordered_json to_json(const Configuration& configuration);
nlohmann::ordered_json to_json(const Metrics& metrics);

}  // namespace servetune
