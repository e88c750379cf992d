// SPDX-License-Identifier: Apache-2.0
#include "engine_process.hpp"

#include "http.hpp"
#include "service.hpp"

#include "base/present.hpp"
#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>

namespace simengine {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using servetune::log_lines;
using servetune::StartResult;

constexpr std::size_t most_flood_bytes = 256U << 20U;
constexpr unsigned grandchild_seconds = 60;
constexpr rlim_t wanted_descriptors = 65536;

void say(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) fmt::print(stderr, "{}\n", line);
}

/// As many connections as the system lets this process have.
void raise_descriptor_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, wanted_descriptors));
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/// A child that has all our descriptors and does nothing, for a bounded time.
void leave_grandchild() {
    const pid_t child = fork();
    if (child > 0) fmt::print("simengine: process {} keeps the port\n", child);
    if (child != 0) return;
    (void)std::signal(SIGTERM, SIG_IGN);
    (void)std::signal(SIGALRM, SIG_DFL);
    (void)alarm(grandchild_seconds);
    for (;;) pause();
}

class Life {
public:
    Life(const EngineSetup& setup, const Options& options);
    int run();

private:
    // ---- start
    bool take_port();
    bool port_refused(bool in_use, const std::string& host, std::uint16_t port,
                      const servetune::Error& error);
    void begin_start();
    void plan_end_of_start(double seconds);
    void be_ready();
    void listen();
    // ---- load
    void take(const HttpRequest& request, Exchange& exchange);
    // ---- end
    void wait_for_signals();
    void stop();
    void finish(int code);
    [[noreturn]] void die(const std::vector<std::string>& lines) const;

    void after(double seconds, std::function<void()> action);
    void flood();

    const EngineSetup& setup_;
    const Options& options_;
    const Dialect& dialect_;
    std::string host_;
    std::uint16_t port_;
    asio::io_context context_{1};
    asio::signal_set signals_{context_};
    std::unique_ptr<Service> service_{};  ///< once it is ready: a start that fails has no engine
    Server server_;  ///< ends before the service, which it tells of clients that leave
    bool bound_ = false, listening_ = false, ready_ = false, stopping_ = false;
    TimePoint answers_from_{};  ///< 503 before it
    bool from_cache_ = false;   ///< a daemon has its weights
    const bool told_size_ = setup_.engine.cache_size &&
                            setup_.command.value(setup_.engine.cache_size->flag).has_value();
    std::size_t flooded_ = 0;
    int exit_code_ = 0;
};

/// localhost is what trtllm-serve calls the loopback.
std::string host_of(const EngineSetup& setup) {
    return setup.command.value("--host").value_or("127.0.0.1");
}

std::uint16_t port_of(const EngineSetup& setup) {
    const auto given = setup.command.value("--port");
    if (!given) return setup.dialect->port;
    const auto number = servetune::integer_of(*given);
    if (!number || *number < 0 || *number > 65535)
        throw CommandRefused(bad_value_text(*setup.dialect, "--port", *given, "int", {}),
                             setup.dialect->refusal_code);
    return static_cast<std::uint16_t>(*number);
}

Life::Life(const EngineSetup& setup, const Options& options)
    : setup_(setup),
      options_(options),
      dialect_(*setup.dialect),
      host_(host_of(setup)),
      port_(port_of(setup)),
      server_(context_, {.handle = [this](const HttpRequest& request,
                                          Exchange& exchange) { take(request, exchange); },
                         .gone = [this](std::size_t work) { service_->gone(work); }}) {}

// ---- start

int Life::run() {
    if (options_.faults.exit_at_once) {
        say({"RuntimeError: simengine was told to end at once"});
        return *options_.faults.exit_at_once;
    }
    from_cache_ = takes_weights(setup_);
    if (!options_.devices.empty()) {
        const auto count = std::size_t(servetune::present(setup_.cost).settings().devices());
        const std::string why = claim_devices(options_.devices, count,
                                              from_cache_ ? DevicePart::engine : DevicePart::all);
        if (!why.empty()) {
            say({why});
            return 1;
        }
    }
    raise_descriptor_limit();
    wait_for_signals();
    if (options_.faults.flood_log_bytes_per_second > 0) flood();
    if ((dialect_.binds_early || port_ == 0) && !take_port()) return exit_code_;
    if (dialect_.answers_while_loading && options_.faults.listen_late_seconds <= 0) listen();
    begin_start();
    context_.run();
    return exit_code_;
}

/// It ends without the port.
bool Life::port_refused(bool in_use, const std::string& host, std::uint16_t port,
                        const servetune::Error& error) {
    say({in_use ? said(dialect_, dialect_.port_in_use,
                       {{"host", host}, {"port", std::to_string(port)}})
                : error.what()});
    finish(1);
    return false;
}

bool Life::take_port() {
    if (std::exchange(bound_, true)) return true;
    try {
        server_.bind(host_, port_);
        return true;
    } catch (const servetune::IoError& error) {
        return port_refused(server_.port_in_use(), host_, port_, error);
    }
}

