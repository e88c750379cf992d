// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace autotune {

/// Where a page is served.
struct LiveAddress {
    std::string host = "127.0.0.1";
    std::uint16_t port = 8420;  ///< 0: any that is free

    /// `127.0.0.1:8420`, `:8420`, `8420`, `localhost`, `[::1]:8420`. Throws UsageError.
    static LiveAddress parse(const std::string& text);
    /// Whether only programs of this machine reach it.
    [[nodiscard]] bool loopback() const;
};

/// A small HTTP server for a page that people only look at: GET and HEAD, nothing else. It has a
/// thread of its own, and nothing that a client does or leaves undone holds up who uses it:
/// requests are at most 8 KiB and have ten seconds to arrive, an answer has thirty seconds for each
/// part of it, there are at most 64 connections, and of events that a slow reader has not taken
/// only the last is kept.
///
/// On the loopback it refuses requests for other hosts: a page of the web that gives its own name
/// this machine's address would otherwise read what is served. With a token it refuses whoever does
/// not know it (`Authorization: Bearer`, a cookie, or once `?token=`, which sets the cookie);
/// tokens are compared in constant time.
class LiveServer {
public:
    struct Answer {
        int status = 200;
        std::string content_type{};
        std::shared_ptr<const std::string> body{};
    };
    /// Any thread may call it, once.
    using Reply = std::function<void(Answer)>;
    struct Options {
        LiveAddress address{};
        std::string token{};  ///< empty: nobody is asked for one
    };

    /// Takes the port. `handle` gets a path on the server's thread, and may answer later; `/events`
    /// is not asked for. Throws IoError: the port is taken, there is no such address.
    LiveServer(const Options& options,
               std::function<void(const std::string& path, Reply reply)> handle);
    /// Ends all connections.
    ~LiveServer();
    LiveServer(const LiveServer&) = delete;
    LiveServer& operator=(const LiveServer&) = delete;

    /// Begins to answer. `arrived` is called on the server's thread when somebody begins to read
    /// `/events`.
    void start(std::function<void()> arrived);
    /// To all who read `/events`: a line of JSON. Any thread.
    void broadcast(const std::string& event);
    /// How many read `/events`. Any thread.
    [[nodiscard]] std::size_t readers() const;
    [[nodiscard]] std::string url() const;

private:
    class Connection;
    struct State;
    std::shared_ptr<State> state_;
};

/// Whether a token can be used: long enough not to be guessed, of characters that need no escape in
/// an address. Empty: it can; else what is wrong.
std::string wrong_with_token(const std::string& token);

}  // namespace autotune
