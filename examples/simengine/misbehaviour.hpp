// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace simengine {

/// How this engine is to go wrong, for the tests of whoever starts engines. Real seconds, whatever
/// the time scale.
struct Misbehaviour {
    bool never_ready = false;           ///< starts, and goes on starting
    std::optional<int> exit_at_once{};  ///< ends with this code before it does anything
    std::optional<int> exit_at_load{};  ///< ends with this code while it loads its weights
    bool oom_then_hang = false;         ///< says that it is out of memory, and then nothing more
    double slow_start_seconds = 0;      ///< longer
    double listen_late_seconds = 0;     ///< between saying that it is ready and listening
    double answer_503_seconds = 0;      ///< after it listens, whatever is asked
    std::int64_t die_at_requests =
        0;  ///< at the arrival of this completion request the engine dies; 0: never
    std::int64_t die_at_tokens = 0;  ///< after so many tokens
    std::int64_t stall_mid_stream =
        0;  ///< after so many events nothing is sent any more, and nothing closed
    std::int64_t restart_mid_run =
        0;  ///< at this completion request it drops all connections and forgets all counters, once
    std::string wrong_model{};  ///< the name in its list of models and its answers
    bool grandchild_keeps_port =
        false;  ///< a child holds the listening socket and ignores TERM; it ends after 60 s by itself
    bool ignore_term = false;               ///< only KILL ends it (and INT)
    double stop_slowly_seconds = 0;         ///< between TERM and its end
    double flood_log_bytes_per_second = 0;  ///< on standard error, 256 MiB in all
    bool wrong_json = false;  ///< its answers to completions break off in the middle of their JSON
    std::int64_t abort_every =
        0;  ///< every Nth answer ends after two tokens, finish reason `abort`; 0: none
    bool unread_text =
        false;  ///< the text of streamed answers is in `thoughts`, a field that no interface has
    bool bad_usage = false;  ///< it counts half the tokens it has sent

    /// From `WORD` or `WORD=VALUE` each. Throws UsageError for unknown words (nearest first),
    /// missing and senseless values.
    static Misbehaviour of(const std::vector<std::string>& words);
};

/// The words, each with what it does: for --help.
std::string misbehaviour_words();

}  // namespace simengine
