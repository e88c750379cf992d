// SPDX-License-Identifier: Apache-2.0
#include "live_server.hpp"

#include "base/present.hpp"
#include "base/text.hpp"
#include "servetune/detail/base/number_text.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <fcntl.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <chrono>
#include <optional>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>

namespace autotune {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t most_connections = 64;
constexpr std::size_t most_readers =
    48;  ///< of events, which never end: the other places are for pages and /metrics
constexpr std::uint32_t most_head_bytes = 8192;
constexpr std::size_t part_bytes = 65536;  ///< of an answer; each has its own time
constexpr std::chrono::seconds request_time{10};
constexpr std::chrono::seconds idle_time{60};
constexpr std::chrono::seconds part_time{30};
constexpr std::chrono::seconds heartbeat{15};
constexpr std::chrono::milliseconds pause_of_accepting{50};
constexpr const char* cookie_name = "autotune_token";

std::string_view view_of(beast::string_view text) { return {text.data(), text.size()}; }

/// Takes the same time wherever they differ.
bool same_secret(std::string_view given, std::string_view known) {
    unsigned difference = given.size() == known.size() ? 0 : 1;
    for (std::size_t i = 0; i < known.size(); ++i) {
        const char c = given.empty() ? '\0' : given[i % given.size()];
        difference |= static_cast<unsigned>(static_cast<unsigned char>(c) ^
                                            static_cast<unsigned char>(known[i]));
    }
    return difference == 0;
}

/// The name of a `Host` header, without its port.
std::string host_in(std::string_view header) {
    return servetune::lower_case(std::string(
        header.substr(0, header.starts_with('[') ? header.find(']') + 1 : header.find(':'))));
}

bool names_this_machine(std::string_view host) {
    if (host == "localhost" || host == "localhost." || host == "[::1]" || host == "::1")
        return true;
    error_code error;
    const auto address = asio::ip::make_address_v4(std::string(host), error);
    return !error && address.is_loopback();
}

/// What a cookie header, or a query, says of a name.
std::string_view named_in(std::string_view text, std::string_view name, char between) {
    while (!text.empty()) {
        const auto end = text.find(between);
        std::string_view one = text.substr(0, end);
        while (one.starts_with(' ')) one.remove_prefix(1);
        if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
            return one.substr(name.size() + 1);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return {};
}

std::string head_of(int status, std::string_view content_type, const std::string& more) {
    return "HTTP/1.1 " + std::to_string(status) + " " +
           std::string(view_of(http::obsolete_reason(static_cast<http::status>(status)))) +
           "\r\nContent-Type: " + std::string(content_type) +
           "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: "
           "DENY\r\n"
           "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n" +
           more;
}

void keep_to_this_program(int descriptor) { (void)fcntl(descriptor, F_SETFD, FD_CLOEXEC); }

}  // namespace

LiveAddress LiveAddress::parse(const std::string& text) {
    LiveAddress result;
    const auto bracket = std::min(text.find(']'), text.size());
    const bool only_port = servetune::integer_of(text).has_value();
    const auto colon = only_port ? 0 : text.find(':', bracket == text.size() ? 0 : bracket);
    std::string host = only_port ? "" : text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (!host.empty()) result.host = host;
    const auto port = only_port            ? servetune::integer_of(text)
                      : colon == text.npos ? std::optional<std::int64_t>(result.port)
                                           : servetune::integer_of(text.substr(colon + 1));
    constexpr std::int64_t last_port = 65535;
    const bool odd = std::any_of(host.begin(), host.end(), [](unsigned char c) {
        return std::isalnum(c) == 0 && c != '.' && c != '-' && c != ':';
    });
    if (!port || *port < 0 || *port > last_port || odd)
        throw servetune::UsageError(
            "'" + text +
            "' is no address to serve a page on: write HOST:PORT, such as 127.0.0.1:8420");
    result.port = static_cast<std::uint16_t>(*port);
    return result;
}

bool LiveAddress::loopback() const { return names_this_machine(host); }

std::string wrong_with_token(const std::string& token) {
    constexpr std::size_t shortest = 16, longest = 256;
    const bool plain = std::all_of(token.begin(), token.end(), [](unsigned char c) {
        return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == '~';
    });
    if (plain && token.size() >= shortest && token.size() <= longest) return "";
    return "a token has 16 to 256 characters, which are letters, digits and - . _ ~";
}

struct LiveServer::State : std::enable_shared_from_this<LiveServer::State> {
    State(Options with, std::function<void(const std::string&, Reply)> to)
        : options(std::move(with)), handle(std::move(to)) {}

