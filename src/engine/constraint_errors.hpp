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

/// What is wrong with entries under `space` (SpaceEntry::name, a level of load), each with what is
/// wrong with it.
class EntryErrors : public SpaceError {
public:
    using Each = std::vector<std::pair<std::string, std::string>>;
    explicit EntryErrors(Each each) : SpaceError(text_of_all(each)), each_(std::move(each)) {}
    EntryErrors(const std::string& entry, const std::string& what)
        : EntryErrors(Each{{entry, what}}) {}
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
