// SPDX-License-Identifier: Apache-2.0
#include "http.hpp"

#include "base/present.hpp"
#include "servetune/error.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>
#include <chrono>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace simengine {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t most_unsent_bytes = 4U << 20U;
constexpr std::size_t most_unread_bytes =
    1U << 20U;  ///< of requests that wait behind the one being answered
constexpr std::uint64_t most_body_bytes = 256U << 20U;  ///< a prompt of a hundred million tokens
constexpr std::chrono::milliseconds accept_pause{50};

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string head(int status, std::string_view content_type, bool keep_alive) {
    std::string text = "HTTP/1.1 " + std::to_string(status) + " " +
                       std::string(view(http::obsolete_reason(static_cast<http::status>(status)))) +
                       "\r\nserver: simengine\r\n";
    if (!content_type.empty()) text += "content-type: " + std::string(content_type) + "\r\n";
    if (!keep_alive) text += "connection: close\r\n";
    return text;
}

}  // namespace

struct Server::State : std::enable_shared_from_this<Server::State> {
    State(asio::io_context& io, Handlers to)
        : context(io), handlers(std::move(to)), acceptor(io), pause(io) {}

    void accept();
    void drop();

    asio::io_context& context;
    Handlers handlers;
    tcp::acceptor acceptor;
    asio::steady_timer pause;
    bool in_use = false;
    std::unordered_set<std::shared_ptr<Connection>> connections;
    std::array<char, 65536> input{};  ///< of one read
};

/// One client. Lives in State::connections until it is closed, and in the operations under way.
class Server::Connection final : public Exchange, public std::enable_shared_from_this<Connection> {
public:
    Connection(tcp::socket socket, const std::shared_ptr<State>& state)
        : socket_(std::move(socket)), state_(state) {}
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void start() {
        error_code ignored;
        socket_.set_option(tcp::no_delay(true), ignored);
        socket_.non_blocking(true, ignored);
        wait_to_read();
    }
    void close();

    void answer(int status, std::string_view content_type, std::string_view body) override;
    void begin_stream() override;
    void write(std::string_view bytes) override;
    void end_stream() override { finish(); }
    void set_work(std::size_t id) override { work_ = id; }

private:
    using Parser = http::request_parser<http::string_body>;

    void wait_to_read();
    void read();
    void process_later();
    void process();
    void handle();
    void finish();
    void send(std::string_view bytes);
    void flush();

    tcp::socket socket_;
    std::weak_ptr<State> state_;
    std::string in_;  ///< read, not parsed yet
    std::chrono::steady_clock::time_point read_at_{};
    std::string out_;
    std::size_t out_at_ = 0;
    std::optional<Parser> parser_{};
    std::optional<std::size_t> work_{};
    bool answering_ = false;
    bool keep_alive_ = true;
    bool close_when_written_ = false;
    bool waits_to_read_ = false;
    bool waits_to_write_ = false;
    bool open_ = true;
};

// ---- reading

void Server::Connection::wait_to_read() {
    if (waits_to_read_ || !open_ || in_.size() > most_unread_bytes) return;
    waits_to_read_ = true;
    socket_.async_wait(tcp::socket::wait_read,
                       [self = shared_from_this()](const error_code& error) {
                           self->waits_to_read_ = false;
                           if (!error && self->open_) self->read();
                       });
}

void Server::Connection::read() {
    const auto state = state_.lock();
    if (!state) return;
    error_code error;
    const std::size_t got = socket_.read_some(asio::buffer(state->input), error);
    if (error == asio::error::would_block) return wait_to_read();
    // the client has left, or will say nothing more: engines take that for leaving
    if (error) return close();
    in_.append(state->input.data(), got);
    read_at_ = std::chrono::steady_clock::now();
    process_later();
    wait_to_read();
}

/// Not from where it is called: whoever answers may be in the middle of something, answers at once
/// would go ever deeper, and of many requests that come together the last is read when it comes and
/// not when the others have been answered.
void Server::Connection::process_later() {
    if (const auto state = state_.lock())
        asio::post(state->context, [self = shared_from_this()] {
            if (self->open_ && !self->answering_) self->process();
            self->wait_to_read();
        });
}

/// Parses what has been read, as far as there is no answer under way.
void Server::Connection::process() {
    while (open_ && !answering_ && !in_.empty()) {
        if (!parser_) {
            parser_.emplace();
            parser_->body_limit(most_body_bytes);
            parser_->eager(true);
        }
        error_code error;
        const bool had_head = parser_->is_header_done();
        const std::size_t used = parser_->put(asio::buffer(in_), error);
        in_.erase(0, used);
        if (error && error != http::error::need_more) {
            keep_alive_ = false;
            answering_ = true;
            return answer(error == http::error::body_limit ? 413 : 400, "text/plain",
                          "Invalid HTTP request received.");
        }
        if (!had_head && parser_->is_header_done() && !parser_->is_done() &&
            view(parser_->get()[http::field::expect]) == "100-continue")
            send("HTTP/1.1 100 Continue\r\n\r\n");
        if (parser_->is_done()) handle();
        else if (used == 0) return;
    }
}

