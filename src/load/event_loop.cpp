// SPDX-License-Identifier: Apache-2.0
#include "event_loop.hpp"

#include "audit_parts.hpp"
#include "base/present.hpp"
#include "request_body.hpp"
#include "servetune/detail/base/ranges.hpp"
#include "servetune/error.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <optional>
#include <system_error>

namespace servetune {
namespace {

constexpr double tick_seconds = 0.001;
constexpr double never = std::numeric_limits<double>::infinity();
constexpr std::size_t most_lags = 1U << 20U;
/// Time for the end of an answer after its `[DONE]`. A busy server sends it some milliseconds
/// later; a connection kept is worth more than a connection made anew.
constexpr double ending_seconds = 0.25;

/// Longest time between two pieces of one read; a later piece may be of another read.
constexpr double one_read_seconds = 5e-6;

timespec timespec_of(double seconds) {
    timespec result{};
    result.tv_sec = static_cast<time_t>(seconds);
    result.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
    return result;
}

/// Fires at a time of CLOCK_MONOTONIC (past: now), then every `interval` seconds (0: once).
void arm(int timer, double at, double interval = 0) {
    const itimerspec when{timespec_of(interval), timespec_of(std::max(at, 1e-9))};
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

Descriptor opened(int descriptor, const char* what) {
    if (descriptor < 0)
        throw IoError(std::string("a load test cannot open ") + what + ": " +
                      std::generic_category().message(errno));
    return Descriptor(descriptor);
}

Descriptor opened_timer() {
    return opened(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "a timer");
}

double processor_seconds_of_thread() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    const auto seconds = [](const timeval& time) {
        return double(time.tv_sec) + double(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Why a transfer ended, by what libcurl says.
RequestEnd end_of(CURLcode code, bool request_was_sent) {
    switch (code) {
        case CURLE_OK: return RequestEnd::success;
        case CURLE_WEIRD_SERVER_REPLY:
        case CURLE_UNSUPPORTED_PROTOCOL:
        case CURLE_BAD_CONTENT_ENCODING:
        case CURLE_WRITE_ERROR: return RequestEnd::malformed;
        default: return request_was_sent ? RequestEnd::reset : RequestEnd::not_connected;
    }
}

/// How a kept connection ends that the server left before the request came, as llama-server does
/// after each stream. libcurl tries five such, where it sees them closed, and gives up.
bool left_by_server(CURLcode code) {
    return code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR || code == CURLE_GOT_NOTHING;
}

}  // namespace

/// A handle with its connection settings, used for one request after the other.
struct EventLoop::Transfer {
    EventLoop* loop = nullptr;
    EasyHandle easy{};
    std::size_t index = 0;
    std::size_t server = 0;                ///< among the loop's
    std::string body{};                    ///< of a turn; the others lie ready in the task
    std::optional<AnswerReader> reader{};  ///< made anew for each request
    bool answer_began = false;
    bool request_sent = false;
    bool busy = false;
    bool ending = false;  ///< among `ending_`
    std::uint64_t last_read = 0;
    double sent = 0;
    double last_byte = 0;  ///< the stamp of the last read
    std::array<char, CURL_ERROR_SIZE> error{};

    [[nodiscard]] AnswerReader& answer() { return present(reader); }
};

EventLoop::EventLoop(LoadTask& task, const std::vector<std::size_t>& mine, std::size_t places)
    : task_(task),
      secrets_(secrets_of(task.endpoint)),
      headers_(headers_for(task.endpoint)),
      epoll_(opened(epoll_create1(EPOLL_CLOEXEC), "an epoll instance")),
      curl_timer_(opened_timer()),
      schedule_timer_(opened_timer()),
      tick_timer_(opened_timer()),
      stop_event_(opened(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "an event")),
      multi_(curl_multi_init()),
      left_(mine.size()),
      exact_length_(task.options.ignore_eos && takes_field(task.endpoint, "ignore_eos")),
      curl_due_(never),
      curl_armed_(never) {
    if (!multi_)
        throw IoError("a load test cannot open connections: libcurl gives no multi handle");
    for (const Descriptor* descriptor :
         {&curl_timer_, &schedule_timer_, &tick_timer_, &stop_event_}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = descriptor->id();
        if (epoll_ctl(epoll_.id(), EPOLL_CTL_ADD, descriptor->id(), &event) != 0)
            throw IoError("a load test cannot watch its timers: " +
                          std::generic_category().message(errno));
    }
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETFUNCTION, &EventLoop::on_socket);
    curl_multi_setopt(multi_.get(), CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERFUNCTION, &EventLoop::on_timer);
    curl_multi_setopt(multi_.get(), CURLMOPT_TIMERDATA, this);
    // By itself libcurl forgets warm connections when fewer transfers are under way.
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS,
                      static_cast<long>(std::min(places, mine.size()) + 16));
    for (const std::size_t index : mine) {
        const PlannedRequest& request = task.plan[index];
        if (request.follows) successors_[*request.follows] = index;
        else due_.push({task.closed_loop ? 0 : request.at_seconds, index});
    }
    for (std::size_t i = std::min(places, mine.size()); i > 0; --i) {
        transfers_.push_back(make_transfer());
        idle_.push_back(transfers_.back().get());
    }
}

EventLoop::~EventLoop() {
    for (const auto& transfer : transfers_)
        if (transfer->busy) curl_multi_remove_handle(multi_.get(), transfer->easy.get());
}

std::unique_ptr<EventLoop::Transfer> EventLoop::make_transfer() {
    auto transfer = std::make_unique<Transfer>();
    transfer->loop = this;
    transfer->easy = handle_for(task_.endpoint, task_.path, headers_);
    CURL* easy = transfer->easy.get();
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer.get());
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &EventLoop::on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer.get());
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &EventLoop::on_request);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer.get());
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->error.data());
    curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, 16384L);
    return transfer;
}

