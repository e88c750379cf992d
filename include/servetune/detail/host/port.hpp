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

/// A TCP port of the loopback that nobody listens on, reserved for us: no other study on this
/// machine gets it while this object lives. The engine itself must be able to bind it, so it cannot
/// be bound meanwhile; a name in the kernel stands for it, which leaves no file behind. The port is
/// outside of the range that the kernel gives to connections, so that none takes it before the
/// engine does.
class ReservedPort {
public:
    /// Throws IoError where none of a hundred was free.
    ReservedPort();
    /// The same of the ports from `first` to `last`, of another machine: each one that this program
    /// takes is the next of them, so that a port that somebody has there is not taken again. {0,
    /// 0}: as without. Throws IoError where all are taken.
    explicit ReservedPort(std::pair<int, int> range);
    ~ReservedPort();
    ReservedPort(const ReservedPort&) = delete;
    ReservedPort& operator=(const ReservedPort&) = delete;
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] bool listening()
        const;  ///< whether somebody does now on this machine; false for another machine's

private:
    void take_any();
    bool here_ = true;
    int number_ = 0;
    int holder_ = -1;  ///< the socket with the name
};

/// As many ports like these in a row as a server needs beside its own (its ranks take a port each).
class ReservedPorts {
public:
    /// `range`: as of ReservedPort. Throws IoError where none of a hundred rows was free, or none
    /// of the range. None where `count` is 0.
    explicit ReservedPorts(int count, std::pair<int, int> range = {0, 0});
    ~ReservedPorts();
    ReservedPorts(const ReservedPorts&) = delete;
    ReservedPorts& operator=(const ReservedPorts&) = delete;
    [[nodiscard]] int first() const { return first_; }  ///< 0: there is none

private:
    void take_within(int count, std::pair<int, int> range);
    int first_ = 0;
    std::vector<int> holders_{};
};

}  // namespace servetune
