// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/http.hpp"
#include "support/process.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace servetune::test {

/// `simengine` as a process of a test, ended with it. `words`: its options, then the engine's
/// command with `--port 0`.
class SimEngine {
public:
    SimEngine(const std::string& program, const std::vector<std::string>& words)
        : process_(argv(program, words), folder_.path()) {}

    /// False when it ended or did not listen in that time; then `port` is 0.
    bool wait_until_listening(double seconds = 20) {
        const std::string before = "listening on http://";
        const auto deadline =
            std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        while (std::chrono::steady_clock::now() < deadline) {
            const std::string said = process_.out();
            if (const auto at = said.find(before);
                at != std::string::npos && said.find('\n', at) != std::string::npos) {
                port_ = static_cast<std::uint16_t>(
                    std::atoi(said.c_str() + said.find(':', at + before.size()) + 1));
                return true;
            }
            if (process_.wait_at_most(std::chrono::milliseconds(5))) return false;
        }
        return false;
    }
    /// Whether /health says 200 in that time.
    bool wait_until_ready(double seconds = 20) {
        if (port_ == 0 && !wait_until_listening(seconds)) return false;
        const auto deadline =
            std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
        while (get("/health").status != 200) {
            if (std::chrono::steady_clock::now() > deadline) return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        return true;
    }
    [[nodiscard]] HttpAnswer get(const std::string& path) const { return http(port_, path); }
    [[nodiscard]] HttpAnswer post(const std::string& path, const std::string& body) const {
        return http(port_, path, body);
    }
    [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] std::uint16_t port() const { return port_; }
    [[nodiscard]] ChildProcess& process() { return process_; }

private:
    static std::vector<std::string> argv(const std::string& program,
                                         const std::vector<std::string>& words) {
        std::vector<std::string> all{program};
        all.insert(all.end(), words.begin(), words.end());
        return all;
    }
    TemporaryFolder folder_;
    ChildProcess process_;
    std::uint16_t port_ = 0;
};

}  // namespace servetune::test