// -------------------------------------------------------------------------------------------------
// libcurl's callbacks

int EventLoop::on_socket(CURL*, curl_socket_t socket, int what, void* loop, void* known) {
    auto* self = static_cast<EventLoop*>(loop);
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(self->epoll_.id(), EPOLL_CTL_DEL, socket, nullptr);
        return 0;
    }
    epoll_event event{};
    event.events =
        ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0U) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0U);
    event.data.fd = socket;
    if (epoll_ctl(self->epoll_.id(), known != nullptr ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, socket,
                  &event) < 0 &&
        errno == EEXIST)
        epoll_ctl(self->epoll_.id(), EPOLL_CTL_MOD, socket, &event);
    curl_multi_assign(self->multi_.get(), socket, self);
    return 0;
}

int EventLoop::on_timer(CURLM*, long milliseconds, void* loop) {
    auto* self = static_cast<EventLoop*>(loop);
    self->curl_due_ = milliseconds < 0 ? never : self->now() + double(milliseconds) * 1e-3;
    return 0;
}

int EventLoop::on_request(void* transfer, char*, char*, int, int) {
    auto* self = static_cast<Transfer*>(transfer);
    self->loop->task_.records[self->index].sent = self->sent = self->last_byte = self->loop->now();
    self->request_sent = true;
    return CURL_PREREQFUNC_OK;
}

