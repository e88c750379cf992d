// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.hpp"

#include <cstddef>
#include <mutex>
#include <vector>

namespace servetune {

/// What a program printed, in bounded memory: its first MiB and its last. Written by one thread,
/// read by any.
class KeptOutput {
public:
    void append(std::string_view bytes);
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

/// A file of bounded size that keeps the first half and the last of what is written. The second
/// half is a ring while it is written; `finish` puts it in order, with a line that says how many
/// bytes are left out. A disk that is full ends the writing, not the program.
class LogFile {
public:
    /// Throws IoError where it cannot be made. An empty path: nothing is written.
    LogFile(const std::filesystem::path& file, std::size_t most_bytes);
    void write(std::string_view bytes);
    void finish();
    /// Why what came last is not in it; empty while all is well. From any thread.
    [[nodiscard]] std::string trouble() const;

private:
    bool put(std::string_view bytes, std::size_t at);

    std::filesystem::path path_;
    Descriptor file_{};
    std::size_t head_most_;
    std::size_t ring_most_;
    std::size_t head_ = 0;        ///< bytes of the first half
    std::size_t ring_total_ = 0;  ///< bytes that went into the ring, overwritten ones too
    mutable std::mutex mutex_{};
    std::string trouble_{};
};

}  // namespace servetune
