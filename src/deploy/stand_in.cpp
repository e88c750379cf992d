// SPDX-License-Identifier: Apache-2.0
#include "stand_in.hpp"

#include "servetune/detail/base/printable.hpp"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <iostream>

namespace servetune {

void stand_in_speaks(const std::string& words) {
    std::cerr << stand_in_says << printable_line(words) << std::endl;
}

Wanted::Wanted(std::chrono::duration<double> silent_within) : silent_within_(silent_within) {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ending, number);
    sigprocmask(SIG_BLOCK, &ending, nullptr);
    signals_ = Descriptor(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
    (void)std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c)
}

int Wanted::input() const { return input_ended_ ? -1 : STDIN_FILENO; }

std::optional<std::string> Wanted::line() {
    while (still_after(std::chrono::milliseconds(100)))
        if (const auto end = heard_.find('\n'); end != std::string::npos) {
            has_line_ = true;
            heard_.resize(end);
            return std::move(heard_);
        }
    return std::nullopt;
}

bool Wanted::still_after(std::chrono::milliseconds time) {
    std::array<pollfd, 2> waiting{{{input(), POLLIN, 0}, {signals(), POLLIN, 0}}};
    (void)poll(waiting.data(), waiting.size(), static_cast<int>(time.count()));
    return still();
}

bool Wanted::still() {
    signalfd_siginfo signal{};
    if (::read(signals_.id(), &signal, sizeof signal) > 0) wanted_ = false;
    std::array<char, 65536> buffer{};
    for (pollfd waiting{STDIN_FILENO, POLLIN, 0}; !input_ended_ && poll(&waiting, 1, 0) > 0;) {
        const ssize_t got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
        if (got > 0 && !has_line_) heard_.append(buffer.data(), static_cast<std::size_t>(got));
        if (got > 0) last_ = std::chrono::steady_clock::now();
        else if (got == 0 || errno != EINTR) input_ended_ = true;
    }
    if (alone()) wanted_ = false;
    return wanted_;
}

}  // namespace servetune