void Life::begin_start() {
    const double all =
        std::max(0.0, setup_.start.seconds - (from_cache_ ? seconds_of_weights(setup_) : 0));
    const double seconds = all / options_.start_scale + options_.faults.slow_start_seconds +
                           (told_size_ ? 0 : options_.faults.slow_profiling_seconds);
    if (from_cache_) say({"INFO Mapped 399 tensors from the weight cache daemon (zero_copy mode)"});
    std::vector<std::string> lines = setup_.start.log;
    if (told_size_ && setup_.start.serves)
        std::erase_if(lines, [&](const std::string& line) {
            return line.find(setup_.engine.cache_size->log) != std::string::npos;
        });
    // A start that goes well says what it does while it does it; one that fails says so at its end.
    const std::size_t soon = setup_.start.serves && !lines.empty() ? lines.size() - 1 : 0;
    for (std::size_t i = 0; i < soon; ++i)
        after(seconds * double(i + 1) / double(lines.size()), [this, line = lines[i]] {
            if (!options_.quiet) say({line});
        });
    plan_end_of_start(seconds);
}

void Life::plan_end_of_start(double seconds) {
    const Faults& faults = options_.faults;
    if (faults.exit_at_load)
        return after(seconds / 2, [this] { finish(*options_.faults.exit_at_load); });
    if (faults.oom_then_hang)
        return after(seconds / 2, [this] { say(log_lines(*setup_.cost, "weights")); });
    if (faults.never_ready) return;
    if (told_size_ && faults.told_size_fails)
        return after(seconds, [this] {
            say(log_lines(*setup_.cost, "graphs"));
            finish(1);
        });
    after(seconds, [this] {
        const StartResult& start = setup_.start;
        if (start.serves) return be_ready();
        say(start.log);
        if (!start.cause.empty()) say({"simengine: " + start.cause});
        finish(1);
    });
}

void Life::be_ready() {
    service_ = std::make_unique<Service>(
        context_, ServiceOptions::of(setup_, options_), servetune::present(setup_.cost),
        Service::Hooks{
            .die = [this](const std::string& event) { die(log_lines(*setup_.cost, event)); },
            .drop_all = [this] { server_.drop_connections(); }});
    if (!setup_.start.log.empty() && !options_.quiet) say({setup_.start.log.back()});
    after(options_.faults.listen_late_seconds, [this] {
        ready_ = true;
        answers_from_ =
            Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(options_.faults.answer_503_seconds));
        if (!listening_) listen();
    });
}

void Life::listen() {
    if (!take_port()) return;
    try {
        server_.listen();
    } catch (const servetune::IoError& error) {
        return (void)port_refused(server_.port_in_use(), host_, port_, error);
    }
    listening_ = true;
    if (options_.faults.grandchild_keeps_port) leave_grandchild();
    fmt::print("simengine: listening on http://{}:{}\n", host_, server_.port());
    (void)std::fflush(stdout);
}

// ---- load

void Life::take(const HttpRequest& request, Exchange& exchange) {
    if (!ready_)
        return exchange.answer(503, "application/json",
                               error_json(dialect_, {503, "Loading model", "unavailable_error"}));
    if (answers_from_ > TimePoint() && Clock::now() < answers_from_)
        return exchange.answer(
            503, "application/json",
            error_json(dialect_, {503, "Service Unavailable", "ServiceUnavailableError"}));
    service_->handle(request, exchange);
}

// ---- end

void Life::wait_for_signals() {
    if (options_.faults.ignore_term) (void)std::signal(SIGTERM, SIG_IGN);
    else signals_.add(SIGTERM);
    signals_.add(SIGINT);
    signals_.async_wait([this](const error_code& error, int) {
        if (error) return;
        if (stopping_ || options_.faults.stop_slowly_seconds <= 0) return stop();
        stopping_ = true;
        after(options_.faults.stop_slowly_seconds, [this] { stop(); });
    });
}

void Life::stop() {
    server_.close();
    if (!options_.quiet) say({"INFO:     Shutting down"});
    finish(0);
}

void Life::finish(int code) {
    exit_code_ = code;
    context_.stop();
}

/// No destructor runs: connections end as the system ends them.
void Life::die(const std::vector<std::string>& lines) const {
    say(lines);
    (void)std::fflush(stdout);
    _exit(1);
}

void Life::after(double seconds, std::function<void()> action) {
    const auto timer = std::make_shared<asio::steady_timer>(context_);
    timer->expires_after(
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
    timer->async_wait([timer, action = std::move(action)](const error_code& error) {
        if (!error) action();
    });
}

void Life::flood() {
    constexpr double every_seconds = 0.01;
    const auto bytes =
        std::size_t(std::max(1.0, options_.faults.flood_log_bytes_per_second * every_seconds));
    const std::string line(std::min<std::size_t>(bytes, 1U << 20U) - 1, '#');
    fmt::print(stderr, "{}\n", line);
    flooded_ += bytes;
    if (flooded_ < most_flood_bytes) after(every_seconds, [this] { flood(); });
}

}  // namespace

int live(const EngineSetup& setup, const Options& options) { return Life(setup, options).run(); }

}  // namespace simengine
