// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/traffic/request_record.hpp"
#include "servetune/trial/outcome.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>

namespace servetune {

/// How many requests failed, and of each way to fail how many and the first one's message: `2 of 32 requests failed: 2
/// timed_out: no token within 30 s`; empty: none failed. O(requests).
inline std::string failed_requests_text(std::span<const RequestRecord> records) {
    std::map<RequestEnd, std::pair<std::size_t, std::string>> ends;
    std::size_t failed = 0;
    for (const RequestRecord& record : records) {
        if (record.succeeded()) continue;
        ++failed;
        auto& [count, example] = ends[record.end];
        if (count++ == 0) example = record.error;
    }
    if (failed == 0) return "";
    std::string text;
    for (const auto& [end, what] : ends)
        text +=
            (text.empty() ? "" : "; ") + std::to_string(what.first) + " " + std::string(name_in(request_ends, end)) + ": " + what.second;
    return std::to_string(failed) + " of " + std::to_string(records.size()) + " requests failed: " + text;
}

}  // namespace servetune