std::size_t EventLoop::on_body(char* bytes, std::size_t size, std::size_t count, void* transfer) {
    auto* self = static_cast<Transfer*>(transfer);
    EventLoop& loop = *self->loop;
    if (!self->answer_began) {
        long status = 0;
        const char* type = nullptr;
        curl_easy_getinfo(self->easy.get(), CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(self->easy.get(), CURLINFO_CONTENT_TYPE, &type);
        self->answer().begin(static_cast<int>(status), type == nullptr ? "" : type);
        self->answer_began = true;
    }
    // Stamped after the read. An earlier stamp would be older than what was read, and older than
    // the request where libcurl sends and reads in one turn.
    const bool same_read = self->last_read == loop.read_number_;
    if (const double time = loop.now(); !same_read || time - self->last_byte > one_read_seconds)
        self->last_byte = time;
    self->last_read = loop.read_number_;
    const bool reads_on = self->answer().feed({bytes, size * count}, self->last_byte, same_read);
    if (self->answer().complete() && !self->ending) {
        self->ending = true;
        loop.ending_.push_back(self);
    }
    return reads_on ? size * count : 0;
}

// -------------------------------------------------------------------------------------------------
// the loop

void EventLoop::act(curl_socket_t socket, int bits) {
    ++read_number_;
    int running = 0;
    curl_multi_socket_action(multi_.get(), socket, bits, &running);
}

/// libcurl moves its timer at every turn, mostly to later, and setting one costs as much as a read.
/// So it is set only to come sooner; when it comes too soon, nothing is due yet.
void EventLoop::arm_curl_timer() {
    if (curl_due_ >= curl_armed_) return;
    curl_armed_ = curl_due_;
    arm(curl_timer_.id(), epoch_ + curl_due_);
}

void EventLoop::wait_for_events() {
    arm_curl_timer();
    std::array<epoll_event, 512> events{};
    const int count = epoll_wait(epoll_.id(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
        const epoll_event& event = events[std::size_t(i)];
        const int descriptor = event.data.fd;
        std::uint64_t expirations = 0;
        if (descriptor == tick_timer_.id()) tick();
        else if (descriptor == schedule_timer_.id()) {
            if (::read(descriptor, &expirations, sizeof expirations) > 0) release_due();
        } else if (descriptor == curl_timer_.id()) {
            if (::read(descriptor, &expirations, sizeof expirations) <= 0) continue;
            curl_armed_ = never;
            if (curl_due_ <= now()) act(CURL_SOCKET_TIMEOUT, 0);
        } else if (descriptor == stop_event_.id()) {
            if (::read(descriptor, &expirations, sizeof expirations) > 0) stopping_ = true;
        } else
            act(descriptor,
                ((event.events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                    ((event.events & EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0) |
                    ((event.events & (EPOLLERR | EPOLLHUP)) != 0 ? CURL_CSELECT_ERR : 0));
    }
}

void EventLoop::warm(std::size_t connections) {
    std::vector<EasyHandle> handles;
    for (std::size_t i = 0; i < connections; ++i) {
        handles.push_back(handle_for(task_.endpoint, "/v1/models", headers_));
        CURL* easy = handles.back().get();
        curl_easy_setopt(easy, CURLOPT_URL,
                         (task_.bases[i % task_.bases.size()] + "/v1/models").c_str());
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 10'000L);
        curl_easy_setopt(
            easy, CURLOPT_WRITEFUNCTION,
            +[](char*, std::size_t size, std::size_t count, void*) { return size * count; });
        if (const CURLMcode code = curl_multi_add_handle(multi_.get(), easy); code != CURLM_OK)
            throw IoError(std::string("a load test cannot open connections: ") +
                          curl_multi_strerror(code));
    }
    act(CURL_SOCKET_TIMEOUT, 0);
    for (std::size_t open = connections; open > 0 && !stopping_;) {
        int queued = 0;
        while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &queued))
            open -= message->msg == CURLMSG_DONE ? 1 : 0;
        if (open > 0) wait_for_events();
    }
    for (const EasyHandle& easy : handles) curl_multi_remove_handle(multi_.get(), easy.get());
}

void EventLoop::run(double epoch) {
    curl_due_ += epoch_ - epoch;  // what libcurl waits for stays when it was
    curl_armed_ = never;
    epoch_ = epoch;
    const double began = processor_seconds_of_thread();
    slept_before_ = slept_seconds();
    next_tick_ = monotonic_seconds() + tick_seconds;
    arm(tick_timer_.id(), next_tick_, tick_seconds);
    if (!due_.empty()) arm(schedule_timer_.id(), epoch_ + due_.top().at);
    while (left_ > 0) {
        wait_for_events();
        collect();
        if (stopping_) cancel_all();
    }
    processor_seconds_ = processor_seconds_of_thread() - began;
}

void EventLoop::stop() {
    const std::uint64_t one = 1;
    (void)!::write(stop_event_.id(), &one, sizeof one);
}

void EventLoop::release_due() {
    const double time = now();
    while (!due_.empty() && due_.top().at <= time) {
        waiting_.emplace_back(due_.top().index, due_.top().at);
        due_.pop();
    }
    if (!due_.empty()) arm(schedule_timer_.id(), epoch_ + due_.top().at);
    fill_places();
}

void EventLoop::fill_places() {
    bool started = false;
    while (!waiting_.empty() && !idle_.empty() && !stopping_) {
        const auto [index, at] = waiting_.front();
        waiting_.pop_front();
        start(index, task_.closed_loop ? now() : at);
        started = true;
    }
    if (started) act(CURL_SOCKET_TIMEOUT, 0);  // sends at once what waits in the pool
}

std::size_t EventLoop::server_for(const PlannedRequest& request) {
    if (const auto before =
            request.follows ? server_of_turn_.find(*request.follows) : server_of_turn_.end();
        before != server_of_turn_.end())
        return server_of_turn_.extract(before).mapped();
    std::size_t least = task_.first_looked_at++ % task_.bases.size();
    for (std::size_t i = 0; i < task_.bases.size(); ++i)
        if (task_.in_flight[i] < task_.in_flight[least]) least = i;
    return least;
}

void EventLoop::start(std::size_t index, double scheduled) {
    Transfer& transfer = *idle_.back();
    idle_.pop_back();
    const PlannedRequest& request = task_.plan[index];
    RequestRecord& record = task_.records[index];
    record.scheduled = scheduled;
    record.sent = now();
    transfer.index = index;
    transfer.answer_began = transfer.request_sent = false;
    transfer.last_read = 0;
    transfer.sent = transfer.last_byte = record.sent;
    transfer.error.front() = '\0';
    const std::string* body = &task_.bodies[index];
    if (request.follows) {
        transfer.body = request_body(task_.endpoint, request, turns_.at(*request.follows),
                                     task_.options.ignore_eos);
        body = &transfer.body;
    }
    transfer.reader.emplace(
        record, request.output_tokens,
        AnswerReader::Expected{.stream = task_.endpoint.stream,
                               .usage = task_.endpoint.usage,
                               .exact_length = exact_length_ && request.output_tokens > 0,
                               .keep_text = successors_.contains(index),
                               .estimate = !task_.endpoint.usage},
        parser_);
    CURL* easy = transfer.easy.get();
    transfer.server = server_for(request);
    if (task_.bases.size() > 1)
        curl_easy_setopt(easy, CURLOPT_URL, (task_.bases[transfer.server] + task_.path).c_str());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body->data());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body->size()));
    hand_over(easy);
    transfer.busy = true;
    ++task_.in_flight[transfer.server];
    ++task_.sent;
}

