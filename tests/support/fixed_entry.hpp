// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/engine/composition.hpp"

#include <string>
#include <utility>

namespace servetune::test {

/// A parameter that a study holds at one value.
inline SpaceEntry fixed(std::string name, Value value) {
    SpaceEntry entry{std::move(name)};
    entry.fixed = true;
    entry.default_value = std::move(value);
    return entry;
}

}  // namespace servetune::test
