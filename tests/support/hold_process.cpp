// SPDX-License-Identifier: Apache-2.0
// `hold_process MARK WATCHDOG PROGRAM WORDS...`: starts a Process, says its id and waits to be
// killed, as a tuner may be. WATCHDOG: milliseconds that a watchdog leaves between TERM and KILL,
// its id is said too; 0: none.
#include "servetune/detail/host/process.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

int main(int argc, char** argv) {
    if (argc < 4) return 2;
    const std::chrono::milliseconds patience(std::atoi(argv[2]));
    const auto watchdog =
        patience.count() > 0 ? std::make_shared<servetune::Watchdog>(patience) : nullptr;
    const servetune::Process process(
        {.argv = {argv + 3, argv + argc}, .mark = argv[1], .watchdog = watchdog});
    std::printf("%d %d\n", process.id(), watchdog ? watchdog->id() : 0);
    (void)std::fflush(stdout);
    for (;;) pause();
}
