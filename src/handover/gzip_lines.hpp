// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/files.hpp"

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace servetune {

/// Writes a gzip compressed file, as an OutputFile: a device or a FIFO is written, not replaced.
class GzipOutput {
public:
    /// Throws IoError, as every call.
    explicit GzipOutput(const std::filesystem::path& file);
    ~GzipOutput();
    GzipOutput(const GzipOutput&) = delete;
    GzipOutput& operator=(const GzipOutput&) = delete;

    void write(std::string_view bytes);
    /// All of it is in its place. Without: there is no new file.
    void commit();

private:
    struct Stream;
    OutputFile output_;
    std::unique_ptr<Stream> stream_;
};

/// How much of a compressed file is read, for one that a stranger wrote: a few kilobytes may
/// unpack to gigabytes.
struct GzipBounds {
    std::size_t all_bytes = std::size_t{1} << 30U;   ///< unpacked
    std::size_t line_bytes = std::size_t{1} << 25U;  ///< of a line
};

/// Calls `line(number from 1, text)` for each line of a gzip compressed or plain file. Throws
/// IoError; ParseError where it ends within a line or is larger than `bounds`.
void each_gzip_line(const std::filesystem::path& file, const GzipBounds& bounds,
                    const std::function<void(std::size_t, const std::string&)>& line);

}  // namespace servetune