/// Without memory: as an exception, since a request that libcurl does not know would never end.
void EventLoop::hand_over(CURL* easy) {
    if (const CURLMcode code = curl_multi_add_handle(multi_.get(), easy); code != CURLM_OK)
        throw IoError(std::string("a load test cannot send a request: ") +
                      curl_multi_strerror(code));
}

void EventLoop::collect() {
    int queued = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &queued)) {
        if (message->msg != CURLMSG_DONE) continue;
        void* found = nullptr;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
        const CURLcode code = message->data.result;
        finish(*static_cast<Transfer*>(found), code);
    }
    fill_places();
}

/// The answer of a transfer has ended, by itself or by a fault of the connection.
void EventLoop::finish(Transfer& transfer, CURLcode code) {
    CURL* easy = transfer.easy.get();
    if (!transfer.answer_began) {
        long status = 0;
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        task_.records[transfer.index].http_status = static_cast<int>(status);
        if (code == CURLE_OK) transfer.answer().begin(static_cast<int>(status), "");
    }
    long connects = 0;
    curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &connects);
    connects_ += connects;
    if (connects == 0 && left_by_server(code) && !transfer.answer_began && !stopping_ &&
        now() - transfer.sent < 1) {
        curl_multi_remove_handle(multi_.get(), easy);
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        hand_over(easy);
        return;
    }
    const std::string error =
        code == CURLE_OK ? "" : transfer_error_text(easy, code, transfer.error.data());
    transfer.answer().end(now(), end_of(code, transfer.request_sent), error);
    curl_multi_remove_handle(multi_.get(), easy);
    transfer.busy = false;
    --task_.in_flight[transfer.server];
    if (std::exchange(transfer.ending, false)) std::erase(ending_, &transfer);
    idle_.push_back(&transfer);

    const std::size_t index = transfer.index;
    const PlannedRequest& request = task_.plan[index];
    std::vector<std::string> said;
    if (request.follows) said = std::move(turns_.extract(*request.follows).mapped());
    if (task_.records[index].succeeded() && successors_.contains(index)) {
        said.push_back(request.text);
        said.push_back(transfer.answer().text());
        turns_[index] = std::move(said);
        server_of_turn_[index] = transfer.server;
    }
    conclude(index);
}

