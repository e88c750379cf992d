// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache_rooms.hpp"
#include "completion_request.hpp"
#include "engine_role.hpp"
#include "server.hpp"
#include "upstream.hpp"

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

namespace simengine {

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
