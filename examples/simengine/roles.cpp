// SPDX-License-Identifier: Apache-2.0
#include "roles.hpp"

#include "servetune/detail/perf/simulator.hpp"
#include "servetune/value.hpp"

#include <boost/asio/steady_timer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace simengine {
namespace {

namespace asio = boost::asio;

constexpr std::uint16_t sglang_bootstrap_port = 8998;   ///< its server arguments of 0.5.23
constexpr std::uint16_t vllm_side_channel_port = 5600;  ///< its envs.py of 0.32.0

std::string variable(const char* name, const std::string& otherwise) {
    const char* set = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): there is one thread
    return set != nullptr && *set != '\0' ? set : otherwise;
}

constexpr std::string_view before_room = "room=";

}  // namespace

std::uint16_t port_named(const Dialect& dialect, std::string_view by, const std::string& text,
                         std::int64_t least) {
    const auto number = servetune::integer_of(text);
    if (!number || *number < least || *number > 65535)
        throw CommandRefused(bad_value_text(dialect, by, text, "int", {}), dialect.refusal_code);
    return static_cast<std::uint16_t>(*number);
}

EngineRole engine_role_of(const Dialect& dialect, const EngineCommand& command) {
    if (dialect.kind == EngineKind::sglang) {
        const std::string mode = command.value("--disaggregation-mode").value_or("null");
        return mode == "prefill"  ? EngineRole::prefill
               : mode == "decode" ? EngineRole::decode
                                  : EngineRole::whole;
    }
    const auto config =
        dialect.kind == EngineKind::vllm ? command.value("--kv-transfer-config") : std::nullopt;
    if (!config) return EngineRole::whole;
    const auto object = nlohmann::json::parse(*config, nullptr, false);
    const nlohmann::json said =
        object.is_object() ? object.value("kv_role", nlohmann::json()) : nlohmann::json();
    const std::string role = said.is_string() ? said.get<std::string>() : "";
    if (role == "kv_producer") return EngineRole::prefill;
    if (role == "kv_consumer") return EngineRole::decode;
    if (role == "kv_both") return EngineRole::either;
    throw CommandRefused(
        bad_value_text(dialect, "--kv-transfer-config", *config, "JSON with a kv_role", {}),
        dialect.refusal_code);
}

SideChannel side_channel_of(const Dialect& dialect, const EngineCommand& command,
                            const std::string& host) {
    if (dialect.kind == EngineKind::sglang) {
        const auto given = command.value("--disaggregation-bootstrap-port");
        return {host, given ? port_named(dialect, "--disaggregation-bootstrap-port", *given, 1)
                            : sglang_bootstrap_port};
    }
    return {
        variable("VLLM_NIXL_SIDE_CHANNEL_HOST", "localhost"),
        port_named(dialect, "VLLM_NIXL_SIDE_CHANNEL_PORT",
                   variable("VLLM_NIXL_SIDE_CHANNEL_PORT", std::to_string(vllm_side_channel_port)),
                   1)};
}

double cache_transfer_seconds(const servetune::CostModel& cost, std::int64_t tokens) {
    return servetune::RolesApart::joined(cost, 1, cost, 1).seconds_to_move(tokens);
}

void CacheRooms::computed(std::uint64_t room) {
    computed_.insert(room);
    answer(room, 200);
}

void CacheRooms::lost(std::uint64_t room) {
    computed_.erase(room);
    answer(room, 404);
}

/// A room is emptied by the first who comes for it.
void CacheRooms::handle(const HttpRequest& request, Exchange& exchange) {
    const bool named = request.path == "/cache" && request.query.starts_with(before_room);
    const auto room =
        named ? servetune::integer_of(request.query.substr(before_room.size())) : std::nullopt;
    if (!room) return exchange.answer(400, "text/plain", "GET /cache?room=N wanted");
    const auto wanted = static_cast<std::uint64_t>(*room);
    if (computed_.erase(wanted) > 0) return exchange.answer(200, "text/plain", "");
    if (!waits_) return exchange.answer(404, "text/plain", "there is no such cache here");
    waiting_.emplace(next_id_, Waiting{wanted, &exchange});
    exchange.set_work(next_id_++);
}

void CacheRooms::gone(std::size_t work) { waiting_.erase(work); }

void CacheRooms::answer(std::uint64_t room, int status) {
    for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
        if (it->second.room != room) continue;
        Exchange& exchange = *it->second.exchange;
        waiting_.erase(it);
        computed_.erase(room);
        return exchange.answer(status, "text/plain", "");
    }
}

CacheTransfer::CacheTransfer(asio::io_context& context, SideChannel side, bool waits)
    : context_(context),
      side_(std::move(side)),
      rooms_(waits),
      server_(context, {.handle = [this](const HttpRequest& request,
                                         Exchange& exchange) { rooms_.handle(request, exchange); },
                        .gone = [this](std::size_t work) { rooms_.gone(work); }}) {}

void CacheTransfer::listen() {
    server_.bind(side_.host, side_.port);
    server_.listen();
}

void CacheTransfer::offer(std::uint64_t room, bool computed) {
    if (computed) rooms_.computed(room);
    else rooms_.lost(room);
}

void CacheTransfer::fetch(std::size_t work, const Handover& from, double seconds,
                          std::function<void(const std::string& error)> arrived) {
    const Address to{from.host, from.port};
    fetches_[work] =
        ask(context_, to, {.method = "GET", .target = "/cache?room=" + std::to_string(from.room)},
            [this, work, seconds, at = to.text(), arrived = std::move(arrived)](
                int status, const std::string& body) {
                fetches_.erase(work);
                if (status == 0) return arrived(at + ": " + body);
                if (status != 200) return arrived(at + " answers " + std::to_string(status));
                const auto timer = std::make_shared<asio::steady_timer>(context_);
                free_at_ = std::max(free_at_, std::chrono::steady_clock::now()) +
                           std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                               std::chrono::duration<double>(seconds));
                timer->expires_at(free_at_);
                timer->async_wait([timer, arrived](const boost::system::error_code& error) {
                    if (!error) arrived("");
                });
            });
}

void CacheTransfer::give_up(std::size_t work) {
    const auto found = fetches_.find(work);
    if (found == fetches_.end()) return;
    const std::shared_ptr<Upstream> fetch = std::move(found->second);
    fetches_.erase(found);
    fetch->cancel();
}

}  // namespace simengine
