// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "servetune/benchmark_result.hpp"
#include "servetune/detail/base/option_check.hpp"
#include "servetune/detail/trial/request_record.hpp"
#include "servetune/workload.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// A server that speaks OpenAI's HTTP interface, and how to speak to it.
struct Endpoint {
    enum class Api { chat, completions };
    /// `http://127.0.0.1:8000`, also with `/v1` or a path of the interface behind it
    /// (`server_url`). User and password
    std::string url;
    ///< in it are sent and never shown
    std::string model;
    Api api = Api::chat;
    bool stream = true;
    std::string api_key{};  ///< sent as a bearer token; never in a record, an error or a log
    std::vector<std::pair<std::string, std::string>>
        headers{};  ///< their values are as secret as the key
    std::string
        extra_body{};  ///< a JSON object whose keys are added to every request: `{"temperature": 0}`
    std::string certificates{};  ///< a file of certificate authorities to trust beside the system's
    bool verify_certificate = true;
    /// ask for token counts while streaming; an answer without them has failed. False: tokens are
    /// estimated
    bool usage = true;
    /// Fields of ours that this server refuses, and that are not sent for that (`try_request` finds
    /// them): `ignore_eos`, `stream_options`; `max_tokens`, in whose place `max_completion_tokens`
    /// is sent.
    std::vector<std::string> refused_fields{};
    std::string metrics_path = "/metrics";  ///< empty: the server's counters are not read
    /// `prompt_tokens`, `generated_tokens`, `prefix_hit_tokens`, `requests`, `preemptions`,
    /// `drafted_tokens` or `accepted_tokens` -> the server's own name, as an engine file's
    /// `counters` has them; of several for one the first that the server has counts.
    std::vector<std::pair<std::string, std::string>> counters{};
    std::string models_path = "/v1/models";  ///< the list of models
    std::string
        answers_path{};  ///< answers are asked for here; empty: where OpenAI's interface has `api`
    /// Further servers that serve the same with the same flags, as `url`. A request goes to the one
    /// with the fewest in flight, the turns of a conversation to the server of the first. Counters
    /// are the sums over all.
    std::vector<std::string> replicas{};
    /// Servers whose counters are read in place of its own, as `url`: those behind a router that
    /// make the answers. Empty: its own and the replicas'.
    std::vector<std::string> counted{};
};

/// The address before the paths of OpenAI's interface: without `/v1`, `/v1/chat/completions`,
/// `/v1/completions`, `/v1/models` and slashes at its end. Throws UsageError for what is no http://
/// or https:// address.
std::string server_url(const std::string& address);

/// How far a run is.
struct LoadProgress {
    double seconds = 0;
    std::size_t sent = 0, ended = 0, failed = 0, planned = 0;
    std::uint64_t token_chunks = 0;
};

struct LoadOptions {
    std::size_t loops =
        1;  ///< event loops, each a thread of its own; one carries about 50 000 chunks a second
    /// open loop: further requests wait (and their wait is in `sent - scheduled`)
    std::optional<std::size_t> most_in_flight{};
    double request_timeout_seconds = 3600;
    double stall_timeout_seconds = 300;  ///< without any event of the answer; comments are none
    bool ignore_eos = false;       ///< ask for exactly `output_tokens` (`RequestEnd::wrong_length`)
    bool warm_connections = true;  ///< connect before the clock starts
    std::function<void(const LoadProgress&)>
        progress{};  ///< about twice a second, from a thread of the run

    /// What cannot be in these options, for a person; empty: nothing.
    [[nodiscard]] std::string why_invalid() const {
        return OptionCheck()
            .within("loops", double(loops), 1, 1024)
            .at_least("most_in_flight", most_in_flight.value_or(1), 1)
            .seconds("request_timeout_seconds", request_timeout_seconds)
            .seconds("stall_timeout_seconds", stall_timeout_seconds)
            .text();
    }
};

/// What a run gave.
struct LoadRun {
    std::vector<RequestRecord> records;       ///< by index
    double started_at_monotonic_seconds = 0;  ///< CLOCK_MONOTONIC at time 0 of the records
    double duration_seconds =
        0;  ///< from the first scheduled arrival to the last end, failures included
    ClientHealth client{};
    ServerCounters server{};
    std::string library{};  ///< versions of what carried the requests
    /// connections dropped because their server did not end the answer within 0.25 s of `[DONE]`
    std::size_t left_open = 0;
    bool stopped =
        false;  ///< by the stop token: records of requests that had not ended are `cancelled`
};

/// Sends the requests when the arrival process says so and records what comes back
/// (docs/explanation/measuring.md has the definitions).
///
/// Times are CLOCK_MONOTONIC, one stamp for each read of a socket. A failed request is a record
/// with a reason, never an exception. A turn of a conversation is sent once the one it follows has
/// been answered, and fails with it. Redirects are not followed, proxies of the environment not
/// used. Throws UsageError for what cannot be sent: no request, a turn before the one it follows,
/// an extra body that is no JSON object, a URL that is none, control characters in a key or a
/// header, more connections than the system lets a process have.
///
///     const LoadRun run = generate_load({"http://127.0.0.1:8000", "Qwen/Qwen3-8B"}, plan,
///                                       {.kind = Arrival::Kind::concurrency, .in_flight = 64});
LoadRun generate_load(const Endpoint& endpoint, std::span<const PlannedRequest> plan,
                      const Arrival& arrival, const LoadOptions& options = {},
                      const std::stop_token& stop = {});

}  // namespace servetune