void Server::Connection::handle() {
    auto message = servetune::present(parser_).release();
    parser_.reset();
    keep_alive_ = message.keep_alive();
    answering_ = true;
    const std::string_view target = view(message.target());
    HttpRequest request;
    request.method = view(message.method_string());
    request.path = target.substr(0, target.find('?'));
    request.authorization = view(message[http::field::authorization]);
    request.body = std::move(message.body());
    request.received = read_at_;
    if (const auto state = state_.lock()) state->handlers.handle(request, *this);
}

// ---- writing

void Server::Connection::answer(int status, std::string_view content_type, std::string_view body) {
    std::string bytes = head(status, content_type, keep_alive_);
    bytes += "content-length: " + std::to_string(body.size()) + "\r\n\r\n";
    bytes += body;
    send(bytes);
    finish();
}

void Server::Connection::begin_stream() {
    send(head(200, "text/event-stream; charset=utf-8", keep_alive_) +
         "transfer-encoding: chunked\r\n\r\n");
}

void Server::Connection::write(std::string_view bytes) {
    if (out_.size() - out_at_ > most_unsent_bytes) return close();
    send(bytes);
}

/// At once as far as the socket takes it; the rest when it takes more.
void Server::Connection::send(std::string_view bytes) {
    if (!open_) return;
    if (out_.empty()) {
        error_code error;
        const std::size_t sent =
            socket_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
        if (error && error != asio::error::would_block) return close();
        bytes.remove_prefix(error ? 0 : sent);
        if (bytes.empty()) return;
    }
    out_ += bytes;
    flush();
}

void Server::Connection::flush() {
    if (waits_to_write_ || !open_) return;
    waits_to_write_ = true;
    socket_.async_wait(
        tcp::socket::wait_write, [self = shared_from_this()](const error_code& waited) {
            self->waits_to_write_ = false;
            if (waited || !self->open_) return;
            error_code error;
            const std::size_t sent = self->socket_.write_some(
                asio::buffer(self->out_.data() + self->out_at_, self->out_.size() - self->out_at_),
                error);
            if (error && error != asio::error::would_block) return self->close();
            self->out_at_ += error ? 0 : sent;
            if (self->out_at_ < self->out_.size()) return self->flush();
            self->out_.clear();
            self->out_at_ = 0;
            if (self->close_when_written_) self->close();
        });
}

void Server::Connection::finish() {
    work_.reset();
    answering_ = false;
    if (!open_) return;
    if (!keep_alive_) {
        close_when_written_ = true;
        if (out_.empty()) close();
        return;
    }
    if (!in_.empty()) process_later();
}

void Server::Connection::close() {
    if (!std::exchange(open_, false)) return;
    const auto self = shared_from_this();
    error_code ignored;
    socket_.close(ignored);
    const auto state = state_.lock();
    if (!state) return;
    state->connections.erase(self);
    if (const auto work = std::exchange(work_, std::nullopt)) state->handlers.gone(*work);
}

// ---- accepting

void Server::State::accept() {
    acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
        if (!acceptor.is_open()) return;
        if (!error) {
            const auto connection =
                std::make_shared<Connection>(std::move(socket), shared_from_this());
            connections.insert(connection);
            connection->start();
            return accept();
        }
        // Out of descriptors or memory: those that wait are taken when some have ended.
        pause.expires_after(accept_pause);
        pause.async_wait([this](const error_code& stopped) {
            if (!stopped && acceptor.is_open()) accept();
        });
    });
}

void Server::State::drop() {
    const auto all = std::exchange(connections, {});
    for (const auto& connection : all) connection->close();
}

Server::Server(asio::io_context& context, Handlers handlers)
    : state_(std::make_shared<State>(context, std::move(handlers))) {}

Server::~Server() { close(); }

void Server::bind(const std::string& host, std::uint16_t port) {
    error_code error;
    tcp::resolver resolver(state_->context);
    const auto found = resolver.resolve(
        host, std::to_string(port), tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (error || found.begin() == found.end())
        throw servetune::IoError("cannot find the address of '" + host + "': " + error.message());
    tcp::endpoint endpoint = found.begin()->endpoint();
    for (const auto& one : found)
        if (one.endpoint().protocol() == tcp::v4()) {
            endpoint = one.endpoint();
            break;
        }
    tcp::acceptor& acceptor = state_->acceptor;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    state_->in_use = error == asio::error::address_in_use;
    if (error)
        throw servetune::IoError("cannot take port " + std::to_string(port) + " of " + host + ": " +
                                 error.message());
}

bool Server::port_in_use() const { return state_->in_use; }

std::uint16_t Server::port() const {
    error_code ignored;
    return state_->acceptor.local_endpoint(ignored).port();
}

void Server::listen() {
    error_code error;
    state_->acceptor.listen(asio::socket_base::max_listen_connections, error);
    state_->in_use = error == asio::error::address_in_use;
    if (error)
        throw servetune::IoError("cannot listen on port " + std::to_string(port()) + ": " +
                                 error.message());
    state_->accept();
}

void Server::close() {
    error_code ignored;
    state_->acceptor.close(ignored);
    state_->pause.cancel();
    state_->drop();
}

void Server::drop_connections() { state_->drop(); }

}  // namespace simengine
