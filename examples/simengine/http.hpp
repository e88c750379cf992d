// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace simengine {

struct HttpRequest {
    std::string method;
    std::string path;  ///< without what follows a question mark
    std::string body{};
    std::string authorization{};
    std::chrono::steady_clock::time_point received{};  ///< it was read to its end
};

/// The way back to one client, for one request: one whole answer, or a stream. Valid until it has
/// been answered or is gone.
class Exchange {
public:
    virtual void answer(int status, std::string_view content_type, std::string_view body) = 0;
    /// Of a stream of events: its head, then what an AnswerWriter made, then the end.
    virtual void begin_stream() = 0;
    virtual void write(std::string_view bytes) = 0;
    virtual void end_stream() = 0;
    /// Names the work that goes on for it, so that whoever does it can be told when the client
    /// leaves.
    virtual void set_work(std::size_t id) = 0;

protected:
    ~Exchange() = default;
};

/// Listens, reads requests, writes answers; knows nothing of what they say. One thread: that of the
/// io_context.
///
/// Connections are kept alive; requests that come while one is being answered wait. A client that
/// does not read: at most 4 MiB wait for it (an answer is a tenth of that), then the connection is
/// closed and its work ends. Out of descriptors, it stops accepting for a while.
class Server {
public:
    struct Handlers {
        std::function<void(const HttpRequest&, Exchange&)> handle;
        std::function<void(std::size_t work)> gone;  ///< the client of this work has left
    };
    Server(boost::asio::io_context& context, Handlers handlers);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Takes the port (0: any) without listening yet: connections are refused. Throws IoError where
    /// it cannot; `port_in_use` is then true when somebody else has it.
    void bind(const std::string& host, std::uint16_t port);
    [[nodiscard]] bool port_in_use() const;
    [[nodiscard]] std::uint16_t port() const;
    void listen();
    /// Closes the port and all connections, whatever they are at.
    void close();
    void drop_connections();

private:
    class Connection;
    struct State;
    std::shared_ptr<State> state_;
};

}  // namespace simengine
