// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/detail/trial/request_record.hpp"
#include "servetune/outcome.hpp"

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// Failed requests of one kind.
struct FailedRequests {
    /// `timed_out`; of answers that were broken off with their finish reason: `not_finished
    /// (abort)`
    std::string kind;
    std::size_t count = 0;
    std::string error;  ///< of the first one
};

/// The failed requests of each kind, in the order of `RequestEnd`. O(requests).
inline std::vector<FailedRequests> failed_requests(std::span<const RequestRecord> records) {
    std::map<std::pair<RequestEnd, std::string>, FailedRequests> kinds;
    for (const RequestRecord& record : records) {
        if (record.succeeded()) continue;
        const std::string reason =
            record.end == RequestEnd::not_finished ? record.finish_reason.substr(0, 100) : "";
        FailedRequests& kind = kinds[{record.end, reason}];
        if (kind.count++ > 0) continue;
        kind.kind = std::string(name_in(request_ends, record.end)) +
                    (reason.empty() ? "" : " (" + reason + ")");
        kind.error = record.error;
    }
    std::vector<FailedRequests> result;
    for (auto& [key, kind] : kinds) result.push_back(std::move(kind));
    return result;
}

/// How many requests failed, and of each kind how many and the first one's message: `2 of 32
/// requests failed: 2 timed_out: no token within 30 s`; empty: none failed. O(requests).
inline std::string failed_requests_text(std::span<const RequestRecord> records) {
    std::size_t failed = 0;
    std::string text;
    for (const FailedRequests& kind : failed_requests(records)) {
        failed += kind.count;
        text.append(text.empty() ? "" : "; ")
            .append(std::to_string(kind.count) + " " + kind.kind + ": " + kind.error);
    }
    return failed == 0 ? ""
                       : std::to_string(failed) + " of " + std::to_string(records.size()) +
                             " requests failed: " + text;
}

}  // namespace servetune