    void accept();
    void beat();
    void send_to_readers(const std::shared_ptr<const std::string>& bytes);

    Options options;
    std::function<void(const std::string&, Reply)> handle;
    std::function<void()> arrived{};
    asio::io_context context{1};
    tcp::acceptor acceptor{context};
    asio::steady_timer pause{context};
    asio::steady_timer timer{context};
    std::unordered_set<std::shared_ptr<Connection>> connections{};
    std::atomic<std::size_t> readers = 0;
    std::shared_ptr<const std::string> last_event{};
    std::thread thread{};
};

/// One client. Lives in State::connections until it is closed, and in the operations under way.
/// Used on the server's thread only.
class LiveServer::Connection : public std::enable_shared_from_this<Connection> {
public:
    Connection(tcp::socket socket, const std::shared_ptr<State>& state)
        : stream_(std::move(socket)), state_(state) {}
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;

    void start() { read(request_time); }
    void close();
    /// Only the last of those that have not been sent is kept.
    void event(const std::shared_ptr<const std::string>& bytes) {
        if (!reads_events_) return;
        if (writing_) next_ = bytes;
        else write("", bytes);
    }
    /// Where there are too many already.
    void refuse() {
        keep_alive_ = false;
        answer(plain(503, "too many look at this page already; close some of its windows"));
    }

private:
    static Answer plain(int status, const std::string& text) {
        return {status, "text/plain; charset=utf-8",
                std::make_shared<const std::string>(text + "\n")};
    }

    void read(std::chrono::seconds time);
    void handle();
    void answer(const Answer& answer, const std::string& more = "");
    void begin_events();
    void write(std::string head, std::shared_ptr<const std::string> body);
    void write_on();
    void written();

    beast::tcp_stream stream_;
    std::weak_ptr<State> state_;
    beast::flat_buffer buffer_{2 * most_head_bytes};
    std::optional<http::request_parser<http::empty_body>> parser_{};
    std::string head_{};
    std::shared_ptr<const std::string> body_{};
    std::size_t at_ = 0;  ///< of head and body together
    std::shared_ptr<const std::string> next_{};
    std::array<char, 256> ignored_{};
    bool keep_alive_ = false;
    bool head_only_ = false;
    bool reads_events_ = false;
    bool writing_ = false;
    bool open_ = true;
};

void LiveServer::Connection::read(std::chrono::seconds time) {
    parser_.emplace();
    parser_->header_limit(most_head_bytes);
    stream_.expires_after(time);
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](const error_code& error, std::size_t /*bytes*/) {
            if (!self->open_) return;
            if (!error) return self->handle();
            self->keep_alive_ = false;
            if (error == http::error::end_of_stream || error == http::error::partial_message ||
                error == beast::error::timeout ||
                error.category() == asio::error::get_system_category())
                return self->close();
            const bool large =
                error == http::error::header_limit || error == http::error::buffer_overflow;
            self->answer(plain(large ? 431 : 400,
                               large ? "the request is too large" : "this is no HTTP request"));
        });
}

