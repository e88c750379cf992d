// SPDX-License-Identifier: Apache-2.0
// A router in front of prefill and decode engines: its command, what it does with a request, its
// life.
#include "engine_process.hpp"
#include "http.hpp"

#include "servetune/error.hpp"
#include "servetune/value.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace simengine {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using OrderedJson = nlohmann::ordered_json;
using SteadyClock = std::chrono::steady_clock;

/// An engine behind a router.
struct RoutedEngine {
    Address address{};
    std::uint16_t bootstrap_port = 0;  ///< of a prefill engine that has one
};

/// A router's command: which engines, and how a request passes them.
struct RouterCommand {
    /// sglang_router: both engines are told of a room, and find each other. Else (vllm-router)
    /// prefill answers where its cache is, and decode is told.
    bool both_at_once = false;
    std::string program{};  ///< as its messages call it
    std::string host = "127.0.0.1";
    std::uint16_t port = 30000;
    std::vector<RoutedEngine> prefill{}, decode{};
    double startup_seconds = 600;
};

/// `words`: behind the program's. Throws CommandRefused where the router would refuse them.
RouterCommand read_router(RouterCommand command, std::vector<std::string> words) {
    const auto refuse = [&](const std::string& sentence) {
        return CommandRefused(
            fmt::format("usage: {0} [options]\n{0}: error: {1}\n", command.program, sentence), 2);
    };
    const std::string apart =
        command.both_at_once ? "--pd-disaggregation" : "--vllm-pd-disaggregation";
    bool is_apart = false;
    for (std::size_t at = 0; at < words.size(); ++at) {
        const std::string flag = words[at].substr(0, words[at].find('='));
        if (flag != words[at])
            words.insert(words.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                         words[at].substr(flag.size() + 1));
        const auto take = [&] {
            if (at + 1 >= words.size() || words[at + 1].starts_with("--"))
                throw refuse("argument " + flag + ": expected one argument");
            return words[++at];
        };
        const auto number = [&](const std::string& text, std::int64_t least, std::int64_t most) {
            const auto result = servetune::integer_of(text);
            if (!result || *result < least || *result > most)
                throw refuse(fmt::format("argument {}: invalid int value: '{}'", flag, text));
            return *result;
        };
        constexpr std::int64_t last_port = 65535;
        if (flag == apart) is_apart = true;
        else if (flag == "--host") command.host = take();
        else if (flag == "--port")
            command.port = static_cast<std::uint16_t>(number(take(), 0, last_port));
        else if (flag == "--worker-startup-timeout-secs")
            command.startup_seconds = static_cast<double>(number(take(), 0, 1 << 30));
        else if (flag == "--prefill" || flag == "--decode") {
            const std::string url = take();
            const auto address = address_of(url);
            if (!address)
                throw refuse(
                    fmt::format("argument {}: http://HOST:PORT wanted, got '{}'", flag, url));
            RoutedEngine engine{*address};
            const bool has_port =
                flag == "--prefill" && at + 1 < words.size() && !words[at + 1].starts_with("-");
            if (has_port && words[++at] != "none")
                engine.bootstrap_port = static_cast<std::uint16_t>(number(words[at], 1, last_port));
            (flag == "--prefill" ? command.prefill : command.decode).push_back(engine);
        } else if (flag == "--prometheus-port") (void)take();  // no port for metrics here
        else throw refuse("unrecognized arguments: " + words[at]);
    }
    if (!is_apart)
        throw refuse("this router is copied for prefill and decode apart alone: " + apart +
                     " wanted");
    if (command.prefill.empty() || command.decode.empty())
        throw refuse("at least one --prefill and one --decode wanted");
    return command;
}

constexpr std::string_view router_json_type = "application/json";

Upstream::Request request_to(const std::string& path, const OrderedJson& body,
                             const std::string& authorization) {
    return {.target = path, .body = body.dump(), .authorization = authorization};
}

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
    static std::size_t choose(std::vector<Engine>& engines, std::size_t& turn);

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

/// A request on its way. It is over once `exchange` is null.
struct Router::Work {
    std::size_t id = 0;
    Exchange* exchange = nullptr;
    std::string path{};
    OrderedJson body{};
    std::string authorization{};
    std::size_t prefill = 0, decode = 0;  ///< which engines
    bool prefilled = false;               ///< the first part has been answered
    std::string held{};                   ///< of the decode engine's answer, until it may pass
    bool passes = false;                  ///< some of it has
    bool whole = false;                   ///< it has ended
    std::shared_ptr<Upstream> first{}, second{};
};