/// Counts an ended request; the turn that follows it becomes due, or fails with it.
void EventLoop::conclude(std::size_t index) {
    RequestRecord& record = task_.records[index];
    if (!record.error.empty()) record.error = secrets_(record.error);
    ++task_.ended;
    task_.failed += record.succeeded() ? 0 : 1;
    task_.token_chunks += record.chunks;
    --left_;
    const auto* next = entry_in(successors_, index);
    if (next == nullptr) return;
    const std::size_t turn = *next;
    if (record.succeeded()) {
        const double at = std::max(task_.plan[turn].at_seconds, now());
        if (task_.closed_loop) waiting_.emplace_front(turn, at);
        else {
            due_.push({at, turn});
            arm(schedule_timer_.id(), epoch_ + due_.top().at);
        }
        return;
    }
    RequestRecord& lost = task_.records[turn];
    lost.scheduled = lost.sent = lost.done = now();
    lost.error = "the turn before it failed";
    conclude(turn);
}

void EventLoop::tick() {
    std::uint64_t expirations = 0;
    if (::read(tick_timer_.id(), &expirations, sizeof expirations) <= 0) return;
    const double time = monotonic_seconds();
    const double slept = slept_seconds();
    const double stop = std::max(time - next_tick_, slept - std::exchange(slept_before_, slept));
    longest_stop_ = std::max(longest_stop_, stop);
    if (stop > client_stops_at) resumed_at_ = now();
    for (; expirations > 0; --expirations, next_tick_ += tick_seconds) {
        if (lag_count_++ % lag_stride_ == 0)
            lags_.push_back(static_cast<float>(std::max(0.0, time - next_tick_)));
        if (lags_.size() < most_lags) continue;
        for (std::size_t i = 0; 2 * i < lags_.size(); ++i)
            lags_[i] = lags_[2 * i];  // a long run: every second one is enough
        lags_.resize(lags_.size() / 2);
        lag_stride_ *= 2;
    }
    if (!ending_.empty()) drop_left_open();
    if (lag_count_ % 64 == 0 || expirations > 32) abort_late();
}

/// Gives up on answers that take too long. Time for which this program was stopped does not count.
void EventLoop::abort_late() {
    const double time = now();
    for (const auto& transfer : transfers_) {
        if (!transfer->busy) continue;
        const auto since = [&](double then) { return time - std::max(then, resumed_at_); };
        const bool late =
            since(task_.records[transfer->index].sent) > task_.options.request_timeout_seconds;
        const bool stalled = since(std::max(transfer->sent, transfer->answer().moved_at())) >
                             task_.options.stall_timeout_seconds;
        if (!late && !stalled) continue;
        transfer->answer().end(
            time, late ? RequestEnd::timed_out : RequestEnd::stalled,
            late ? "no end of the answer in time" : "nothing of the answer for too long");
        finish(*transfer, CURLE_OPERATION_TIMEDOUT);
    }
}

/// An answer is over with its `[DONE]`, whatever its server goes on to send; the connection cannot
/// serve another request.
void EventLoop::drop_left_open() {
    const double time = now();
    for (Transfer* transfer : std::vector<Transfer*>(ending_)) {
        if (time - present(transfer->answer().done_at()) < ending_seconds) continue;
        ++left_open_;
        finish(*transfer, CURLE_OPERATION_TIMEDOUT);
    }
}

void EventLoop::cancel_all() {
    for (const auto& transfer : transfers_) {
        if (!transfer->busy) continue;
        transfer->answer().end(now(), RequestEnd::cancelled, "the run was stopped");
        finish(*transfer, CURLE_ABORTED_BY_CALLBACK);
    }
    const auto cancel = [&](std::size_t index) {
        RequestRecord& record = task_.records[index];
        record.scheduled = record.sent = record.done = now();
        record.error = "the run was stopped before it was sent";
        conclude(index);
    };
    for (; !waiting_.empty(); waiting_.pop_front()) cancel(waiting_.front().first);
    for (; !due_.empty(); due_.pop()) {
        const std::size_t index = due_.top().index;
        cancel(index);
    }
}

}  // namespace servetune