void LiveServer::Connection::handle() {
    const auto state = state_.lock();
    if (!state) return close();
    const auto& request = servetune::present(parser_).get();
    keep_alive_ = request.keep_alive();
    head_only_ = request.method() == http::verb::head;
    const auto refused = [this](int status, const std::string& why, const std::string& more = "") {
        keep_alive_ = false;  // what may follow is not read
        answer(plain(status, why), more);
    };
    if (request.method() != http::verb::get && !head_only_)
        return refused(405, "this page can only be read: GET and HEAD", "Allow: GET, HEAD\r\n");
    const auto length = parser_->content_length();
    // RFC 9112, section 6.1: what follows a coding that is not known is no request, and `chunked`
    // is known as the last one only.
    if (request.count(http::field::transfer_encoding) > 0 || (length && *length > 0))
        return refused(400, "a request for this page has no body");
    const std::string host = host_in(view_of(request[http::field::host]));
    if (request.count(http::field::host) != 1)
        return refused(400, "a request names its host, once");
    if (state->options.address.loopback() && !names_this_machine(host))
        return refused(421, "this page is for this machine: ask for it as 127.0.0.1 or localhost");
    const std::string_view target = view_of(request.target());
    if (!target.starts_with('/')) return refused(400, "this is no path");
    const std::string path(target.substr(0, target.find('?')));
    // As a place to go to it would be another host: //evil.example, and browsers read a backslash
    // as a slash.
    if (path.starts_with("//") || path.find('\\') != std::string::npos)
        return refused(400, "this is no path");
    const std::string_view query =
        path.size() < target.size() ? target.substr(path.size() + 1) : std::string_view();
    if (const std::string& token = state->options.token; !token.empty()) {
        const std::string_view authorization = view_of(request[http::field::authorization]);
        constexpr std::string_view bearer = "Bearer ";
        const std::string_view said = authorization.starts_with(bearer)
                                          ? authorization.substr(bearer.size())
                                          : std::string_view();
        const bool by_query = same_secret(named_in(query, "token", '&'), token);
        if (by_query &&
            path !=
                "/events") {  // from the address line into a cookie, so that it is in no history
            const std::string cookie =
                std::string(cookie_name) + "=" + token + "; Path=/; HttpOnly; SameSite=Lax";
            return answer(plain(303, "the token is kept in a cookie"),
                          "Location: " + path + "\r\nSet-Cookie: " + cookie + "\r\n");
        }
        if (!by_query && !same_secret(said, token) &&
            !same_secret(named_in(view_of(request[http::field::cookie]), cookie_name, ';'), token))
            return refused(401,
                           "this page wants its token: add ?token=TOKEN to its address, or send it "
                           "as Authorization: Bearer",
                           "WWW-Authenticate: Bearer\r\n");
    }
    if (path == "/events") return begin_events();
    // Not read on before it is answered.
    state->handle(path, [weak = weak_from_this(), of = state_](const Answer& made) {
        if (const auto alive = of.lock())
            asio::post(alive->context, [weak, made] {
                if (const auto self = weak.lock(); self && self->open_) self->answer(made);
            });
    });
}

void LiveServer::Connection::answer(const Answer& made, const std::string& more) {
    std::string head =
        head_of(made.status, made.content_type,
                more + (keep_alive_ ? "" : "Connection: close\r\n") +
                    "Content-Length: " + std::to_string(made.body->size()) + "\r\n\r\n");
    write(std::move(head), head_only_ ? nullptr : made.body);
}

void LiveServer::Connection::begin_events() {
    const auto state = state_.lock();
    if (!state) return close();
    keep_alive_ = false;
    if (!head_only_ && state->readers >= most_readers) return refuse();
    const std::string head =
        head_of(200, "text/event-stream; charset=utf-8", "Connection: close\r\n\r\n");
    if (head_only_) return write(head, nullptr);
    reads_events_ = true;
    ++state->readers;
    next_ = state->last_event;
    // A client that leaves is noticed by what it no longer sends.
    stream_.expires_never();
    stream_.async_read_some(
        asio::buffer(ignored_),
        [self = shared_from_this()](const error_code&, std::size_t) { self->close(); });
    write(head, nullptr);
    if (state->arrived) state->arrived();
}

void LiveServer::Connection::write(std::string head, std::shared_ptr<const std::string> body) {
    head_ = std::move(head);
    body_ = std::move(body);
    at_ = 0;
    writing_ = true;
    write_on();
}

void LiveServer::Connection::write_on() {
    if (!open_) return;
    const std::string_view whole = at_ < head_.size() ? std::string_view(head_)
                                   : body_            ? std::string_view(*body_)
                                                      : std::string_view();
    const std::size_t from = at_ < head_.size() ? at_ : at_ - head_.size();
    if (from >= whole.size()) return written();
    const std::string_view part = whole.substr(from, part_bytes);
    stream_.expires_after(part_time);
    stream_.async_write_some(
        asio::buffer(part.data(), part.size()),
        [self = shared_from_this()](const error_code& error, std::size_t bytes) {
            if (error) return self->close();
            self->at_ += bytes;
            self->write_on();
        });
}

