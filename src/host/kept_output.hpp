// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace servetune {

/// What a program printed, in bounded memory: its first MiB and its last. Written by one thread,
/// read by any.
class KeptOutput {
public:
    void append(std::string_view bytes);
    [[nodiscard]] std::size_t bytes() const;  ///< printed in all
    /// What is kept from byte `position` on, a line break where bytes in between are not kept;
    /// moves `position` to the end.
    [[nodiscard]] std::string from(std::size_t& position) const;

private:
    static constexpr std::size_t half = 1UL << 20UL;
    mutable std::mutex mutex_{};
    std::string head_{};
    std::string
        ring_{};  ///< of the last bytes behind the head, once there are so many that it turns
    std::size_t next_ = 0;  ///< where in the ring the next byte goes
    std::size_t bytes_ = 0;
};

/// The lines of a text, each 4 KiB at most, without empty ones; a progress bar's carriage returns
/// end lines too.
std::vector<std::string> lines_of(std::string_view text);

}  // namespace servetune
