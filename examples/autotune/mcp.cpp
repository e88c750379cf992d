// SPDX-License-Identifier: Apache-2.0
// `autotune mcp`: the program for agents, over standard input and output (Model Context Protocol).
#include "commands.hpp"
#include "mcp_protocol.hpp"
#include "output.hpp"
#include "stop_signals.hpp"

#include "servetune/detail/base/printable.hpp"
#include "servetune/error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <mutex>

namespace autotune {

using namespace servetune;

namespace {

/// Lines of standard input until it ends or the user stops the program. A line that is too long is
/// given as it is so far and the rest left out: no JSON, so it is answered as such.
class Lines {
public:
    /// False: the end.
    bool next(std::string& line, const std::stop_token& stop) {
        line.clear();
        while (true) {
            for (; at_ < held_.size(); ++at_) {
                if (held_[at_] == '\n') {
                    ++at_;
                    return true;
                }
                constexpr std::size_t longest = 1UL << 20UL;
                if (line.size() <= longest) line += held_[at_];
            }
            pollfd wait{STDIN_FILENO, POLLIN, 0};
            constexpr int look_milliseconds = 100;  // a signal is seen so soon
            if (stop.stop_requested()) return false;
            if (poll(&wait, 1, look_milliseconds) <= 0) continue;
            std::array<char, 65536> buffer{};
            const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
            if (got <= 0) return !line.empty();
            held_.assign(buffer.data(), static_cast<std::size_t>(got));
            at_ = 0;
        }
    }

private:
    std::string held_{};
    std::size_t at_ = 0;
};

}  // namespace

int mcp(const std::filesystem::path& folder) {
    std::error_code error;
    const std::filesystem::path root = std::filesystem::canonical(folder, error);
    if (error || !std::filesystem::is_directory(root, error))
        throw UsageError(folder.string() + " is not a folder");
    const StopSignals signals("what runs is ended in good order");
    std::mutex printing;
    Tools tools(root);
    {
        McpServer server(tools, [&](const nlohmann::ordered_json& message) {
            const std::string text =
                message.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
            const std::scoped_lock lock(printing);
            put_controls(stdout, printable(secrets()(text)) + "\n");
            (void)std::fflush(stdout);
        });
        Lines lines;
        for (std::string line; lines.next(line, signals.token());)
            if (line.find_first_not_of(" \t\r") != std::string::npos) server.hear(line);
    }
    return signals.token().stop_requested() ? stopped : done;
}

}  // namespace autotune
