// SPDX-License-Identifier: Apache-2.0
#include "cache_transfer.hpp"

#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace simengine {

namespace asio = boost::asio;

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
