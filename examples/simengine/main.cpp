// SPDX-License-Identifier: Apache-2.0
// An LLM serving engine without a GPU: see docs/explanation/simulator.md.
#include "command_line.hpp"
#include "engine_process.hpp"
#include "engine_setup.hpp"

#include "servetune/error.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace {

/// A closed stream is /dev/null: else its number would be that of a socket, and the log be written
/// into that.
void open_closed_streams() {
    int got = STDIN_FILENO;
    while (got >= 0 && got <= STDERR_FILENO)
        got = ::open("/dev/null", O_RDWR);  // NOLINT(android-cloexec-open): for children too
    if (got >= 0) (void)::close(got);
}

}  // namespace

int main(int argc, char** argv) {
    open_closed_streams();
    (void)std::signal(SIGPIPE, SIG_IGN);
    try {
        int exit_code = 0;
        const char* environment =
            std::getenv("SIMENGINE_OPTIONS");  // NOLINT(concurrency-mt-unsafe): there is one thread
        const auto options = simengine::read_command_line(argc, argv, environment, exit_code);
        if (!options) return exit_code;
        const simengine::EngineSetup setup = simengine::set_up(*options);
        if (setup.help.empty() && !setup.command.folder.empty())
            return simengine::hold_weights(setup, *options);
        if (setup.help.empty()) return simengine::live(setup, *options);
        fmt::print("{}", setup.help);
        return 0;
    } catch (const simengine::CommandRefused& refused) {
        fmt::print(stderr, "{}", refused.what());
        return refused.exit_code();
    } catch (const servetune::UsageError& error) {
        fmt::print(stderr, "simengine: {}\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "simengine: {}\n", error.what());
        return 1;
    }
}
