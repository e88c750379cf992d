// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "http_exchange.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

namespace simengine {

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

}  // namespace simengine
