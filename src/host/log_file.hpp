// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/descriptor.hpp"

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>

namespace servetune {

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
