// SPDX-License-Identifier: Apache-2.0
#include "run_command.hpp"

#include "start_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace servetune {
namespace {

/// Reads what is there; false at the end of the stream.
bool read_some(int from, std::string& into) {
    std::array<char, 65536> buffer{};
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got > 0) into.append(buffer.data(), std::size_t(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

}  // namespace

RanCommand run_command(const std::vector<std::string>& argv, std::chrono::milliseconds time,
                       std::size_t output_bytes, const std::function<bool()>& give_up) {
    Pipe output;
    ChildGroup group({.file = argv.front(), .argv = argv}, output.in.id());
    output.in.reset();
    fcntl(output.out.id(), F_SETFL, O_NONBLOCK);

    RanCommand result;
    const auto deadline = std::chrono::steady_clock::now() + time;
    // The pipe may stay open after the command has ended, in a process that it left behind: both
    // are looked at in turns.
    for (bool open = true;;) {
        pollfd waiting{open ? output.out.id() : -1, POLLIN, 0};
        (void)poll(&waiting, 1, 20);
        const bool ended = group.ended();
        while (open && result.output.size() <= output_bytes) {
            const std::size_t before = result.output.size();
            open = read_some(output.out.id(), result.output);
            if (result.output.size() == before) break;
        }
        if (result.output.size() > output_bytes) result.end = RanCommand::End::too_much_output;
        else if (!ended && std::chrono::steady_clock::now() >= deadline)
            result.end = RanCommand::End::out_of_time;
        else if (!ended && give_up && give_up()) result.end = RanCommand::End::given_up;
        else if (!ended) continue;
        break;
    }
    group.signal(SIGKILL);
    (void)group.wait(std::chrono::seconds(2));
    result.exit_code = group.exit_code().value_or(128 + SIGKILL);
    return result;
}

}  // namespace servetune
