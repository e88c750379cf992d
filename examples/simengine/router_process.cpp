// SPDX-License-Identifier: Apache-2.0
#include "router_process.hpp"

#include "router.hpp"
#include "server.hpp"

#include "servetune/error.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <unistd.h>

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>

namespace simengine {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds between_looks{100};

class RouterLife {
public:
    RouterLife(const RouterCommand& command, const Options& options)
        : command_(command),
          options_(options),
          router_(context_, command, options.seed),
          server_(context_, {.handle = [this](const HttpRequest& request,
                                              Exchange& exchange) { handle(request, exchange); },
                             .gone = [this](std::size_t work) { router_.gone(work); }}),
          until_(SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                          std::chrono::duration<double>(command.startup_seconds))) {
        for (const auto* engines : {&command.prefill, &command.decode})
            for (const RoutedEngine& engine : *engines) awaited_.push_back(engine.address);
    }

    int run() {
        signals_.add(SIGTERM);
        signals_.add(SIGINT);
        signals_.async_wait([this](const error_code& error, int) {
            if (!error) end(0);
        });
        if (!command_.not_copied.empty() && !options_.quiet)
            fmt::print(stderr, "simengine: given, and without an effect here: {}\n",
                       fmt::join(command_.not_copied, ", "));
        if (!options_.vices.never_ready) look_at_next();
        context_.run();
        return exit_code_;
    }

private:
    void look_at_next() {
        if (awaited_.empty()) return listen();
        ask(context_, awaited_.back(), {.method = "GET", .target = "/health"},
            [this](int status, const std::string&) {
                if (status == 200) {
                    awaited_.pop_back();
                    return look_at_next();
                }
                if (SteadyClock::now() >= until_) {
                    fmt::print(stderr, "ERROR worker http://{} did not become healthy in time\n",
                               awaited_.back().text());
                    return end(1);
                }
                pause_.expires_after(between_looks);
                pause_.async_wait([this](const error_code& error) {
                    if (!error) look_at_next();
                });
            });
    }

    void listen() {
        try {
            server_.bind(command_.host, command_.port);
            server_.listen();
        } catch (const servetune::IoError& error) {
            if (server_.port_in_use())
                fmt::print(stderr, "ERROR Address already in use (os error 98)\n");
            else fmt::print(stderr, "{}\n", error.what());
            return end(1);
        }
        fmt::print("simengine: listening on http://{}:{}\n", command_.host, server_.port());
        (void)std::fflush(stdout);
    }

    void handle(const HttpRequest& request, Exchange& exchange) {
        router_.handle(request, exchange);
        if (options_.vices.die_at_requests > 0 &&
            static_cast<std::int64_t>(router_.completions()) >= options_.vices.die_at_requests) {
            fmt::print(stderr, "thread 'main' panicked: simengine was told to die\n");
            _exit(1);
        }
    }

    void end(int code) {
        exit_code_ = code;
        context_.stop();
    }

    const RouterCommand& command_;
    const Options& options_;
    asio::io_context context_{1};
    asio::signal_set signals_{context_};
    asio::steady_timer pause_{context_};
    Router router_;
    Server server_;  ///< ends before the router, which it tells of clients that leave
    std::vector<Address> awaited_{};
    SteadyClock::time_point until_;
    int exit_code_ = 0;
};

}  // namespace

int route(const RouterCommand& command, const Options& options) {
    if (command.wants_help) {
        fmt::print("usage: {} [options]\n", command.program);
        return 0;
    }
    if (options.vices.exit_at_once) {
        fmt::print(stderr, "RuntimeError: simengine was told to end at once\n");
        return *options.vices.exit_at_once;
    }
    return RouterLife(command, options).run();
}

}  // namespace simengine
