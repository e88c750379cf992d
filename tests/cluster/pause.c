// SPDX-License-Identifier: Apache-2.0
// The first process of each pod: it keeps the pod's network, takes orphans, and ends on TERM.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number) {
    (void)number;
    _exit(0);
}

static void take(int number) {
    (void)number;
    while (waitpid(-1, 0, WNOHANG) > 0) continue;
}

int main(void) {
    signal(SIGTERM, end);
    signal(SIGINT, end);
    signal(SIGCHLD, take);
    for (;;) pause();
}
