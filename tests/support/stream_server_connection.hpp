// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stream server's connections: what is read from one and written to it, and the answer that is
// under way. Of the server's own sources only.

#include "support/answers.hpp"
#include "support/behaviour.hpp"
#include "support/stream_server.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>

namespace servetune::test {

inline constexpr std::int64_t second_ns = 1'000'000'000;

inline std::int64_t now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * second_ns + time.tv_nsec;
}

inline std::int64_t in_ns(double seconds) {
    return static_cast<std::int64_t>(std::llround(seconds * 1e9));
}

struct HttpRequest {
    std::string method, path, head, body, behave;
    bool close = false;
};

/// An answer under way.
struct Answer {
    CompletionRequest request;
    AnswerWriter writer;
    RequestTruth truth;
    std::int64_t gap_ns = 0;
    std::int64_t chunk_tokens = 1, chunks = 0, coalesce = 1;
    std::int64_t chunks_sent = 0, tokens_sent = 0;
    const BehaviourWord* breaks = nullptr;
    std::int64_t break_at = 0;
    bool begun = false, close_after = false, endless = false;
    std::uint64_t serial = 0;
};

struct Connection {
    enum class After { keep, close, reset };
    int id = -1;
    std::uint32_t slot = 0, generation = 0;
    std::string in, out;
    std::size_t out_at = 0;
    bool wants_out = false, continued = false;
    After after_out = After::keep;
    std::size_t slow_left = 0,
                slow_bytes = 1;  ///< how much of the answer is still written piece by piece
    std::int64_t slow_pause_ns = 0;
    bool pausing = false;
    bool ready = false;            ///< in the queue of those whose input is looked at
    std::int64_t received_ns = 0;  ///< the last read
    std::unique_ptr<Answer> answer{};
};

}  // namespace servetune::test
