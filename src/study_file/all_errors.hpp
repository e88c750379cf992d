// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/error.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// What is wrong in several places of a file: its message has a line for each.
class ParseErrors : public ParseError {
public:
    explicit ParseErrors(std::vector<std::string> each)
        : ParseError(text_of_all(each)), each_(std::move(each)) {}
    [[nodiscard]] const std::vector<std::string>& each() const { return each_; }

private:
    static std::string text_of_all(const std::vector<std::string>& each) {
        std::string result;
        for (const std::string& one : each) result += (result.empty() ? "" : "\n") + one;
        return result;
    }
    std::vector<std::string> each_;
};

/// Collects the errors of a file, so that a person sees all of them in one go: its parts are read
/// one by one, and an error in one of them does not hide those of the others.
///
///     AllErrors errors;
///     errors.in([&] { read_this(node); });
///     errors.in([&] { read_that(node); });
///     errors.throw_any();
class AllErrors {
public:
    /// Reads a part; keeps what is wrong with it. False: something is.
    template <class Part>
    bool in(const Part& part) {
        try {
            part();
            return true;
        } catch (const ParseErrors& errors) {
            for (const std::string& one : errors.each()) add(one);
        } catch (const ParseError& error) {
            add(error.what());
        }
        return false;
    }
    [[nodiscard]] bool any() const { return !all_.empty(); }
    /// There are as many as a person reads: further ones are not kept.
    [[nodiscard]] bool full() const { return all_.size() >= most; }
    /// Throws ParseErrors for several, by their lines, ParseError for one, nothing for none.
    void throw_any() const {
        if (all_.empty()) return;
        if (all_.size() == 1) throw ParseError(all_.front());
        std::vector<std::string> sorted = all_;
        if (full())
            sorted.push_back(sorted.back().substr(0, sorted.back().find(": ")) +
                             ": there may be more errors; these are the first");
        std::stable_sort(sorted.begin(), sorted.end(),
                         [](const auto& a, const auto& b) { return place_in(a) < place_in(b); });
        throw ParseErrors(std::move(sorted));
    }

private:
    /// A key that is missing is said once, however many parts miss it.
    void add(const std::string& message) {
        if (!full() && std::find(all_.begin(), all_.end(), message) == all_.end())
            all_.push_back(message);
    }
    /// File and line of a message that begins with `file:line:`.
    static std::pair<std::string, long> place_in(const std::string& message) {
        for (auto colon = message.find(':'); colon != std::string::npos;
             colon = message.find(':', colon + 1)) {
            const auto digits =
                std::min(message.find_first_not_of("0123456789", colon + 1), message.size());
            if (digits == colon + 1 || digits > colon + 10 || digits == message.size() ||
                message[digits] != ':')
                continue;
            return {message.substr(0, colon),
                    std::stol(message.substr(colon + 1, digits - colon - 1))};
        }
        return {message, 0};
    }
    static constexpr std::size_t most = 100;
    std::vector<std::string> all_{};
};

}  // namespace servetune