Router::Router(asio::io_context& context, const RouterCommand& command, std::uint64_t seed)
    : context_(context), command_(command), rooms_(seed) {
    for (const RoutedEngine& engine : command.prefill) prefill_.push_back({engine});
    for (const RoutedEngine& engine : command.decode) decode_.push_back({engine});
}

Router::~Router() {
    for (const auto& [id, work] : works_)
        for (const auto& upstream : {work->first, work->second})
            if (upstream) upstream->cancel();
}

std::size_t Router::choose(std::vector<Engine>& engines, std::size_t& turn) {
    std::size_t chosen = turn++ % engines.size();
    for (std::size_t i = 0; i < engines.size(); ++i)
        if (engines[i].in_flight < engines[chosen].in_flight) chosen = i;
    ++engines[chosen].in_flight;
    return chosen;
}

void Router::handle(const HttpRequest& request, Exchange& exchange) {
    const std::string& path = request.path;
    if (path == "/health" || path == "/liveness" || path == "/readiness")
        return exchange.answer(200, "text/plain", "OK");
    if (path == "/v1/models" || path == "/get_server_info")
        return look_at(request, exchange, prefill_.front());
    if (path != "/v1/completions" && path != "/v1/chat/completions")
        return exchange.answer(404, "text/plain", "");
    if (request.method != "POST") return exchange.answer(405, "text/plain", "");
    complete(request, exchange);
}

/// What only looks is asked of one engine.
void Router::look_at(const HttpRequest& request, Exchange& exchange, const Engine& engine) {
    auto work = std::make_shared<Work>();
    work->id = next_id_++;
    work->exchange = &exchange;
    works_.emplace(work->id, work);
    exchange.set_work(work->id);
    work->first =
        ask(context_, engine.at.address,
            {.method = "GET", .target = request.path, .authorization = request.authorization},
            [this, work](int status, const std::string& body) {
                Exchange* client = std::exchange(work->exchange, nullptr);
                works_.erase(work->id);
                if (client == nullptr) return;
                if (status == 0) client->answer(503, "text/plain", "no worker answers: " + body);
                else client->answer(status, router_json_type, body);
            });
}

void Router::complete(const HttpRequest& request, Exchange& exchange) {
    ++completions_;
    OrderedJson body = OrderedJson::parse(request.body, nullptr, false);
    if (!body.is_object()) return exchange.answer(400, "text/plain", "the body is no JSON object");
    auto work = std::make_shared<Work>();
    work->id = next_id_++;
    work->exchange = &exchange;
    work->path = request.path;
    work->body = std::move(body);
    work->authorization = request.authorization;
    work->prefill = choose(prefill_, prefill_turn_);
    work->decode = choose(decode_, decode_turn_);
    works_.emplace(work->id, work);
    exchange.set_work(work->id);
    if (command_.both_at_once) both(work);
    else prefill_first(work);
}

/// vLLM's way: the prefill engine is asked for one token and to keep the cache; what it says of
/// that goes to the decode engine with the request as it was.
void Router::prefill_first(const Working& work) {
    OrderedJson body = work->body;
    body["max_tokens"] = 1;
    if (body.contains("max_completion_tokens")) body["max_completion_tokens"] = 1;
    body["stream"] = false;
    body.erase("stream_options");
    body.erase("min_tokens");
    body["kv_transfer_params"] = {{"do_remote_decode", true},    {"do_remote_prefill", false},
                                  {"remote_engine_id", nullptr}, {"remote_block_ids", nullptr},
                                  {"remote_host", nullptr},      {"remote_port", nullptr}};
    prefill(work, request_to(work->path, body, work->authorization),
            [this, work](const std::string& text) {
                const OrderedJson answer = OrderedJson::parse(text, nullptr, false);
                if (!answer.is_object())
                    return fail(work, "Failed to parse prefill response as JSON");
                OrderedJson wanted = work->body;
                if (answer.contains("kv_transfer_params"))
                    wanted["kv_transfer_params"] = answer["kv_transfer_params"];
                decode(work, request_to(work->path, wanted, work->authorization));
            });
}

