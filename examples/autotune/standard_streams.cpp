// SPDX-License-Identifier: Apache-2.0
#include "standard_streams.hpp"

#include "commands.hpp"
#include "output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace autotune {
namespace {

/// Whether standard output leads to a pipe or socket that nobody reads any more.
bool no_reader_is_left() noexcept {
    pollfd output{STDOUT_FILENO, POLLOUT, 0};
    return poll(&output, 1, 0) == 1 && (output.revents & (POLLERR | POLLHUP)) != 0;
}

}  // namespace

void occupy_standard_streams() noexcept {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
        if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
        const int wrong_way = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        const int got =
            open("/dev/null", wrong_way);  // NOLINT(android-cloexec-open): children have their own
        if (got < 0)
            (void)open("/", O_RDONLY);  // the lowest number that is free, which is this one
    }
}

int with_output_written(int code) noexcept {
    errno = 0;
    const bool failed_before = std::ferror(stdout) != 0;
    if (std::fflush(stdout) == 0 && !failed_before) return code;
    const int error = errno;
    if (error == EPIPE || no_reader_is_left()) return code == done ? reader_gone : code;
    try {
        complain("autotune: cannot write all of the output to standard output{}",
                 error == 0 ? "" : ": " + std::generic_category().message(error));
    } catch (...) {  // NOLINT(bugprone-empty-catch): the exit code says it too
    }
    return environment_error;
}

}  // namespace autotune
