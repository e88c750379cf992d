// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/descriptor.hpp"
#include "servetune/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace servetune {

/// Both ends of a pipe; no child inherits them. Throws IoError if the system gives none.
struct Pipe {
    Pipe() {
        std::array<int, 2> ends{};
        if (pipe2(ends.data(), O_CLOEXEC) != 0)
            throw IoError("cannot make a pipe: " + std::generic_category().message(errno));
        out = Descriptor(ends[0]);
        in = Descriptor(ends[1]);
    }
    Descriptor out{}, in{};
};

}  // namespace servetune
