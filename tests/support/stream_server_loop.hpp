// SPDX-License-Identifier: Apache-2.0
#pragma once

// The stream server's event loop, of which it has one or several, and what they share. Of the
// server's own sources only.

#include "support/behaviour.hpp"
#include "support/http.hpp"
#include "support/stream_server.hpp"
#include "support/stream_server_connection.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <nlohmann/json_fwd.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace servetune::test {

class Descriptor {
public:
    explicit Descriptor(int id) : id_(id) {
        if (id_ < 0)
            throw std::runtime_error(std::string("stream server: ") + std::strerror(errno));
    }
    ~Descriptor() { close(id_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    [[nodiscard]] int id() const { return id_; }

private:
    int id_;
};

/// How late tokens were, in buckets of a quarter of a power of two.
class Lateness {
public:
    void add(std::int64_t ns) {
        const auto bucket = ns < 1 ? 0.0 : 4 * std::log2(static_cast<double>(ns));
        ++counts_[std::min(counts_.size() - 1, static_cast<std::size_t>(bucket))];
    }
    void clear() {
        for (auto& count : counts_) count = 0;
    }
    [[nodiscard]] double quantile_seconds(double share) const {
        std::uint64_t all = 0, seen = 0;
        for (const auto& count : counts_) all += count;
        for (std::size_t i = 0; i < counts_.size(); ++i)
            if ((seen += counts_[i]) > 0 &&
                static_cast<double>(seen) >= share * static_cast<double>(all))
                return std::exp2(static_cast<double>(i + 1) / 4) / 1e9;
        return 0;
    }

private:
    std::array<std::atomic<std::uint64_t>, 180> counts_{};
};

/// What all loops share.
struct StreamServer::Shared {
    StreamServerOptions options;
    std::uint16_t port = 0;
    std::int64_t started_ns = now_ns();
    std::atomic<bool> stopping{false};
    std::atomic<std::uint64_t> connections{0}, requests{0}, completions{0}, in_flight{0},
        most_in_flight{0}, prompt_tokens{0}, generation_tokens{0}, ended_length{0}, ended_stop{0},
        cached_tokens{0};
    Lateness lateness;
    mutable std::mutex mutex;
    mutable std::condition_variable ended;
    std::vector<RequestTruth> log;

    void keep(RequestTruth truth) {
        --in_flight;
        {
            const std::lock_guard lock(mutex);
            log.push_back(std::move(truth));
        }
        ended.notify_all();
    }
    [[nodiscard]] std::string metrics() const;
    [[nodiscard]] std::string truth_json() const;
};

class StreamServer::Loop {
public:
    Loop(Shared& shared, std::size_t index);
    ~Loop() { stop(); }
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;
    void start() {
        thread_ = std::jthread([this] { run(); });
    }
    void stop();

private:
    struct Due {
        std::int64_t at;
        std::uint32_t slot;
        bool pause;            ///< the end of a pause between writes, not a token
        std::uint64_t serial;  ///< of the answer; of the connection when it is a pause
        bool operator>(const Due& other) const { return at > other.at; }
    };
    static constexpr std::uint64_t listener_tag = ~std::uint64_t{0}, timer_tag = listener_tag - 1,
                                   stop_tag = listener_tag - 2;
    static constexpr int most_sends_in_a_row =
        256;  ///< before arriving requests are read, so that receipts are not stamped late

    void run();
    void watch(int id, std::uint64_t tag, std::uint32_t events,
               int operation = EPOLL_CTL_ADD) const;
    void send_what_is_due();
    void look_at_input();
    void arm();
    void accept_all();
    void read(Connection& connection);
    void process_input(Connection& connection);
    void handle(Connection& connection, const HttpRequest& request);
    void handle_completion(Connection& connection, const HttpRequest& request, bool chat);
    bool misanswer(Connection& connection, Answer& answer);
    void schedule_first(Connection& connection);
    void step(Connection& connection, std::int64_t due);
    void break_off(Connection& connection);
    void finish(Connection& connection);
    static std::string refusal(const nlohmann::json& body, const Behaviour& behaviour, int& status);
    void end_answer(Connection& connection, std::string_view end, int status);
    void write(Connection& connection, std::string_view bytes);
    void flush(Connection& connection);
    void close_connection(Connection& connection);

    Shared& shared_;
    std::size_t index_;
    Socket listener_;
    Descriptor epoll_{epoll_create1(EPOLL_CLOEXEC)};
    Descriptor timer_{timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)};
    Descriptor stop_{eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    std::vector<std::unique_ptr<Connection>> connections_;
    std::vector<std::uint32_t> free_slots_;
    std::deque<std::pair<std::uint32_t, std::uint32_t>>
        ready_;  ///< slots and generations with input to look at
    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
    std::int64_t armed_at_ = 0;
    std::uint64_t next_serial_ = 1;
    std::string bytes_;        ///< of the answer that is being written
    std::vector<char> input_;  ///< of one read
    std::jthread thread_;
};

}  // namespace servetune::test
