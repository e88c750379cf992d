// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace servetune {

/// A TCP port of the loopback that nobody listens on, held for us: no other study on this machine gets it while this object lives (a lock
/// file; the engine itself must be able to bind it, so it cannot be bound meanwhile). Outside of the range that the kernel gives to
/// connections, so that none takes it before the engine does.
class ReservedPort {
public:
    /// Throws IoError where none of a hundred was free, or no lock file can be made. `folder`: where lock files are, shared by all tuners of
    /// the machine.
    explicit ReservedPort(const std::filesystem::path& folder = "/tmp");
    ~ReservedPort();
    ReservedPort(const ReservedPort&) = delete;
    ReservedPort& operator=(const ReservedPort&) = delete;
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] bool listening() const;  ///< whether somebody does now

private:
    int number_ = 0;
    int lock_ = -1;
    std::filesystem::path file_{};
};

}  // namespace servetune
