// SPDX-License-Identifier: Apache-2.0
#include "servetune/engine/port.hpp"

#include "child_group.hpp"

#include "servetune/base/error.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <random>
#include <system_error>
#include <vector>

namespace servetune {
namespace {

namespace fs = std::filesystem;

/// Above the well-known services, below the range that Linux gives to connections by itself (32768 on).
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

/// The lock, or -1 where somebody else has it. Somebody may remove the file between our opening and locking it: then it is not the file any more.
int locked(const fs::path& file) {
    const int lock = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (lock < 0 && errno != EACCES && errno != EPERM && errno != ELOOP)
        throw IoError("cannot make the lock file " + file.string() + ": " + std::generic_category().message(errno));
    struct stat ours {};
    struct stat named {};
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &ours) == 0 && stat(file.c_str(), &named) == 0 &&
        ours.st_ino == named.st_ino)
        return lock;
    if (lock >= 0) close(lock);
    return -1;
}

}  // namespace

ReservedPort::ReservedPort(const fs::path& folder) {
    const std::vector<int> ports = candidates();
    std::random_device chance;  // two tuners that start together must not look at the same ports
    constexpr int tries = 100;
    for (int i = 0; i < tries; ++i) {
        number_ = ports[chance() % ports.size()];
        file_ = folder / ("servetune-port-" + std::to_string(number_) + ".lock");
        lock_ = locked(file_);
        if (lock_ < 0) continue;
        if (can_be_bound(number_)) return;
        unlink(file_.c_str());
        close(lock_);
    }
    throw IoError("no free port: none of " + std::to_string(tries) + " between " + std::to_string(first_port) + " and " +
                  std::to_string(last_port) + " can be locked in " + folder.string() + " and bound");
}

ReservedPort::~ReservedPort() {
    unlink(file_.c_str());  // before the lock goes
    close(lock_);
}

bool ReservedPort::listening() const {
    const Descriptor probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const sockaddr_in address = loopback(number_);
    if (connect(probe.id(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return true;
    if (errno != EINPROGRESS) return false;
    pollfd waiting{probe.id(), POLLOUT, 0};
    if (poll(&waiting, 1, 1000) == 0) return true;  // nobody refused: a queue that is full
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(probe.id(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0;
}

}  // namespace servetune
