// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prefill and decode apart: which part an engine has, and how a prompt's cache goes from one to the
// other.

#include "completion.hpp"
#include "engine_setup.hpp"
#include "http.hpp"

#include "servetune/detail/perf/cost_model.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

namespace simengine {

/// What an engine does of a request where prefill and decode run apart.
enum class EngineRole { whole, prefill, decode, either };

/// By its flags: SGLang's `--disaggregation-mode`, vLLM's `--kv-transfer-config` (`kv_both` is
/// either, as each request says). Throws CommandRefused where they cannot be read.
EngineRole engine_role_of(const Dialect& dialect, const EngineCommand& command);

/// The port that `text` names, at least `least` (0: any that is free). Throws CommandRefused in the
/// engine's words of `by`, a flag or a variable.
std::uint16_t port_named(const Dialect& dialect, std::string_view by, const std::string& text,
                         std::int64_t least);

/// Where other engines ask for the caches of this one: by flag (SGLang's bootstrap port, 8998) or
/// variable (vLLM's VLLM_NIXL_SIDE_CHANNEL_HOST and _PORT, localhost and 5600).
struct SideChannel {
    std::string host;
    std::uint16_t port;
};
SideChannel side_channel_of(const Dialect& dialect, const EngineCommand& command,
                            const std::string& host);

/// How long the keys and values of so many tokens take from an engine like this one, as the
/// simulator has it (RolesApart). Throws UsageError where the chip's link is not known.
double cache_transfer_seconds(const servetune::CostModel& cost, std::int64_t tokens);

/// The prompts whose cache other engines come for: what the side channel of an engine answers. On
/// the wire `GET /cache?room=N` is 200 once the prompt is computed, 404 where the room is gone. It
/// stands for the engines' own ways (NIXL, Mooncake), which are not HTTP.
class CacheRooms {
public:
    /// `waits`: who asks before the prompt has come is answered later (SGLang); else 404 (vLLM).
    explicit CacheRooms(bool waits) : waits_(waits) {}

    void computed(std::uint64_t room);
    /// It will never be: those who wait for it are told.
    void lost(std::uint64_t room);
    void handle(const HttpRequest& request, Exchange& exchange);
    /// Whoever waited for an answer has left.
    void gone(std::size_t work);

private:
    struct Waiting {
        std::uint64_t room;
        Exchange* exchange;
    };
    void answer(std::uint64_t room, int status);
    bool waits_;
    std::set<std::uint64_t> computed_{};
    std::unordered_map<std::size_t, Waiting> waiting_{};
    std::size_t next_id_ = 1;
};

/// Both ends of what goes from a prefill engine to a decode engine: the side channel, and who comes
/// for a cache to that of another engine.
class CacheTransfer {
public:
    CacheTransfer(boost::asio::io_context& context, SideChannel side, bool waits);

    /// Takes the side channel's port. Throws IoError; `port_in_use`: somebody else has it.
    void listen();
    [[nodiscard]] bool port_in_use() const { return server_.port_in_use(); }
    [[nodiscard]] const SideChannel& side() const { return side_; }

    void offer(std::uint64_t room, bool computed);
    /// `arrived` is told with an empty text when it is here, `seconds` after the other engine had
    /// it (one cache at a time reaches an engine, as in the simulator), or at once why it will not
    /// come.
    void fetch(std::size_t work, const Handover& from, double seconds,
               std::function<void(const std::string& error)> arrived);
    void give_up(std::size_t work);

private:
    boost::asio::io_context& context_;
    SideChannel side_;
    CacheRooms rooms_;
    Server server_;
    std::unordered_map<std::size_t, std::shared_ptr<Upstream>> fetches_{};
    std::chrono::steady_clock::time_point free_at_{};  ///< when the last cache has come
};

}  // namespace simengine
