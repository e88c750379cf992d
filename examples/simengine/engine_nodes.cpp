// SPDX-License-Identifier: Apache-2.0
#include "engine_nodes.hpp"

#include "engine_role.hpp"

#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <utility>
#include <vector>

namespace simengine {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::uint16_t vllm_master_port = 29501;  ///< config/parallel.py of 0.32.0
constexpr std::chrono::milliseconds between_tries{100};

std::int64_t count_of(const Dialect& dialect, const EngineCommand& command, const std::string& flag,
                      std::int64_t otherwise, std::int64_t least, std::int64_t most) {
    const auto given = command.value(flag);
    if (!given) return otherwise;
    const auto number = servetune::integer_of(*given);
    if (!number || *number < least || *number > most)
        throw CommandRefused(bad_value_text(dialect, flag, *given, "int", {}),
                             dialect.refusal_code);
    return *number;
}

}  // namespace

EnginePart engine_part_of(const Dialect& dialect, const EngineCommand& command) {
    EnginePart result;
    constexpr std::int64_t most_nodes = 10'000;
    result.nodes = count_of(dialect, command, "--nnodes", 1, 1, most_nodes);
    if (result.nodes == 1) return result;
    result.rank = count_of(dialect, command, "--node-rank", 0, 0, result.nodes - 1);
    if (dialect.kind != EngineKind::sglang) {
        const auto port = command.value("--master-port");
        result.leader = {command.value("--master-addr").value_or("127.0.0.1"),
                         port ? port_named(dialect, "--master-port", *port, 1) : vllm_master_port};
        return result;
    }
    const std::string text = command.value("--dist-init-addr").value_or("");
    const auto address = address_of("http://" + text);
    if (text.empty() || !address)
        throw CommandRefused(bad_value_text(dialect, "--dist-init-addr", text, "HOST:PORT", {}),
                             dialect.refusal_code);
    result.leader = *address;
    return result;
}

struct EngineNodes::State : std::enable_shared_from_this<State> {
    State(asio::io_context& its, EnginePart its_part, Handlers its_handlers)
        : context(its),
          part(std::move(its_part)),
          handlers(std::move(its_handlers)),
          acceptor(context),
          timer(context) {}

    tcp::endpoint leader() {
        error_code error;
        tcp::resolver resolver(context);
        const auto found = resolver.resolve(part.leader.host, std::to_string(part.leader.port),
                                            tcp::resolver::numeric_service, error);
        if (error || found.begin() == found.end())
            throw servetune::IoError("cannot find the address of '" + part.leader.host +
                                     "': " + error.message());
        return found.begin()->endpoint();
    }
    void accept() {
        const auto socket = std::make_shared<tcp::socket>(context);
        acceptor.async_accept(*socket,
                              [self = shared_from_this(), socket](const error_code& error) {
                                  if (error) return;
                                  ++self->here;
                                  self->watch(socket);
                                  if (self->here + 1 == self->part.nodes) self->handlers.all_here();
                                  else self->accept();
                              });
    }
    /// Nobody says anything: a reading ends when the other end does.
    void watch(const std::shared_ptr<tcp::socket>& socket) {
        const auto byte = std::make_shared<std::array<char, 1>>();
        socket->async_read_some(asio::buffer(*byte), [self = shared_from_this(), socket, byte](
                                                         const error_code& error, std::size_t) {
            if (error != asio::error::operation_aborted && !self->over)
                self->handlers.lost(self->part.rank == 0 ? "another node of the engine is gone"
                                                         : "the first node of the engine is gone");
        });
        sockets.push_back(socket);
    }
    void join() {
        const auto socket = std::make_shared<tcp::socket>(context);
        socket->async_connect(leader(),
                              [self = shared_from_this(), socket](const error_code& error) {
                                  if (self->over) return;
                                  if (!error) return self->watch(socket);
                                  self->timer.expires_after(between_tries);
                                  self->timer.async_wait([self](const error_code& cancelled) {
                                      if (!cancelled && !self->over) self->join();
                                  });
                              });
    }

    asio::io_context& context;
    const EnginePart part;
    const Handlers handlers;
    tcp::acceptor acceptor;
    asio::steady_timer timer;
    std::vector<std::shared_ptr<tcp::socket>> sockets{};
    std::int64_t here = 0;
    bool over = false;
};

EngineNodes::EngineNodes(asio::io_context& context, EnginePart part, Handlers handlers)
    : state_(std::make_shared<State>(context, std::move(part), std::move(handlers))) {}
EngineNodes::~EngineNodes() { state_->over = true; }

void EngineNodes::listen() {
    error_code error;
    const tcp::endpoint at = state_->leader();
    state_->acceptor.open(at.protocol(), error);
    if (!error) state_->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) state_->acceptor.bind(at, error);
    if (!error) state_->acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error)
        throw servetune::IoError("cannot listen at " + state_->part.leader.text() + ": " +
                                 error.message());
    state_->accept();
}

bool EngineNodes::complete() const { return state_->here + 1 == state_->part.nodes; }

void EngineNodes::join() { state_->join(); }

}  // namespace simengine
