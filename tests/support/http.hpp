// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace servetune::test {

/// A socket that is closed with it.
class Socket {
public:
    Socket() : id_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
    ~Socket() {
        if (id_ >= 0) close(id_);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    [[nodiscard]] int id() const { return id_; }

private:
    int id_;
};

inline sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/// A port of the loopback that was free a moment ago; 0: there is none.
inline std::uint16_t free_port() {
    const Socket probe;
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (bind(probe.id(), reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
    if (getsockname(probe.id(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    return ntohs(address.sin_port);
}

struct HttpAnswer {
    int status = 0;  ///< 0: nobody answered
    std::string body{};
};

/// One request to a server on the loopback, on a connection of its own. An empty `body`: GET.
inline HttpAnswer http(std::uint16_t port, const std::string& path, const std::string& body = "") {
    const Socket connection;
    const timeval patience{30, 0};
    setsockopt(connection.id(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    sockaddr_in address = loopback(port);
    if (connect(connection.id(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        return {};
    const std::string request =
        (body.empty() ? "GET " : "POST ") + path +
        " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" +
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
        "\r\n\r\n" + body;
    if (send(connection.id(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
        return {};
    std::string answer;
    std::array<char, 65536> buffer{};
    for (ssize_t got = 0; (got = recv(connection.id(), buffer.data(), buffer.size(), 0)) > 0;)
        answer.append(buffer.data(), std::size_t(got));
    const auto head = answer.find("\r\n\r\n");
    if (!answer.starts_with("HTTP/1.") || head == std::string::npos) return {};
    return {std::atoi(answer.c_str() + 9), answer.substr(head + 4)};
}

}  // namespace servetune::test
