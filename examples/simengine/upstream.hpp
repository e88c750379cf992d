// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace simengine {

/// A server that is asked over HTTP.
struct Address {
    std::string host;
    std::uint16_t port = 0;
    [[nodiscard]] std::string text() const { return host + ":" + std::to_string(port); }
};
/// Of `http://HOST:PORT`, HOST perhaps in brackets; without a port 80. Nothing: it is none.
std::optional<Address> address_of(std::string_view url);

/// One request to another server and its answer, on the io_context's thread. It ends with `end`, or
/// when `cancel` is called, after which no handler is.
class Upstream {
public:
    struct Request {
        std::string method = "POST";
        std::string target;  ///< path and query
        std::string body{};
        std::string authorization{};
    };
    struct Handlers {
        std::function<void(int status, const std::string& content_type)> head;
        std::function<void(std::string_view bytes)>
            body;  ///< a piece of it, as it comes, without its framing
        std::function<void(const std::string& error)> end;  ///< empty: the answer is whole
    };
    static std::shared_ptr<Upstream> send(boost::asio::io_context& context, const Address& to,
                                          const Request& request, Handlers handlers);
    virtual ~Upstream() = default;
    virtual void cancel() = 0;
};

/// The same for an answer that is wanted whole; status 0 where there is none, `body` then says why.
std::shared_ptr<Upstream> ask(boost::asio::io_context& context, const Address& to,
                              const Upstream::Request& request,
                              std::function<void(int status, const std::string& body)> answered);

}  // namespace simengine
