// SPDX-License-Identifier: Apache-2.0
#include "router.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace simengine {
namespace {

namespace asio = boost::asio;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view router_json_type = "application/json";

Upstream::Request request_to(const std::string& path, const OrderedJson& body,
                             const std::string& authorization) {
    return {.target = path, .body = body.dump(), .authorization = authorization};
}

/// What is none must be kept until it is whole.
bool is_stream(const std::string& content_type) {
    return content_type.starts_with("text/event-stream");
}

std::string as_chunk(std::string_view bytes) {
    return fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
}

}  // namespace

/// A request on its way. It is over once `exchange` is null.
struct Router::Work {
    std::size_t id = 0;
    Exchange* exchange = nullptr;
    std::string path{};
    OrderedJson body{};
    std::string authorization{};
    std::size_t prefill = 0, decode = 0;  ///< which engines
    bool prefilled = false;               ///< the first part has been answered
    bool streams = false;                 ///< the answer has begun
    int status = 0;                       ///< of the decode engine
    std::string type{};
    std::string held{};  ///< of its answer, until it may be passed on
    bool whole = false;  ///< it has ended
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

std::size_t Router::choose(std::vector<Engine>& engines, std::size_t& turn) const {
    std::size_t chosen = turn++ % engines.size();
    for (std::size_t i = 0; i < engines.size() && !command_.takes_turns; ++i)
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
    if (command_.way == RouterCommand::Way::both_at_once) both(work);
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
    work->second = Upstream::send(context_, decode_[work->decode].at.address, request,
                                  {.head =
                                       [work](int status, const std::string& type) {
                                           work->status = status;
                                           work->type = type;
                                       },
                                   .body =
                                       [this, work](std::string_view bytes) {
                                           work->held += bytes;
                                           pass_on(work);
                                       },
                                   .end =
                                       [this, work](const std::string& error) {
                                           if (work->exchange == nullptr) return;
                                           if (!error.empty())
                                               return fail(work, "Decode request failed: " + error);
                                           work->whole = true;
                                           pass_on(work);
                                       }});
}

/// As far as the answer has come, once the prefill engine has done its part; errors of the decode
/// engine do not wait for that.
void Router::pass_on(const Working& work) {
    if (work->exchange == nullptr || work->status == 0) return;
    const bool stream = work->status == 200 && is_stream(work->type);
    if (work->status == 200 && !work->prefilled) return;
    Exchange& exchange = *work->exchange;
    if (!stream) {
        if (!work->whole) return;
        end(work);
        return exchange.answer(work->status, work->type, work->held);
    }
    if (!std::exchange(work->streams, true)) exchange.begin_stream();
    if (work->exchange != nullptr && !work->held.empty()) {
        const std::string bytes = as_chunk(std::exchange(work->held, {}));
        exchange.write(bytes);  // may end the connection, and this work with it
    }
    if (!work->whole || work->exchange == nullptr) return;
    end(work);
    exchange.write("0\r\n\r\n");
    exchange.end_stream();
}

void Router::fail(const Working& work, const std::string& why) {
    Exchange* exchange = work->exchange;
    const bool streams = work->streams;
    end(work);
    if (streams) exchange->break_off();
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

}  // namespace simengine
