// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "answer_reader.hpp"
#include "base/files.hpp"
#include "http.hpp"

#include <atomic>
#include <ctime>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace servetune {

inline double seconds_of_clock(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// CLOCK_MONOTONIC in seconds.
inline double monotonic_seconds() { return seconds_of_clock(CLOCK_MONOTONIC); }

/// How far CLOCK_BOOTTIME is ahead of it: that goes on while the machine sleeps, and a server
/// elsewhere goes on with its answers.
inline double slept_seconds() { return seconds_of_clock(CLOCK_BOOTTIME) - monotonic_seconds(); }

/// What all loops of a run share.
struct LoadTask {
    const Endpoint& endpoint;
    std::span<const PlannedRequest> plan;
    const LoadOptions& options;
    bool closed_loop = false;
    std::string path{};                   ///< of the interface
    std::vector<std::string> bodies{};    ///< of the requests that follow none, ready to send
    std::vector<RequestRecord>& records;  ///< each written by the one loop that has its request
    std::vector<std::string> bases{};     ///< of the servers, before any path
    std::vector<std::atomic<std::size_t>> in_flight{};  ///< of each server
    std::atomic<std::size_t> first_looked_at{0};  ///< of servers that are equally busy the next one
    std::atomic<std::size_t> sent{0}, ended{0}, failed{0};
    std::atomic<std::uint64_t> token_chunks{0};
};

/// One thread's share of a run: its requests, its connections, its clock. libcurl's multi_socket
/// interface on epoll, timers as timerfd with absolute times.
class EventLoop {
public:
    /// `mine`: indices into the plan, a turn in the same loop as the one it follows. `places`:
    /// requests in flight at most.
    EventLoop(LoadTask& task, const std::vector<std::size_t>& mine, std::size_t places);
    ~EventLoop();
    EventLoop(const EventLoop&) = delete;
    EventLoop& operator=(const EventLoop&) = delete;

    /// Opens `connections` and leaves them in the pool; what cannot be opened the requests will
    /// tell.
    void warm(std::size_t connections);
    /// Until every request has ended or `stop` was called; time 0 of the records is `epoch`.
    void run(double epoch);
    /// From any thread: what is in flight is cancelled, nothing more is sent.
    void stop();

    /// Seconds that the loop came late to a tick of every millisecond.
    [[nodiscard]] const std::vector<float>& lags() const { return lags_; }
    /// The longest of these, with the time that the machine slept.
    [[nodiscard]] double longest_stop() const { return longest_stop_; }
    [[nodiscard]] double processor_seconds() const { return processor_seconds_; }
    [[nodiscard]] long connects() const { return connects_; }
    /// Connections that were dropped since their server did not end an answer after its `[DONE]`.
    [[nodiscard]] std::size_t left_open() const { return left_open_; }

private:
    struct Transfer;
    struct Due {
        double at;
        std::size_t index;
        bool operator>(const Due& other) const {
            return at != other.at ? at > other.at : index > other.index;
        }
    };
    struct MultiDeleter {
        void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
    };

    static int on_socket(CURL* easy, curl_socket_t socket, int what, void* loop, void* known);
    static int on_timer(CURLM* multi, long milliseconds, void* loop);
    static std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* transfer);
    static int on_request(void* transfer, char*, char*, int, int);

    [[nodiscard]] double now() const { return monotonic_seconds() - epoch_; }
    void arm_curl_timer();
    void wait_for_events();
    void act(curl_socket_t socket, int bits);
    void release_due();
    void fill_places();
    void start(std::size_t index, double scheduled);
    void hand_over(CURL* easy);
    void collect();
    void finish(Transfer& transfer, CURLcode code);
    void conclude(std::size_t index);
    void abort_late();
    void drop_left_open();
    void tick();
    void cancel_all();
    [[nodiscard]] std::unique_ptr<Transfer> make_transfer();
    [[nodiscard]] std::size_t server_for(const PlannedRequest& request);

    LoadTask& task_;
    const Redactor secrets_;  ///< of the endpoint: in no record
    HeaderList headers_;
    Descriptor epoll_, curl_timer_, schedule_timer_, tick_timer_,
        stop_event_;  // closed after the connections that epoll watches
    std::unique_ptr<CURLM, MultiDeleter> multi_;
    simdjson::dom::parser parser_;

    std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;  ///< open loop: by time
    std::deque<std::pair<std::size_t, double>> waiting_;  ///< due (index, scheduled), no place free
    std::map<std::size_t, std::size_t> successors_;       ///< request -> the turn that follows it
    std::map<std::size_t, std::vector<std::string>>
        turns_;  ///< conversations under way: last request -> what was said
    std::map<std::size_t, std::size_t> server_of_turn_;  ///< the same: last request -> its server
    std::vector<std::unique_ptr<Transfer>> transfers_;
    std::vector<Transfer*> idle_;
    std::vector<Transfer*> ending_;  ///< `[DONE]` has come, the end of the answer has not
    std::size_t left_ = 0;
    bool exact_length_ = false;  ///< an answer has the tokens asked for, or has failed
    std::atomic<bool> stopping_{false};

    double epoch_ = 0;
    double curl_due_,
        /// when libcurl wants to be called, when its timer goes off; both since `epoch_`
        curl_armed_;
    std::uint64_t read_number_ = 0;  ///< turns of libcurl; one reads a connection once
    double next_tick_ = 0;
    std::vector<float> lags_;
    std::size_t lag_stride_ = 1, lag_count_ = 0;
    double longest_stop_ = 0;
    double slept_before_ = 0;
    double resumed_at_ = -std::numeric_limits<double>::infinity();  ///< after the last stop
    double processor_seconds_ = 0;
    long connects_ = 0;
    std::size_t left_open_ = 0;
};

}  // namespace servetune
