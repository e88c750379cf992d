// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/behaviour.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace servetune::test {

/// A server on the loopback that speaks OpenAI's HTTP interface as vLLM does, has no model, and
/// knows exactly what it sent when: the load generator's tests and benchmarks compare with that.
/// Each token's text holds the nanoseconds of CLOCK_MONOTONIC at which it was sent. Prompt tokens
/// are the words of the prompt, or the ids.
///
///     StreamServer server({.behaviour = parse_behaviour("first=0.01,gap=0.001")});
///     ... a client of server.url() ...
///     server.wait_for_ended(1, 10);
///     server.truth().at(0).chunk_sent_ns
///
/// A request may behave otherwise than the server (`Behaviour`): by words in the header `X-Behave`,
/// or in the name of the model after "behave:". Unknown words are answered with 400.
///
/// Paths: /v1/chat/completions, /v1/completions, /v1/models, /health, /metrics, GET /truth (JSON),
/// DELETE /truth.
struct StreamServerOptions {
    /// When tokens are due, counted from the request's receipt.
    enum class Pace {
        exact,      ///< first, first + gap, ...
        staggered,  ///< as exact, but each request is later by another share of the gap: the streams' tokens spread evenly
        lockstep  ///< on the ticks of one clock of period gap: the streams' tokens come together, as from an engine's steps
    };
    std::uint16_t port = 0;   ///< 0: any that is free
    std::size_t threads = 1;  ///< event loops; one sends about 80 000 chunks a second
    int core =
        -1;  ///< the first loop runs on this core only, the next one on the next; -1: anywhere
    Pace pace = Pace::exact;
    Behaviour behaviour{};      ///< defaults: first 0.005 s, gap 0.001 s
    std::size_t tokens = 16;    ///< of an answer, when the request does not say
    bool listening = true;      ///< false: the port is taken, and connections are refused
    bool keep_requests = true;  ///< heads and bodies in the truth; off for large runs
};

/// What became of one completion request, as the server knows it.
struct RequestTruth {
    std::uint64_t number = 0;  ///< in order of receipt
    std::string path{}, head{}, body{};
    std::string label{};  ///< the prompt's first word, or its first id
    std::string
        end{};  ///< answered, abandoned (the client left), unfinished (the server stopped), or the word that was obeyed
    int status = 0;
    std::int64_t received_ns = 0;  ///< the request was read to its end
    std::int64_t done_ns = 0;
    std::vector<std::int64_t> chunk_sent_ns{};  ///< of each token chunk, as in its text
    std::int64_t prompt_tokens = 0, output_tokens = 0;
};

struct ServerTotals {
    std::uint64_t connections = 0;  ///< accepted
    std::uint64_t requests = 0;     ///< of any path
    std::uint64_t completions = 0;  ///< received
    std::uint64_t ended = 0;        ///< completions in the truth
    std::uint64_t in_flight = 0;    ///< completions
    std::uint64_t most_in_flight = 0;
    std::uint64_t prompt_tokens = 0, generation_tokens = 0;
    std::uint64_t successes = 0;
};

class StreamServer {
public:
    /// Listens when it returns. Throws std::runtime_error when it cannot.
    explicit StreamServer(const StreamServerOptions& options = {});
    ~StreamServer();
    StreamServer(const StreamServer&) = delete;
    StreamServer& operator=(const StreamServer&) = delete;

    [[nodiscard]] std::uint16_t port() const;
    [[nodiscard]] std::string url() const;
    /// Requests that have ended, in order of receipt.
    [[nodiscard]] std::vector<RequestTruth> truth() const;
    [[nodiscard]] ServerTotals totals() const;
    /// False when fewer have ended after that time.
    bool wait_for_ended(std::uint64_t count, double seconds) const;
    /// Closes everything, in the middle of whatever it does; the port refuses from then on.
    void stop();

private:
    struct Shared;
    class Loop;
    std::unique_ptr<Shared> shared_;
    std::vector<std::unique_ptr<Loop>> loops_;
};

}  // namespace servetune::test
