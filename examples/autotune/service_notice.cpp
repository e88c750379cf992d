// SPDX-License-Identifier: Apache-2.0
#include "service_notice.hpp"

#include "base/descriptor.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>

namespace autotune {

ServiceNotice::ServiceNotice() {
    constexpr const char* variable = "NOTIFY_SOCKET";
    if (const char* named = std::getenv(variable))
        socket_ = named;  // NOLINT(concurrency-mt-unsafe): before the first thread
    unsetenv(variable);   // NOLINT(concurrency-mt-unsafe): the same
    if (socket_.size() >= sizeof(sockaddr_un::sun_path) ||
        (!socket_.starts_with('/') && !socket_.starts_with('@')))
        socket_.clear();
}

void ServiceNotice::send(const std::string& state) const {
    if (socket_.empty()) return;
    const servetune::Descriptor from(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    socket_.copy(address.sun_path, socket_.size());
    if (socket_.front() == '@') address.sun_path[0] = '\0';
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
    (void)sendto(from.id(), state.data(), state.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace autotune
