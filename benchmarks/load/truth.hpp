// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace servetune::benchmark {

/// What the server knows of a request; times in seconds of CLOCK_MONOTONIC.
struct TrueRequest {
    std::string label{};
    double received = 0;
    std::vector<double> sent{};  ///< each token chunk
};

struct Truth {
    std::vector<TrueRequest> requests{};
    /// of the server itself: above 1 ms the machine was not idle, or too much was asked of it
    double late_p99_seconds = 0;
    [[nodiscard]] double mean_first_token_seconds() const;
    [[nodiscard]] double mean_gap_seconds() const;
};

/// A program in the folder of this one.
std::string beside_this_program(const std::string& name);

/// simengine at a pace (its option) as a process of its own on core 0, which goes with it.
class Server {
public:
    static constexpr std::string_view model = "Qwen/Qwen3-8B";
    Server(const std::string& program, const std::string& pace);
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;
    [[nodiscard]] const std::string& url() const { return url_; }
    [[nodiscard]] Truth truth() const;

private:
    pid_t pid_ = -1;
    std::string url_;
};

}  // namespace servetune::benchmark
