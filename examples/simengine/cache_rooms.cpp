// SPDX-License-Identifier: Apache-2.0
#include "cache_rooms.hpp"

#include "servetune/value.hpp"

#include <string>
#include <string_view>

namespace simengine {
namespace {

constexpr std::string_view before_room = "room=";

}  // namespace

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

}  // namespace simengine