/// SGLang's way: the same request to both, with a room where they meet.
void Router::both(const Working& work) {
    const RoutedEngine& first = prefill_[work->prefill].at;
    OrderedJson body = work->body;
    body["bootstrap_host"] = first.address.host;
    body["bootstrap_port"] =
        first.bootstrap_port == 0 ? OrderedJson(nullptr) : OrderedJson(first.bootstrap_port);
    body["bootstrap_room"] = rooms_() >> 1U;  // a signed number there
    const Upstream::Request request = request_to(work->path, body, work->authorization);
    prefill(work, request, [this, work](const std::string&) { pass_on(work); });
    decode(work, request);
}

/// `then` is called with an answer that is good; any other makes the request fail.
void Router::prefill(const Working& work, const Upstream::Request& request,
                     std::function<void(const std::string& answer)> then) {
    work->first =
        ask(context_, prefill_[work->prefill].at.address, request,
            [this, work, then = std::move(then)](int status, const std::string& text) {
                if (work->exchange == nullptr) return;
                if (status == 0) return fail(work, "Prefill request failed: " + text);
                if (status != 200)
                    return fail(work, fmt::format("Prefill server error {}: {}", status, text));
                work->prefilled = true;
                --prefill_[work->prefill].in_flight;
                then(text);
            });
}

void Router::decode(const Working& work, const Upstream::Request& request) {
    work->second =
        Upstream::send(context_, decode_[work->decode].at.address, request,
                       {.body =
                            [this, work](std::string_view bytes) {
                                work->held += bytes;
                                pass_on(work);
                            },
                        .end =
                            [this, work](const std::string& error) {
                                if (work->exchange == nullptr) return;
                                if (!error.empty() && !work->passes && work->held.empty())
                                    return fail(work, "Decode request failed: " + error);
                                work->whole = true;
                                pass_on(work);
                            }});
}

/// The bytes of the answer as far as they have come, once the prefill engine has done its part;
/// errors of the decode engine do not wait for that.
void Router::pass_on(const Working& work) {
    constexpr std::string_view good = "HTTP/1.1 200";
    if (work->exchange == nullptr) return;
    if (!work->passes && !work->whole && work->held.size() < good.size()) return;
    if (!work->prefilled && work->held.starts_with(good)) return;
    Exchange& exchange = *work->exchange;
    work->passes = true;
    const std::string bytes = std::exchange(work->held, {});
    if (!bytes.empty()) exchange.write(bytes);  // may end the connection, and this work with it
    if (!work->whole || work->exchange == nullptr) return;
    end(work);
    exchange.end_connection();
}

void Router::fail(const Working& work, const std::string& why) {
    Exchange* exchange = work->exchange;
    const bool passes = work->passes;
    end(work);
    if (passes) exchange->end_connection();
    else exchange->answer(500, "text/plain; charset=utf-8", "Request processing failed: " + why);
}

/// Nothing of it goes on.
void Router::end(const Working& work) {
    work->exchange = nullptr;
    if (!std::exchange(work->prefilled, true)) --prefill_[work->prefill].in_flight;
    --decode_[work->decode].in_flight;
    for (auto* upstream : {&work->first, &work->second})
        if (const auto one = std::exchange(*upstream, nullptr)) one->cancel();
    works_.erase(work->id);
}

void Router::gone(std::size_t id) {
    const auto found = works_.find(id);
    if (found == works_.end()) return;
    const Working work = found->second;
    if (!work->path.empty()) return end(work);
    work->exchange = nullptr;  // one that only looks
    if (work->first) work->first->cancel();
    works_.erase(id);
}

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
        if (!options_.faults.never_ready) look_at_next();
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
        if (options_.faults.die_at_requests > 0 &&
            static_cast<std::int64_t>(router_.completions()) >= options_.faults.die_at_requests) {
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

std::optional<int> route(const Options& options) {
    const std::vector<std::string>& words = options.engine_words;
    RouterCommand command;
    std::ptrdiff_t used = 0;
    if (!words.empty() && base_name(words[0]) == "vllm-router") {
        command.program = "vllm-router";
        used = 1;
    } else if (words.size() > 2 && base_name(words[0]).starts_with("python") && words[1] == "-m" &&
               words[2] == "sglang_router.launch_router") {
        command.both_at_once = true;
        command.program = "launch_router.py";
        used = 3;
    } else return std::nullopt;
    command = read_router(std::move(command), {words.begin() + used, words.end()});
    if (options.faults.exit_at_once) {
        fmt::print(stderr, "RuntimeError: simengine was told to end at once\n");
        return *options.faults.exit_at_once;
    }
    return RouterLife(command, options).run();
}

}  // namespace simengine
