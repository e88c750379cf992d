// SPDX-License-Identifier: Apache-2.0
#pragma once

// The texts of planned requests: where they begin alike, and which of two plans are the same but
// for their words.

#include "servetune/detail/base/ranges.hpp"
#include "servetune/detail/load/dataset.hpp"
#include "support/test.hpp"
#include "support/tokenize_server.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace servetune::test {

template <class Sequence>
std::size_t common_start(const Sequence& a, const Sequence& b) {
    const std::size_t n = std::min(a.size(), b.size());
    return std::size_t(std::mismatch(a.begin(), a.begin() + std::ptrdiff_t(n), b.begin()).first -
                       a.begin());
}

/// The longest common start, in words, of any two of these texts: of neighbours in sorted order.
inline std::size_t longest_common_start(const std::vector<std::string>& texts) {
    std::vector<std::vector<std::string>> all;
    for (const std::string& text : texts) all.push_back(words_of(text));
    sort(all);
    std::size_t most = 0;
    for (std::size_t i = 1; i < all.size(); ++i)
        most = std::max(most, common_start(all[i - 1], all[i]));
    return most;
}

inline std::vector<std::string> texts_of(const Plan& plan) {
    std::vector<std::string> texts;
    for (const PlannedRequest& request : plan.requests) texts.push_back(request.text);
    return texts;
}

inline Workload random_workload(std::int64_t requests, std::int64_t input, std::int64_t output,
                                double range_ratio = 0) {
    return {.name = "w",
            .dataset = {.input_tokens = input, .output_tokens = output, .range_ratio = range_ratio},
            .requests = requests};
}

inline void same_lengths(const Plan& a, const Plan& b) {
    REQUIRE(a.requests.size() == b.requests.size());
    for (std::size_t i = 0; i < a.requests.size(); ++i) {
        CHECK(a.requests[i].input_tokens == b.requests[i].input_tokens);
        CHECK(a.requests[i].output_tokens == b.requests[i].output_tokens);
        CHECK(a.requests[i].at_seconds == b.requests[i].at_seconds);
        CHECK(words_of(a.requests[i].text).size() == words_of(b.requests[i].text).size());
        CHECK(a.requests[i].text != b.requests[i].text);
    }
    CHECK(a.fingerprint == b.fingerprint);
}

}  // namespace servetune::test
