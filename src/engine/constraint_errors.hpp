// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// What is wrong with rules of a study (SpaceDescription::constraints): the index of the rule, and
/// what is wrong with it.
class ConstraintErrors : public SpaceError {
public:
    using Each = std::vector<std::pair<std::size_t, std::string>>;
    explicit ConstraintErrors(Each each) : SpaceError(text_of_all(each)), each_(std::move(each)) {}
    [[nodiscard]] const Each& each() const { return each_; }

private:
    static std::string text_of_all(const Each& each) {
        std::string result;
        for (const auto& [rule, what] : each) result += (result.empty() ? "" : "\n") + what;
        return result;
    }
    Each each_;
};

}  // namespace servetune
