// SPDX-License-Identifier: Apache-2.0
#include "servetune/detail/host/port.hpp"

#include "base/files.hpp"
#include "servetune/error.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <random>
#include <system_error>

namespace servetune {
namespace {

/// Above the well-known services, below the range that Linux gives to connections by itself (32768
/// on).
constexpr int first_port = 20'000;
constexpr int last_port = 31'999;

sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/// The ports that may be had; all of them where the kernel's range leaves none.
std::vector<int> candidates() {
    int low = 0;
    int high = 0;
    std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> low >> high;
    std::vector<int> result;
    for (int port = first_port; port <= last_port; ++port)
        if (port < low || port > high) result.push_back(port);
    if (result.empty())
        for (int port = first_port; port <= last_port; ++port) result.push_back(port);
    return result;
}

bool can_be_bound(int port) {
    const Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = loopback(port);
    return bind(probe.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// A socket with the port's name in the kernel's own list of names (unix(7), "abstract"), which
/// belongs to the same network namespace as the port and is free again when its holder ends,
/// however it ends. None where somebody else has it.
Descriptor port_name_holder(int port) {
    Descriptor holder(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (holder.id() < 0)
        throw IoError("cannot reserve a port: " + std::generic_category().message(errno));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "servetune-port-" + std::to_string(port);
    name.copy(address.sun_path + 1, name.size());  // its first byte stays 0: no file
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    if (bind(holder.id(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return holder;
    if (errno == EADDRINUSE) return Descriptor();
    throw IoError("cannot reserve port " + std::to_string(port) + ": " +
                  std::generic_category().message(errno));
}

/// Where a look at a range begins; the next one begins with the next port.
unsigned next_in_range() {
    static std::atomic<unsigned> next =
        std::random_device()();  // two tuners must not begin with the same port
    return next++;
}

/// Connects within that time; 0, or the error.
int connect_error(const sockaddr_in& address, int patience_milliseconds) {
    const Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (client.id() < 0) return errno;
    if (connect(client.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return 0;
    if (errno != EINPROGRESS) return errno;
    pollfd waiting{client.id(), POLLOUT, 0};
    if (poll(&waiting, 1, patience_milliseconds) == 0) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(client.id(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error;
}

}  // namespace

void require_loopback() {
    const Descriptor server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    const bool listens = server.id() >= 0 && bind(server.id(), any, size) == 0 &&
                         listen(server.id(), 1) == 0 && getsockname(server.id(), any, &size) == 0;
    if (const int error = listens ? connect_error(address, 2000) : errno; error != 0)
        throw IoError(
            "engines cannot be reached here: the loopback, 127.0.0.1, takes no connections: " +
            std::generic_category().message(error) +
            "; set it up (ip link set lo up) and run again");
}

std::string why_cannot_listen(const std::string& host, int port) {
    const std::string where = "port " + std::to_string(port) + " of " + host;
    sockaddr_in address = loopback(port);
    if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
        return "'" + host + "' is no address of IPv4, such as 127.0.0.1";
    const Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    (void)setsockopt(probe.id(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(probe.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
        return "";
    if (errno == EADDRINUSE) return where + " is taken: another program listens there";
    return "nobody can listen on " + where + ": " + std::generic_category().message(errno);
}

/// Of another machine only names can be looked at.
bool ReservedPorts::take(int first, int count, bool here) {
    std::vector<Descriptor> row;
    for (int port = first; port < first + count; ++port) {
        row.push_back(port_name_holder(port));
        if (row.back().id() < 0 || (here && !can_be_bound(port))) return false;
    }
    first_ = first;
    for (Descriptor& holder : row) holders_.push_back(holder.release());
    return true;
}

ReservedPorts::ReservedPorts(int count, std::pair<int, int> range) {
    if (count <= 0) return;
    const bool here = range.first == 0;
    const std::vector<int> ports = here ? candidates() : std::vector<int>{};
    std::random_device chance;  // two tuners that start together must not look at the same ports
    const int rows = here ? 100 : range.second - range.first + 2 - count;
    for (int i = 0; i < rows; ++i) {
        const int first =
            here ? ports[chance() % ports.size()]
                 : range.first + static_cast<int>(next_in_range() % static_cast<unsigned>(rows));
        if ((!here || first + count - 1 <= last_port) && take(first, count, here)) return;
    }
    const std::string none =
        count == 1 ? "no free port" : "no " + std::to_string(count) + " free ports in a row";
    if (here)
        throw IoError(none + ": none of " + std::to_string(rows) + " between " +
                      std::to_string(first_port) + " and " + std::to_string(last_port) +
                      " can be reserved and bound");
    throw IoError(none + ": studies of this machine have taken too many from " +
                  std::to_string(range.first) + " to " + std::to_string(range.second) +
                  "; give more of them");
}

ReservedPorts::~ReservedPorts() {
    for (const int holder : holders_) close(holder);
}

bool ReservedPort::listening() const {
    if (!here_) return false;
    const int error = connect_error(loopback(number()), 1000);
    return error == 0 || error == ETIMEDOUT;  // nobody refused: a queue that is full
}

}  // namespace servetune
