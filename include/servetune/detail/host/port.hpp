// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace servetune {

/// Throws IoError where this machine's loopback (127.0.0.1) takes no connections, as in a new
/// network namespace: then no engine can be reached.
void require_loopback();

/// Why no server can begin to listen on this port of `host` (an address of IPv4), for a person;
/// empty: one can. Connections of an earlier server that linger are no reason, as for servers.
[[nodiscard]] std::string why_cannot_listen(const std::string& host, int port);

/// `count` TCP ports of the loopback in a row that nobody listens on, reserved for us: no other
/// study on this machine gets them while this object lives. The engine itself must be able to bind
/// them, so they cannot be bound meanwhile; names in the kernel stand for them, which leave no file
/// behind. The ports are outside of the range that the kernel gives to connections, so that none
/// takes them before the engine does.
class ReservedPorts {
public:
    /// `range`: ports of another machine, from the first to the last; each row that this program
    /// takes is the next of them, so that ports that somebody has there are not taken again. {0,
    /// 0}: of this machine. Throws IoError where none of a hundred rows was free, or none of the
    /// range. None where `count` is 0.
    explicit ReservedPorts(int count, std::pair<int, int> range = {0, 0});
    ~ReservedPorts();
    ReservedPorts(const ReservedPorts&) = delete;
    ReservedPorts& operator=(const ReservedPorts&) = delete;
    [[nodiscard]] int first() const { return first_; }  ///< 0: there is none

private:
    [[nodiscard]] bool take(int first, int count, bool here);
    int first_ = 0;
    std::vector<int> holders_{};  ///< sockets with the names
};

/// One of them.
class ReservedPort {
public:
    explicit ReservedPort(std::pair<int, int> range = {0, 0})
        : here_(range.first == 0), row_(1, range) {}
    [[nodiscard]] int number() const { return row_.first(); }
    /// Whether somebody does listen now on this machine; false for another machine's.
    [[nodiscard]] bool listening() const;

private:
    bool here_;
    ReservedPorts row_;
};

}  // namespace servetune
