// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http_exchange.hpp"
#include "router_command.hpp"
#include "upstream.hpp"

#include <boost/asio/io_context.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace simengine {

/// What a router in front of prefill and decode engines does with a request, without a socket of
/// its own. Each request goes to the engine of either role with the fewest in flight. It is not
/// tried again: an engine that does not answer makes it fail (500), one that dies in the middle of
/// its answer ends the client's connection.
class Router {
public:
    Router(boost::asio::io_context& context, const RouterCommand& command, std::uint64_t seed);
    ~Router();
    Router(const Router&) = delete;
    Router& operator=(const Router&) = delete;

    void handle(const HttpRequest& request, Exchange& exchange);
    /// The client whose work this was has left.
    void gone(std::size_t work);
    [[nodiscard]] std::size_t completions() const { return completions_; }

private:
    struct Engine {
        RoutedEngine at;
        std::size_t in_flight = 0;
    };
    struct Work;
    using Working = std::shared_ptr<Work>;

    void complete(const HttpRequest& request, Exchange& exchange);
    void prefill_first(const Working& work);
    void both(const Working& work);
    void prefill(const Working& work, const Upstream::Request& request,
                 std::function<void(const std::string& answer)> then);
    void decode(const Working& work, const Upstream::Request& request);
    void pass_on(const Working& work);
    void look_at(const HttpRequest& request, Exchange& exchange, const Engine& engine);
    void fail(const Working& work, const std::string& why);
    void end(const Working& work);
    [[nodiscard]] std::size_t choose(std::vector<Engine>& engines, std::size_t& turn) const;

    boost::asio::io_context& context_;
    const RouterCommand command_;
    std::vector<Engine> prefill_{};
    std::vector<Engine> decode_{};
    std::size_t prefill_turn_ = 0;
    std::size_t decode_turn_ = 0;
    std::unordered_map<std::size_t, Working> works_{};
    std::size_t next_id_ = 1;
    std::size_t completions_ = 0;
    std::mt19937_64 rooms_;
};

}  // namespace simengine
