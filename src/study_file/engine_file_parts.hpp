// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/engine.hpp"
#include "yaml.hpp"

namespace servetune {

// Readers of the parts of an engine file that not every engine has. All throw ParseError.

WeightCacheDaemon read_weight_cache(const Yaml& node);
PlatformStarts read_started_by(const Yaml& node);
EngineRoles read_roles(const Yaml& node);

}  // namespace servetune
