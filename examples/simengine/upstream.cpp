// SPDX-License-Identifier: Apache-2.0
#include "upstream.hpp"

#include "servetune/value.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include <array>
#include <limits>
#include <utility>

namespace simengine {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

class Call final : public Upstream, public std::enable_shared_from_this<Call> {
public:
    Call(asio::io_context& context, const Address& to, const Request& request, Handlers handlers)
        : to_(to), resolver_(context), socket_(context), handlers_(std::move(handlers)) {
        bytes_ = request.method + " " + request.target + " HTTP/1.1\r\nhost: " + to.text() +
                 "\r\nconnection: close\r\n";
        if (!request.authorization.empty())
            bytes_ += "authorization: " + request.authorization + "\r\n";
        if (request.method == "POST")
            bytes_ += "content-type: application/json\r\ncontent-length: " +
                      std::to_string(request.body.size()) + "\r\n";
        bytes_ += "\r\n" + request.body;
        parser_.body_limit(std::numeric_limits<std::uint64_t>::max());
        parser_.eager(true);
    }

    void start() {
        resolver_.async_resolve(
            to_.host, std::to_string(to_.port),
            [self = shared_from_this()](const error_code& error,
                                        const tcp::resolver::results_type& found) {
                if (self->over(error)) return;
                self->connect(found);
            });
    }
    void cancel() override {
        // One of them may be what calls this: they go when it has returned.
        asio::post(socket_.get_executor(), [handlers = std::exchange(handlers_, {})] {});
        resolver_.cancel();
        error_code ignored;
        socket_.close(ignored);
    }

private:
    void connect(const tcp::resolver::results_type& found) {
        asio::async_connect(
            socket_, found,
            [self = shared_from_this()](const error_code& error, const tcp::endpoint&) {
                if (self->over(error)) return;
                error_code ignored;
                self->socket_.set_option(tcp::no_delay(true), ignored);
                self->write();
            });
    }
    void write() {
        asio::async_write(socket_, asio::buffer(bytes_),
                          [self = shared_from_this()](const error_code& error, std::size_t) {
                              if (self->over(error)) return;
                              self->read_head();
                          });
    }
    void read_head() {
        http::async_read_header(
            socket_, in_, parser_,
            [self = shared_from_this()](const error_code& error, std::size_t) {
                if (self->over(error)) return;
                const auto type = self->parser_.get()[http::field::content_type];
                self->handlers_.head(static_cast<int>(self->parser_.get().result_int()),
                                     std::string(type.data(), type.size()));
                self->read_body();
            });
    }
    void read_body() {
        if (!handlers_.end) return;  // cancelled
        if (parser_.is_done()) return finish("");
        parser_.get().body().data = piece_.data();
        parser_.get().body().size = piece_.size();
        http::async_read_some(
            socket_, in_, parser_,
            [self = shared_from_this()](const error_code& error, std::size_t) {
                if (!self->handlers_.end) return;
                const std::size_t got = self->piece_.size() - self->parser_.get().body().size;
                if (got > 0) self->handlers_.body(std::string_view(self->piece_.data(), got));
                if (error && error != http::error::need_buffer) return (void)self->over(error);
                self->read_body();
            });
    }

    bool over(const error_code& error) {
        if (!handlers_.end) return true;  // cancelled
        if (error) finish(error.message());
        return static_cast<bool>(error);
    }
    void finish(const std::string& error) {
        const Handlers handlers = std::exchange(handlers_, {});
        error_code ignored;
        socket_.close(ignored);
        handlers.end(error);
    }

    const Address to_;
    tcp::resolver resolver_;
    tcp::socket socket_;
    Handlers handlers_;
    std::string bytes_{};  ///< of the request
    boost::beast::flat_buffer in_{};
    http::response_parser<http::buffer_body> parser_{};
    std::array<char, 16384> piece_{};
};

}  // namespace

std::optional<Address> address_of(std::string_view url) {
    constexpr std::string_view scheme = "http://";
    if (!url.starts_with(scheme)) return std::nullopt;
    url.remove_prefix(scheme.size());
    url = url.substr(0, url.find('/'));
    const bool bracketed = url.starts_with('[');
    const auto host_end = bracketed ? url.find(']') : url.rfind(':');
    if (bracketed && host_end == std::string_view::npos) return std::nullopt;
    Address result{std::string(bracketed ? url.substr(1, host_end - 1) : url.substr(0, host_end)),
                   80};
    const std::string_view rest =
        url.substr(std::min(url.size(), bracketed ? host_end + 1 : host_end));
    if (result.host.empty()) return std::nullopt;
    if (rest.empty()) return result;
    const auto port =
        rest.starts_with(':') ? servetune::integer_of(std::string(rest.substr(1))) : std::nullopt;
    if (!port || *port < 1 || *port > 65535) return std::nullopt;
    result.port = static_cast<std::uint16_t>(*port);
    return result;
}

std::shared_ptr<Upstream> Upstream::send(asio::io_context& context, const Address& to,
                                         const Request& request, Handlers handlers) {
    auto call = std::make_shared<Call>(context, to, request, std::move(handlers));
    call->start();
    return call;
}

std::shared_ptr<Upstream> ask(asio::io_context& context, const Address& to,
                              const Upstream::Request& request,
                              std::function<void(int status, const std::string& body)> answered) {
    struct Answer {
        int status = 0;
        std::string body{};
    };
    const auto answer = std::make_shared<Answer>();
    return Upstream::send(
        context, to, request,
        {.head = [answer](int status, const std::string&) { answer->status = status; },
         .body = [answer](std::string_view bytes) { answer->body += bytes; },
         .end =
             [answer, answered = std::move(answered)](const std::string& error) {
                 if (error.empty()) answered(answer->status, answer->body);
                 else answered(0, error);
             }});
}

}  // namespace simengine
