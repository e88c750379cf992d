// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"

#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// What is wrong with entries of a space (SpaceEntry::name, or `roles`), and with each what.
class EntryErrors : public SpaceError {
public:
    using Each = std::vector<std::pair<std::string, std::string>>;
    explicit EntryErrors(Each each) : SpaceError(text_of_all(each)), each_(std::move(each)) {}
    EntryErrors(std::string entry, std::string what)
        : EntryErrors(Each{{std::move(entry), std::move(what)}}) {}
    [[nodiscard]] const Each& each() const { return each_; }

private:
    static std::string text_of_all(const Each& each) {
        std::string result;
        for (const auto& [entry, what] : each)
            result += (result.empty() ? "'" : "\n'") + entry + "': " + what;
        return result;
    }
    Each each_;
};

}  // namespace servetune
