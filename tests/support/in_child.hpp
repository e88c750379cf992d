// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <stdexcept>
#include <string>

namespace servetune::test {

/// What `action` returns, or the message of what it throws, in a child process: for what would
/// change this process (its user, its mounts, its limits). "ended by signal N" when it did not come
/// to its end.
template <class Action>
std::string in_child(const Action& action) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("cannot fork");
    if (child == 0) {
        std::string said;
        try {
            said = action();
        } catch (const std::exception& error) {
            said = error.what();
        }
        (void)!write(ends[1], said.data(), said.size());
        _exit(0);
    }
    close(ends[1]);
    std::string result;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
        result.append(buffer, std::size_t(got));
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? "ended by signal " + std::to_string(WTERMSIG(status)) : result;
}

}  // namespace servetune::test
