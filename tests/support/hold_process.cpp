// SPDX-License-Identifier: Apache-2.0
// `hold_process MARK PROGRAM WORDS...`: starts a Process, says its id and waits to be killed, as a tuner may be.
#include "servetune/engine/process.hpp"

#include <unistd.h>

#include <cstdio>

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const servetune::Process process({.argv = {argv + 2, argv + argc}, .mark = argv[1]});
    std::printf("%d\n", process.id());
    (void)std::fflush(stdout);
    for (;;) pause();
}
