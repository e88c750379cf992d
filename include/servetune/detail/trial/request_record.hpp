// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/enum_names.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace servetune {

/// One request of a workload before it is sent. A function of the workload and its seed; the salt
/// of the run is in the text.
struct PlannedRequest {
    std::string text{};  ///< the user's turn (chat) or the prompt (completions)
    /// what the server should count for `text`, as well as is known; 0: not known
    std::int64_t input_tokens = 0;
    std::int64_t output_tokens = 0;  ///< asked for; 0: as many as the model likes
    double at_seconds = 0;  ///< open loop: scheduled, from the start of the run; 0 in a closed loop
    /// multi_turn: the request whose answer comes before this turn (an earlier index)
    std::optional<std::size_t> follows{};
};

/// How a request ended. Everything but `success` counts as failed.
enum class RequestEnd {
    success,
    not_connected,  ///< refused, no route, name unknown, TLS
    http_error,     ///< a status other than 200 (redirects are not followed)
    reset,          ///< the connection ended in the middle of the answer
    timed_out,      ///< the whole request took too long
    stalled,        ///< no byte for too long
    truncated,      ///< the stream ended without a finish reason
    error_event,    ///< 200, and then an error inside the answer
    malformed,      ///< what came is not what this API sends
    /// the server broke the answer off: finish reason abort, error, content_filter, one not known
    not_finished,
    no_usage,  ///< no token count where one was asked for
    /// end-of-sequence was to be ignored; more tokens than asked for, or the limit came earlier
    wrong_length,
    cancelled  ///< the run was stopped
};

inline constexpr auto request_ends = enum_names<RequestEnd>(
    "success", "not_connected", "http_error", "reset", "timed_out", "stalled", "truncated",
    "error_event", "malformed", "not_finished", "no_usage", "wrong_length", "cancelled");

/// What became of one request. All times in seconds from the start of the run, of a clock that
/// never goes back.
struct RequestRecord {
    std::size_t index = 0;  ///< of its PlannedRequest
    RequestEnd end = RequestEnd::cancelled;
    std::string error{};  ///< what happened, when it failed; never the prompt, never a key
    int http_status = 0;
    std::string finish_reason{};

    double scheduled =
        0;            ///< by the arrival process; in a closed loop the moment a place became free
    double sent = 0;  ///< handed to a connected socket
    std::optional<double> first_token{};  ///< the first read that carried token text
    std::optional<double> last_token{};   ///< the last one
    double done = 0;                      ///< the answer was complete, or failed
    /// seconds between the reads' token chunks; chunks of one read share a stamp: gap 0
    std::vector<float> gaps{};
    std::uint32_t chunks = 0;        ///< events that carried token text
    std::uint32_t empty_chunks = 0;  ///< events of the answer that carried none
    std::uint32_t coalesced_chunks =
        0;  ///< chunks that came in one read with an earlier one of the same answer
    std::optional<std::int64_t> input_tokens{};  ///< as the server counted (`usage`)
    std::optional<std::int64_t>
        cached_tokens{};  ///< of these, from its prefix cache, where it says so
    std::optional<std::int64_t>
        output_tokens{};  ///< as the server counted; absent where it does not count
    std::int64_t hidden_tokens =
        0;  ///< of these, whose text did not come: reasoning that the server keeps
    std::string
        unread_field{};  ///< a field of the answer that has text and is not read; empty: none
    /// of the answer's text, where the server was not asked to count and does not
    std::optional<double> estimated_tokens{};

    [[nodiscard]] bool succeeded() const { return end == RequestEnd::success; }
};

}  // namespace servetune