void LiveServer::Connection::written() {
    writing_ = false;
    body_.reset();
    if (reads_events_) {
        if (next_) write("", std::exchange(next_, nullptr));
        return;
    }
    if (!keep_alive_) return close();
    read(idle_time);
}

void LiveServer::Connection::close() {
    if (!std::exchange(open_, false)) return;
    const auto self = shared_from_this();
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
    stream_.close();
    const auto state = state_.lock();
    if (!state) return;
    if (reads_events_) --state->readers;
    state->connections.erase(self);
}

void LiveServer::State::accept() {
    acceptor.async_accept([this](const error_code& error, tcp::socket socket) {
        if (!acceptor.is_open()) return;
        if (error) {  // out of descriptors: those that wait are taken when some have ended
            pause.expires_after(pause_of_accepting);
            return pause.async_wait([this](const error_code& stopped) {
                if (!stopped && acceptor.is_open()) accept();
            });
        }
        keep_to_this_program(socket.native_handle());
        const auto connection = std::make_shared<Connection>(std::move(socket), shared_from_this());
        const bool full = connections.size() >= most_connections;
        // One more than there may be is told so; if even those do not go, nothing is said.
        if (connections.size() < 2 * most_connections) {
            connections.insert(connection);
            if (full) connection->refuse();
            else connection->start();
        }
        accept();
    });
}

void LiveServer::State::send_to_readers(const std::shared_ptr<const std::string>& bytes) {
    const auto all = connections;  // who has gone leaves them
    for (const auto& connection : all) connection->event(bytes);
}

void LiveServer::State::beat() {
    timer.expires_after(heartbeat);
    timer.async_wait([this](const error_code& stopped) {
        if (stopped) return;
        send_to_readers(std::make_shared<const std::string>(": still here\n\n"));
        beat();
    });
}

LiveServer::LiveServer(const Options& options,
                       std::function<void(const std::string&, Reply)> handle)
    : state_(std::make_shared<State>(options, std::move(handle))) {
    const LiveAddress& address = options.address;
    error_code error;
    tcp::resolver resolver(state_->context);
    const auto found =
        resolver.resolve(address.host, std::to_string(address.port), tcp::resolver::passive, error);
    if (error || found.begin() == found.end())
        throw servetune::IoError("cannot serve a page on '" + address.host +
                                 "': there is no such address here (" + error.message() + ")");
    const tcp::endpoint endpoint = found.begin()->endpoint();
    tcp::acceptor& acceptor = state_->acceptor;
    acceptor.open(endpoint.protocol(), error);
    if (!error) keep_to_this_program(acceptor.native_handle());
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return;
    const bool taken = error == asio::error::address_in_use;
    throw servetune::IoError(
        "cannot serve a page on " + address.host + ":" + std::to_string(address.port) + ": " +
        (taken ? "the port is taken; choose another, or port 0 for any that is free"
               : error.message()));
}

LiveServer::~LiveServer() {
    asio::post(state_->context, [state = state_.get()] {
        error_code ignored;
        state->acceptor.close(ignored);
        state->pause.cancel();
        state->timer.cancel();
        const auto all = std::exchange(state->connections, {});
        for (const auto& connection : all) connection->close();
        state->context.stop();
    });
    if (state_->thread.joinable()) state_->thread.join();
}

void LiveServer::start(std::function<void()> arrived) {
    state_->arrived = std::move(arrived);
    state_->accept();
    state_->beat();
    state_->thread = std::thread([state = state_] {
        while (!state->context.stopped()) {
            try {
                state->context.run();
                // NOLINTNEXTLINE(bugprone-empty-catch): no memory for one client; the others stay
            } catch (const std::exception&) {
            }
        }
    });
}

void LiveServer::broadcast(const std::string& event) {
    const auto bytes = std::make_shared<const std::string>("event: state\ndata: " + event + "\n\n");
    asio::post(state_->context, [state = state_.get(), bytes] {
        state->last_event = bytes;
        state->send_to_readers(bytes);
    });
}

std::size_t LiveServer::readers() const { return state_->readers; }

std::string LiveServer::url() const {
    error_code ignored;
    const std::string& host = state_->options.address.host;
    return "http://" + (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" +
           std::to_string(state_->acceptor.local_endpoint(ignored).port()) + "/";
}

}  // namespace autotune
