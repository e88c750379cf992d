// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/descriptor.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>

namespace servetune {

/// Whether somebody takes a connection there within two seconds.
inline bool takes_connection(const std::string& host, const std::string& port) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0) return false;
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> freed(found, freeaddrinfo);
    for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
        const Descriptor client(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        if (connect(client.id(), one->ai_addr, one->ai_addrlen) == 0) return true;
        constexpr int within_milliseconds = 2000;
        pollfd waiting{client.id(), POLLOUT, 0};
        int error = 1;
        socklen_t size = sizeof error;
        if (poll(&waiting, 1, within_milliseconds) == 1 && getsockopt(client.id(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
            return true;
    }
    return false;
}

}  // namespace servetune
