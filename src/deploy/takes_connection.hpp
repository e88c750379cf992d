// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/descriptor.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>
#include <string>

namespace servetune {

/// What comes of connecting there within two seconds, as `errno` says it; 0: somebody takes the
/// connection. ECONNREFUSED: the machine is there, and nobody listens.
inline int connection_error(const std::string& host, const std::string& port) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return EHOSTUNREACH;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> freed(found, freeaddrinfo);
    int result = EHOSTUNREACH;
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
        const Descriptor client(
            socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (connect(client.id(), one->ai_addr, one->ai_addrlen) == 0) return 0;
        result = errno;
        if (result != EINPROGRESS) continue;
        constexpr int within_milliseconds = 2000;
        pollfd waiting{client.id(), POLLOUT, 0};
        socklen_t size = sizeof result;
        if (poll(&waiting, 1, within_milliseconds) != 1) result = ETIMEDOUT;
        else if (getsockopt(client.id(), SOL_SOCKET, SO_ERROR, &result, &size) == 0 && result == 0)
            return 0;
    }
    return result;
}

/// Whether somebody takes a connection there within two seconds.
inline bool takes_connection(const std::string& host, const std::string& port) {
    return connection_error(host, port) == 0;
}

}  // namespace servetune
