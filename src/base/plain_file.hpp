// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "descriptor.hpp"
#include "servetune/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

namespace servetune {

/// Writes a whole file in place. A FIFO without a reader is an error, not a wait. `more_flags`: of
/// open(2). Throws IoError. Where a reader must see the old content or the new: write_file
/// (base/files.hpp).
inline void write_plain_file(const std::filesystem::path& file, std::string_view content,
                             int more_flags = 0) {
    const auto fail = [&] {
        throw IoError("cannot write " + file.string() + ": " +
                      std::generic_category().message(errno));
    };
    const Descriptor opened(::open(
        file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | more_flags, 0666));
    if (opened.id() < 0) fail();
    while (!content.empty()) {
        const ssize_t put = ::write(opened.id(), content.data(), content.size());
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) fail();
        content.remove_prefix(static_cast<std::size_t>(put));
    }
}

}  // namespace servetune
