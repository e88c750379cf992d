// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/space/rule_values.hpp"

namespace servetune {

bool can_have(const Parameter& parameter, const Value& value, bool exactly) {
    if (parameter.contains(value)) return true;
    if (exactly) return false;
    if (parameter.value_when_unset == value) return true;
    const auto number = number_of(value);
    constexpr double widest = 9007199254740992.0;  // 2^53: beyond it not every integer is a double
    if (!number || std::abs(*number) > widest) return false;
    const auto unset =
        parameter.value_when_unset ? number_of(*parameter.value_when_unset) : std::nullopt;
    return unset == number || parameter.contains(*number) ||
           (*number == std::floor(*number) &&
            parameter.contains(static_cast<std::int64_t>(*number)));
}

}  // namespace servetune
